//! Checks of the role, `split` and the groups on which a pair depends.

use super::Places;
use crate::diagnostic::Problem;
use crate::names::{Host, HostPort};
use crate::settings::{
    ClientGroup, Fill, Ground, Link, NamedLink, PipeTransport, Proxy, Remote, Role, Upstream, WhenDown,
};

/// Checks the pair. Skips a group that has a problem of its own.
pub(super) fn check(
    places: &Places<'_>,
    role: &Role,
    link: Option<&Link>,
    upstream: Option<&Upstream>,
    proxy: Option<&Proxy>,
    problems: &mut Vec<Problem>,
) {
    if let Some(upstream) = upstream {
        ground_by_name(places, role, upstream, problems);
        direct_without_resolvers(places, role, upstream, problems);
    }
    if let Some(proxy) = proxy {
        ground_here(places, role, proxy, problems);
    }
    if let Some(mtu) = link.and_then(|link| link.mtu) {
        quic_in_small_packets(places, role, mtu, problems);
    }
    quic_by_address(places, role, problems);
    quic_to_several(places, role, problems);
}

/// Refuses weights and quotas of clients where nothing is shared.
pub(super) fn weights_of_nothing(
    places: &Places<'_>,
    link: &Link,
    links: &[NamedLink],
    clients: &[ClientGroup],
    problems: &mut Vec<Problem>,
) {
    let weighs = |group: &ClientGroup| group.weight != 1 || group.quota.is_some();
    let Some((at, group)) = clients.iter().enumerate().find(|(_, group)| weighs(group)) else { return };
    if link.fill == Fill::Off {
        let (at, key) = (at.to_string(), if group.weight == 1 { "quota" } else { "weight" });
        problems.push(
            Problem::error(
                "weights and quotas of `clients` need shares of the link",
                places.of(&["clients", &at, key]),
                "has no effect, because nobody has a share",
            )
            .and(places.of(&["link", "fill"]), "`link.fill` is off")
            .help(if links.is_empty() {
                "write `fill: auto` under `link`, at both ends"
            } else {
                "write `fill: auto` in each of `links`, and under `link` at the ground"
            }),
        );
    }
}

/// Refuses the name of a ground if there is no resolver for it. This box's own DNS cannot resolve it, because it
/// queries through the ground.
fn ground_by_name(places: &Places<'_>, role: &Role, upstream: &Upstream, problems: &mut Vec<Problem>) {
    let Role::Remote(Remote { grounds, .. }) = role else { return };
    let Some(HostPort { host: name, .. }) = grounds.iter().find(|at| at.host.is_name()) else { return };
    if upstream.resolvers.is_empty() {
        problems.push(
            Problem::error("no resolver for the ground's address", places.of(&["split", "peer"]), format!("{name} is a name"))
                .help("add a resolver to `upstream.resolvers` that this box reaches without the ground, or write the ground's address here (its certificate must then be for the address)"),
        );
    }
}

/// Refuses a ground at an address of this box. It would send the clients' requests to itself.
fn ground_here(places: &Places<'_>, role: &Role, proxy: &Proxy, problems: &mut Vec<Problem>) {
    let Role::Remote(Remote { grounds, .. }) = role else { return };
    let is_own = |at: &&HostPort| matches!(&at.host, Host::Address(own) if proxy.addresses.contains(own));
    let Some(at) = grounds.iter().find(is_own) else { return };
    problems.push(
        Problem::error(
            "`split.peer` names this remote itself",
            places.of(&["split", "peer"]),
            format!("{} is in `proxy.addresses`", at.host),
        )
        .and(places.of(&["proxy", "addresses"]), "where clients reach this box")
        .help("write the address where the ground listens"),
    );
}

/// Refuses `when_down: direct` without a resolver. While the ground is away, its resolver is away too.
fn direct_without_resolvers(places: &Places<'_>, role: &Role, upstream: &Upstream, problems: &mut Vec<Problem>) {
    if matches!(role, Role::Remote(Remote { when_down: WhenDown::Direct, .. })) && upstream.resolvers.is_empty() {
        problems.push(
            Problem::error(
                "`split.when_down: direct` without a resolver",
                places.of(&["split", "when_down"]),
                "no resolver for origins while the ground does not respond",
            )
            .help("add a resolver to `upstream.resolvers` that this box reaches without the ground, or write `when_down: error`"),
        );
    }
}

/// The smallest packet that carries the 1200 bytes of QUIC's first datagrams (RFC 9000 section 14) with the headers of
/// IPv6 and UDP.
const LEAST_FOR_QUIC: u32 = 1200 + 40 + 8;

/// Refuses HTTP/3 over a link whose packets are too small for QUIC.
fn quic_in_small_packets(places: &Places<'_>, role: &Role, mtu: u32, problems: &mut Vec<Problem>) {
    let (Role::Remote(Remote { transport, .. }) | Role::Ground(Ground { transport, .. })) = role else { return };
    if *transport == PipeTransport::H3 && mtu < LEAST_FOR_QUIC {
        problems.push(
            Problem::error(
                "`split.transport: h3` over packets that are too small",
                places.of(&["split", "transport"]),
                "QUIC's first packets have 1200 bytes and their headers",
            )
            .and(places.of(&["link", "mtu"]), format!("expected {LEAST_FOR_QUIC} or more, found {mtu}"))
            .help("write `transport: h2`, or a larger `mtu`"),
        );
    }
}

/// Refuses HTTP/3 to an address. Envoy compares the certificate of a QUIC server only with the server name, and never
/// sends an address as one.
fn quic_by_address(places: &Places<'_>, role: &Role, problems: &mut Vec<Problem>) {
    let Role::Remote(Remote { grounds, transport: PipeTransport::H3, .. }) = role else { return };
    let Some(HostPort { host: address, .. }) = grounds.iter().find(|at| !at.host.is_name()) else { return };
    problems.push(
        Problem::error(
            "`split.transport: h3` to an address",
            places.of(&["split", "transport"]),
            "needs a ground with a name",
        )
        .and(
            places.of(&["split", "peer"]),
            format!("{address} is not a name, and QUIC cannot check a certificate for an address"),
        )
        .help(
            "write the name in the certificate of the ground, and add a resolver that knows it to `upstream.resolvers`",
        ),
    );
}

/// Refuses HTTP/3 over several links. A pipe over QUIC dies with the link on which it was opened.
pub(super) fn quic_over_several_links(
    places: &Places<'_>,
    role: &Role,
    links: &[NamedLink],
    problems: &mut Vec<Problem>,
) {
    let Role::Remote(Remote { transport: PipeTransport::H3, .. }) = role else { return };
    if !links.is_empty() {
        problems.push(
            Problem::error(
                "`split.transport: h3` over several links",
                places.of(&["split", "transport"]),
                "a pipe over QUIC dies with its link",
            )
            .and(places.of(&["links"]), "several links")
            .help("write `transport: h2`, whose connections use all links"),
        );
    }
}

/// Refuses HTTP/3 to several grounds. Envoy sends one server name on all QUIC connections of a cluster.
fn quic_to_several(places: &Places<'_>, role: &Role, problems: &mut Vec<Problem>) {
    let Role::Remote(Remote { grounds, transport: PipeTransport::H3, .. }) = role else { return };
    if grounds.len() > 1 {
        problems.push(
            Problem::error(
                "`split.transport: h3` to several grounds",
                places.of(&["split", "transport"]),
                "needs one ground",
            )
            .and(places.of(&["split", "peer"]), "several grounds")
            .help("write `transport: h2`, or one name that has the addresses of all grounds"),
        );
    }
}
