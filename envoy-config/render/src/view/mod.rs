//! The values that templates use. Every decision is made here, so a template only places values.

mod bytes;
mod challenges;
mod other_ports;
pub(super) mod pair;
mod parents;
pub(crate) mod share;
mod tls;
mod transport;
mod upgrades;
mod upstream;

use std::net::{IpAddr, SocketAddr};

use bytes::BytesListener;
use challenges::Challenges;
use http_semantics::body_fields::{Change, gone_beside_envoy};
use http_semantics::content_encoding::compressible;
use http_semantics::labels;
use ipnet::Ipv4Net;
use longhaul_config::{AccessLog, Ground, Intercept, LoggedClients, PipeTransport, Role, Settings, Sockets};
use longhaul_derive::{Compressors, Derived, LevelInUse};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::artifacts::Artifacts;
use super::engine::RenderError;
use super::filters::{self, Positions};
use super::guard::Guard;
use super::images::{self, Images};
use super::marks::Mark;
use super::objects::Objects;
use other_ports::OtherPortsListener;
use pair::Pair;
use parents::Parents;
use share::Share;
use tls::{Certificate, TlsListener};
use transport::Commented;
use upgrades::Upgrades;
use upstream::Mapped;

/// The time after which a stream that is under way has a line with its bytes, and then again.
const BILL_INTERVAL: &str = "10s";

/// The values that a template may use, as `v`.
#[derive(Debug, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts that templates ask for")]
pub(super) struct View {
    root: String,
    state: String,
    /// The role: `edge`, `remote` or `ground`.
    role: &'static str,
    reaches_origins: bool,
    pub(super) pair: Option<Pair>,
    /// The limit of what this box sends over the link, and the shares of it.
    share: Option<Share>,
    /// The listeners of connections that pass unread. Each but the one behind the hops of `share` has a cluster of its name.
    bytes_listeners: Vec<BytesListener>,
    /// The name of this box for Envoy.
    node_id: String,
    /// The token of this box in `CDN-Loop`, by which it recognises a request that comes back. It survives restarts and
    /// differs between boxes.
    cdn_id: String,
    admin: String,
    /// The listener for http.
    http: Bound,
    /// The listener for other TCP ports.
    other_ports: Option<OtherPortsListener>,
    /// The window of each connection in the hops between the listeners of a remote and the pipe, in bytes.
    hop_window: u32,
    /// True if clients' packets for other addresses reach the listeners. The kernel then knows the original
    /// destination.
    intercepts: bool,
    /// True if the listeners' sockets accept foreign destination addresses as their own (TPROXY).
    transparent: bool,
    tls: Option<TlsListener>,
    challenges: Option<Challenges>,
    edges: Edges,
    pub(super) certificates: Vec<Certificate>,
    transport: minijinja::Value,
    upgrades: Upgrades,
    /// The proxy's addresses, at which clients reach this box. Traffic to them that names no other host ends here.
    own_addresses: Vec<Own>,
    /// The addresses of names before the truth is known. They say nothing about a destination: the name decides.
    instant: Option<Own>,
    max_connections: u32,
    heap_bytes: Commented<u64>,
    compress: Compress,
    /// The program that recodes images.
    images: Option<Images>,
    /// The program that caches objects.
    objects: Option<Objects>,
    /// The caching proxies through which http origins are reached.
    parents: Option<Parents>,
    guard: Guard,
    /// The regular expression of the server names that Envoy accepts.
    server_name: &'static str,
    /// The regular expression of those of them that have an underscore.
    name_with_underscore: &'static str,
    /// The authority of a CONNECT whose name is in a header field.
    named_in_header: &'static str,
    /// The regular expression of server names that a ground cannot resolve.
    not_public: &'static str,
    without_host: &'static str,
    resolvers: Vec<Socket>,
    dns_cache: String,
    mapped: Vec<Mapped>,
    trusted_ca: String,
    access_log: Option<LogTarget>,
    /// The first word of a line for `longhaul run` about a page.
    page_mark: Option<&'static str>,
    /// The mark of lines with the bytes of a client. None: nobody counts them.
    bill_mark: Option<&'static str>,
    bill_interval: &'static str,
    /// True if a filter sends requests of its own.
    fetches: bool,
    /// True if the native module runs the filters.
    native: bool,
    /// The ways for such requests of native filters. None: there are none.
    calls: Option<Calls>,
    tracing: Option<Spans>,
    /// The labels of the filters' metrics.
    metric_labels: &'static [&'static str],
    /// The regular expression of the media types worth compressing.
    compressible: String,
    /// The regular expression of the `Content-Type` of such media types.
    compressible_type: String,
    /// Response fields that describe a body, and that no compressor of Envoy removes when they become untrue.
    untrue_when_compressed: Vec<&'static str>,
    /// The filters, by the name of the position. None: the position is left out.
    pub(super) filters: Positions,
}

/// An address and port, in the two fields that Envoy expects.
#[derive(Debug, Serialize)]
struct Socket {
    address: String,
    port: u16,
}

/// An address of the proxy with the length of its host prefix, or a range of addresses that lead to it.
#[derive(Debug, Serialize)]
struct Own {
    text: String,
    bits: u8,
}

impl From<IpAddr> for Own {
    fn from(address: IpAddr) -> Self {
        Self { text: address.to_string(), bits: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl From<Ipv4Net> for Own {
    fn from(range: Ipv4Net) -> Self {
        Self { text: range.network().to_string(), bits: range.prefix_len() }
    }
}

/// The sockets of one listener.
#[derive(Debug, Serialize)]
struct Bound {
    first: Socket,
    more: Vec<Socket>,
}

/// The outer hop behind one listener. Only the listener knows the scheme of a request.
#[derive(Debug, Serialize)]
struct Edge {
    name: &'static str,
    scheme: &'static str,
    /// The name of the routes.
    routes: &'static str,
    /// The templates of the filters and of the proxy's own responses.
    filters: &'static str,
    replies: &'static str,
    /// The codec of the HTTP connection manager.
    codec: &'static str,
    /// The value of `Alt-Svc` in responses (RFC 7838).
    alt_svc: Option<String>,
    /// True if requests past the cache go to origins from this hop, and not through the inner hop.
    direct: bool,
}

impl Edge {
    fn new(
        settings: &Settings,
        name: &'static str,
        scheme: &'static str,
        codec: &'static str,
        alt_svc: Option<String>,
    ) -> Self {
        let (routes, filters, replies) = match &settings.role {
            Role::Edge => ("edge", "part/edge_filters.yaml", "part/edge_replies.yaml"),
            Role::Ground(_) => ("pipe", "part/edge_filters.yaml", "part/edge_replies.yaml"),
            Role::Remote(_) => ("remote", "part/remote_filters.yaml", "part/remote_replies.yaml"),
        };
        // A request to a parent has the scheme of the hop in front of it, which is the client's here.
        let direct = settings.role.is_alone() && Parents::of(&settings.cache).is_none();
        Self { name, scheme, routes, filters, replies, codec, alt_svc, direct }
    }
}

#[derive(Debug, Serialize)]
struct Edges {
    http: Edge,
    tls: Edge,
    /// The hop for HTTP/3, on the UDP port of `listen.tls`.
    quic: Option<Edge>,
}

/// Compression of responses to clients: the quality of brotli and the level of gzip. None: not offered.
#[derive(Debug, Serialize)]
struct Compress {
    brotli: Option<Commented<u8>>,
    gzip: Option<Commented<u8>>,
    /// True if text that came in gzip leaves in br, for clients that accept br.
    brotli_for_gzip: bool,
    /// The level of gzip for text that the cache stores.
    stored: Option<Commented<u8>>,
}

impl Compress {
    fn new(levels: &Compressors) -> Self {
        let of = |level: &Option<LevelInUse>| {
            level.as_ref().map(|level| Commented { value: level.level, comment: level.comment() })
        };
        Self {
            brotli: of(&levels.brotli),
            gzip: of(&levels.gzip),
            brotli_for_gzip: levels.brotli_for_gzip,
            stored: of(&levels.stored),
        }
    }
}

/// The ways from Envoy's main thread to its workers.
#[derive(Debug, Serialize)]
struct Calls {
    /// The path of the Unix socket.
    socket: String,
    /// The number of ways: one to each worker.
    ways: u32,
}

/// The tracing of requests.
#[derive(Debug, Serialize)]
struct Spans {
    collector: String,
    socket: Socket,
    sample_percent: u32,
}

/// The access log.
#[derive(Debug, Serialize)]
struct LogTarget {
    /// The destination. None: stderr.
    file: Option<String>,
    /// The argument of Envoy's operators for addresses that cuts the address of a client. Empty for whole addresses.
    cut: &'static str,
    whole_clients: bool,
}

impl LogTarget {
    /// The bits of an address that stay, of IPv4 and IPv6 alike: Envoy's operator takes one number for both. More than 32
    /// would leave IPv4 addresses whole.
    const CUT: &str = "(24)";

    fn of(settings: &Settings, destination: &AccessLog) -> Option<Self> {
        let file = match destination {
            AccessLog::Off => return None,
            AccessLog::Stderr => None,
            AccessLog::File(path) => Some(path.display().to_string()),
        };
        let whole_clients = settings.log.clients == LoggedClients::Whole;
        Some(Self { file, cut: if whole_clients { "" } else { Self::CUT }, whole_clients })
    }
}

/// The letters, digits and signs of host names (RFC 6066 section 3), with the underscore that some names have.
const SERVER_NAME: &str = "[A-Za-z0-9_-][A-Za-z0-9._-]*";

/// The server names that the public DNS never has: a single label, and the suffixes of private networks (RFC 6762 section 3
/// and appendix G, RFC 8375, ICANN's reservation of `internal`).
const NOT_PUBLIC: &str = "(?i)([^.]+|.+\\.(local|localdomain|lan|home|home\\.arpa|internal|intranet|corp|private))\\.?";

/// The host that Envoy gives to a request of HTTP/1.0 without a Host. Routes recognise it. It can never be resolved (RFC
/// 6761 section 6.4).
const WITHOUT_HOST: &str = "request-without-host.invalid";

/// Those of [`SERVER_NAME`] that have an underscore.
const NAME_WITH_UNDERSCORE: &str = "_[A-Za-z0-9._-]*|[A-Za-z0-9-][A-Za-z0-9.-]*_[A-Za-z0-9._-]*";

/// The authority of a CONNECT whose name is in a header field. No name ends in `.invalid` (RFC 6761).
const NAMED_IN_HEADER: &str = "name-in-header.invalid:443";

/// The seconds for which a client remembers that a name offers HTTP/3: one day, the default of RFC 7838.
const ALT_SVC_SECONDS: u32 = 86_400;

impl View {
    /// Returns the filters that share links and have files of their own.
    pub(super) fn shares_in_files(&self) -> &'static [&'static str] {
        self.share.as_ref().map_or(&[], Share::places_in_files)
    }

    pub(super) fn new(settings: &Settings, derived: &Derived, artifacts: &Artifacts) -> Result<Self, RenderError> {
        let certificates = tls::certificates(settings, artifacts);
        let tls = settings.listen.tls.as_ref().map(|sockets| TlsListener::new(sockets.into(), settings, &certificates));
        let guard = Guard::new(settings, &artifacts.local_addresses);
        let heap = &derived.capacity.heap;
        let resolvers = upstream::resolvers(settings, artifacts);
        let filters = filters::positions(settings, derived, artifacts)?;
        let bundles = filters.get("bundling").is_some_and(Option::is_some);
        let calls = settings.fetches() || bundles;
        let share = Share::of(settings, derived, artifacts);
        Ok(Self {
            root: artifacts.root.display().to_string(),
            state: artifacts.state.display().to_string(),
            role: settings.role.as_str(),
            reaches_origins: settings.role.reaches_origins(),
            pair: Pair::new(settings, derived, artifacts),
            bytes_listeners: BytesListener::all(settings, share.as_ref()),
            share,
            node_id: node_id(settings, artifacts).to_owned(),
            cdn_id: cdn_id(settings, artifacts),
            admin: artifacts.admin.display().to_string(),
            http: Bound::from(&settings.listen.http),
            hop_window: share::HOP_WINDOW,
            other_ports: settings.listen.tcp.as_ref().map(|tcp| OtherPortsListener::new(tcp, &guard)),
            intercepts: settings.listen.intercept != Intercept::None,
            transparent: settings.listen.intercept == Intercept::Tproxy,
            tls,
            challenges: Challenges::of(settings, artifacts),
            edges: edges(settings),
            certificates,
            transport: transport::transport(derived),
            upgrades: Upgrades::new(),
            own_addresses: settings.proxy.addresses.iter().copied().map(Own::from).collect(),
            instant: settings.instant_addresses().map(Own::from),
            max_connections: settings.limits.connections,
            heap_bytes: Commented { value: heap.value.0, comment: heap.reason.clone() },
            compress: Compress::new(&derived.compression),
            images: images::sockets(settings, derived, artifacts).map(Images::of),
            objects: Objects::of(settings, artifacts),
            parents: Parents::of(&settings.cache),
            server_name: SERVER_NAME,
            name_with_underscore: NAME_WITH_UNDERSCORE,
            named_in_header: NAMED_IN_HEADER,
            not_public: NOT_PUBLIC,
            without_host: WITHOUT_HOST,
            guard,
            resolvers: resolvers.iter().copied().map(Socket::from).collect(),
            dns_cache: upstream::dns_cache_name(&resolvers),
            mapped: upstream::mapped(settings),
            trusted_ca: artifacts.trusted_ca.display().to_string(),
            access_log: LogTarget::of(settings, &artifacts.access_log),
            page_mark: artifacts.logs_pages(settings).then_some(Mark::Page.word()),
            bill_mark: artifacts.bills(settings).then_some(Mark::Bill.word()),
            bill_interval: BILL_INTERVAL,
            fetches: settings.fetches(),
            native: artifacts.native.is_some(),
            calls: artifacts.native.as_ref().filter(|_| calls).map(|native| Calls {
                socket: native.calls.display().to_string(),
                ways: derived.capacity.workers.value,
            }),
            tracing: settings.tracing.map(|tracing| Spans {
                collector: tracing.collector.to_string(),
                socket: tracing.collector.into(),
                sample_percent: tracing.sample_percent,
            }),
            metric_labels: labels::NAMES,
            compressible: compressible(),
            compressible_type: content_type(&compressible()),
            untrue_when_compressed: gone_beside_envoy(Change::Encoding).collect(),
            filters,
        })
    }
}

fn edges(settings: &Settings) -> Edges {
    let quic = settings.listen.tls.as_ref().filter(|_| settings.offers_http3());
    let alt_svc = quic.map(|socket| format!("h3=\":{}\"; ma={ALT_SVC_SECONDS}", socket.port()));
    Edges {
        http: Edge::new(settings, "edge_http", "http", "AUTO", None),
        tls: Edge::new(settings, "edge_tls", "https", "AUTO", alt_svc.clone()),
        quic: match &settings.role {
            Role::Ground(Ground { transport: PipeTransport::H3, .. }) => {
                Some(Edge::new(settings, "edge_http", "http", "HTTP3", None))
            }
            _ => quic.map(|_| Edge::new(settings, "edge_quic", "https", "HTTP3", alt_svc)),
        },
    }
}

impl From<SocketAddr> for Socket {
    fn from(socket: SocketAddr) -> Self {
        Self { address: socket.ip().to_string(), port: socket.port() }
    }
}

impl From<&Sockets> for Bound {
    fn from(sockets: &Sockets) -> Self {
        Self { first: sockets.first().into(), more: sockets.iter().skip(1).map(Socket::from).collect() }
    }
}

/// Returns a regular expression of `Content-Type` values with these media types.
fn content_type(media_types: &str) -> String {
    format!("\\s*{media_types}\\s*(;.*)?")
}

/// Returns the token of this box for `CDN-Loop` (RFC 8586). It differs between boxes, also between boxes with
/// equal files, and reveals nothing about them.
fn cdn_id(settings: &Settings, artifacts: &Artifacts) -> String {
    let listen = &settings.listen;
    let (http, tls) = (&listen.http, listen.tls.as_ref().map(ToString::to_string));
    format!("longhaul-{}", short_hash(&format!("{} {:?} {http} {tls:?}", node_id(settings, artifacts), settings.proxy)))
}

/// Returns the name of this box. Envoy starts with no empty one.
fn node_id<'a>(settings: &'a Settings, artifacts: &'a Artifacts) -> &'a str {
    let id = settings.id.as_deref().unwrap_or(&artifacts.host_name);
    if id.is_empty() { "longhaul" } else { id }
}

/// Returns 12 hexadecimal digits of a SHA-256. They make names that must change with the thing they name.
fn short_hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes())).chars().take(12).collect()
}
