//! Certificates and private keys: names, validity, matching keys and signatures.

use std::net::IpAddr;

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair,
};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};
use x509_parser::time::ASN1Time;

use super::names::Host;
use super::validity::{Lifetime, Validity};

/// The longest chain between a certificate and an authority.
const CHAIN: usize = 8;

/// The first certificate of a PEM file, which a server presents as its own, and the chain behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    /// Subject alternative names, in lower case. Browsers check no other names (RFC 9525 section 6).
    names: Vec<String>,
    addresses: Vec<IpAddr>,
    validity: Option<Invalid>,
    /// The bits of the subject's public key, without its algorithm.
    public_key: Vec<u8>,
    /// Every certificate of the file, in DER.
    chain: Vec<Vec<u8>>,
}

/// A certificate that is not valid yet, has expired, or expires soon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Invalid {
    NotYet { from: String },
    Expired { on: String },
    Soon { days: i64 },
}

/// A fault of the certificates behind the first one in a file, which clients need to find an authority that they know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChainFault {
    /// No certificate behind the first one has signed it.
    Gap {
        /// The authority that signed the first one.
        issuer: String,
    },
    /// There is no certificate behind the first one, and no authority of this machine has signed it.
    NoIntermediate {
        /// The authority that signed it.
        issuer: String,
    },
}

/// The relation of a certificate to a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Covers {
    Yes,
    /// The certificate does not cover the name, but covers these.
    Only(Vec<String>),
}

impl Certificate {
    pub(super) fn of_pem(text: &str) -> Result<Self, String> {
        let chain = certificates(text);
        let own = chain.first().ok_or("no `CERTIFICATE` block")?;
        let (_, certificate) = X509Certificate::from_der(own)
            .map_err(|error| format!("its `CERTIFICATE` block cannot be read: {error}"))?;
        let (mut names, mut addresses) = (Vec::new(), Vec::new());
        let alternative =
            certificate.subject_alternative_name().map_err(|error| format!("its names cannot be read: {error}"))?;
        for name in alternative.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                GeneralName::DNSName(name) => names.push(name.to_ascii_lowercase()),
                GeneralName::IPAddress(bytes) => addresses.extend(address(bytes)),
                _ => {}
            }
        }
        let validity = invalid(&certificate, ASN1Time::now().timestamp());
        let public_key = certificate.public_key().subject_public_key.data.to_vec();
        Ok(Self { names, addresses, validity, public_key, chain })
    }

    /// Returns its DNS names, in lower case.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the problem of its validity, if there is one.
    pub(super) fn invalid(&self) -> Option<&Invalid> {
        self.validity.as_ref()
    }

    /// Returns true if the first certificate is an authority, and has signed another one of the file.
    pub(super) fn begins_with_authority(&self) -> bool {
        let Some((first, behind)) = self.chain.split_first() else { return false };
        let is_authority =
            |der: &[u8]| X509Certificate::from_der(der).is_ok_and(|(_, certificate)| certificate.is_ca());
        let signed = |der: &Vec<u8>| {
            X509Certificate::from_der(der).is_ok_and(|(_, certificate)| der != first && has_signed(first, &certificate))
        };
        is_authority(first) && behind.iter().any(signed)
    }

    /// Returns the fault of a chain that a server presents. `is_known` says if an authority of this machine has signed a
    /// certificate, or None if its authorities are not known.
    pub(super) fn chain_fault(&self, is_known: impl Fn(&X509Certificate<'_>) -> Option<bool>) -> Option<ChainFault> {
        let (first, behind) = self.chain.split_first()?;
        let (_, certificate) = X509Certificate::from_der(first).ok()?;
        let issuer = certificate.issuer().to_string();
        if certificate.issuer() == certificate.subject() || behind.iter().any(|other| has_signed(other, &certificate)) {
            return None;
        }
        match is_known(&certificate) {
            Some(true) => None,
            _ if !behind.is_empty() => Some(ChainFault::Gap { issuer }),
            Some(false) => Some(ChainFault::NoIntermediate { issuer }),
            None => None,
        }
    }

    /// Returns false if the private key in `pem` belongs to another certificate. Returns true if its algorithm is
    /// unknown here: Envoy decides.
    pub(super) fn fits_key(&self, pem: &str) -> bool {
        public_key(pem).is_none_or(|key| key == self.public_key)
    }

    /// Returns true if an authority in the file of `authorities` signed the certificate, directly or through the chain in
    /// its own file.
    pub(super) fn is_signed_by(&self, authorities: &Self) -> bool {
        let mut current = self.chain.first();
        for _ in 0..CHAIN {
            let Some((_, certificate)) = current.and_then(|der| X509Certificate::from_der(der).ok()) else {
                return false;
            };
            if authorities.chain.iter().any(|authority| has_signed(authority, &certificate)) {
                return true;
            }
            current = self.chain.iter().skip(1).find(|issuer| has_signed(issuer, &certificate));
        }
        false
    }

    pub(super) fn covers(&self, host: &Host) -> Covers {
        let covered = match host {
            Host::Address(address) => self.addresses.contains(address),
            Host::Name(name) => self.names.iter().any(|pattern| matches(pattern, name.as_str())),
        };
        if covered {
            return Covers::Yes;
        }
        Covers::Only(self.names.iter().cloned().chain(self.addresses.iter().map(ToString::to_string)).collect())
    }
}

/// Returns the bits of the public key of the PKCS #8 block in `pem`. None for another form or algorithm.
fn public_key(pem: &str) -> Option<Vec<u8>> {
    let blocks = Pem::iter_from_buffer(pem.as_bytes()).filter_map(Result::ok);
    let der = blocks.into_iter().find(|block| block.label == "PRIVATE KEY")?.contents;
    let of_curve = |algorithm| {
        EcdsaKeyPair::from_pkcs8(algorithm, &der, &SystemRandom::new())
            .ok()
            .map(|key| key.public_key().as_ref().to_vec())
    };
    of_curve(&ECDSA_P256_SHA256_ASN1_SIGNING)
        .or_else(|| of_curve(&ECDSA_P384_SHA384_ASN1_SIGNING))
        .or_else(|| Some(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok()?.public_key().as_ref().to_vec()))
        .or_else(|| Some(RsaKeyPair::from_pkcs8(&der).ok()?.public_key().as_ref().to_vec()))
}

/// Returns true if `pattern` covers `name`. A wildcard stands for exactly one label, the first (RFC 9525 section 6.3).
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(parent) => name.split_once('.').is_some_and(|(_, rest)| rest == parent),
        None => pattern == name,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// Returns every certificate of a PEM file, in DER.
pub(super) fn certificates(pem: &str) -> Vec<Vec<u8>> {
    let blocks = Pem::iter_from_buffer(pem.as_bytes()).flatten();
    blocks.filter(|block| block.label == "CERTIFICATE").map(|block| block.contents).collect()
}

pub(super) fn has_signed(issuer: &[u8], certificate: &X509Certificate<'_>) -> bool {
    X509Certificate::from_der(issuer).is_ok_and(|(_, issuer)| {
        issuer.subject() == certificate.issuer() && certificate.verify_signature(Some(issuer.public_key())).is_ok()
    })
}

/// Returns the problem of its validity at `now_s`, in Unix time.
fn invalid(certificate: &X509Certificate<'_>, now_s: i64) -> Option<Invalid> {
    let validity = certificate.validity();
    match Validity::of(certificate).judge(now_s) {
        Lifetime::NotYet => Some(Invalid::NotYet { from: validity.not_before.to_string() }),
        Lifetime::Expired => Some(Invalid::Expired { on: validity.not_after.to_string() }),
        Lifetime::Soon { days } | Lifetime::Ending { days } => Some(Invalid::Soon { days }),
        Lifetime::Good => None,
    }
}

/// The kind of a file in place of a PEM file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotPem {
    /// A certificate in DER.
    Certificate,
    /// A private key in DER.
    Key,
    /// Certificates and keys in a PKCS #12 file.
    Pkcs12,
}

impl NotPem {
    /// Recognises the kind of a binary file. None if it is text or of another kind.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        if X509Certificate::from_der(bytes).is_ok() {
            return Some(Self::Certificate);
        }
        // A SEQUENCE with a length of one or two bytes. Its first member is the version, an INTEGER of one byte: 0 or 1
        // for a key (RFC 5208, RFC 8017, RFC 5915), 3 for PKCS #12 (RFC 7292).
        let ([0x30, 0x81, _, body @ ..] | [0x30, 0x82, _, _, body @ ..] | [0x30, 0..=0x7f, body @ ..]) = bytes else {
            return None;
        };
        match body {
            [2, 1, 3, ..] => Some(Self::Pkcs12),
            [2, 1, 0 | 1, ..] => Some(Self::Key),
            _ => None,
        }
    }
}

/// Returns true if a PEM file holds a block whose label ends with `label`.
pub(super) fn has_block(text: &str, label: &str) -> bool {
    Pem::iter_from_buffer(text.as_bytes()).flatten().any(|block| block.label.ends_with(label))
}

/// Returns true if a PEM file holds a private key without a passphrase.
pub(super) fn has_private_key(text: &str) -> bool {
    let mut labels = Pem::iter_from_buffer(text.as_bytes()).flatten().map(|block| block.label);
    labels.any(|label| label.ends_with("PRIVATE KEY") && !label.starts_with("ENCRYPTED"))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::{Duration, SystemTime};

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

    #[test]
    fn a_wildcard_covers_one_label_and_not_the_name_itself() {
        assert!(matches("*.example.org", "www.example.org"));
        assert!(!matches("*.example.org", "example.org"));
        assert!(!matches("*.example.org", "a.b.example.org"));
        assert!(!matches("*.example.org", "www.example.net"));
        assert!(matches("example.org", "example.org"));
    }

    const DAY: Duration = Duration::from_hours(24);

    fn days_ago(days: u32) -> SystemTime {
        SystemTime::now() - DAY * days
    }

    fn in_days(days: u32) -> SystemTime {
        SystemTime::now() + DAY * days
    }

    fn params(from: SystemTime, until: SystemTime) -> CertificateParams {
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (from.into(), until.into());
        params
    }

    fn read(pem: &str) -> Certificate {
        Certificate::of_pem(pem).unwrap()
    }

    /// Returns a certificate that signed itself.
    fn lone(from: SystemTime, until: SystemTime) -> Certificate {
        let pem = params(from, until).self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
        read(&pem)
    }

    fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
        let mut params = params(days_ago(1), in_days(100));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    #[test]
    fn a_certificate_is_judged_by_its_time() {
        assert_eq!(lone(days_ago(100), in_days(51)).invalid(), None);
        assert_eq!(lone(days_ago(1), in_days(5)).invalid(), None, "a certificate for a week");
        assert_eq!(lone(days_ago(80), in_days(22)).invalid(), None);
        assert!(matches!(lone(days_ago(80), in_days(20)).invalid(), Some(Invalid::Soon { days: 19 | 20 })));
        assert!(matches!(lone(days_ago(80), days_ago(1)).invalid(), Some(Invalid::Expired { .. })));
        assert!(matches!(lone(in_days(1), in_days(80)).invalid(), Some(Invalid::NotYet { .. })));
    }

    #[test]
    fn a_certificate_fits_its_own_key_alone() {
        for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519] {
            let own = KeyPair::generate_for(algorithm).unwrap();
            let pem = params(days_ago(1), in_days(1)).self_signed(&own).unwrap().pem();
            let certificate = read(&pem);
            assert!(certificate.fits_key(&own.serialize_pem()));
            assert!(!certificate.fits_key(&KeyPair::generate_for(algorithm).unwrap().serialize_pem()));
            assert!(certificate.fits_key("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"));
        }
    }

    #[test]
    fn the_authority_of_a_certificate_is_found_through_its_chain() {
        let (root, other) = (authority("root"), authority("root"));
        let key = KeyPair::generate().unwrap();
        let leaf = params(days_ago(1), in_days(1)).signed_by(&key, &root).unwrap().pem();
        let certificate = read(&leaf);
        assert!(certificate.is_signed_by(&read(&root.pem())));
        assert!(
            certificate.is_signed_by(&read(&format!("{}{}", other.pem(), root.pem()))),
            "an authority that is being replaced"
        );
        assert!(!certificate.is_signed_by(&read(&other.pem())), "of the same name");

        let mut below = params(days_ago(1), in_days(1));
        below.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        below.distinguished_name.push(DnType::CommonName, "below");
        let below = CertifiedIssuer::signed_by(below, KeyPair::generate().unwrap(), &root).unwrap();
        let leaf = params(days_ago(1), in_days(1)).signed_by(&key, &below).unwrap().pem();
        assert!(read(&format!("{leaf}{}", below.pem())).is_signed_by(&read(&root.pem())));
        assert!(!read(&leaf).is_signed_by(&read(&root.pem())), "without its chain");
    }

    #[test]
    fn a_key_is_found_and_a_locked_one_is_not_taken_for_one() {
        let key = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
        assert!(has_private_key(&key("EC PRIVATE KEY")));
        assert!(!has_private_key(&key("ENCRYPTED PRIVATE KEY")));
        assert!(!has_private_key(&key("CERTIFICATE")));
        assert!(!has_private_key("PRIVATE KEY"));
    }
}
