//! The support of the tests: one box, its origins, their DNS, and a client, all on loopback addresses of one test.

pub(crate) mod config;
pub(crate) mod dns;
pub(crate) mod envoy;
pub(crate) mod h2;
pub(crate) mod http;
pub(crate) mod loopback;
pub(crate) mod namespace;
pub(crate) mod origin;
pub(crate) mod packing;
pub(crate) mod tls;

use std::thread;
use std::time::{Duration, Instant};

use envoy::PATIENCE;

/// Waits until `holds`, or fails with `what`.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}
