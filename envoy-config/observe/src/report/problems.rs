//! The problems of a run: their kinds, and the record of those that began and ended.

use serde::{Deserialize, Serialize};

/// The kinds of problems, with their labels in `--json`, in the journal and in `longhaul_problem`.
///
/// A kind and the part that has it, such as a resolver, identify a problem: it is the same one until it ends.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $label:literal,)*) => {
        /// The kind of a problem. A label never changes its meaning, because alerts name it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum ProblemKind {
            $($(#[$doc])* #[serde(rename = $label)] $kind,)*
            /// A kind of another version.
            #[serde(other, rename = "other")]
            Other,
        }

        impl ProblemKind {
            /// Every kind of this version.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// Returns the label.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$kind => $label,)*
                    Self::Other => "other",
                }
            }
        }
    };
}

kinds! {
    /// The box drains before its end.
    Draining = "draining",
    /// A program of the box does not respond.
    ProgramDown = "program_down",
    /// The files are refused, and an earlier configuration is in force.
    ChangeRefused = "change_refused",
    /// The remote has no connection to the ground.
    GroundDown = "ground_down",
    /// Nothing comes back over the link.
    LinkSilent = "link_silent",
    /// The ground's kernel acknowledges, and its program does not respond.
    GroundSilent = "ground_silent",
    /// No caching proxy of `cache.parent` responds.
    ParentsDown = "parents_down",
    /// Listed names are not steered.
    NotSteering = "not_steering",
    /// A list of names is refused or missing.
    ListRefused = "list_refused",
    /// A resolver does not respond.
    ResolverDown = "resolver_down",
    /// Every DNS query fails.
    EveryQueryFails = "every_query_fails",
    /// A certificate is not valid, or ends within days.
    Certificate = "certificate",
    /// An address of the proxy is on no interface.
    AddressMissing = "address_missing",
    /// The packet rules are not loaded any more.
    RulesGone = "rules_gone",
    /// Another firewall drops packets of clients.
    PacketsDropped = "packets_dropped",
    /// Other packet rules take packets of clients first.
    PacketsRedirected = "packets_redirected",
    /// The machine does not forward packets of clients.
    NotForwarding = "not_forwarding",
    /// The kernel drops what the ground sends (`rp_filter`).
    ReversePath = "reverse_path",
    /// Large packets vanish on the way to the other end.
    LargePackets = "large_packets",
    /// A resolver asks this box.
    DnsLoop = "dns_loop",
    /// The ground reports a problem.
    GroundReports = "ground_reports",
    /// The disk of the cache is too small.
    CacheDisk = "cache_disk",
    /// The state folder cannot be written, and the run uses another one.
    StateElsewhere = "state_elsewhere",
    /// The cache is off or smaller than configured, because its folder cannot hold it.
    CacheCut = "cache_cut",
    /// The access log cannot be written or rotated.
    AccessLog = "access_log",
    /// The disk of the access log is full.
    AccessLogDisk = "access_log_disk",
}

/// A problem with its beginning and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemRecord {
    /// Its kind.
    pub kind: ProblemKind,
    /// The part that has it, if several may: a resolver, a program, a certificate.
    pub of: String,
    /// The problem in words.
    pub text: String,
    /// Its beginning, in seconds since 1970.
    pub began: u64,
    /// Its end, in seconds since 1970. None while it stands.
    pub ended: Option<u64>,
}

impl ProblemKind {
    /// Returns true if a ground reports it to its remotes, because it is a reason why their clients wait.
    #[must_use]
    pub const fn is_told(self) -> bool {
        matches!(
            self,
            Self::ProgramDown
                | Self::ResolverDown
                | Self::DnsLoop
                | Self::EveryQueryFails
                | Self::ParentsDown
                | Self::LargePackets
                | Self::CacheDisk
                | Self::CacheCut
                | Self::StateElsewhere
        )
    }
}

impl ProblemRecord {
    /// Returns true if both are the same problem, at whatever time.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        (self.kind, &self.of) == (other.kind, &other.of)
    }

    /// Returns its duration up to `now`, in seconds since 1970. A clock that was set back counts as no time.
    #[must_use]
    pub fn duration_s(&self, now: u64) -> u64 {
        self.ended.unwrap_or(now).saturating_sub(self.began)
    }
}
