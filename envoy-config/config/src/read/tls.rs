//! `tls`: the certificates of the operator, and the challenges by which an authority renews them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::certificate::{Certificate, Covers};
use crate::diagnostic::{Place, Problem};
use crate::names::Host;
use crate::reader::{Reader, Section, Setting};
use crate::settings::{Acme, ChallengeResponses, Termination};

use super::pem;

const EXAMPLE: &str = "write `{ names: [portal.example], cert: portal.pem, key: portal.key }`";

const ACME_EXAMPLE: &str = "write `{ webroot: /var/lib/longhaul/acme }`, `{ forward: 127.0.0.1:8099 }` or `off`";

/// Reads the group. In each part the outer None is a problem.
#[allow(clippy::option_option, reason = "the reader's own None means: already reported")]
pub(super) fn tls(reader: &mut Reader, top: &Section<'_>) -> (Option<Vec<Termination>>, Option<Option<Acme>>) {
    let section = reader.section(top, "tls");
    let mut acme =
        reader.optional(
            &section,
            "acme",
            |reader, setting| {
                if setting.is_off() { Some(None) } else { acme(reader, setting).map(Some) }
            },
        );
    // The names so far, with their places. With two certificates for one name, Envoy could present either.
    let mut given: Vec<(Host, Place)> = Vec::new();
    // With a problem under `tls.acme`, a missing certificate is not another one.
    let awaits = !matches!(acme, Some(None));
    let entries = reader.optional(&section, "terminate", |reader, setting| {
        reader.list(setting, |reader, item| termination(reader, item, &mut given, awaits))
    });
    let terminate = entries.map(|entries| {
        let mut present = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            match (entry, &mut acme) {
                (Entry::Present(entry), _) => present.push(entry),
                (Entry::Awaited(entry), Some(Some(acme))) => drop(acme.awaited.insert(index, entry)),
                (Entry::Awaited(_), _) => {}
            }
        }
        present
    });
    (terminate, acme)
}

/// An entry of `tls.terminate`.
enum Entry {
    /// Its certificate and key exist.
    Present(Termination),
    /// The ACME client has not made its certificate or key yet.
    Awaited(Termination),
}

fn acme(reader: &mut Reader, setting: &Setting<'_>) -> Option<Acme> {
    let group = reader.group(setting, ACME_EXAMPLE)?;
    let listen = reader.optional(&group, "listen", Reader::socket_or_off);
    let responses = match (group.get("webroot"), group.get("forward")) {
        (Some(webroot), None) => self::webroot(reader, &webroot).map(ChallengeResponses::Webroot),
        (None, Some(forward)) => reader.socket(&forward).map(ChallengeResponses::Forward),
        (None, None) => {
            reader.bad(setting, "expected `webroot` or `forward`", ACME_EXAMPLE);
            None
        }
        (Some(_), Some(forward)) => {
            reader.bad(&forward, "`webroot` is set too", "remove one of them: a challenge has one response");
            None
        }
    };
    Some(Acme { responses: responses?, awaited: BTreeMap::new(), listen: listen? })
}

/// Reads the folder. A folder that does not exist gets a warning: this machine may not be the one that runs the file.
fn webroot(reader: &mut Reader, setting: &Setting<'_>) -> Option<PathBuf> {
    let path = reader.path(setting, "a folder such as /var/lib/longhaul/acme")?;
    if !path.is_dir() {
        let title = format!("`{}` names a folder that does not exist", setting.name);
        let label = format!("no folder {}", path.display());
        let help = "create it, so that the ACME client can write into it and this box can read it";
        reader.problems.push(Problem::warning(title, setting.place(), label).help(help));
    }
    Some(path)
}

fn termination(reader: &mut Reader, item: &Setting<'_>, given: &mut Vec<(Host, Place)>, awaits: bool) -> Option<Entry> {
    let group = reader.group(item, EXAMPLE)?;
    let what = "the names served with it, such as `names: [portal.example]`";
    let names = reader.required(&group, "names", what, |reader, setting| names(reader, setting, given));
    if awaits && let (Some(cert), Some(key)) = (group.get("cert"), group.get("key")) {
        let (cert, key) = (reader.path(&cert, "a PEM file")?, reader.path(&key, "a PEM file")?);
        if is_absent(&cert) || is_absent(&key) {
            return Some(Entry::Awaited(Termination { names: names?, cert, key }));
        }
    }
    let what = "the PEM file with its certificate chain";
    let cert = reader.required(&group, "cert", what, |reader, setting| certificate(reader, setting, names.as_deref()));
    let (cert, own) = cert.unzip();
    let key = reader.required(&group, "key", "the PEM file with its private key", |reader, setting| {
        pem::private_key(reader, setting, own.as_ref())
    });
    Some(Entry::Present(Termination { names: names?, cert: cert?, key: key? }))
}

/// Returns true if there is no such file. A file that may not be read is there.
fn is_absent(path: &Path) -> bool {
    path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn names(reader: &mut Reader, setting: &Setting<'_>, given: &mut Vec<(Host, Place)>) -> Option<Vec<Host>> {
    let mut clean = true;
    let names = reader.list(setting, |reader, item| {
        let name = reader.host(item)?;
        if let Some((_, first)) = given.iter().find(|(other, _)| *other == name) {
            let problem = Problem::error(
                format!("`{name}` has two certificates under `tls.terminate`"),
                item.place(),
                "again here",
            );
            reader.problems.push(problem.and(first.clone(), "first here").help("name it once"));
            clean = false;
        }
        given.push((name.clone(), item.place()));
        Some(name)
    })?;
    if names.is_empty() {
        reader.expected(setting, "at least one name", EXAMPLE);
        return None;
    }
    clean.then_some(names)
}

/// Reads a certificate that covers every one of `names`. Browsers refuse one that does not, which breaks every page
/// with an object on it. Refusing to start is better. The check ignores the authority, which browsers may not know.
fn certificate(reader: &mut Reader, setting: &Setting<'_>, names: Option<&[Host]>) -> Option<(PathBuf, Certificate)> {
    let (path, certificate) = pem::certificate(reader, setting, "browsers refuse it")?;
    let mut covered = true;
    for name in names.unwrap_or_default() {
        if let Covers::Only(others) = certificate.covers(name) {
            let others = if others.is_empty() { "no name".to_owned() } else { others.join(", ") };
            let title = format!("the certificate of `{}` is not for {name}", setting.name);
            reader.problems.push(
                Problem::error(title, setting.place(), format!("it is for {others}")).help("browsers would refuse it"),
            );
            covered = false;
        }
    }
    if covered {
        pem::warn_of_chain(reader, setting, &certificate);
    }
    covered.then_some((path, certificate))
}
