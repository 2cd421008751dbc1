//! The Corefile: `dns`, `listen.dns`, `listen.metrics` and `upstream.resolvers` for CoreDNS with the longhaul plugin.
//!
//! The Corefile does not log the queries of clients. Of failed queries, CoreDNS logs the first of each minute and kind
//! with its name and reason, and the others as a count.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use longhaul_config::share::Share;
use longhaul_config::{
    AaaaPolicy, Dns, DnsMode, DnssecPolicy, EncryptedLookups, Host, HttpsPolicy, LookupTransport, Role, Settings,
    Sockets,
};
use longhaul_derive::{Derived, names_ahead};

use super::guard;

/// The facts about this run that the Corefile needs.
#[derive(Debug, Clone, Copy)]
pub struct CorefileContext<'a> {
    /// The loopback socket of `/ready`.
    pub ready: SocketAddr,
    /// The Unix socket of CoreDNS's metrics, for `longhaul run`, which serves `listen.metrics`. A relative path starts
    /// from the folder in which CoreDNS runs. None: CoreDNS serves `listen.metrics` itself.
    pub metrics: Option<&'a Path>,
    /// The loopback socket where Envoy resolves the names of origins
    /// ([`Artifacts::resolver`](super::Artifacts::resolver)).
    pub resolver: SocketAddr,
    /// The loopback socket where a remote queries the ground's resolver
    /// ([`NearSockets::dns`](super::NearSockets::dns)).
    pub near_dns: SocketAddr,
    /// The loopback socket for lookups as streams ([`NearSockets::lookups`](super::NearSockets::lookups)).
    pub lookups: SocketAddr,
    /// The absolute path of the file in which a remote keeps DNS responses over restarts.
    pub remembered: &'a Path,
    /// The Unix socket for names that are sent before they are asked: the CoreDNS of a ground takes the streams of remotes
    /// there, and that of a remote opens one ([`Self::pushed_socket`]).
    pub pushed: &'a Path,
    /// The absolute path of the file in which a ground keeps which names follow.
    pub followers: &'a Path,
    /// Every address of this host, as in [`Artifacts::local_addresses`](super::Artifacts::local_addresses).
    pub local_addresses: &'a [IpAddr],
    /// The file with what this run tells the other end of a pair. None: nobody writes one. A relative path starts from the
    /// folder in which CoreDNS runs.
    pub told: Option<&'a Path>,
    /// The Unix socket on which CoreDNS tells the true addresses of names, for `longhaul host --watch`. None: nobody reads them.
    /// A relative path starts from the folder in which CoreDNS runs.
    pub true_addresses: Option<&'a Path>,
}

impl CorefileContext<'_> {
    /// Renders the Corefile: the steering DNS, unless `listen.dns` is off, and the resolver that Envoy queries.
    pub fn corefile(&self, settings: &Settings) -> String {
        let mut out = Lines::default();
        out.line(0, "# Longhaul: the DNS of this box. Written by `longhaul`; edit longhaul.yaml instead.");
        if let Some(listen) = &settings.listen.dns {
            steering(&mut out, settings, listen, self);
        }
        if settings.role.reaches_origins() {
            origins(&mut out, settings, self);
        } else if settings.listen.dns.is_none() {
            nobody(&mut out, self);
        }
        out.0
    }

    /// Returns the socket of [`CorefileContext::pushed`], beside that of Envoy's admin interface.
    #[must_use]
    pub fn pushed_socket(admin: &Path) -> PathBuf {
        admin.with_file_name("pushed.sock")
    }
}

/// The largest UDP response, in bytes. Larger responses use TCP (DNS flag day 2020).
const UDP_BYTES: u16 = 1232;
/// The bound of a remote's memory of names: about 120,000 names (`make bench ONLY=names`).
const REMEMBERED_BYTES: u32 = 40 << 20;
/// The time that the ground's resolver usually needs at most, beside the round trips on the link.
const LOOKUP_HEDGE: Duration = Duration::from_secs(1);
/// The longest wait for a stream alone. Clients repeat a query after 5 s.
const MOST_HEDGE: Duration = Duration::from_secs(4);

/// The kinds of failed queries that are logged and counted apart: a part of CoreDNS's message, which is a regular expression
/// for it, and the failure in words, after the name of a resolver.
pub const DNS_FAILURES: &[(&str, &str)] = &[
    ("i/o timeout", "did not respond in time"),
    ("connection refused", "refused the connection"),
    ("network is unreachable", "is on a network without a route"),
    ("no route to host", "cannot be reached"),
];
/// The interval and jitter of *reload*, the shortest that CoreDNS accepts. CoreDNS reads the file again itself, so that
/// rendered trees work without `longhaul run`.
const RELOAD: &str = "2s 1s";

/// Lines of text, indented by four spaces per level.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.0, "{:indent$}{text}", "", indent = indent * 4);
    }
}

/// Writes the server block for clients.
fn steering(out: &mut Lines, settings: &Settings, listen: &Sockets, context: &CorefileContext<'_>) {
    let lookups = settings.encrypted_lookups().ok();
    open_also(out, &bound(listen), &encrypted_heads(lookups.as_ref()), context);
    if let Some(lookups) = &lookups {
        encrypted(out, lookups);
    }
    if let Some(socket) = context.metrics {
        out.line(1, &format!("metrics_socket {}", quoted(&socket.display().to_string())));
    } else if let Some(metrics) = settings.listen.metrics {
        out.line(1, &format!("prometheus {}", metrics.socket));
    }
    out.line(1, &format!("bufsize {UDP_BYTES}"));
    out.line(1, "# attackers use ANY to reflect traffic (RFC 8482)");
    out.line(1, "any");
    if settings.role.stands_beside_clients() {
        out.line(1, "# what the ground tells its remotes is nobody else's business");
        out.line(1, "tell");
    } else if let Some(told) = context.told {
        out.line(1, "# a resolver that asks this box is found by the response");
        out.line(1, &format!("tell {}", quoted(&told.display().to_string())));
    }
    if settings.steers() {
        if !settings.lists_names() && settings.dns.has_lists() {
            out.line(1, "# no listed name is steered: browsers keep public pages from private addresses");
        }
        let domains = settings.dns.domains.iter().filter(|_| settings.lists_names());
        let lists: Vec<String> = domains.map(|path| format!("{} ", quoted(&path.display().to_string()))).collect();
        out.line(1, &format!("longhaul {}{{", lists.concat()));
        for property in plugin_properties(settings, context) {
            out.line(2, &property);
        }
        out.line(1, "}");
    }
    stay_here(out, settings);
    if settings.role.stands_beside_clients() {
        match settings.dns.remember {
            Duration::ZERO => cache(out),
            _ => remember(out, settings, context),
        }
        ask(out, &through_the_ground(settings, context));
    } else {
        cache(out);
        ask(out, &resolvers(settings));
    }
}

/// The most connections of HTTPS at one time. CoreDNS's own bound, 200, is that of a small office.
const HTTPS_CONNECTIONS: u32 = 4000;

/// Returns the sockets of CoreDNS's own encrypted servers, for the head of a server block. The plugin has the one of QUIC.
fn encrypted_heads(lookups: Option<&EncryptedLookups<'_>>) -> String {
    let transports = lookups.iter().flat_map(|lookups| &lookups.transports);
    let own = transports.filter(|transport| **transport != LookupTransport::Quic);
    let heads: Vec<String> = own.map(|own| format!(" {}://.:{}", own.as_str(), own.port())).collect();
    heads.concat()
}

/// Writes the certificates of the encrypted servers, and what clients hear of these.
fn encrypted(out: &mut Lines, lookups: &EncryptedLookups<'_>) {
    out.line(1, "# the plugins below serve lookups over TLS, QUIC and HTTPS as well");
    out.line(1, "encrypted {");
    for (entry, names) in &lookups.certificates {
        let [cert, key] = [&entry.cert, &entry.key].map(|path| quoted(&path.display().to_string()));
        out.line(2, &format!("certificate {cert} {key} {}", joined(names)));
    }
    out.line(2, &format!("address {}", joined(&lookups.addresses)));
    for transport in &lookups.transports {
        out.line(2, &format!("{} {}", transport.as_str(), transport.port()));
    }
    out.line(1, "}");
    if lookups.transports.contains(&LookupTransport::Https) {
        out.line(1, "https {");
        out.line(2, &format!("max_connections {HTTPS_CONNECTIONS}"));
        out.line(1, "}");
    }
}

/// The names by which clients learn that a network wants its own resolver used: Firefox's, and those of Apple's private
/// relay. The plugin has the same (`canaries` in coredns-plugin/own.go), for blocks where it stands.
const CANARIES: [&str; 3] = ["use-application-dns.net", "mask.icloud.com", "mask-h2.icloud.com"];
/// The SOA of a response that has no data, for 5 minutes.
const NO_DATA: &str = "authority \"{{ .Zone }} 300 IN SOA ns.invalid. nobody.invalid. 1 3600 600 86400 300\"";

/// Writes the responses that keep clients on this resolver.
fn stay_here(out: &mut Lines, settings: &Settings) {
    out.line(1, "# a resolver's own encrypted addresses. No others are told, and those of the next one would lead around it (RFC");
    out.line(1, "# 9462 sections 4 and 6.1)");
    out.line(1, "template IN ANY resolver.arpa {");
    out.line(2, NO_DATA);
    out.line(1, "}");
    if settings.dns.canary && !settings.steers() {
        out.line(1, "# browsers look these names up, and use this resolver if there are none");
        for kind in ["A", "AAAA", "HTTPS"] {
            out.line(1, &format!("template IN {kind} {} {{", CANARIES.join(" ")));
            // Not the names below them.
            out.line(2, &format!("match ^({})[.]$", CANARIES.join("|").replace('.', "[.]")));
            out.line(2, NO_DATA);
            out.line(2, "fallthrough");
            out.line(1, "}");
        }
    }
}

/// Writes a server block that refuses every query. Without any server block, CoreDNS would respond to everybody on port
/// 53.
fn nobody(out: &mut Lines, context: &CorefileContext<'_>) {
    out.line(0, "");
    out.line(0, "# `listen.dns` is off, and Envoy sends no queries: this server refuses every query.");
    open(out, &context.resolver.into(), context);
    out.line(1, "acl {");
    out.line(2, "block");
    out.line(1, "}");
    out.line(0, "}");
}

/// Writes the server block for Envoy. Its responses are the truth without refused addresses and without this box's own.
fn origins(out: &mut Lines, settings: &Settings, context: &CorefileContext<'_>) {
    out.line(0, "");
    out.line(0, "# For Envoy alone: the responses leave out addresses that nobody may reach through this box.");
    if let Role::Ground(_) = settings.role {
        out.line(0, "# Remotes send lookups as streams, too.");
        open_also(out, &context.resolver.into(), &format!(" grpc://.:{}", context.lookups.port()), context);
        if let Some(socket) = context.metrics.filter(|_| settings.counts_dns()) {
            out.line(1, &format!("metrics_socket {}", quoted(&socket.display().to_string())));
        }
        if settings.dns.push {
            push(out, settings, context);
        }
        if let Some(told) = context.told {
            out.line(1, "# the problems of this box, for the other end of the pair");
            out.line(1, &format!("tell {} problems", quoted(&told.display().to_string())));
        }
    } else {
        open(out, &context.resolver.into(), context);
    }
    let own = guard::own_addresses(settings, context.local_addresses).into_iter().map(IpNet::from);
    let own = own.chain(settings.proxy.ranges.iter().copied());
    let denied = settings.upstream.deny.iter().copied();
    let refused: BTreeSet<String> = guard::refused().chain(own).chain(denied).map(|net| net.to_string()).collect();
    let refused: Vec<String> = refused.into_iter().collect();
    out.line(1, &format!("withhold {} {{", refused.join(" ")));
    if !settings.upstream.allow_private.is_empty() {
        out.line(2, &format!("except {}", joined(&settings.upstream.allow_private)));
    }
    out.line(1, "}");
    cache(out);
    ask(out, &resolvers(settings));
}

/// Returns the sockets that CoreDNS binds. Go binds a wildcard of either family for both families, where the machine has
/// IPv6, so the second wildcard is left out.
fn bound(listen: &Sockets) -> Sockets {
    if listen.iter().any(|socket| socket.ip() == Ipv4Addr::UNSPECIFIED) {
        listen.without_ipv6_wildcard()
    } else {
        listen.clone()
    }
}

/// Writes the head of a server block.
fn open(out: &mut Lines, listen: &Sockets, context: &CorefileContext<'_>) {
    open_also(out, listen, "", context);
}

/// Writes the head of a server block that has another socket, too, on the same addresses.
fn open_also(out: &mut Lines, listen: &Sockets, other: &str, context: &CorefileContext<'_>) {
    out.line(0, &format!(".:{}{other} {{", listen.port()));
    out.line(1, &format!("bind {}", joined(&listen.iter().map(|socket| socket.ip()).collect::<Vec<_>>())));
    out.line(1, &format!("reload {RELOAD}"));
    out.line(1, &format!("ready {}", context.ready));
    out.line(1, "errors {");
    out.line(
        2,
        "# the first one in a minute is logged with its query and reason, so a dead resolver does not fill the disk",
    );
    for (text, _) in DNS_FAILURES {
        out.line(2, &format!("consolidate 1m {} warning show_first", quoted(text)));
    }
    out.line(2, "consolidate 1m .* warning show_first");
    out.line(1, "}");
}

/// Returns the lines of a *forward* to the configured resolvers.
fn resolvers(settings: &Settings) -> Vec<String> {
    let lines = [
        &format!("forward . {} {{", joined(&settings.upstream.resolvers)),
        "    policy sequential",
        "    # TCP only after a truncated response, whatever the client used: many firewalls close TCP port 53",
        "    prefer_udp",
        "    # the next resolver may succeed",
        "    failover SERVFAIL REFUSED",
    ];
    lines.map(str::to_owned).to_vec()
}

/// Returns the lines of a *forward* to the ground's resolver, over the link.
fn through_the_ground(settings: &Settings, context: &CorefileContext<'_>) -> Vec<String> {
    let hedge = (settings.link.rtt * 2 + settings.link.queueing_delay() + LOOKUP_HEDGE).min(MOST_HEDGE);
    let lines = [
        "# over the link, many at once as streams of the pipe",
        &format!("lookups {} {{", context.lookups),
        "    # a stream may wait for a retransmission after an outage; then a connection brings the response sooner",
        &format!("    hedge {}", go_duration(hedge)),
        &format!("    at_once {}", Derived::LOOKUPS_AT_ONCE),
        "}",
        "# where the ground takes no such streams: over the link, on open connections",
        &format!("forward . {} {{", context.near_dns),
        "    force_tcp",
        "    expire 10m",
        "    # while the link is down, clients get an error at once instead of waiting for a health check",
        "    max_fails 0",
        "    # on a lossy link a query or its response may need two retransmissions; clients retry after 5 s",
        "    read_timeout 4s",
    ];
    lines.map(str::to_owned).to_vec()
}

/// Writes the memory of a remote, `dns.remember`.
fn remember(out: &mut Lines, settings: &Settings, context: &CorefileContext<'_>) {
    out.line(1, "# a response beyond its TTL is served at once, and queried again in the background");
    out.line(1, &format!("remember {} {{", quoted(&context.remembered.display().to_string())));
    out.line(2, &format!("for {}", go_duration(settings.dns.remember)));
    out.line(2, &format!("size {REMEMBERED_BYTES}"));
    if settings.dns.push {
        out.line(2, "# the ground sends what usually follows, before a client asks");
        out.line(2, &format!("pushed {}", quoted(&context.pushed.display().to_string())));
    }
    out.line(1, "}");
}

/// Writes the names that a ground sends before they are asked, `dns.push`.
fn push(out: &mut Lines, settings: &Settings, context: &CorefileContext<'_>) {
    let paths = [context.pushed, context.followers].map(|path| quoted(&path.display().to_string()));
    out.line(1, "# the names that usually follow one, for remotes that ask for it");
    out.line(1, &format!("push {} {{", paths.join(" ")));
    let ahead = names_ahead(&settings.link);
    if ahead > 0 {
        out.line(2, "# and those that many clients ask, in bytes a second while the remote asks nothing");
        out.line(2, &format!("ahead {ahead}"));
    }
    out.line(1, "}");
}

/// Writes the cache of a block whose queries do not cross the link.
fn cache(out: &mut Lines) {
    out.line(1, "cache {");
    out.line(2, "# names in use are queried again before they expire, and stay cached while the resolvers are down");
    out.line(2, "prefetch 2 1m 20%");
    out.line(2, "serve_stale 1h");
    out.line(2, "# failures are not cached: a resolver's failure may be short, and the next query reaches it again");
    out.line(2, "servfail 0");
    out.line(1, "}");
}

/// Writes the rest of a server block, the *forward*.
fn ask(out: &mut Lines, forward: &[String]) {
    for line in forward {
        out.line(1, line);
    }
    out.line(1, "}");
    out.line(0, "}");
}

fn own_names(settings: &Settings) -> impl Iterator<Item = String> {
    settings.proxy.secure_names.iter().filter_map(|host| match host {
        Host::Name(name) => Some(name.to_string()),
        Host::Address(_) => None,
    })
}

fn plugin_properties(settings: &Settings, context: &CorefileContext<'_>) -> Vec<String> {
    let dns = &settings.dns;
    let proxy = settings.proxy.addresses.iter().map(ToString::to_string);
    let proxy: Vec<String> = proxy.chain(settings.proxy.ranges.iter().map(ToString::to_string)).collect();
    let mut lines = vec![format!("proxy {}", proxy.join(" "))];
    let own: Vec<String> = own_names(settings).collect();
    if !own.is_empty() {
        lines.push(format!("own {}", own.join(" ")));
        // An HTTPS record upgrades http URLs of the name (RFC 9460 section 9.5). This one names no port, so it is only
        // valid for 443.
        if settings.listen.tls.as_ref().is_some_and(|tls| tls.port() == 443) {
            lines.push(if settings.offers_http3() { "alpn h3 h2" } else { "alpn h2" }.to_owned());
        }
    }
    let files = dns.except_files.iter().map(|path| quoted(&path.display().to_string()));
    let except: Vec<String> = dns.except_names.iter().map(ToString::to_string).chain(files).collect();
    if !except.is_empty() {
        lines.push(format!("except {}", except.join(" ")));
    }
    if dns.www && settings.lists_names() {
        lines.push("www".to_owned());
    }
    if !dns.bypass.is_empty() {
        lines.push(format!("bypass {}", joined(&dns.bypass)));
    }
    if let Some(share) = settings.compare {
        lines.push(format!("compare {} {}", share.percent, Share::SEED));
    }
    if !settings.upstream.allow_private.is_empty() {
        lines.push(format!("allow_private {}", joined(&settings.upstream.allow_private)));
    }
    lines.extend(policy(dns));
    if settings.answers_truly() {
        lines.push("# clients' connections to the true addresses come here".to_owned());
        lines.push("intercepted".to_owned());
    }
    if let Some(range) = settings.instant_range() {
        lines.push("# each name has an address of its own until the ground's response is here".to_owned());
        lines.push(format!("instant {range}"));
    }
    if let Ok(range) = settings.first_visits() {
        lines.push("# a name on no list has one until then, if a browser asks for it first".to_owned());
        let socket = context.true_addresses.map(|socket| format!(" {}", quoted(&socket.display().to_string())));
        lines.push(format!("browsers {range}{}", socket.unwrap_or_default()));
    }
    if dns.health {
        lines.push(format!("health {}", health(&settings.listen.http)));
    }
    lines.push(format!("reload {}", go_duration(dns.reload)));
    lines
}

fn policy(dns: &Dns) -> Vec<String> {
    let mut lines = match dns.mode {
        DnsMode::Prepend { max_origin } => vec!["mode prepend".to_owned(), format!("max_origin {max_origin}")],
        DnsMode::Replace => vec!["mode replace".to_owned()],
    };
    lines.push(format!("ttl {} {}", go_duration(dns.ttl.min), go_duration(dns.ttl.max)));
    lines.push(match dns.aaaa {
        AaaaPolicy::Nodata => "aaaa nodata".to_owned(),
        AaaaPolicy::Pass => "aaaa pass".to_owned(),
    });
    lines.push(match dns.https {
        HttpsPolicy::Nodata => "https nodata".to_owned(),
        HttpsPolicy::Strip => "https strip".to_owned(),
        HttpsPolicy::Pass => "https pass".to_owned(),
    });
    lines.push(match dns.dnssec {
        DnssecPolicy::Skip => "dnssec skip".to_owned(),
        DnssecPolicy::Break => "dnssec break".to_owned(),
    });
    if dns.canary {
        lines.push("canary".to_owned());
    }
    lines
}

/// Returns the address of the health check. For a wildcard address it is the port alone, and the plugin checks each
/// proxy address.
fn health(http: &Sockets) -> String {
    if http.has_wildcard() { http.port().to_string() } else { http.first().to_string() }
}

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Formats a duration in Go's notation, which has no days.
fn go_duration(time: Duration) -> String {
    if time.subsec_nanos() == 0 { format!("{}s", time.as_secs()) } else { format!("{}ms", time.as_millis()) }
}

/// Quotes a token for Caddy's lexer, which knows the escape `\"`.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\""))
}
