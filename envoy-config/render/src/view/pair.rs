//! The pair: the values of one box for its connection to the other.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use super::Socket;
use super::tls::Certificate;
use super::transport::envoy as envoy_duration;
use crate::Artifacts;
use longhaul_config::{
    Host, HostName, HostPort, Identity, Link, Peer, PeerName, PipeTransport, Role, Settings, WhenDown,
};
use longhaul_derive::{Derived, Intervals};

/// The ALPN of connections that each carry the bytes of one client. The bytes are TLS, routed by server name, or DNS
/// over TCP. The remote puts nothing else on these connections.
const ALPN_BYTES: &str = "longhaul-bytes";
/// The ALPN of a ground that dials, while it authenticates itself.
pub const ALPN_DIAL: &str = "longhaul-dial";

/// The first word of a line about a failed handshake. `longhaul run` reads these lines from Envoy's stderr.
pub const HANDSHAKE_MARK: &str = "@handshake";

/// The number of tunnels that a ground opens if it dials: one for the pipe, one for its health check, and two for their
/// successors. Each costs a handshake and a ping now and then.
const TUNNELS: u32 = 4;
/// The most streams on one pipe. If the remote dials, it opens another pipe for more.
const STREAMS: u32 = 1000;
/// The most streams on one pipe in a tunnel. The remote cannot open more pipes than there are tunnels, and every TLS
/// connection of a client is a stream.
const STREAMS_OF_A_TUNNEL: u32 = 16_384;

/// The longest wait before the first retry. It must be negligible beside a round trip, because a request whose
/// compressed headers the ground could not read waits, too, before it is sent again in another form. Doubling it
/// reaches a second within eight attempts.
const RETRY_FIRST: Duration = Duration::from_millis(10);
/// The least number of retries: one for a pipe that broke, and one for headers that the ground could not read.
const LEAST_RETRIES: u32 = 2;
/// The least number of failed checks in a row. Any link may lose one check.
const LEAST_FAILURES: u32 = 2;
/// The longest wait before a retry. A request notices at most this late that the ground is back.
const RETRY_LAST: Duration = Duration::from_secs(2);

/// This box's end of the link. Either `remote` or `ground` is set.
#[derive(Debug, Serialize)]
pub(crate) struct Pair {
    alpn_bytes: &'static str,
    alpn_dial: &'static str,
    handshake_mark: &'static str,
    /// The certificate of this box. It is a separate secret, so that its renewal affects no connection.
    pub(crate) certificate: Certificate,
    /// The trust in the other end, as a separate secret.
    pub(crate) authority: PeerTrust,
    /// The resolver for the clients of remotes: this box's CoreDNS, which leaves refused addresses out.
    resolver: Option<Socket>,
    remote: Option<RemoteEnd>,
    ground: Option<GroundEnd>,
    /// The most streams on one connection of the pipe.
    streams: u32,
}

/// The end of the link beside the clients.
#[derive(Debug, Serialize)]
struct RemoteEnd {
    /// The target of connections to the ground. It is on this host if the ground dials.
    ground: Target,
    /// The sockets for a ground that dials. None: the remote dials.
    dialled: Option<Dialled>,
    /// The socket for held connections that keep other connections warm.
    hold: Socket,
    /// The socket for held connections that keep the pipe open.
    hold_pipe: Socket,
    /// The socket where CoreDNS queries the ground's resolver.
    dns: Socket,
    /// True if something that is open already carries each client's bytes. Otherwise each opens a stream of the pipe.
    pool: bool,
    /// The places in the rotation of each worker, if that is a stream of the pipe. None: a connection.
    rotation: Option<u32>,
    /// The connections of Envoy's pool for each one in use.
    preconnect_ratio: u64,
    /// The clusters of clients' requests and of their bytes.
    requests: &'static str,
    bytes: &'static str,
    /// True if requests cross the link on QUIC.
    quic: bool,
    /// True if this box connects to origins itself while the ground does not respond.
    direct: bool,
    /// The number of ways: one for each ground, and one if this box connects to origins itself.
    ways: usize,
    /// The largest share of grounds that Envoy may eject because they refused connections, in percent. One stays if
    /// there is no way to origins without a ground.
    most_ejected: usize,
    /// The health check of the ground.
    check: Check,
    /// The retries of requests that the pipe lost.
    again: Again,
    /// The most connections for clients' bytes at one time, including warm ones.
    max_connections: u64,
}

/// The other end, as it is dialled.
#[derive(Debug, Serialize)]
struct Target {
    /// The address or name and the port of each box, in the order of their use.
    sockets: Vec<Socket>,
    /// True if a box is given by name.
    by_name: bool,
    /// The server name. None for a box given by address, and for several: each then gets its own.
    server_name: Option<String>,
    /// The resolvers for a box given by name.
    resolvers: Vec<Socket>,
    /// The time between two queries for its address.
    refresh: String,
}

/// The sockets of a remote for a ground that dials.
#[derive(Debug, Serialize)]
struct Dialled {
    /// The socket at which the ground's tunnels arrive.
    listen: Socket,
    /// The loopback socket through which the pipe enters a tunnel.
    near: Socket,
}

/// The health check of the ground, in Envoy's notation.
#[derive(Debug, Serialize)]
struct Check {
    /// The time between two checks.
    interval: String,
    /// The time between two checks after a failed one.
    failing_interval: String,
    /// The time after which a check fails.
    timeout: String,
    /// The number of failed checks in a row after which the ground counts as down.
    failures: u32,
}

/// The retries of requests that are safe to retry.
#[derive(Debug, Serialize)]
struct Again {
    /// The number of retries.
    retries: u32,
    /// The longest wait before the first retry. It doubles before each further retry, up to `last`.
    first: String,
    last: String,
}

/// The end of the link on the wired side.
#[derive(Debug, Serialize)]
struct GroundEnd {
    /// The listener for the remote. None: the ground dials.
    listen: Option<Socket>,
    /// The remote to dial. None: the remote dials.
    dials: Option<Target>,
    /// The number of tunnels to keep open if the ground dials.
    tunnels: u32,
}

/// The trust in the other end of the link.
#[derive(Debug, Serialize)]
pub(crate) struct PeerTrust {
    pub(crate) file: &'static str,
    name: &'static str,
    /// The PEM file of the certificate authorities that sign for the pair.
    ca: String,
    /// The folder in which a renewed file appears.
    dir: String,
    /// The names of the peer. Its certificate must have one of them.
    pinned: Vec<Pinned>,
}

/// The type of a subject alternative name and a matcher for it, in Envoy's notation.
#[derive(Debug, Serialize)]
struct Pinned {
    san_type: &'static str,
    matcher: String,
}

impl Pair {
    /// Returns the pair's values. Returns None for an edge.
    pub(super) fn new(settings: &Settings, derived: &Derived, artifacts: &Artifacts) -> Option<Self> {
        let intervals = &derived.intervals;
        match &settings.role {
            Role::Edge => None,
            Role::Remote(remote) => {
                let direct = remote.when_down == WhenDown::Direct;
                let rtt = settings.link.rtt;
                let grounds = remote.ground.dialled().len().max(1);
                let ways = grounds + usize::from(direct);
                // If the ground dials, this box knows at once whether there is a tunnel. A failed attempt then takes no
                // time.
                let attempt = if remote.ground.dials() { Duration::ZERO } else { rtt };
                let end = RemoteEnd {
                    ground: match &remote.ground {
                        Peer::Dialled { at } => Target::of(at, settings, intervals),
                        Peer::Dials { .. } => Target::near(artifacts.near.dialled),
                    },
                    dialled: remote
                        .ground
                        .listen()
                        .map(|listen| Dialled { listen: listen.into(), near: artifacts.near.dialled.into() }),
                    hold: artifacts.near.hold.into(),
                    hold_pipe: artifacts.near.hold_pipe.into(),
                    dns: artifacts.near.dns.into(),
                    pool: remote.warm > 0,
                    rotation: remote.rotation(derived.capacity.workers.value),
                    preconnect_ratio: remote.warm_as.opened_by_one(),
                    requests: if direct { "pipe_or_direct" } else { "pipe" },
                    bytes: if direct { "warm_or_direct" } else { "warm" },
                    quic: remote.transport == PipeTransport::H3,
                    direct,
                    ways,
                    most_ejected: if direct || grounds == 1 { 100 } else { 100 * (grounds - 1) / grounds },
                    check: match (direct, grounds) {
                        (true, _) => Check::to_go_past(&settings.link, intervals),
                        (false, 1) => Check::to_give_up(&settings.link, intervals, remote.restart_wait),
                        (false, _) => Check::to_change(&settings.link, intervals),
                    },
                    again: if direct {
                        Again::on_each(ways)
                    } else {
                        Again::until_restarted(attempt, remote.restart_wait)
                    },
                    max_connections: u64::from(settings.limits.connections) + 4 * u64::from(remote.warm),
                };
                Some(Self::of(settings, &remote.identity, &remote.ground, artifacts, Some(end), None))
            }
            Role::Ground(ground) => {
                let end = GroundEnd {
                    listen: ground.remote.listen().map(Socket::from),
                    dials: match &ground.remote {
                        Peer::Dialled { at } => Some(Target::of(at, settings, intervals)),
                        Peer::Dials { .. } => None,
                    },
                    tunnels: TUNNELS,
                };
                Some(Self::of(settings, &ground.identity, &ground.remote, artifacts, None, Some(end)))
            }
        }
    }

    fn of(
        settings: &Settings,
        identity: &Identity,
        peer: &Peer,
        artifacts: &Artifacts,
        remote: Option<RemoteEnd>,
        ground: Option<GroundEnd>,
    ) -> Self {
        Self {
            alpn_bytes: ALPN_BYTES,
            alpn_dial: ALPN_DIAL,
            handshake_mark: HANDSHAKE_MARK,
            certificate: Certificate::of_pair(identity, artifacts),
            authority: PeerTrust::new(identity, peer, artifacts),
            resolver: artifacts.resolver.map(Socket::from),
            remote,
            ground,
            streams: if settings.role.ground_dials() { STREAMS_OF_A_TUNNEL } else { STREAMS },
        }
    }
}

impl PeerTrust {
    fn new(identity: &Identity, peer: &Peer, artifacts: &Artifacts) -> Self {
        Self {
            file: "sds/authority.yaml",
            name: "authority",
            ca: identity.ca.display().to_string(),
            dir: artifacts.watched_for(&identity.ca),
            pinned: Pinned::all(peer),
        }
    }
}

impl Target {
    fn of(at: &[HostPort], settings: &Settings, intervals: &Intervals) -> Self {
        Self {
            sockets: at.iter().map(|at| Socket { address: at.host.to_string(), port: at.port }).collect(),
            by_name: at.iter().any(|at| at.host.is_name()),
            server_name: match at {
                [HostPort { host: Host::Name(name), .. }] => Some(name.to_string()),
                _ => None,
            },
            resolvers: settings.upstream.resolvers.iter().copied().map(Socket::from).collect(),
            refresh: envoy_duration(intervals.resolve),
        }
    }

    /// Returns a target on this host.
    fn near(socket: SocketAddr) -> Self {
        Self {
            sockets: vec![socket.into()],
            by_name: false,
            server_name: None,
            resolvers: Vec::new(),
            refresh: String::new(),
        }
    }
}

impl Check {
    /// Returns the check of a remote that goes direct. One failed check is enough, because going direct for a while
    /// costs less than waiting.
    fn to_go_past(link: &Link, intervals: &Intervals) -> Self {
        Self {
            interval: envoy_duration(intervals.check_before_a_switch),
            failing_interval: envoy_duration(Self::failing(link.rtt)),
            timeout: Self::timeout(link),
            failures: 1,
        }
    }

    /// Returns the check of a remote with several grounds. A single lost check does not move all clients to another
    /// ground, where nothing is known of them.
    fn to_change(link: &Link, intervals: &Intervals) -> Self {
        Self { failures: LEAST_FAILURES, ..Self::to_go_past(link, intervals) }
    }

    /// Returns the check of a remote that waits for a restart. The ground counts as down after as many failed checks as
    /// fit into `restart_wait`, if it refuses connections.
    ///
    /// If checks time out, there may be an outage of the link. Then it takes three times as long or more.
    fn to_give_up(link: &Link, intervals: &Intervals, restart_wait: Duration) -> Self {
        let each = Self::failing(link.rtt) + link.rtt;
        Self {
            interval: envoy_duration(intervals.check),
            failing_interval: envoy_duration(Self::failing(link.rtt)),
            timeout: Self::timeout(link),
            failures: u32::try_from(restart_wait.as_millis().div_ceil(each.as_millis()))
                .unwrap_or(u32::MAX)
                .max(LEAST_FAILURES),
        }
    }

    fn failing(rtt: Duration) -> Duration {
        Duration::from_secs(1) + rtt * 2
    }

    /// Returns the timeout of a check: 2 s + 4 x RTT, because the first check on a connection takes three round trips,
    /// and the time in a full queue. Otherwise a page that fills a slow link would make the ground count as down.
    fn timeout(link: &Link) -> String {
        envoy_duration(Duration::from_secs(2) + link.rtt * 4 + link.queueing_delay())
    }
}

impl Again {
    /// Returns the retries of a remote that goes direct: two on each of its ways.
    fn on_each(ways: usize) -> Self {
        Self::times(u32::try_from(2 * ways).unwrap_or(u32::MAX))
    }

    /// Returns [`LEAST_RETRIES`] and as many more as fit into `restart_wait`, if each failed attempt takes `attempt`.
    fn until_restarted(attempt: Duration, restart_wait: Duration) -> Self {
        let (mut retries, mut longest, mut passed) = (LEAST_RETRIES, RETRY_FIRST, Duration::ZERO);
        while passed < restart_wait {
            retries += 1;
            // Envoy draws each wait uniformly from zero to the longest wait, so the mean is half of it.
            passed += longest / 2 + attempt;
            longest = (longest * 2).min(RETRY_LAST);
        }
        Self::times(retries)
    }

    fn times(retries: u32) -> Self {
        Self { retries, first: envoy_duration(RETRY_FIRST), last: envoy_duration(RETRY_LAST) }
    }
}

impl Pinned {
    /// Returns a matcher for each name that the certificate of `peer` may have.
    fn all(peer: &Peer) -> Vec<Self> {
        match peer {
            Peer::Dialled { at } => at.iter().map(|at| Self::of(&at.host)).collect(),
            Peer::Dials { names, .. } => names.iter().map(Self::accepted).collect(),
        }
    }

    /// Matches a name by a regular expression. Envoy's exact matcher of DNS names would accept `*.example` for
    /// `ship.example`, and any case.
    fn name(name: &HostName) -> Self {
        let literal = name.to_string().replace('.', "[.]");
        Self { san_type: "DNS", matcher: format!("safe_regex: {{ google_re2: {{}}, regex: \"{literal}\" }}") }
    }

    fn accepted(name: &PeerName) -> Self {
        match name {
            PeerName::Exact(name) => Self::name(name),
            PeerName::Below(name) => {
                let literal = name.to_string().replace('.', "[.]");
                let matcher = format!("safe_regex: {{ google_re2: {{}}, regex: \"[a-z0-9_-]+[.]{literal}\" }}");
                Self { san_type: "DNS", matcher }
            }
            // The characters of a SPIFFE ID need no quotes.
            PeerName::Spiffe { id, is_prefix } => {
                Self { san_type: "URI", matcher: format!("{}: \"{id}\"", if *is_prefix { "prefix" } else { "exact" }) }
            }
        }
    }

    fn of(host: &Host) -> Self {
        match host {
            Host::Name(name) => Self::name(name),
            Host::Address(address) => Self { san_type: "IP_ADDRESS", matcher: format!("exact: \"{address}\"") },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_config::Price;
    use longhaul_config::units::Rate;

    fn seconds(text: &str) -> f64 {
        text.trim_end_matches('s').parse().unwrap()
    }

    /// Returns the longest time for which a request is retried, in seconds. The mean of the waits is half as long.
    fn longest(again: &Again, attempt: Duration) -> f64 {
        let (first, last) = (seconds(&again.first), seconds(&again.last));
        let waits = (0..again.retries).scan(first, |wait, _| Some(std::mem::replace(wait, (*wait * 2.0).min(last))));
        waits.sum::<f64>() + f64::from(again.retries) * attempt.as_secs_f64()
    }

    #[test]
    fn requests_are_sent_again_for_as_long_as_was_said_on_any_link() {
        for rtt in [20, 600, 2000].map(Duration::from_millis) {
            for wait in [2, 15, 120].map(Duration::from_secs) {
                let longest = longest(&Again::until_restarted(rtt, wait), rtt);
                let said = wait.as_secs_f64();
                assert!((said..2.0 * said + 9.0).contains(&longest), "{rtt:?}, {wait:?}: {longest}");
            }
        }
        assert_eq!(Again::until_restarted(Duration::ZERO, Duration::ZERO).retries, LEAST_RETRIES);
    }

    fn link(rtt: Duration, up: u64) -> Link {
        let down = Rate::from_bits_per_second(20_000_000);
        Link { rtt, down, up: Rate::from_bits_per_second(up), price: Price::Free }
    }

    #[test]
    fn a_ground_that_refuses_is_given_up_no_sooner_than_that_and_a_silent_one_later() {
        let (rtt, wait) = (Duration::from_millis(600), Duration::from_secs(15));
        let link = link(rtt, 20_000_000);
        let intervals = Intervals::of(&link, &Role::Edge);
        let check = Check::to_give_up(&link, &intervals, wait);
        let failures = f64::from(check.failures);
        let [refused, silent] =
            [0.6, seconds(&check.timeout)].map(|each| failures * (seconds(&check.failing_interval) + each));
        assert!((15.0..18.0).contains(&refused) && silent > 2.0 * refused, "{refused}, {silent}");
        assert_eq!(Check::to_give_up(&link, &intervals, Duration::ZERO).failures, LEAST_FAILURES);
        assert_eq!(Check::to_go_past(&link, &intervals).failures, 1);
    }

    #[test]
    fn a_check_outlasts_the_full_queue_of_a_slow_link() {
        let timeout = |up| seconds(&Check::timeout(&link(Duration::from_millis(600), up)));
        assert!(timeout(30_000) > 4.4 + f64::from(60_000 * 8) / 30_000.0);
        assert!(timeout(2_000_000) < 5.0);
    }
}
