//! The listener of `listen.tcp`.

use longhaul_config::OtherPorts;
use serde::Serialize;

use super::Bound;
use crate::guard::{Guard, Range};

/// The listener for other TCP ports of clients.
#[derive(Debug, Serialize)]
pub(super) struct OtherPortsListener {
    sockets: Bound,
    /// The destinations to which it opens no connection: this box, and special addresses. Each stands here once.
    closed: Vec<Range>,
}

impl OtherPortsListener {
    pub(super) fn new(ports: &OtherPorts, guard: &Guard) -> Self {
        let own = guard.own.iter().map(|own| Range { address: own.address, length: own.length });
        let mut closed: Vec<Range> = Vec::new();
        for range in guard.refused.iter().cloned().chain(own) {
            if !closed.contains(&range) {
                closed.push(range);
            }
        }
        Self { sockets: Bound::from(&ports.sockets), closed }
    }
}
