//! Handshakes of the pair that failed at the end that is dialled, from the access log of its listener.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::record::{Level, Record};
use crate::pair::Reason;

/// The interval in which a reason is logged once.
const EVERY: Duration = Duration::from_mins(1);

/// A failed handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Handshake {
    /// The role of this end, and of the other.
    here: String,
    there: &'static str,
    /// The address of the other end.
    from: String,
    /// True if the other end refused the certificate of this one.
    ours: bool,
    why: Reason,
}

/// Parses what follows the mark of a line: `ROLE ADDRESS REASON`. None if the reason is not about a certificate.
pub(super) fn parse(rest: &str) -> Option<Handshake> {
    let (here, rest) = rest.trim_start().split_once(' ')?;
    let (from, reason) = rest.split_once(' ')?;
    let there = if here == "ground" { "remote" } else { "ground" };
    let (ours, why) = Reason::of_envoy(reason)?;
    Some(Handshake { here: here.to_owned(), there, from: from.to_owned(), ours, why })
}

impl Handshake {
    fn record(&self) -> Record {
        let Self { here, there, from, ours, why } = self;
        let message = if *ours {
            format!("the {there} at {from} refuses the certificate of this {here}: {}", why.words(there))
        } else {
            format!("this {here} refuses the certificate of the {there} at {from}: {}", why.words(here))
        };
        Record { level: Level::Warning, part: "longhaul".to_owned(), message }
    }
}

/// The reasons that were logged lately.
#[derive(Debug, Default)]
pub(super) struct Lately(BTreeMap<String, Instant>);

impl Lately {
    /// Returns the record for a handshake, unless its reason was logged less than [`EVERY`] ago.
    pub(super) fn record(&mut self, handshake: &Handshake, now: Instant) -> Option<Record> {
        self.0.retain(|_, at| now.duration_since(*at) < EVERY);
        let reason = format!("{} {:?}", handshake.ours, handshake.why);
        self.0.insert(reason, now).is_none().then(|| handshake.record())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_logged_once_a_minute() {
        let line = |reason: &str| parse(&format!(" ground 192.0.2.7 {reason}")).unwrap();
        let expired = line(
            "TLS_error:|268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:verify cert failed: X509_verify_cert: certificate verification error at depth 0: certificate has expired:TLS_error_end",
        );
        let alert = line("TLS_error:|268436504:SSL_routines:OPENSSL_internal:TLSV1_ALERT_UNKNOWN_CA:TLS_error_end");
        let (mut lately, now) = (Lately::default(), Instant::now());
        assert_eq!(
            lately.record(&expired, now).unwrap().message,
            "this ground refuses the certificate of the remote at 192.0.2.7: it has expired by the clock of the ground. \
             Set that clock, or run `longhaul pair renew`"
        );
        assert_eq!(lately.record(&expired, now + EVERY / 2), None);
        assert!(lately.record(&alert, now).unwrap().message.starts_with(
            "the remote at 192.0.2.7 refuses the certificate of this ground: no authority in `split.ca` of the remote"
        ));
        assert!(lately.record(&expired, now + EVERY * 2).is_some());
    }
}
