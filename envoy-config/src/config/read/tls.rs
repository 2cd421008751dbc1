//! `tls.terminate`: the certificates of the operator.

use std::path::PathBuf;

use crate::config::certificate::{Certificate, Covers};
use crate::config::diagnostic::Problem;
use crate::config::names::Host;
use crate::config::reader::{Reader, Section, Setting};
use crate::config::settings::Termination;
use crate::config::yaml::Place;

use super::pem;

const EXAMPLE: &str = "write `{ names: [portal.example], cert: portal.pem, key: portal.key }`";

pub(super) fn terminate(reader: &mut Reader, top: &Section<'_>) -> Option<Vec<Termination>> {
    let section = reader.section(top, "tls");
    reader.optional(&section, "terminate", |reader, setting| {
        // The names so far, with their places. With two certificates for one name, Envoy could present either.
        let mut given: Vec<(Host, Place)> = Vec::new();
        reader.list(setting, |reader, item| termination(reader, item, &mut given))
    })
}

fn termination(reader: &mut Reader, item: &Setting<'_>, given: &mut Vec<(Host, Place)>) -> Option<Termination> {
    let group = reader.group(item, EXAMPLE)?;
    let what = "the names served with it, such as `names: [portal.example]`";
    let names = reader.required(&group, "names", what, |reader, setting| names(reader, setting, given));
    let what = "the PEM file with its certificate chain";
    let cert = reader.required(&group, "cert", what, |reader, setting| certificate(reader, setting, names.as_deref()));
    let (cert, own) = cert.unzip();
    let key = reader.required(&group, "key", "the PEM file with its private key", |reader, setting| {
        pem::private_key(reader, setting, own.as_ref())
    });
    Some(Termination { names: names?, cert: cert?, key: key? })
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
    covered.then_some((path, certificate))
}
