//! Readers for files with a certificate or a private key, for every key that names one.

use std::path::PathBuf;

use crate::config::certificate::{Certificate, Invalid, has_private_key};
use crate::config::diagnostic::Problem;
use crate::config::reader::{Reader, Setting};

/// Reads a file with a certificate. A certificate that is not valid now is accepted, because it may be renewed in
/// place, but gets a warning with `consequence`.
pub(super) fn certificate(
    reader: &mut Reader,
    setting: &Setting<'_>,
    consequence: &str,
) -> Option<(PathBuf, Certificate)> {
    let path = reader.path(setting, "a PEM file")?;
    let text = reader.file_text(setting, &path)?;
    let certificate = match Certificate::of_pem(&text) {
        Ok(certificate) => certificate,
        Err(error) => {
            let title = format!("`{}` names a file without a certificate", setting.name);
            let problem = Problem::error(title, setting.place(), format!("{}: {error}", path.display()));
            reader
                .problems
                .push(problem.help("expected PEM: -----BEGIN CERTIFICATE-----, with this box's certificate first"));
            return None;
        }
    };
    if let Some(invalid) = certificate.invalid() {
        let (fault, label, help) = match invalid {
            Invalid::Expired { on } => ("has expired", format!("on {on}"), "renew it"),
            Invalid::NotYet { from } => {
                ("is not valid yet", format!("it is valid from {from} on"), "set this machine's clock, or wait")
            }
            Invalid::Soon { days } => ("ends soon", format!("in {days} days"), "renew it before that day"),
        };
        let title = format!("the certificate of `{}` {fault}", setting.name);
        let help = format!("{consequence}; {help}");
        reader.problems.push(Problem::warning(title, setting.place(), label).help(help));
    }
    Some((path, certificate))
}

/// Reads a file with a private key. It must be the key of `certificate`, if the certificate is known.
pub(super) fn private_key(
    reader: &mut Reader,
    setting: &Setting<'_>,
    certificate: Option<&Certificate>,
) -> Option<PathBuf> {
    let path = reader.path(setting, "a PEM file")?;
    let text = reader.file_text(setting, &path)?;
    let (title, label, help) = if !has_private_key(&text) {
        let label = format!("no `PRIVATE KEY` block in {}", path.display());
        let help = "expected PEM: -----BEGIN PRIVATE KEY-----, without a passphrase";
        (format!("`{}` names a file without a private key", setting.name), label, help)
    } else if certificate.is_some_and(|certificate| !certificate.fits_key(&text)) {
        let label = format!("{} belongs to another certificate", path.display());
        let help = "name the key with which the certificate was requested; Envoy loads no other";
        (format!("`{}` is not the key of its certificate", setting.name), label, help)
    } else {
        return Some(path);
    };
    reader.problems.push(Problem::error(title, setting.place(), label).help(help));
    None
}
