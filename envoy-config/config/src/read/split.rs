//! `role` and `split`: the end of the link at which this box stands.

use crate::diagnostic::{Place, Problem};
use crate::names::Host;
use crate::peer_name::PeerName;
use crate::reader::{Reader, Section};
use crate::settings::{Ground, Intercept, Listen, Multipath, PipeTransport, Remote, Role, RoleName, Udp443, WhenDown};
use crate::sockets::Sockets;
use crate::yaml::NodeValue;

use super::other_end::not_of_this_end;
use super::peer;

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
pub(super) fn role(reader: &mut Reader, top: &Section<'_>, kind: RoleName) -> Option<Role> {
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
    let (identity, own) = peer::identity(reader, &section).unzip();
    let transport = reader.optional(&section, "transport", |reader, setting| {
        reader.word(setting, &[("h2", PipeTransport::H2), ("h3", PipeTransport::H3)])
    });
    let pack_headers = reader.optional(&section, "pack_headers", Reader::boolean);
    let multipath = reader.optional(&section, "multipath", |reader, setting| {
        reader.word(setting, &[("auto", Multipath::Auto), ("on", Multipath::On), ("off", Multipath::Off)])
    });
    match kind {
        RoleName::Remote => {
            let grounds = peer::grounds(reader, &section, own.as_ref());
            if let (Some(own), Some(grounds)) = (&own, &grounds) {
                peer::warn_of_other_end(reader, &section, own, grounds.iter().map(|ground| &ground.host));
            }
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
            let warm = match section.get("warm") {
                Some(setting) => reader.number(&setting).map(Some),
                None => Some(None),
            };
            Some(Role::Remote(Remote {
                grounds: grounds?,
                identity: identity?,
                warm: warm?,
                udp443: udp443?,
                instant_answers: instant_answers?,
                pack_headers: pack_headers?,
                when_down: when_down?,
                restart_wait: restart_wait?,
                transport: transport?,
                multipath: multipath?,
            }))
        }
        RoleName::Ground | RoleName::Edge => {
            not_of_this_end(
                reader,
                &section,
                &["balance", "warm", "udp443", "instant_answers", "when_down", "restart_wait"],
                "the remote decides it",
            );
            let remotes = peer::remotes(reader, &section);
            let listen = reader.optional(&section, "listen", Reader::socket);
            let (remotes, remote_files) = remotes?;
            if let Some(own) = &own {
                let hosts: Vec<Host> = remotes.iter().filter_map(PeerName::one_host).collect();
                peer::warn_of_other_end(reader, &section, own, &hosts);
            }
            Some(Role::Ground(Ground {
                listen: listen?,
                remotes,
                remote_files,
                identity: identity?,
                pack_headers: pack_headers?,
                transport: transport?,
                multipath: multipath?,
            }))
        }
    }
}

/// Groups and keys that belong to the other end of the link. They are errors, so that no operator believes that they
/// have an effect.
const NOT_HERE: &[(RoleName, &str, &[&str], &str)] = &[
    (RoleName::Remote, "rewrite", &[], "the ground rewrites"),
    (RoleName::Remote, "cache", &["parent"], "the ground connects to origins"),
    (RoleName::Remote, "compress", &[], "the ground compresses"),
    (RoleName::Remote, "tls", &[], "TLS passes through this end"),
    (RoleName::Remote, "proxy", &["secure_names"], "TLS passes through this end"),
    (RoleName::Remote, "upstream", &["ports", "allow_private", "deny", "map"], "the ground connects to origins"),
    (RoleName::Ground, "listen", &["http", "tls", "dns", "tcp", "intercept"], "clients are at the remote"),
    (RoleName::Ground, "dns", OF_CLIENTS_DNS, "clients query the remote"),
    (RoleName::Ground, "tls", &[], "TLS passes through the pair"),
    (RoleName::Ground, "proxy", &[], "clients are at the remote"),
];

/// The keys of `dns` that belong where clients send their queries: all but those of both ends of a pair.
const OF_CLIENTS_DNS: &[&str] = &[
    "domains",
    "except",
    "www",
    "mode",
    "max_origin",
    "ttl",
    "aaaa",
    "https",
    "dnssec",
    "canary",
    "encrypted",
    "remember",
    "instant",
    "instant_range",
    "reload",
    "health",
    "bypass",
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

/// Returns the sockets of a role. Those of a ground are the pipe, on which requests arrive, and its own pages. An edge
/// has no pipe for other ports.
pub(super) fn listen_of(role: &Role, listen: Listen) -> Listen {
    match role {
        Role::Edge => Listen { tcp: None, ..listen },
        Role::Remote(_) => listen,
        Role::Ground(ground) => Listen {
            http: Sockets::from(ground.listen),
            tls: None,
            dns: None,
            dns_is_auto: false,
            metrics: listen.metrics,
            status: listen.status,
            health: listen.health,
            image_metrics: listen.image_metrics,
            intercept: Intercept::None,
            tcp: None,
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
    use crate::keys::KEYS;

    #[test]
    fn a_ground_takes_no_key_of_clients_dns() {
        let of_dns = KEYS.iter().filter_map(|key| key.name.strip_prefix("dns.")).filter(|key| *key != "push");
        assert_eq!(of_dns.collect::<Vec<_>>(), OF_CLIENTS_DNS);
    }
}
