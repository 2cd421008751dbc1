//! The abilities of the machine that derived values depend on.

use std::fs;

/// Facts about this machine. Tests and `render` on another machine use [`HostFacts::unknown`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// The congestion controls that sockets of this process may use.
    pub congestion_controls: CongestionControls,
}

/// Congestion controls that a socket may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CongestionControls {
    /// The kernel was not asked: whatever is derived is taken to exist.
    Unknown,
    /// The kernel's own list.
    Known {
        /// The controls that an ordinary process may set (`tcp_allowed_congestion_control`).
        allowed: Vec<String>,
        /// The controls that a process with `CAP_NET_ADMIN` may set (`tcp_available_congestion_control`).
        available: Vec<String>,
        /// The control of sockets that set none.
        default: String,
    },
}

impl HostFacts {
    /// Nothing is known.
    pub fn unknown() -> Self {
        Self { congestion_controls: CongestionControls::Unknown }
    }

    /// Asks the running kernel.
    pub fn of_this_machine() -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"));
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let congestion_controls = match (
            read("tcp_allowed_congestion_control"),
            read("tcp_available_congestion_control"),
            read("tcp_congestion_control"),
        ) {
            (Ok(allowed), Ok(available), Ok(default)) => CongestionControls::Known {
                allowed: words(allowed),
                available: words(available),
                default: default.trim().to_owned(),
            },
            _ => CongestionControls::Unknown,
        };
        Self { congestion_controls }
    }
}
