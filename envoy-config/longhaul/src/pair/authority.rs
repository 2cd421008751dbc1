//! The pair's own authority. It signs one certificate for each end, and nothing else.
//!
//! Both ends trust only this authority, so its key gives access to the ground. The key never leaves the folder in which
//! it was made.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

const DAY: Duration = Duration::from_hours(24);
/// The clocks of ships are wrong, so a certificate is valid from a week before it was made.
const EARLY: Duration = DAY.saturating_mul(7);
/// The lifetime of an authority: ten years. A new one needs a visit to every box.
const AUTHORITY_LASTS: Duration = DAY.saturating_mul(3_650);
/// The lifetime of an end's certificate: three years. `longhaul pair renew` replaces it while both ends run.
const END_LASTS: Duration = DAY.saturating_mul(1_095);

/// A certificate and its private key, both in PEM.
pub(super) struct Issued {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// An authority whose key is at hand.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

/// The reason why no certificate could be made.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct AuthorityError(#[from] rcgen::Error);

impl Authority {
    /// Makes a new authority.
    pub(super) fn new(now: SystemTime) -> Result<(Self, Issued), AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = params(&[], "Longhaul pair authority", now, AUTHORITY_LASTS)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issued = Issued { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() };
        Ok((Self { issuer: Issuer::new(params, key) }, issued))
    }

    /// Reads an authority from the PEM texts of its certificate and its key.
    pub(super) fn read(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        Ok(Self { issuer: Issuer::from_ca_cert_pem(certificate, KeyPair::from_pem(key)?)? })
    }

    /// Makes a key and a certificate for an end. `name` is a host name or an address. The certificate serves both sides
    /// of a handshake, because either end may dial.
    pub(super) fn issue(&self, name: &str, now: SystemTime) -> Result<Issued, AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = params(&[name], name, now, END_LASTS)?;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        Ok(Issued { certificate: params.signed_by(&key, &self.issuer)?.pem(), key: key.serialize_pem() })
    }
}

fn params(
    names: &[&str],
    common_name: &str,
    now: SystemTime,
    lasts: Duration,
) -> Result<CertificateParams, AuthorityError> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = (now - EARLY).into();
    params.not_after = (now + lasts).into();
    Ok(params)
}
