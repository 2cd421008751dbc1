//! `split.peer`, `split.balance` and the certificates: the other end of the link, and the identity of this one.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::certificate::{Certificate, Covers};
use crate::diagnostic::Problem;
use crate::names::{Host, HostPort};
use crate::peer_name::PeerName;
use crate::reader::{LIST_ENDINGS, Reader, Section, Setting};
use crate::settings::Identity;
use crate::yaml::NodeValue;

use super::cut_dial;
use super::other_end::not_of_this_end;
use super::pem;

/// The order in which a remote uses its grounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Balance {
    /// The order of the file.
    Order,
    /// An order that depends on the names of the remote, so that the remotes of a fleet spread over the grounds. All
    /// requests of a remote use one ground, which knows what the remote holds.
    Spread,
}

/// Reads the grounds of a remote. `own` is the certificate of this end.
pub(super) fn grounds(reader: &mut Reader, section: &Section<'_>, own: Option<&Certificate>) -> Option<Vec<HostPort>> {
    if let Some(of_a_cut_key) = cut_dial::grounds(reader, section) {
        return Some(of_a_cut_key);
    }
    not_of_this_end(reader, section, &["listen"], "the ground listens, this end dials");
    let what = "the address where the ground listens, such as `peer: ground.example:8443`";
    let at = reader.required(section, "peer", what, dialled);
    let balance = reader.optional(section, "balance", |reader, setting| {
        reader.word(setting, &[("order", Balance::Order), ("spread", Balance::Spread)])
    });
    Some(ordered(at?, balance?, own))
}

/// Reads the names of remotes that a ground accepts. Returns the names, and the files from which some of them come.
pub(super) fn remotes(reader: &mut Reader, section: &Section<'_>) -> Option<(Vec<PeerName>, Vec<PathBuf>)> {
    if let Some(of_a_cut_key) = cut_dial::remotes(reader, section) {
        return Some((of_a_cut_key, Vec::new()));
    }
    let what = "the names in the certificates of remotes, such as `peer: [ship.example]`: the remote dials";
    reader.required(section, "peer", what, accepted)
}

/// A name in the configuration file, or a file of names.
enum Entry {
    Name(PeerName),
    File(PathBuf, Vec<PeerName>),
}

/// Reads a list of names and files, or one file.
fn accepted(reader: &mut Reader, setting: &Setting<'_>) -> Option<(Vec<PeerName>, Vec<PathBuf>)> {
    let entries = match setting.text() {
        Some(text) if is_file(text) => vec![entry(reader, setting)?],
        Some(text) => {
            let help = format!(
                "the remote dials and this end listens: write the names in its certificate, such as `[{}]`",
                text.split(':').next().filter(|name| PeerName::parse(name).is_ok()).unwrap_or("ship.example")
            );
            reader.expected(setting, "a list of names, or a file of them", &help);
            return None;
        }
        None => reader.list(setting, entry)?,
    };
    let listed: Vec<Option<&PeerName>> = entries
        .iter()
        .map(|entry| match entry {
            Entry::Name(name) => Some(name),
            Entry::File(..) => None,
        })
        .collect();
    // Files may repeat a name of the list, because another program may write them.
    let distinct = listed.iter().enumerate().map(|(index, name)| name.ok_or(index)).collect();
    reader.without_duplicates(setting, Some(distinct))?;
    let (mut names, mut files) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            Entry::Name(name) => names.push(name),
            Entry::File(path, of_file) => {
                names.extend(of_file);
                files.push(path);
            }
        }
    }
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    if names.is_empty() {
        reader.expected(setting, "at least one name", "without a name no box can connect");
        return None;
    }
    Some((names, files))
}

fn is_file(text: &str) -> bool {
    let is_path = text.contains('/') && !text.starts_with("spiffe://");
    is_path || LIST_ENDINGS.iter().any(|ending| text.ends_with(ending))
}

const NAMES: &str = "names: ship.example, *.ships.example (one label), spiffe://fleet.example/ship/* (an ID or its beginning); a file has a `/` or ends in .txt";

fn entry(reader: &mut Reader, setting: &Setting<'_>) -> Option<Entry> {
    let text = reader.text(setting, "a name or a file of names", NAMES)?;
    if !text.starts_with("spiffe://") && reader.is_url_of_name(setting, "a name or a file of names") {
        return None;
    }
    if is_file(text) {
        let path = reader.path(setting, "a name or a file of names")?;
        let content = reader.file_text(setting, &path)?;
        return names_of(reader, setting, &path, &content).map(|names| Entry::File(path, names));
    }
    match PeerName::parse(text) {
        Ok(name) => Some(Entry::Name(name)),
        Err(error) => {
            reader.bad(setting, format!("expected a name or a file of names, found `{text}`: {error}"), NAMES);
            None
        }
    }
}

/// Reads a file with one name a line. `#` begins a comment.
fn names_of(reader: &mut Reader, setting: &Setting<'_>, path: &Path, content: &str) -> Option<Vec<PeerName>> {
    let lines = content.lines().enumerate().map(|(index, line)| {
        let bare = line.split('#').next().unwrap_or_default();
        (index + 1, bare.len() - bare.trim_start().len() + 1, bare.trim())
    });
    let (mut names, mut is_good) = (Vec::new(), true);
    for (line, column, text) in lines.filter(|(.., text)| !text.is_empty()) {
        match PeerName::parse(text) {
            Ok(name) => names.push(name),
            Err(error) => {
                is_good = false;
                let title = format!("`{}`: bad line in {}:{line}:{column}", setting.name, path.display());
                let problem = Problem::error(title, setting.place(), format!("found `{text}` there: {error}"));
                reader.problems.push(problem.in_file(path.to_owned(), line, column).help(NAMES));
            }
        }
    }
    if is_good && names.is_empty() {
        let problem =
            Problem::error(format!("`{}` names a list without a name", setting.name), setting.place(), "no name in it");
        reader.problems.push(problem.in_file(path.to_owned(), 1, 1).help("add a name; without one no box can connect"));
        return None;
    }
    is_good.then_some(names)
}

/// Reads the addresses of grounds: one, or a list.
fn dialled(reader: &mut Reader, setting: &Setting<'_>) -> Option<Vec<HostPort>> {
    const EXAMPLE: &str = "ground.example:8443";
    let at = match &setting.node.value {
        NodeValue::List(_) => {
            let listed = reader.list(setting, |reader, item| {
                let is_name = item.text().is_some_and(|text| !text.contains(':'));
                if is_name {
                    let text = item.text().unwrap_or_default();
                    let help = format!("this end dials: write the port, such as `{text}:8443`");
                    reader.bad(item, format!("expected HOST:PORT, found `{text}`"), &help);
                    return None;
                }
                reader.host_port(item, EXAMPLE)
            });
            reader.without_duplicates(setting, listed)?
        }
        NodeValue::Scalar(_) => vec![reader.host_port(setting, EXAMPLE)?],
        _ => {
            reader.expected(setting, "HOST:PORT", "this end dials: write the address where the ground listens");
            return None;
        }
    };
    if at.is_empty() {
        reader.expected(setting, "at least one HOST:PORT", &format!("write [{EXAMPLE}]"));
        return None;
    }
    Some(at)
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

/// Warns if the certificate of this end, `own`, is for the other end, one of `others`.
pub(super) fn warn_of_other_end<'h>(
    reader: &mut Reader,
    section: &Section<'_>,
    own: &Certificate,
    others: impl IntoIterator<Item = &'h Host>,
) {
    let Some(cert) = section.get("cert") else { return };
    if let Some(other) = others.into_iter().find(|other| own.covers(other) == Covers::Yes) {
        let title = format!("the certificate of `{}` is for {other}, the other end of this pair", cert.name);
        let problem = Problem::warning(title, cert.place(), "the other end refuses its own name");
        let problem = match section.get("peer") {
            Some(peer) => problem.and(peer.place(), "the other end"),
            None => problem,
        };
        reader
            .problems
            .push(problem.help("name the certificate and the key that `longhaul pair init` made for this end"));
    }
}

/// Reads the certificate files of this end. Returns the certificate, too.
pub(super) fn identity(reader: &mut Reader, section: &Section<'_>) -> Option<(Identity, Certificate)> {
    const REFUSED: &str = "the other end refuses it";
    let own = |reader: &mut Reader, setting: &Setting<'_>| pem::certificate(reader, setting, REFUSED);
    let (cert, own) = reader.required(section, "cert", "the PEM file with this end's certificate", own).unzip();
    let key = reader.required(section, "key", "the PEM file with this end's private key", |reader, setting| {
        pem::private_key(reader, setting, own.as_ref())
    });
    let ca = reader.required(section, "ca", "the PEM file of the authority that signs for this pair", |reader, setting| {
        let (path, authorities) = pem::authorities(reader, setting, REFUSED)?;
        if own.as_ref().is_some_and(|own| !own.is_signed_by(&authorities)) {
            let title = "`split.ca` has not signed the certificate of `split.cert`";
            let label = format!("no authority in {} signed it", path.display());
            let help = "copy both and pair-ca.pem from one folder `pair`, or name the authority that signed both ends' \
                        certificates; while you replace an authority, put the old and the new one into this file";
            reader.problems.push(Problem::error(title, setting.place(), label).help(help));
            return None;
        }
        Some(path)
    });
    Some((Identity { cert: cert?, key: key?, ca: ca? }, own?))
}
