//! `split.peer`, `split.balance` and the certificates: the other end of the link, and the identity of this one.

use sha2::{Digest, Sha256};

use crate::config::certificate::{Certificate, Covers};
use crate::config::diagnostic::Problem;
use crate::config::names::HostPort;
use crate::config::reader::{Reader, Section, Setting};
use crate::config::settings::{Identity, Peer, RoleName};
use crate::config::yaml::NodeValue;

use super::pem;
use super::split::not_of_this_end;

/// The order in which a remote uses its grounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Balance {
    /// The order of the file.
    Order,
    /// An order that depends on the names of the remote, so that the remotes of a fleet spread over the grounds. All
    /// requests of a remote use one ground, which knows what the remote holds.
    Spread,
}

/// Reads the other end: addresses if this end dials, names if this end listens. `own` is the certificate of this end.
pub(super) fn peer(
    reader: &mut Reader,
    section: &Section<'_>,
    kind: RoleName,
    dial: RoleName,
    own: Option<&Certificate>,
) -> Option<Peer> {
    let (other, name) =
        if kind == RoleName::Remote { ("ground", "ground.example") } else { ("remote", "ship.example") };
    if kind == dial {
        not_of_this_end(reader, section, &["listen"], &format!("the {other} listens, this end dials"));
        let what = format!("the address where the {other} listens, such as `peer: {name}:8443`");
        let at = reader.required(section, "peer", &what, |reader, setting| dialled(reader, setting, kind, own));
        let balance = reader.optional(section, "balance", |reader, setting| {
            reader.word(setting, &[("order", Balance::Order), ("spread", Balance::Spread)])
        });
        return Some(Peer::Dialled { at: ordered(at?, balance?, own) });
    }
    not_of_this_end(reader, section, &["balance"], &format!("the {other} dials, and this end chooses no {other}"));
    let listen = reader.optional(section, "listen", Reader::socket);
    let what = format!("the names in the certificates of {other}s, such as `peer: [{name}]`: the {other} dials");
    let names = reader.required(section, "peer", &what, |reader, setting| {
        if setting.text().is_some() {
            let here = if kind == RoleName::Remote { "remote" } else { "ground" };
            let help = format!("the {other} dials and this end listens: write the names in its certificate, such as `[{name}]`. If this end dials, write `dial: {here}` at both ends");
            reader.expected(setting, "a list of names", &help);
            return None;
        }
        let names = reader.list(setting, Reader::host_name);
        let names = reader.without_duplicates(setting, names)?;
        if names.is_empty() {
            reader.expected(setting, "at least one name", "without a name no box can connect");
            return None;
        }
        Some(names)
    });
    Some(Peer::Dials { listen: listen?, names: names? })
}

/// Reads the addresses that this end dials: one, or at a remote a list of grounds.
fn dialled(
    reader: &mut Reader,
    setting: &Setting<'_>,
    kind: RoleName,
    own: Option<&Certificate>,
) -> Option<Vec<HostPort>> {
    let (here, other, name) = match kind {
        RoleName::Remote => ("remote", "ground", "ground.example"),
        RoleName::Ground | RoleName::Edge => ("ground", "remote", "ship.example"),
    };
    let elsewhere = format!("If the {other} dials, write `dial: {other}` at both ends");
    let example = format!("{name}:8443");
    let at = match &setting.node.value {
        NodeValue::List(_) if kind == RoleName::Remote => {
            let listed = reader.list(setting, |reader, item| {
                let is_name = item.text().is_some_and(|text| !text.contains(':'));
                if is_name {
                    let text = item.text().unwrap_or_default();
                    let help = format!("this end dials: write the port, such as `{text}:8443`. {elsewhere}");
                    reader.bad(item, format!("expected HOST:PORT, found `{text}`"), &help);
                    return None;
                }
                reader.host_port(item, &example)
            });
            reader.without_duplicates(setting, listed)?
        }
        NodeValue::Scalar(_) => vec![reader.host_port(setting, &example)?],
        _ => {
            let help = format!("this end dials: write the address where the {other} listens. {elsewhere}");
            reader.expected(setting, "HOST:PORT", &help);
            return None;
        }
    };
    if at.is_empty() {
        reader.expected(setting, "at least one HOST:PORT", &format!("write [{example}]"));
        return None;
    }
    let itself = at.iter().position(|one| own.is_some_and(|own| own.covers(&one.host) == Covers::Yes));
    let Some(index) = itself else { return Some(at) };
    let place = match &setting.node.value {
        NodeValue::List(items) => items.get(index).map_or(setting.place(), |item| item.place.clone()),
        _ => setting.place(),
    };
    let title = format!("`split.peer` names this {here} itself");
    let problem = Problem::error(title, place, "the certificate of `split.cert` is for this host");
    reader.problems.push(problem.help(format!("name the {other}, or correct `split.cert`")));
    None
}

/// Returns the grounds in the order in which this remote uses them. With [`Balance::Spread`], a remote keeps its order
/// of two grounds when a third is added (rendezvous hashing, Thaler and Ravishankar 1998).
fn ordered(mut at: Vec<HostPort>, balance: Balance, own: Option<&Certificate>) -> Vec<HostPort> {
    if balance == Balance::Spread {
        let names = own.map(|own| own.names().join(",")).unwrap_or_default();
        at.sort_by_cached_key(|one| Sha256::digest(format!("{names} {one}")).to_vec());
    }
    at
}

/// Reads the certificate files of this end. Returns the certificate, too.
pub(super) fn identity(reader: &mut Reader, section: &Section<'_>) -> Option<(Identity, Certificate)> {
    let certificate =
        |reader: &mut Reader, setting: &Setting<'_>| pem::certificate(reader, setting, "the other end refuses it");
    let (cert, own) = reader.required(section, "cert", "the PEM file with this end's certificate", certificate).unzip();
    let key = reader.required(section, "key", "the PEM file with this end's private key", |reader, setting| {
        pem::private_key(reader, setting, own.as_ref())
    });
    let ca = reader.required(section, "ca", "the PEM file of the authority that signs for this pair", |reader, setting| {
        let (path, authorities) = certificate(reader, setting)?;
        if own.as_ref().is_some_and(|own| !own.is_signed_by(&authorities)) {
            let title = "`split.ca` has not signed the certificate of `split.cert`";
            let label = format!("no authority in {} signed it", path.display());
            let help = "name the authority that signed both ends' certificates; while you replace an authority, put the old \
                        and the new one into this file";
            reader.problems.push(Problem::error(title, setting.place(), label).help(help));
            return None;
        }
        Some(path)
    });
    Some((Identity { cert: cert?, key: key?, ca: ca? }, own?))
}
