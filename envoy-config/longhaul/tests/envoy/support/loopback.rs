//! Loopback addresses of one test, so that tests can run at the same time with any ports.

use std::net::{IpAddr, Ipv4Addr};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A block of sixteen addresses in 127.0.0.0/8. No other test here has it, and no other run on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block(u32);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Block {
    pub(crate) fn new() -> Self {
        let first = u32::from(Ipv4Addr::new(127, 80, 0, 0));
        let slot = (process::id() % 1024) * 128 + NEXT.fetch_add(1, Ordering::Relaxed) % 128;
        Self(first + slot * 16)
    }

    /// The `n`th address, from 1.
    pub(crate) fn at(self, n: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(self.0 + n))
    }

    /// The whole block, for `upstream.allow_private`.
    pub(crate) fn net(self) -> String {
        format!("{}/28", self.at(0))
    }
}
