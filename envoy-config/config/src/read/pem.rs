//! Readers for files with a certificate or a private key, for every key that names one.

use std::path::{Path, PathBuf};

use crate::certificate::{Certificate, ChainFault, Invalid, NotPem, has_block, has_private_key};
use crate::diagnostic::Problem;
use crate::reader::{Reader, Setting};

/// Reads a file with this box's certificate first, as [`authorities`] does.
pub(super) fn certificate(
    reader: &mut Reader,
    setting: &Setting<'_>,
    consequence: &str,
) -> Option<(PathBuf, Certificate)> {
    let (path, certificate) = authorities(reader, setting, consequence)?;
    if certificate.begins_with_authority() {
        let title = format!("the certificates of `{}` are in the wrong order", setting.name);
        let label =
            format!("the first certificate in {} is an authority, which signed another one of it", path.display());
        let help = "put yours first, then the one that signed it, and so on";
        reader.problems.push(Problem::error(title, setting.place(), label).help(help));
        return None;
    }
    Some((path, certificate))
}

/// Reads a file with certificates in any order. A certificate that is not valid now is accepted, because it may be renewed
/// in place, but gets a warning with `consequence`.
pub(super) fn authorities(
    reader: &mut Reader,
    setting: &Setting<'_>,
    consequence: &str,
) -> Option<(PathBuf, Certificate)> {
    let (path, text) = pem_text(reader, setting)?;
    let certificate = match Certificate::of_pem(&text) {
        Ok(certificate) => certificate,
        Err(error) => {
            let help = if has_block(&text, "CERTIFICATE REQUEST") {
                "this is a request: name the certificate that the authority returned for it"
            } else if has_block(&text, "PRIVATE KEY") {
                "this is a private key: name it under `key`, and the certificate here"
            } else {
                "expected PEM: -----BEGIN CERTIFICATE-----, with this box's certificate first"
            };
            let title = format!("`{}` names a file without a certificate", setting.name);
            let problem = Problem::error(title, setting.place(), format!("{}: {error}", path.display()));
            reader.problems.push(problem.help(help));
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

/// Warns of a chain that clients cannot follow from the certificate to an authority that they know.
pub(super) fn warn_of_chain(reader: &mut Reader, setting: &Setting<'_>, certificate: &Certificate) {
    let (label, issuer) = match certificate.chain_fault(crate::authorities::have_signed) {
        Some(ChainFault::NoIntermediate { issuer }) => {
            ("the file has one certificate, and no authority of this machine signed it".to_owned(), issuer)
        }
        Some(ChainFault::Gap { issuer }) => (format!("no other certificate of the file is that of {issuer}"), issuer),
        None => return,
    };
    let title = format!("the chain of `{}` lacks a certificate", setting.name);
    let help = format!(
        "add the certificate of {issuer} behind the first one: ACME clients write the whole chain to `fullchain.pem`"
    );
    reader.problems.push(Problem::warning(title, setting.place(), label).help(help));
}

/// Reads a file with a private key. It must be the key of `certificate`, if the certificate is known.
pub(super) fn private_key(
    reader: &mut Reader,
    setting: &Setting<'_>,
    certificate: Option<&Certificate>,
) -> Option<PathBuf> {
    let (path, text) = pem_text(reader, setting)?;
    let (title, label, help) = if !has_private_key(&text) {
        let label = format!("no `PRIVATE KEY` block in {}", path.display());
        let name = setting.text().unwrap_or_default();
        let help = if has_block(&text, "ENCRYPTED PRIVATE KEY") {
            format!("remove the passphrase: openssl pkey -in {name} -out plain.key, then name plain.key")
        } else if has_block(&text, "CERTIFICATE") {
            "this is a certificate: name it under `cert`, and its private key here".to_owned()
        } else {
            "expected PEM: -----BEGIN PRIVATE KEY-----, without a passphrase".to_owned()
        };
        (format!("`{}` names a file without a private key", setting.name), label, help)
    } else if certificate.is_some_and(|certificate| !certificate.fits_key(&text)) {
        let label = format!("{} belongs to another certificate", path.display());
        let help = "name the key with which the certificate was requested; Envoy loads no other".to_owned();
        (format!("`{}` is not the key of its certificate", setting.name), label, help)
    } else {
        return Some(path);
    };
    reader.problems.push(Problem::error(title, setting.place(), label).help(help));
    None
}

/// Reads a PEM file. Recognises the other forms of certificates and keys, and says how to convert them.
fn pem_text(reader: &mut Reader, setting: &Setting<'_>) -> Option<(PathBuf, String)> {
    let path = reader.path(setting, "a PEM file")?;
    let bytes = reader.file_bytes(setting, &path)?;
    let name = setting.text().unwrap_or_default();
    let pem = Path::new(name).with_extension("pem");
    let pem = pem.display();
    let (kind, help) = match NotPem::of(&bytes) {
        None => return Some((path.clone(), reader.file_text(setting, &path)?)),
        Some(NotPem::Certificate) => {
            ("a certificate in DER", format!("openssl x509 -inform der -in {name} -out {pem}"))
        }
        Some(NotPem::Key) => ("a private key in DER", format!("openssl pkey -inform der -in {name} -out {pem}")),
        Some(NotPem::Pkcs12) => ("a PKCS #12 file", format!("openssl pkcs12 -nodes -in {name} -out {pem}")),
    };
    let problem = Problem::error(format!("`{}` names {kind}", setting.name), setting.place(), "expected PEM");
    reader.problems.push(problem.help(format!("convert it: {help}")));
    None
}
