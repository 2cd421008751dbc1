//! Files with a certificate or a private key, wherever the configuration names one.

use std::path::PathBuf;

use crate::config::certificate::{Certificate, has_private_key};
use crate::config::diagnostic::Problem;
use crate::config::reader::{Reader, Setting};

/// A file with a certificate. One whose time is over is told, with `consequence`, and taken: it may be renewed in place.
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
            reader.problems.push(problem.help("expected PEM: -----BEGIN CERTIFICATE-----, our own certificate first"));
            return None;
        }
    };
    if let Some(when) = certificate.expired() {
        let title = format!("the certificate of `{}` has expired", setting.name);
        reader.problems.push(
            Problem::warning(title, setting.place(), format!("on {when}"))
                .help(format!("{consequence}; put a renewed one in its place")),
        );
    }
    Some((path, certificate))
}

/// A file with a private key. Whether it belongs to the certificate is for Envoy to say on loading them.
pub(super) fn private_key(reader: &mut Reader, setting: &Setting<'_>) -> Option<PathBuf> {
    let path = reader.path(setting, "a PEM file")?;
    let text = reader.file_text(setting, &path)?;
    if has_private_key(&text) {
        return Some(path);
    }
    let title = format!("`{}` names a file without a private key", setting.name);
    let problem = Problem::error(title, setting.place(), format!("no `PRIVATE KEY` block in {}", path.display()));
    reader.problems.push(problem.help("expected PEM: -----BEGIN PRIVATE KEY-----, without a passphrase"));
    None
}
