//! Reuse of a stored response for a request (RFC 9111 sections 4.2.4 and 5.2.1, RFC 5861).

use http_semantics::Fields;

use crate::{Directives, Life, Past};

/// How far the clock may step back before stored responses count as stale. Small steps come from its regulation.
pub const CLOCK_TOLERANCE_S: u64 = 10;

/// The use that a request may make of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The stored response, as it is.
    Fresh,
    /// The stored response, while the origin validates it.
    StaleWhileRevalidate,
    /// The stored response after the origin has validated it.
    Validate {
        /// True if the stored response may be used although the origin fails.
        stale_on_error: bool,
    },
    /// Only a 504. The request says `only-if-cached`, and the stored response needs the origin (RFC 9111 section 5.2.1.7).
    Unavailable,
    /// Nothing. The request goes to the origin as if no cache existed.
    Past(Past),
}

impl Life {
    /// Returns the age at `now_s` (RFC 9111 section 4.2.3).
    pub const fn age_at_s(&self, now_s: u64) -> u64 {
        self.initial_age_s.saturating_add(now_s.saturating_sub(self.received_s))
    }

    /// Decides what `request` may have. The caller has selected the response by URL and [`variant`](crate::variant).
    pub fn allows(&self, request: &Fields<'_>, now_s: u64) -> Use {
        if let Some(why) = self.refuses(request) {
            return Use::Past(why);
        }
        let asks = Directives::of(request);
        match self.without_refusal(asks, now_s) {
            Use::Validate { .. } if asks.has("only-if-cached") => Use::Unavailable,
            other => other,
        }
    }

    /// A client with credentials gets a shared response only if the origin says that it suits everyone. `must-revalidate`
    /// permits storage of a response to `Authorization` (RFC 9111 section 3.5), but says nothing about other clients.
    fn refuses(&self, request: &Fields<'_>) -> Option<Past> {
        if request.has("authorization") && !self.public {
            return Some(Past::Authorization);
        }
        if request.has("cookie") && !self.public {
            return Some(Past::Cookie);
        }
        Directives::of(request).has("no-store").then_some(Past::NoStore)
    }

    fn without_refusal(&self, asks: Directives<'_, '_>, now_s: u64) -> Use {
        let age_s = self.age_at_s(now_s);
        let late_s = age_s.saturating_sub(self.lifetime_s);
        let no_limit = self.stale_if_error_s == u64::MAX;
        // `no-cache` forbids every use that the origin has not validated (RFC 9111 sections 4.2.4 and 5.2.2.4).
        if self.always_validate || asks.no_cache() {
            return Use::Validate { stale_on_error: false };
        }
        // After a step back, the age is unknown. Without this, a response could stay fresh until the clock catches up.
        if now_s.saturating_add(CLOCK_TOLERANCE_S) < self.received_s {
            return Use::Validate { stale_on_error: no_limit && !self.never_stale };
        }
        let is_stale = age_s >= self.lifetime_s;
        let is_error_covered = !is_stale || no_limit || late_s < self.stale_if_error_s;
        let validate = Use::Validate { stale_on_error: is_error_covered && !self.never_stale };
        if asks.seconds("max-age").is_some_and(|most_s| age_s > most_s) {
            return validate;
        }
        if asks.seconds("min-fresh").is_some_and(|least_s| self.lifetime_s.saturating_sub(age_s) < least_s) {
            return validate;
        }
        if !is_stale {
            return Use::Fresh;
        }
        if self.never_stale {
            return validate;
        }
        if asks.seconds_or("max-stale", u64::MAX).is_some_and(|most_s| late_s <= most_s) {
            return Use::Fresh;
        }
        if late_s < self.stale_while_revalidate_s { Use::StaleWhileRevalidate } else { validate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;
    const STALE_TOO: Use = Use::Validate { stale_on_error: true };
    const NOT_STALE: Use = Use::Validate { stale_on_error: false };

    /// Ten seconds old at [`NOW`], and fresh for a minute.
    const LIFE: Life = Life {
        received_s: NOW - 5,
        initial_age_s: 5,
        lifetime_s: 60,
        stale_while_revalidate_s: 20,
        stale_if_error_s: 30,
        always_validate: false,
        never_stale: false,
        public: false,
    };

    fn of(life: Life, list: &[(&str, &str)], after_s: u64) -> Use {
        let request: Fields<'_> = list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        life.allows(&request, NOW + after_s)
    }

    #[test]
    fn a_response_is_fresh_then_stale_then_past_its_limits() {
        for (after_s, expected) in [
            (0, Use::Fresh),
            (49, Use::Fresh),
            (50, Use::StaleWhileRevalidate),
            (69, Use::StaleWhileRevalidate),
            (70, STALE_TOO),
            (79, STALE_TOO),
            (80, NOT_STALE),
        ] {
            assert_eq!(of(LIFE, &[], after_s), expected, "{after_s}");
        }
        assert_eq!(of(Life { stale_if_error_s: u64::MAX, ..LIFE }, &[], 1 << 40), STALE_TOO);
    }

    #[test]
    fn must_revalidate_and_no_cache_ask_the_origin() {
        let strict = Life { never_stale: true, ..LIFE };
        assert_eq!(of(strict, &[], 49), Use::Fresh);
        assert_eq!(of(strict, &[], 50), NOT_STALE);
        assert_eq!(of(strict, &[("cache-control", "max-stale")], 50), NOT_STALE);
        let checked = Life { always_validate: true, ..LIFE };
        for (asked, after_s) in [("", 0), ("max-stale", 60), ("", 90)] {
            assert_eq!(of(checked, &[("cache-control", asked)], after_s), NOT_STALE, "{asked} {after_s}");
        }
    }

    #[test]
    fn a_request_narrows_or_widens_what_it_accepts() {
        for (asked, after_s, expected) in [
            ("no-cache", 0, NOT_STALE),
            ("no-store", 0, Use::Past(Past::NoStore)),
            ("max-age=10", 0, Use::Fresh),
            ("max-age=9", 0, STALE_TOO),
            ("max-age=soon", 0, STALE_TOO),
            ("min-fresh=50", 0, Use::Fresh),
            ("min-fresh=51", 0, STALE_TOO),
            ("max-stale", 500, Use::Fresh),
            ("max-stale=30", 80, Use::Fresh),
            ("max-stale=30", 81, NOT_STALE),
            ("max-stale=x", 60, Use::StaleWhileRevalidate),
            ("max-age=10, max-stale", 90, NOT_STALE),
            ("only-if-cached", 0, Use::Fresh),
            ("only-if-cached", 60, Use::StaleWhileRevalidate),
            ("only-if-cached", 75, Use::Unavailable),
            ("only-if-cached, no-cache", 0, Use::Unavailable),
            ("only-if-cached, max-stale", 500, Use::Fresh),
            ("ext=\"no-cache\"", 0, Use::Fresh),
        ] {
            assert_eq!(of(LIFE, &[("cache-control", asked)], after_s), expected, "{asked}");
        }
        assert_eq!(of(LIFE, &[("pragma", "no-cache")], 0), NOT_STALE);
        assert_eq!(of(LIFE, &[("pragma", "no-cache"), ("cache-control", "max-age=99")], 0), Use::Fresh);
    }

    #[test]
    fn credentials_get_public_responses_alone() {
        for (field, why) in [(("cookie", "a=b"), Past::Cookie), (("authorization", "Basic YTpi"), Past::Authorization)]
        {
            assert_eq!(of(LIFE, &[field], 0), Use::Past(why));
            assert_eq!(of(Life { public: true, ..LIFE }, &[field], 0), Use::Fresh);
        }
    }

    #[test]
    fn a_clock_that_steps_back_makes_nothing_fresh() {
        let from = |life: Life, later_s: u64| of(Life { received_s: NOW + later_s, ..life }, &[], 0);
        assert_eq!(from(LIFE, CLOCK_TOLERANCE_S), Use::Fresh);
        assert_eq!(from(LIFE, CLOCK_TOLERANCE_S + 1), NOT_STALE);
        let lenient = Life { stale_if_error_s: u64::MAX, ..LIFE };
        assert_eq!(from(lenient, CLOCK_TOLERANCE_S + 1), STALE_TOO);
        assert_eq!(from(Life { never_stale: true, ..lenient }, 1 << 40), NOT_STALE);
    }
}
