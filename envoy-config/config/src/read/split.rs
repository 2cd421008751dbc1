//! `role` and `split`: the end of the link at which this box stands.

use std::time::Duration;

use crate::LinkModel;
use crate::diagnostic::{Place, Problem};
use crate::link_model::LinkClass;
use crate::reader::{Reader, Section};
use crate::settings::{
    Ground, Intercept, Link, Listen, Peer, PipeTransport, Price, Remote, Role, RoleName, Udp443, WarmAs, WhenDown,
};
use crate::sockets::Sockets;
use crate::yaml::NodeValue;

use super::other_end::not_of_this_end;
use super::peer;

/// The number of connections that a browser opens for one page.
const OF_A_PAGE: u64 = 28;
/// The number of warm connections that suffices for one page at any time.
const WARM: u64 = 32;
/// The number of connections on a metered link, where each costs 2 KB an hour for TCP's probes.
const WARM_METERED: u64 = 16;
/// The initial window of a connection: ten segments (RFC 6928).
const INITIAL_WINDOW_BYTES: u64 = 10 * 1460;
/// The longest time for which opening all warm connections may occupy the uplink, with those that the remote itself uses
/// to hold the others open.
const OPENING: Duration = Duration::from_secs(3);

pub(super) fn kind(reader: &mut Reader, top: &Section<'_>) -> Option<RoleName> {
    let words = [("edge", RoleName::Edge), ("remote", RoleName::Remote), ("ground", RoleName::Ground)];
    match top.get("role") {
        Some(setting) => reader.word(&setting, &words),
        None if reader.is_excused("role") => None,
        None => Some(RoleName::Edge),
    }
}

/// Returns the role that decides which keys a file must have if its `role` cannot be read.
pub(super) fn likely_kind(top: &Section<'_>) -> RoleName {
    let word = top.get("role").and_then(|setting| setting.text()).unwrap_or_default().to_ascii_lowercase();
    match (word.chars().next(), top.get("split")) {
        (Some('g'), Some(_)) => RoleName::Ground,
        (_, Some(_)) => RoleName::Remote,
        (_, None) => RoleName::Edge,
    }
}

/// Reads the role with its settings of the pair.
pub(super) fn role(reader: &mut Reader, top: &Section<'_>, kind: RoleName, link: Option<&Link>) -> Option<Role> {
    if kind == RoleName::Edge {
        refuse_split(reader, top)?;
        return Some(Role::Edge);
    }
    if top.get("split").is_none() && !reader.is_excused("split") {
        let peer = if kind == RoleName::Remote { "ground.example:8443" } else { "[ship.example]" };
        let example = format!("split: {{ peer: {peer}, cert: me.pem, key: me.key, ca: pair-ca.pem }}");
        reader.missing_group("split", top.start(), &example);
        return None;
    }
    let section = reader.section(top, "split");
    let dial = reader.optional(&section, "dial", |reader, setting| {
        reader.word(setting, &[("remote", RoleName::Remote), ("ground", RoleName::Ground)])
    })?;
    let (identity, own) = peer::identity(reader, &section).unzip();
    let peer = peer::peer(reader, &section, kind, dial, own.as_ref());
    let transport = reader.optional(&section, "transport", |reader, setting| {
        reader.word(setting, &[("h2", PipeTransport::H2), ("h3", PipeTransport::H3)])
    });
    let pack_headers = reader.optional(&section, "pack_headers", Reader::boolean);
    match kind {
        RoleName::Remote => {
            let udp443 = reader.optional(&section, "udp443", |reader, setting| {
                reader.word(setting, &[("pass", Udp443::Pass), ("refuse", Udp443::Refuse)])
            });
            let instant_answers = reader.optional(&section, "instant_answers", Reader::boolean);
            let when_down = reader.optional(&section, "when_down", |reader, setting| {
                reader.word(setting, &[("error", WhenDown::Error), ("direct", WhenDown::Direct)])
            });
            if when_down == Some(WhenDown::Direct) {
                let why = "with `when_down: direct`, requests do not wait for the ground";
                not_of_this_end(reader, &section, &["restart_wait"], why);
            }
            let restart_wait = reader.optional(&section, "restart_wait", Reader::time);
            let (warm_as, warm) = if dial == RoleName::Ground {
                let why = "the ground dials, and the remote cannot open connections in advance";
                not_of_this_end(reader, &section, &["warm", "warm_as"], why);
                (Some(WarmAs::Connections), Some(0))
            } else {
                let warm_as = warm_as(reader, &section, link, peer.as_ref(), when_down);
                let default = warm_for(link, warm_as.unwrap_or(WarmAs::Connections));
                (warm_as, reader.optional_or(&section, "warm", default, Reader::number))
            };
            Some(Role::Remote(Remote {
                ground: peer?,
                identity: identity?,
                warm: warm?,
                warm_as: warm_as?,
                udp443: udp443?,
                instant_answers: instant_answers?,
                pack_headers: pack_headers?,
                when_down: when_down?,
                restart_wait: restart_wait?,
                transport: transport?,
            }))
        }
        RoleName::Ground | RoleName::Edge => {
            not_of_this_end(
                reader,
                &section,
                &["balance", "warm", "warm_as", "udp443", "instant_answers", "when_down", "restart_wait"],
                "the remote decides it",
            );
            Some(Role::Ground(Ground {
                remote: peer?,
                identity: identity?,
                pack_headers: pack_headers?,
                transport: transport?,
            }))
        }
    }
}

/// Reads `split.warm_as`. `auto` is [`warm_as_for`] the link, if one ground is the only way. Streams end with their pipe,
/// and Envoy would give a client one that leads to a ground that is down. It knows that of connections alone.
fn warm_as(
    reader: &mut Reader,
    section: &Section<'_>,
    link: Option<&Link>,
    peer: Option<&Peer>,
    when_down: Option<WhenDown>,
) -> Option<WarmAs> {
    let written = reader.optional(section, "warm_as", |reader, setting| {
        let words = [("auto", None), ("connections", Some(WarmAs::Connections)), ("streams", Some(WarmAs::Streams))];
        reader.word(setting, &words)
    })?;
    let other_way = match (peer.map(|peer| peer.dialled().len()), when_down) {
        (_, Some(WhenDown::Direct)) => Some("with `when_down: direct`, clients' bytes change over to another way"),
        (Some(2..), _) => Some("with several grounds, clients' bytes change over to another one"),
        _ => None,
    };
    match (written, other_way) {
        (None, None) => Some(link.map_or(WarmAs::Connections, warm_as_for)),
        (None, Some(_)) => Some(WarmAs::Connections),
        (Some(WarmAs::Streams), Some(why)) => {
            let place = section.get("warm_as").map_or_else(|| section.start(), |setting| setting.place());
            let title = "`split.warm_as: streams` needs one ground that is the only way";
            let problem = Problem::error(title.to_owned(), place, why.to_owned());
            reader.problems.push(problem.help("write `warm_as: connections`, or remove it"));
            None
        }
        (Some(chosen), _) => Some(chosen),
    }
}

/// Returns the carrier that loads pages sooner on this link. Connections do where a window takes long to grow, because
/// each brings an initial window. Where the initial windows of a page are more than the link holds, connections lose many
/// packets. Streams do not, and their handshakes cost less.
///
/// Load times through a pair over https, as parts of the direct ones (light and heavy page, medians of 3 to 11 loads).
/// `make experiments ONLY=carriers` loads the heavy page on three of the links:
///
/// | link | connections | streams |
/// |---|---|---|
/// | geostationary | 0.47, 0.36 | 0.49, 0.39 |
/// | ship's link | 0.51, 0.80 | 0.53, 0.82 |
/// | rural LTE | 0.74, 1.05 | 0.67, 0.98 |
/// | low orbit | 0.75, 0.70 | 0.77, 0.72 |
/// | UMTS, light page | 0.92 | 0.87 |
fn warm_as_for(link: &Link) -> WarmAs {
    let overflows = link.down.bytes_in(link.rtt) < OF_A_PAGE * INITIAL_WINDOW_BYTES;
    if overflows && LinkModel::of(link).class != LinkClass::LongRoundTrips {
        WarmAs::Streams
    } else {
        WarmAs::Connections
    }
}

/// Returns the default of `split.warm`: [`WARM`], or fewer on a slow uplink. Returns 0 if opening one takes longer than
/// the round trip that it saves.
fn warm_for(link: Option<&Link>, warm_as: WarmAs) -> u32 {
    let Some(link) = link else { return 0 };
    let opening = warm_as.opening_bytes();
    if link.up.time_for(opening) > link.rtt {
        return 0;
    }
    let affordable = link.up.bytes_in(OPENING) / opening * warm_as.unused_by_one() / warm_as.opened_by_one();
    let probes = link.price == Price::Metered && warm_as == WarmAs::Connections;
    let enough = if probes { WARM_METERED } else { WARM };
    u32::try_from(affordable.clamp(2, enough)).unwrap_or(0)
}

/// Groups and keys that belong to the other end of the link. They are errors, so that no operator believes that they
/// have an effect.
const NOT_HERE: &[(RoleName, &str, &[&str], &str)] = &[
    (RoleName::Remote, "rewrite", &[], "the ground rewrites"),
    (RoleName::Remote, "cache", &[], "the ground caches objects"),
    (RoleName::Remote, "compress", &[], "the ground compresses"),
    (RoleName::Remote, "tls", &[], "TLS passes through this end"),
    (RoleName::Remote, "proxy", &["secure_names"], "TLS passes through this end"),
    (RoleName::Remote, "upstream", &["ports", "allow_private", "deny", "map"], "the ground connects to origins"),
    (RoleName::Ground, "listen", &["http", "tls", "dns", "intercept"], "clients are at the remote"),
    (RoleName::Ground, "dns", &[], "clients query the remote"),
    (RoleName::Ground, "tls", &[], "TLS passes through the pair"),
    (RoleName::Ground, "proxy", &[], "clients are at the remote"),
];

/// Keys that a remote needs if it connects to origins itself (`split.when_down: direct`).
const OF_THE_DIRECT_WAY: &[&str] = &["upstream.ports", "upstream.allow_private", "upstream.deny"];

/// Refuses keys that only the other end uses.
pub(super) fn refuse_what_is_not_here(reader: &mut Reader, top: &Section<'_>, kind: RoleName) {
    let word = if kind == RoleName::Remote { "remote" } else { "ground" };
    // The role's own settings are read later.
    let when_down = top.get("split").and_then(|split| split.node.entry("when_down"));
    let direct =
        when_down.is_some_and(|entry| matches!(&entry.node.value, NodeValue::Scalar(word) if word == "direct"));
    for (_, group, keys, why) in NOT_HERE.iter().filter(|(of, ..)| *of == kind) {
        let Some(group) = top.get(group) else { continue };
        let found: Vec<(String, Place)> = if keys.is_empty() {
            vec![(group.name.clone(), group.key_place.clone())]
        } else {
            let entries = keys.iter().filter_map(|key| group.node.entry(key));
            entries.map(|entry| (format!("{}.{}", group.name, entry.key), entry.key_place.clone())).collect()
        };
        for (name, place) in found.into_iter().filter(|(name, _)| !(direct && OF_THE_DIRECT_WAY.contains(&&**name))) {
            let title = format!("`{name}` has no effect with `role: {word}`");
            reader.problems.push(Problem::error(title, place, (*why).to_owned()).help("remove it"));
        }
    }
}

/// Returns the sockets of a ground: the pipe, on which requests arrive, and its own pages.
pub(super) fn listen_of(role: &Role, listen: Listen) -> Listen {
    match role {
        Role::Edge | Role::Remote(_) => listen,
        Role::Ground(ground) => Listen {
            http: ground.remote.listen().map(Sockets::from),
            tls: None,
            dns: None,
            metrics: listen.metrics,
            status: listen.status,
            health: listen.health,
            image_metrics: listen.image_metrics,
            intercept: Intercept::None,
        },
    }
}

/// Refuses `split` with role edge, which has no other end.
fn refuse_split(reader: &mut Reader, top: &Section<'_>) -> Option<()> {
    let Some(split) = top.get("split") else { return Some(()) };
    let mut problem =
        Problem::error("`split` is for the roles remote and ground", split.key_place.clone(), "not with role edge");
    if let Some(role) = top.get("role") {
        problem = problem.and(role.place(), "the role is set here");
    }
    reader.problems.push(problem.help("remove `split`, or write `role: remote` or `role: ground`"));
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    fn link(rtt_ms: u64, down: u64, up: u64, price: Price) -> Link {
        let rate = Rate::from_bits_per_second;
        Link { rtt: Duration::from_millis(rtt_ms), down: rate(down), up: rate(up), price }
    }

    #[test]
    fn connections_carry_clients_where_the_link_holds_their_windows_and_streams_elsewhere() {
        for (rtt_ms, down, up, warm_as, warm) in [
            (600, 20_000_000, 5_000_000, WarmAs::Connections, 32),
            (700, 2_000_000, 500_000, WarmAs::Connections, 30),
            (80, 8_000_000, 2_000_000, WarmAs::Streams, 32),
            (40, 100_000_000, 10_000_000, WarmAs::Connections, 32),
            (40, 50_000_000, 10_000_000, WarmAs::Streams, 32),
            (300, 384_000, 64_000, WarmAs::Streams, 32),
            (400, 78_000, 40_000, WarmAs::Streams, 29),
            // A stream takes as long as the round trip that it saves.
            (400, 9_600, 2_400, WarmAs::Streams, 0),
        ] {
            let link = link(rtt_ms, down, up, Price::Free);
            assert_eq!((warm_as_for(&link), warm_for(Some(&link), warm_as)), (warm_as, warm), "{link:?}");
        }
    }

    #[test]
    fn a_metered_link_has_fewer_connections_and_as_many_streams() {
        let link = link(600, 20_000_000, 5_000_000, Price::Metered);
        assert_eq!(warm_for(Some(&link), WarmAs::Connections), 16);
        assert_eq!(warm_for(Some(&link), WarmAs::Streams), 32);
    }
}
