//! What a certificate says of itself: for which names, until when.

use std::net::IpAddr;

use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::names::Host;

/// The first certificate of a PEM file, which is the one a server presents as its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    /// Subject alternative names, in lower case; browsers look at nothing else (RFC 9525 section 6).
    names: Vec<String>,
    addresses: Vec<IpAddr>,
    /// Set where its time is over.
    expired: Option<String>,
}

/// Whether a certificate is for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Covers {
    Yes,
    /// No, but for these.
    Only(Vec<String>),
}

impl Certificate {
    pub(super) fn of_pem(text: &str) -> Result<Self, String> {
        let block = Pem::iter_from_buffer(text.as_bytes()).flatten().find(|block| block.label == "CERTIFICATE");
        let block = block.ok_or("no `CERTIFICATE` block")?;
        let (_, certificate) = X509Certificate::from_der(&block.contents)
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
        let validity = certificate.validity();
        let expired = (validity.not_after.timestamp() < now()).then(|| validity.not_after.to_string());
        Ok(Self { names, addresses, expired })
    }

    /// When its time ended, if it has.
    pub(super) fn expired(&self) -> Option<&str> {
        self.expired.as_deref()
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

/// A wildcard stands for one whole label, the first (RFC 9525 section 6.3).
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

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Whether there is a private key in a PEM file that can be used without a passphrase.
pub(super) fn has_private_key(text: &str) -> bool {
    let mut labels = Pem::iter_from_buffer(text.as_bytes()).flatten().map(|block| block.label);
    labels.any(|label| label.ends_with("PRIVATE KEY") && !label.starts_with("ENCRYPTED"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_covers_one_label_and_not_the_name_itself() {
        assert!(matches("*.example.org", "www.example.org"));
        assert!(!matches("*.example.org", "example.org"));
        assert!(!matches("*.example.org", "a.b.example.org"));
        assert!(!matches("*.example.org", "www.example.net"));
        assert!(matches("example.org", "example.org"));
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
