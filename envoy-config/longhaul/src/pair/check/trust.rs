//! The verification of the other end's certificate, as Envoy does it: the pair's authority alone, and exactly the name
//! that this end dials.

use std::sync::{Arc, Mutex};

use longhaul_config::Host;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::Shown;
use super::credentials::shown;

/// Verifies the other end's certificate, and keeps what was shown.
#[derive(Debug)]
pub(super) struct Judge {
    inner: Arc<WebPkiServerVerifier>,
    host: Host,
    /// The time at which to judge, if not now. With another time, a handshake succeeds whose certificate is not valid
    /// now, and the other end's clock can be read.
    at: Option<UnixTime>,
    seen: Mutex<Option<Shown>>,
}

impl Judge {
    pub(super) fn new(
        authorities: Arc<RootCertStore>,
        provider: Arc<CryptoProvider>,
        host: &Host,
        at: Option<UnixTime>,
    ) -> Result<Self, String> {
        let inner = WebPkiServerVerifier::builder_with_provider(authorities, provider)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { inner, host: host.clone(), at, seen: Mutex::default() })
    }

    /// Returns the facts of the certificate that the other end showed.
    pub(super) fn seen(&self) -> Shown {
        self.seen.lock().ok().and_then(|seen| seen.clone()).unwrap_or_default()
    }
}

/// Returns true if a certificate with these names is for `host`. Envoy compares names exactly: it accepts no wildcard.
fn is_for(names: &[String], host: &Host) -> bool {
    let host = host.bare();
    names.contains(&host)
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let facts = shown(end_entity).unwrap_or_default();
        let is_for = is_for(&facts.names, &self.host);
        if let Ok(mut seen) = self.seen.lock() {
            *seen = Some(facts);
        }
        let at = self.at.unwrap_or(now);
        let verified = self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, at)?;
        if is_for { Ok(verified) } else { Err(CertificateError::NotValidForName.into()) }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_compared_exactly_and_an_address_without_brackets() {
        let host = |text: &str| Host::parse(text).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(is_for(&names(&["a.test", "ground.example.org"]), &host("ground.example.org")));
        assert!(!is_for(&names(&["*.example.org"]), &host("ground.example.org")));
        assert!(is_for(&names(&["192.0.2.1"]), &host("192.0.2.1")));
        assert!(is_for(&names(&["2001:db8::1"]), &host("[2001:db8::1]")));
    }
}
