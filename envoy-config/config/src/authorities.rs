//! The authorities that this machine trusts, as browsers of clients do.

use std::env;
use std::fs;
use std::path::PathBuf;

use x509_parser::prelude::X509Certificate;

use super::certificate::{certificates, has_signed};

/// The files of all trusted authorities: Debian and Alpine, Red Hat, SUSE and BSD (the list of Go's crypto/x509).
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Returns true if an authority of this machine has signed the certificate. None if this machine has no authorities.
pub(super) fn have_signed(certificate: &X509Certificate<'_>) -> Option<bool> {
    let chosen = env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let mut files = chosen.into_iter().chain(BUNDLES.iter().map(PathBuf::from));
    let bundle = files.find_map(|file| fs::read_to_string(file).ok())?;
    let authorities = certificates(&bundle);
    let found = authorities.iter().any(|authority| has_signed(authority, certificate));
    (!authorities.is_empty()).then_some(found)
}
