//! The reasons for which one end of a link refuses the certificate of the other, and the words for them.
//!
//! `longhaul pair check` reads the reasons from its own handshake, and `longhaul run` from Envoy.

use rustls::{AlertDescription, CertificateError};

/// The reason why a certificate was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its time is over by the clock of the end that refuses it.
    Expired,
    /// Its time has not begun by the clock of the end that refuses it.
    NotYetValid,
    /// One of both. The TLS alert is the same.
    OutOfTime,
    /// No authority of the end that refuses it has signed it.
    UnknownAuthority,
    /// It is not for a name in `split.peer` of the end that refuses it.
    WrongName,
    /// None was sent.
    Missing,
    /// The other end did not say more than that.
    Unspecified,
    /// Another reason, in the words of the TLS library.
    Other(String),
}

/// Parts of the texts of `BoringSSL` and Envoy about a handshake, whether this end's certificate was refused, and the
/// reason. An alert comes from the other end.
const ENVOY: &[(&str, bool, Reason)] = &[
    ("certificate has expired", false, Reason::Expired),
    ("certificate is not yet valid", false, Reason::NotYetValid),
    ("unable to get local issuer certificate", false, Reason::UnknownAuthority),
    ("unable to get issuer certificate", false, Reason::UnknownAuthority),
    ("self signed certificate", false, Reason::UnknownAuthority),
    ("self-signed certificate", false, Reason::UnknownAuthority),
    ("certificate signature failure", false, Reason::UnknownAuthority),
    ("verify cert failed: SAN match", false, Reason::WrongName),
    ("verify cert failed: verify SAN list", false, Reason::WrongName),
    ("CERTIFICATE VERIFY FAILED", false, Reason::Unspecified),
    ("ALERT CERTIFICATE EXPIRED", true, Reason::OutOfTime),
    ("ALERT UNKNOWN CA", true, Reason::UnknownAuthority),
    ("ALERT DECRYPT ERROR", true, Reason::UnknownAuthority),
    ("ALERT CERTIFICATE UNKNOWN", true, Reason::WrongName),
    ("ALERT BAD CERTIFICATE", true, Reason::Unspecified),
];

impl Reason {
    /// Returns the reason for which this end refused a certificate.
    pub(super) fn of_error(error: &CertificateError) -> Self {
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownAuthority,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Self::WrongName,
            other => Self::Other(other.to_string()),
        }
    }

    /// Returns the reason for which the other end refused this end's certificate, from its TLS alert (RFC 8446 section
    /// 6.2). Envoy reports a wrong name as `certificate_unknown`, and a certificate that is not valid yet as an expired one.
    /// Returns None if the alert is not about a certificate.
    pub(super) fn of_alert(alert: AlertDescription) -> Option<Self> {
        match alert {
            AlertDescription::CertificateExpired => Some(Self::OutOfTime),
            AlertDescription::UnknownCA | AlertDescription::DecryptError => Some(Self::UnknownAuthority),
            AlertDescription::CertificateUnknown => Some(Self::WrongName),
            AlertDescription::CertificateRequired => Some(Self::Missing),
            AlertDescription::BadCertificate | AlertDescription::AccessDenied | AlertDescription::HandshakeFailure => {
                Some(Self::Unspecified)
            }
            AlertDescription::UnsupportedCertificate | AlertDescription::CertificateRevoked => {
                Some(Self::Other(format!("{alert:?}")))
            }
            _ => None,
        }
    }

    /// Returns true if this end's certificate was refused, and the reason, from Envoy's text. Returns None if the text is
    /// not about a certificate.
    pub(crate) fn of_envoy(text: &str) -> Option<(bool, Self)> {
        // In an access log, Envoy replaces the spaces.
        let text = text.replace('_', " ");
        ENVOY.iter().find(|(part, ..)| text.contains(part)).map(|(_, ours, reason)| (*ours, reason.clone()))
    }

    /// Returns the reason in words, and how to mend it. `refuser` is the end that refuses the certificate.
    pub(crate) fn words(&self, refuser: &str) -> String {
        match self {
            Self::Expired => {
                format!("it has expired by the clock of the {refuser}. Set that clock, or run `longhaul pair renew`")
            }
            Self::NotYetValid => format!("it is not valid yet by the clock of the {refuser}. Set that clock"),
            Self::OutOfTime => {
                format!(
                    "it has expired or is not valid yet, by the clock of the {refuser}. Compare that clock with its dates"
                )
            }
            Self::UnknownAuthority => format!(
                "no authority in `split.ca` of the {refuser} has signed it. Both ends need certificates from one authority"
            ),
            Self::WrongName => format!("it has no name that `split.peer` of the {refuser} lists. Correct `split.peer`"),
            Self::Missing => "none was sent. Check `split.cert` and `split.key`".to_owned(),
            Self::Unspecified => format!("the {refuser} gives no reason; its log has it"),
            Self::Other(text) => text.clone(),
        }
    }
}
