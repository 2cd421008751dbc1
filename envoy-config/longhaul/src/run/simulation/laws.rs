//! The laws that every run keeps.

use swarm::Breach;

/// A law that was broken, with what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Broken {
    /// The run ended the Envoy that serves, or let it lose its sockets.
    ServingEnded(String),
    /// An Envoy started while another one was starting.
    TwoTakeovers(String),
    /// An Envoy that drains was ended before its time.
    DrainCut(String),
    /// The configuration of the file, or the last accepted one, is not in force.
    NotInForce(String),
    /// An Envoy or CoreDNS started with a file that was refused.
    RefusedServes(String),
    /// A route is in use, and its cluster is not.
    NoCluster(String),
    /// A child is gone and does not start again.
    NotRestarted(String),
    /// A run outlives its signal.
    EndsLate(String),
    /// A drain ended while a request was under way.
    RequestCut(String),
    /// A process is left when the run has ended.
    LeftBehind(String),
    /// A list of processes grows.
    Unbounded(String),
}

impl Breach for Broken {
    fn law(&self) -> &str {
        self.parts().0
    }

    fn seen(&self) -> &str {
        self.parts().1
    }
}

impl Broken {
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::ServingEnded(seen) => ("the Envoy that serves ends only when another one serves", seen),
            Self::TwoTakeovers(seen) => ("one takeover happens at a time", seen),
            Self::DrainCut(seen) => ("an Envoy that drains has its time", seen),
            Self::NotInForce(seen) => ("the last accepted files are in force, or the run says why not", seen),
            Self::RefusedServes(seen) => ("a refused file changes nothing that serves", seen),
            Self::NoCluster(seen) => ("a route in use has its cluster", seen),
            Self::NotRestarted(seen) => ("a child that died starts again within its back-off", seen),
            Self::EndsLate(seen) => ("a signal ends the run within its bound", seen),
            Self::RequestCut(seen) => ("a drain waits for what is under way", seen),
            Self::LeftBehind(seen) => ("no child is left behind", seen),
            Self::Unbounded(seen) => ("the lists of processes stay bounded", seen),
        }
    }
}
