//! The files of this end: its certificate chain, its key, and the authorities that it trusts.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use longhaul_config::Identity;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::{CheckError, Shown};

/// The credentials of this end.
#[derive(Debug)]
pub(super) struct Credentials {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) authorities: Arc<RootCertStore>,
    /// The facts of this end's certificate.
    pub(super) shown: Shown,
    /// The validity of each authority.
    pub(super) shown_authorities: Vec<Shown>,
}

impl Credentials {
    pub(super) fn read(identity: &Identity) -> Result<Self, CheckError> {
        let chain = certificates(&identity.cert)?;
        let key = PrivateKeyDer::from_pem_file(&identity.key).map_err(|error| unusable(&identity.key, &error))?;
        let trusted = certificates(&identity.ca)?;
        let own = chain.first().and_then(shown).ok_or_else(|| unusable(&identity.cert, &"it cannot be read"))?;
        let shown_authorities = trusted.iter().filter_map(shown).collect();
        let mut authorities = RootCertStore::empty();
        for authority in trusted {
            authorities.add(authority).map_err(|error| unusable(&identity.ca, &error))?;
        }
        Ok(Self { chain, key, authorities: authorities.into(), shown: own, shown_authorities })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CheckError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error: rustls::pki_types::pem::Error| unusable(path, &error))
}

fn unusable(path: &Path, problem: &dyn std::fmt::Display) -> CheckError {
    CheckError::Unusable { path: path.to_owned(), problem: problem.to_string() }
}

/// Returns the facts of a certificate. None if it cannot be parsed.
pub(super) fn shown(der: &CertificateDer<'_>) -> Option<Shown> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let names = alternative.iter().flat_map(|extension| &extension.value.general_names);
    let names = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    });
    let validity = certificate.validity();
    Some(Shown {
        names: names.collect(),
        from_s: validity.not_before.timestamp(),
        until_s: validity.not_after.timestamp(),
    })
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
