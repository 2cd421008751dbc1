//! The pair: what one end of the link shows the other.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::Serialize;

use super::Socket;
use super::tls::Certificate;
use super::transport::envoy as envoy_duration;
use crate::config::{Host, HostName, HostPort, Identity, Peer, PipeTransport, Role, Settings, WhenDown};
use crate::render::Artifacts;

/// ALPN of connections that carry one client's bytes each. They carry TLS of the client, routed by its server
/// name, or DNS over TCP: the remote lets nothing else onto them.
const ALPN_BYTES: &str = "longhaul-bytes";
/// ALPN of a ground that dials, while it shows who it is.
const ALPN_DIAL: &str = "longhaul-dial";

/// Tunnels that a ground opens where it is the one that dials: the pipe, a check of it where the remote wants one, and
/// two for what comes after them. Each costs a handshake, and a ping now and then.
const TUNNELS: u32 = 4;
/// Streams of one pipe. Where the remote dials it opens another pipe for more; out of so few tunnels it cannot, and
/// every TLS connection of a client is a stream.
const STREAMS: u32 = 1000;
const STREAMS_OF_A_TUNNEL: u32 = 16_384;

/// The first wait must be nothing beside a round trip: a request whose compressed headers the ground could not read is
/// sent again in another form, and waits as well. Doubling it reaches a second within eight attempts.
const RETRY_FIRST: Duration = Duration::from_millis(10);
/// A pipe that broke in between, and headers that the ground could not read.
const LEAST_RETRIES: u32 = 2;
/// One check may be lost on any link.
const LEAST_FAILURES: u32 = 2;
/// How much later than needed a request may notice that the ground is back.
const RETRY_LAST: Duration = Duration::from_secs(2);
/// While the ground responds, a check costs some 300 bytes of the link: a quarter of a kilobit a second at most.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A box's end of the link; `remote` or `ground` is set.
#[derive(Debug, Serialize)]
pub(in super::super) struct Pair {
    alpn_bytes: &'static str,
    alpn_dial: &'static str,
    /// Our certificate, as a secret of its own: renewed without touching a connection.
    pub(in super::super) certificate: Certificate,
    /// The trust in the other end, as a secret of its own.
    pub(in super::super) authority: PeerTrust,
    /// The resolver for remotes' clients: this box's CoreDNS, which leaves refused addresses out.
    resolver: Option<Socket>,
    remote: Option<RemoteEnd>,
    ground: Option<GroundEnd>,
    /// Most streams on one connection of the pipe.
    streams: u32,
}

/// The end beside the clients.
#[derive(Debug, Serialize)]
struct RemoteEnd {
    /// Where connections to the ground are opened; on this host where it dials.
    ground: Target,
    /// The ground dials, and where.
    dialled: Option<Dialled>,
    /// Where clients meet us: what is sent there and names nobody else has come to its end.
    own_addresses: Vec<Own>,
    /// Where connections are held open that keep others warm.
    hold: Socket,
    /// The same for the pipe.
    hold_pipe: Socket,
    /// The socket where CoreDNS queries the ground's resolver.
    dns: Socket,
    /// Connections are opened ahead of need, each for one client's bytes; without, those are streams of the pipe.
    pool: bool,
    /// Clusters of clients' requests and of their bytes.
    requests: &'static str,
    bytes: &'static str,
    /// Requests cross the link on QUIC.
    quic: bool,
    /// This box connects to origins itself while the ground does not respond.
    direct: bool,
    /// The health check of the ground.
    check: Check,
    /// The retries of requests that the pipe lost.
    again: Again,
    /// Most connections of clients' bytes at one time, warm ones included.
    max_connections: u64,
}

/// The other end as it is dialled.
#[derive(Debug, Serialize)]
struct Target {
    /// Address or name, and port.
    socket: Socket,
    /// It is found by its name.
    by_name: bool,
    /// The server name of an end that is known by name; an address sends none.
    server_name: Option<String>,
    /// The resolvers that know the address of an end given by name.
    resolvers: Vec<Socket>,
}

/// How a ground that dials is met.
#[derive(Debug, Serialize)]
struct Dialled {
    /// Where its tunnels come in.
    listen: Socket,
    /// Where the pipe is led into one of them.
    near: Socket,
}

/// Checks of the ground, in Envoy's notation.
#[derive(Debug, Serialize)]
struct Check {
    /// Between two of them.
    interval: String,
    /// The same after a failed check.
    failing_interval: String,
    /// How long one may take.
    timeout: String,
    /// After so many failed checks in a row, the ground counts as down.
    failures: u32,
}

/// How requests are sent again that may be.
#[derive(Debug, Serialize)]
struct Again {
    /// How often.
    retries: u32,
    /// Waits before that: at most so much before the first, twice as much before each next, and never more than the last.
    first: String,
    last: String,
}

/// One of our addresses, and the length of the prefix that is it alone.
#[derive(Debug, Serialize)]
struct Own {
    text: String,
    bits: u8,
}

/// The end on the wired side.
#[derive(Debug, Serialize)]
struct GroundEnd {
    /// None: it dials.
    listen: Option<Socket>,
    /// The remote it dials.
    dials: Option<Target>,
    /// How many tunnels to it are kept open.
    tunnels: u32,
}

/// The trust in the other end of the link.
#[derive(Debug, Serialize)]
pub(in super::super) struct PeerTrust {
    pub(in super::super) file: &'static str,
    name: &'static str,
    /// Authorities that sign for the pair, as a PEM file.
    ca: String,
    /// The folder in which a renewed file appears.
    dir: String,
    /// The peer's certificate must bear one of these names.
    pinned: Vec<Pinned>,
}

/// A subject alternative name and a matcher of it, in Envoy's notation.
#[derive(Debug, Serialize)]
struct Pinned {
    san_type: &'static str,
    matcher: String,
}

impl Pair {
    /// None for a box alone.
    pub(super) fn new(settings: &Settings, artifacts: &Artifacts) -> Option<Self> {
        match &settings.role {
            Role::Edge => None,
            Role::Remote(remote) => {
                let direct = remote.when_down == WhenDown::Direct;
                let rtt = settings.link.rtt;
                // Where the ground dials, there is a tunnel or there is none: that is known here.
                let attempt = if remote.ground.dials() { Duration::ZERO } else { rtt };
                let end = RemoteEnd {
                    ground: match &remote.ground {
                        Peer::Dialled { at } => Target::of(at, settings),
                        Peer::Dials { .. } => Target::near(artifacts.near.dialled),
                    },
                    dialled: remote
                        .ground
                        .listen()
                        .map(|listen| Dialled { listen: listen.into(), near: artifacts.near.dialled.into() }),
                    own_addresses: settings.proxy.addresses.iter().copied().map(Own::from).collect(),
                    hold: artifacts.near.hold.into(),
                    hold_pipe: artifacts.near.hold_pipe.into(),
                    dns: artifacts.near.dns.into(),
                    pool: remote.warm > 0,
                    requests: if direct { "pipe_or_direct" } else { "pipe" },
                    bytes: if direct { "warm_or_direct" } else { "warm" },
                    quic: remote.transport == PipeTransport::H3,
                    direct,
                    check: if direct { Check::to_go_past(rtt) } else { Check::to_give_up(rtt, remote.restart_wait) },
                    again: if direct {
                        Again::then_past()
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
                        Peer::Dialled { at } => Some(Target::of(at, settings)),
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
    fn of(at: &HostPort, settings: &Settings) -> Self {
        Self {
            socket: Socket { address: at.host.to_string(), port: at.port },
            by_name: matches!(at.host, Host::Name(_)),
            server_name: match &at.host {
                Host::Name(name) => Some(name.to_string()),
                Host::Address(_) => None,
            },
            resolvers: settings.upstream.resolvers.iter().copied().map(Socket::from).collect(),
        }
    }

    /// On this host.
    fn near(socket: SocketAddr) -> Self {
        Self { socket: socket.into(), by_name: false, server_name: None, resolvers: Vec::new() }
    }
}

impl Check {
    /// One failed check is enough, because going direct for a while costs less than waiting.
    fn to_go_past(rtt: Duration) -> Self {
        let interval = envoy_duration(Self::failing(rtt));
        Self { interval: interval.clone(), failing_interval: interval, timeout: Self::timeout(rtt), failures: 1 }
    }

    /// As many failed checks as fit into the retries, for a ground that refuses connections. A ground whose checks time
    /// out may be behind an outage of the link, so it gets three times as long and more.
    fn to_give_up(rtt: Duration, restart_wait: Duration) -> Self {
        let each = Self::failing(rtt) + rtt;
        Self {
            interval: envoy_duration(CHECK_INTERVAL),
            failing_interval: envoy_duration(Self::failing(rtt)),
            timeout: Self::timeout(rtt),
            failures: u32::try_from(restart_wait.as_millis().div_ceil(each.as_millis()))
                .unwrap_or(u32::MAX)
                .max(LEAST_FAILURES),
        }
    }

    fn failing(rtt: Duration) -> Duration {
        Duration::from_secs(1) + rtt * 2
    }

    /// The first check of a connection takes three round trips, and finds the link's queue full at times.
    fn timeout(rtt: Duration) -> String {
        envoy_duration(Duration::from_secs(2) + rtt * 4)
    }
}

impl Again {
    /// Two until the ground is left alone, and two on the way past it.
    fn then_past() -> Self {
        Self::times(4)
    }

    /// As often as fits into a restart of the ground, each failed `attempt` taking so long.
    fn until_restarted(attempt: Duration, restart_wait: Duration) -> Self {
        let (mut retries, mut longest, mut passed) = (LEAST_RETRIES, RETRY_FIRST, Duration::ZERO);
        while passed < restart_wait {
            retries += 1;
            // Envoy draws each wait between nothing and the longest it may be.
            passed += longest / 2 + attempt;
            longest = (longest * 2).min(RETRY_LAST);
        }
        Self::times(retries)
    }

    fn times(retries: u32) -> Self {
        Self { retries, first: envoy_duration(RETRY_FIRST), last: envoy_duration(RETRY_LAST) }
    }
}

impl From<IpAddr> for Own {
    fn from(address: IpAddr) -> Self {
        Self { text: address.to_string(), bits: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl Pinned {
    /// The names that the certificate of `peer` may be for.
    fn all(peer: &Peer) -> Vec<Self> {
        match peer {
            Peer::Dialled { at } => vec![Self::of(&at.host)],
            Peer::Dials { names, .. } => names.iter().map(Self::name).collect(),
        }
    }

    /// By an expression: Envoy's exact matcher of DNS names takes `*.example`, and any case, for `ship.example`.
    fn name(name: &HostName) -> Self {
        let literal = name.to_string().replace('.', "[.]");
        Self { san_type: "DNS", matcher: format!("safe_regex: {{ google_re2: {{}}, regex: \"{literal}\" }}") }
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

    fn seconds(text: &str) -> f64 {
        text.trim_end_matches('s').parse().unwrap()
    }

    /// How long a request is sent again at the most, and half of that on average.
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

    #[test]
    fn a_ground_that_refuses_is_given_up_no_sooner_than_that_and_a_silent_one_later() {
        let (rtt, wait) = (Duration::from_millis(600), Duration::from_secs(15));
        let check = Check::to_give_up(rtt, wait);
        let failures = f64::from(check.failures);
        let [refused, silent] =
            [0.6, seconds(&check.timeout)].map(|each| failures * (seconds(&check.failing_interval) + each));
        assert!((15.0..18.0).contains(&refused) && silent > 2.0 * refused, "{refused}, {silent}");
        assert_eq!(Check::to_give_up(rtt, Duration::ZERO).failures, LEAST_FAILURES);
        assert_eq!(Check::to_go_past(rtt).failures, 1);
    }
}
