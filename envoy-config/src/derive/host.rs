//! What the machine itself can do, as far as a derived value depends on it.

use std::fs;

/// Facts about this machine. Tests and `render` on another machine use [`HostFacts::unknown`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// Which congestion controls sockets of ours may ask for.
    pub congestion_controls: CongestionControls,
}

/// Congestion controls a socket may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CongestionControls {
    /// The kernel was not asked: whatever is derived is taken to exist.
    Unknown,
    /// The kernel's own list.
    Known {
        /// What an ordinary process may set (`tcp_allowed_congestion_control`).
        allowed: Vec<String>,
        /// What a process with `CAP_NET_ADMIN` may set (`tcp_available_congestion_control`).
        available: Vec<String>,
        /// What sockets have that ask for nothing.
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
