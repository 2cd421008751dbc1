//! The time in which a certificate is valid.

use serde::{Deserialize, Serialize};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const DAY_S: i64 = 24 * 60 * 60;
/// The days before its end at which a certificate gets a warning, if less than a third of its lifetime is left. Without
/// the second condition a certificate for one week would warn from its first day.
const SOON_DAYS: i64 = 21;
/// The part of its lifetime at which a certificate that gets a warning becomes a problem. Its renewal had two thirds of
/// the lifetime to succeed.
const ENDING_PART: i64 = 10;

/// The beginning and the end of a certificate, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// The first second in which it is valid.
    pub from_s: i64,
    /// The last one.
    pub until_s: i64,
}

/// A judgement on the time that a certificate has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// It is not valid yet.
    NotYet,
    /// Nothing needs to be done.
    Good,
    /// It ends within these days, and should be renewed.
    Soon {
        /// Whole days.
        days: i64,
    },
    /// It ends within these days, and its renewal is overdue.
    Ending {
        /// Whole days.
        days: i64,
    },
    /// It is no longer valid.
    Expired,
}

impl Validity {
    /// Returns the validity of the first certificate in a PEM file. None if there is none.
    pub fn of_pem(text: &str) -> Option<Self> {
        let mut blocks = Pem::iter_from_buffer(text.as_bytes()).flatten();
        let block = blocks.find(|block| block.label == "CERTIFICATE")?;
        let (_, certificate) = X509Certificate::from_der(&block.contents).ok()?;
        Some(Self::of(&certificate))
    }

    pub(super) fn of(certificate: &X509Certificate<'_>) -> Self {
        let validity = certificate.validity();
        Self { from_s: validity.not_before.timestamp(), until_s: validity.not_after.timestamp() }
    }

    /// Returns the whole days from `now_s` to its end. Negative after its end.
    pub fn days_left(self, now_s: i64) -> i64 {
        (self.until_s - now_s).div_euclid(DAY_S)
    }

    /// Judges it at `now_s`, in seconds since 1970.
    pub fn judge(self, now_s: i64) -> Lifetime {
        let (life_s, left_s) = (self.until_s - self.from_s, self.until_s - now_s);
        let days = self.days_left(now_s);
        if now_s < self.from_s {
            Lifetime::NotYet
        } else if left_s < 0 {
            Lifetime::Expired
        } else if left_s >= SOON_DAYS * DAY_S || left_s >= life_s / 3 {
            Lifetime::Good
        } else if left_s < life_s / ENDING_PART {
            Lifetime::Ending { days }
        } else {
            Lifetime::Soon { days }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_warns_before_its_end_and_is_a_problem_when_its_renewal_is_overdue() {
        let lifetime =
            |life: i64, left: i64| Validity { from_s: 0, until_s: life * DAY_S }.judge((life - left) * DAY_S);
        assert_eq!(lifetime(90, 21), Lifetime::Good);
        assert_eq!(lifetime(90, 20), Lifetime::Soon { days: 20 });
        assert_eq!(lifetime(90, 9), Lifetime::Soon { days: 9 });
        assert_eq!(lifetime(90, 8), Lifetime::Ending { days: 8 });
        assert_eq!(lifetime(7, 3), Lifetime::Good, "a certificate for a week");
        assert_eq!(lifetime(3650, 300), Lifetime::Good, "a tenth of ten years is a year");
        assert_eq!(lifetime(3650, 20), Lifetime::Ending { days: 20 });
        assert_eq!(lifetime(90, 91), Lifetime::NotYet);
        assert_eq!(lifetime(90, -1), Lifetime::Expired);
        assert_eq!(Validity { from_s: 0, until_s: 90 * DAY_S }.days_left(91 * DAY_S), -1);
    }
}
