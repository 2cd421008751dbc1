//! The properties of this machine that derived values depend on.

use std::fs;

use rustix::thread::sched_getaffinity;

use super::cgroup::CgroupLimits;

/// The facts about one machine. Tests, and `render` for another machine, use [`HostFacts::unknown`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// The congestion controls that sockets of this process may use.
    pub congestion_controls: CongestionControls,
    /// The processors on which this process may run (`sched_getaffinity(2)`, cpuset). None: not known.
    pub processors: Option<u32>,
    /// The limits of its control group.
    pub cgroup: CgroupLimits,
    /// True if the kernel can bound TCP's retransmission timer (`TCP_RTO_MAX_MS`, Linux 6.15).
    pub bounds_retransmission: bool,
    /// True if the kernel has Multipath TCP, switched on.
    pub multipath: bool,
}

/// The TCP congestion controls that a socket may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CongestionControls {
    /// The kernel's lists are not known. The derived congestion control is assumed to exist.
    Unknown,
    /// The lists that the kernel reports.
    Known {
        /// The congestion controls that an unprivileged process may set (`tcp_allowed_congestion_control`).
        allowed: Vec<String>,
        /// The congestion controls that a process with `CAP_NET_ADMIN` may set (`tcp_available_congestion_control`).
        available: Vec<String>,
        /// The congestion control of sockets that set none (`tcp_congestion_control`).
        default: String,
    },
}

impl HostFacts {
    /// Returns the facts about a machine that is not known.
    pub fn unknown() -> Self {
        Self {
            congestion_controls: CongestionControls::Unknown,
            processors: None,
            cgroup: CgroupLimits::default(),
            bounds_retransmission: false,
            multipath: false,
        }
    }

    /// Reads the facts from the running kernel.
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
        let processors = sched_getaffinity(None).ok().map(|set| set.count());
        // The socket option came with this default for sockets without it.
        let bounds_retransmission = read("tcp_rto_max_ms").is_ok();
        let multipath = fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|on| on.trim() == "1");
        let cgroup = CgroupLimits::of_this_process();
        Self { congestion_controls, processors, cgroup, bounds_retransmission, multipath }
    }
}
