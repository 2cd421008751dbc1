//! Storage of a response (RFC 9111 section 3), its freshness lifetime (4.2.1, 4.2.2) and its age on arrival (4.2.3).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_semantics::cache_control::date;
use http_semantics::shareable::STORED;
use http_semantics::{Fields, Purpose, shareable};

use crate::directives::number;
use crate::{Directives, Life, Past, variant};

/// The longest lifetime that is guessed.
pub const MOST_HEURISTIC_S: u64 = 7 * 86_400;
/// The longest lifetime that is guessed for an error of the server. It usually ends soon, whatever its file's date.
const MOST_HEURISTIC_OF_ERROR_S: u64 = 60;

/// Decides if `response` to `request` may be stored, and returns how long it may be reused. `delay_s` is the time from the
/// request to the response. `now_s` is the time of the response. The caller has removed `Range` and the conditions that it
/// does not pass on.
///
/// # Errors
/// The reason why the response must not be stored.
pub fn storable(request: &Fields<'_>, response: &Fields<'_>, now_s: u64, delay_s: u64) -> Result<Life, Past> {
    if request.get(":method").is_some_and(|method| method != b"GET") {
        return Err(Past::Method);
    }
    let now = UNIX_EPOCH.checked_add(Duration::from_secs(now_s)).unwrap_or(UNIX_EPOCH);
    let terms = shareable(Purpose::Store, request, response, now)?;
    if variant::names(response).is_none() {
        return Err(Past::VaryStar);
    }
    let says = Directives::of(response);
    let made_s = date(response, "date").map_or(now_s, since_1970);
    let never_stale = ["must-revalidate", "proxy-revalidate", "s-maxage"].iter().any(|word| says.has(word));
    // `s-maxage` implies `proxy-revalidate` (RFC 9111 section 5.2.2.10).
    let unless_never = |allowed_s: u64| if never_stale { 0 } else { allowed_s };
    let life = Life {
        received_s: now_s,
        initial_age_s: initial_age(response, made_s, now_s, delay_s),
        lifetime_s: stated_lifetime(response, made_s).unwrap_or_else(|| guessed_lifetime(request, response, made_s)),
        stale_while_revalidate_s: unless_never(says.seconds("stale-while-revalidate").unwrap_or(0)),
        stale_if_error_s: unless_never(says.seconds("stale-if-error").unwrap_or_else(|| unless_failed(response))),
        always_validate: says.no_cache(),
        never_stale,
        public: terms.public,
    };
    let reusable_s = life.lifetime_s.saturating_add(life.stale_while_revalidate_s);
    let is_fresh = !life.always_validate && life.initial_age_s < reusable_s;
    let has_validator = response.has("etag") || response.has("last-modified");
    if is_fresh || has_validator { Ok(life) } else { Err(Past::NotUseful) }
}

/// RFC 9111 section 4.2.3. A malformed `Age` counts as absent.
fn initial_age(response: &Fields<'_>, made_s: u64, now_s: u64, delay_s: u64) -> u64 {
    let first = response.get("age").and_then(|value| value.split(|&byte| byte == b',').next());
    let said_s = first.and_then(|value| number(value.trim_ascii())).unwrap_or(0);
    now_s.saturating_sub(made_s).max(said_s.saturating_add(delay_s))
}

/// Returns the lifetime that the response states. A malformed one is 0.
fn stated_lifetime(response: &Fields<'_>, made_s: u64) -> Option<u64> {
    let says = Directives::of(response);
    let until = || {
        response.get("expires")?;
        // `date` gives None for a duplicate field, and for a value such as `0` (RFC 9111 section 5.3).
        Some(date(response, "expires").map_or(0, |end| since_1970(end).saturating_sub(made_s)))
    };
    says.seconds("s-maxage").or_else(|| says.seconds("max-age")).or_else(until)
}

/// Returns a tenth of the time since the last change (RFC 9111 section 4.2.2). A URL with a query is often the output of a
/// program, for which the time says nothing.
fn guessed_lifetime(request: &Fields<'_>, response: &Fields<'_>, made_s: u64) -> u64 {
    let is_plain = !request.get(":path").unwrap_or_default().contains(&b'?');
    let status = response.get(":status").unwrap_or_default();
    let is_guessable = STORED.contains(&status) || Directives::of(response).has("public");
    let most_s = if is_error(response) { MOST_HEURISTIC_OF_ERROR_S } else { MOST_HEURISTIC_S };
    let changed = date(response, "last-modified").filter(|_| is_plain && is_guessable);
    changed.map_or(0, |changed| (made_s.saturating_sub(since_1970(changed)) / 10).min(most_s))
}

/// Without a directive, a stale response is better than none on a link that fails (RFC 9111 section 4.2.4). A stored error
/// is no better than a new one.
fn unless_failed(response: &Fields<'_>) -> u64 {
    if is_error(response) { 0 } else { u64::MAX }
}

fn is_error(response: &Fields<'_>) -> bool {
    response.status() >= 500
}

fn since_1970(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sat, 21 Nov 2026 13:00:00 GMT
    const NOW: u64 = 498_685 * 3600;
    const DATE: (&str, &str) = ("date", "Sat, 21 Nov 2026 13:00:00 GMT");
    const TEN_HOURS_AGO: (&str, &str) = ("last-modified", "Sat, 21 Nov 2026 03:00:00 GMT");
    const LONG_AGO: (&str, &str) = ("last-modified", "Sat, 21 Nov 2020 03:00:00 GMT");
    const TAG: (&str, &str) = ("etag", "\"a\"");

    fn cache_control(value: &'static str) -> (&'static str, &'static str) {
        ("cache-control", value)
    }

    fn of(request: &[(&'static str, &'static str)], response: &[(&'static str, &'static str)]) -> Result<Life, Past> {
        of_delayed(request, response, 0)
    }

    fn of_delayed(
        request: &[(&'static str, &'static str)],
        response: &[(&'static str, &'static str)],
        delay_s: u64,
    ) -> Result<Life, Past> {
        let ok = if response.iter().any(|(name, _)| *name == ":status") { None } else { Some((":status", "200")) };
        let bytes = |(name, value): (&'static str, &'static str)| (name.as_bytes(), value.as_bytes());
        let request: Fields<'_> = request.iter().copied().map(bytes).collect();
        let response: Fields<'_> = response.iter().copied().chain(ok).map(bytes).collect();
        storable(&request, &response, NOW, delay_s)
    }

    #[test]
    fn a_lifetime_is_stated_or_guessed() {
        for (response, expected) in [
            (&[cache_control("max-age=60")][..], 60),
            (&[cache_control("max-age=5, s-maxage=60")], 60),
            (&[cache_control("max-age=60"), ("expires", "Sat, 21 Nov 2026 13:00:01 GMT")], 60),
            (&[DATE, ("expires", "Sat, 21 Nov 2026 13:01:00 GMT")], 60),
            (&[("expires", "Sat, 21 Nov 2026 13:01:00 GMT")], 60),
            (&[TAG, ("expires", "0")], 0),
            (&[TAG, ("expires", "Sat, 21 Nov 2026 13:01:00 GMT"), ("expires", "Sat, 21 Nov 2026 13:01:00 GMT")], 0),
            (&[TAG, cache_control("max-age=soon"), ("expires", "Sat, 21 Nov 2026 13:01:00 GMT")], 0),
            (&[TAG, cache_control("s-maxage=soon, max-age=60")], 0),
            (&[TAG, cache_control("max-age = 60")], 0),
            (&[DATE, TEN_HOURS_AGO], 3600),
            (&[TEN_HOURS_AGO], 3600),
            (&[DATE, LONG_AGO], MOST_HEURISTIC_S),
            (&[DATE, ("last-modified", "Sat, 21 Nov 2026 14:00:00 GMT")], 0),
            (&[TAG], 0),
            (&[(":status", "404"), DATE, TEN_HOURS_AGO], 3600),
            (&[(":status", "302"), cache_control("max-age=60"), TEN_HOURS_AGO], 60),
            (&[(":status", "302"), cache_control("public"), DATE, TEN_HOURS_AGO], 3600),
            (&[(":status", "499"), cache_control("public"), DATE, TEN_HOURS_AGO], 3600),
            (&[(":status", "499"), TAG, ("expires", "Sat, 21 Nov 2026 13:01:00 GMT")], 60),
            (&[(":status", "501"), LONG_AGO], 60),
            (&[(":status", "503"), cache_control("public"), LONG_AGO], 60),
            (&[(":status", "599"), cache_control("public"), DATE, TEN_HOURS_AGO], 60),
            (&[(":status", "599"), cache_control("max-age=3600"), TEN_HOURS_AGO], 3600),
            (&[(":status", "599"), ("expires", "0"), TEN_HOURS_AGO], 0),
        ] {
            assert_eq!(of(&[(":path", "/a")], response).map(|life| life.lifetime_s), Ok(expected), "{response:?}");
        }
    }

    #[test]
    fn no_lifetime_is_guessed_for_a_query() {
        let query = [(":path", "/a?b")];
        assert_eq!(of(&query, &[TEN_HOURS_AGO]).unwrap().lifetime_s, 0);
        assert_eq!(of(&query, &[TEN_HOURS_AGO, cache_control("max-age=9")]).unwrap().lifetime_s, 9);
    }

    #[test]
    fn the_age_on_arrival_is_the_larger_of_two() {
        const HOUR: (&str, &str) = ("cache-control", "max-age=3600");
        for (response, delay_s, expected) in [
            (&[HOUR][..], 0, 0),
            (&[HOUR, DATE], 7, 7),
            (&[HOUR, ("date", "Sat, 21 Nov 2026 12:59:00 GMT")], 7, 60),
            (&[HOUR, ("date", "Sat, 21 Nov 2026 13:59:00 GMT")], 0, 0),
            (&[HOUR, ("date", "Sat, 21 Nov 2026 12:59:00 GMT"), ("age", "55")], 7, 62),
            (&[HOUR, ("age", "5, 70")], 0, 5),
            (&[HOUR, ("age", "-5")], 0, 0),
            (&[HOUR, ("age", "old")], 3, 3),
            (&[TAG, ("age", "99999999999999999999")], 0, 1 << 31),
        ] {
            let life = of_delayed(&[], response, delay_s);
            assert_eq!(life.map(|life| life.initial_age_s), Ok(expected), "{response:?}");
        }
    }

    #[test]
    fn a_stale_response_is_served_as_the_origin_allows() {
        for (value, expected) in [
            ("max-age=60", (0, u64::MAX, false, false)),
            ("max-age=60, stale-while-revalidate=9, stale-if-error=8", (9, 8, false, false)),
            ("max-age=60, stale-if-error=8, must-revalidate", (0, 0, false, true)),
            ("max-age=60, proxy-revalidate", (0, 0, false, true)),
            ("s-maxage=60, stale-while-revalidate=9", (0, 0, false, true)),
            ("no-cache, max-age=60", (0, u64::MAX, true, false)),
        ] {
            let life = of(&[], &[TAG, cache_control(value)]).unwrap();
            let found = (life.stale_while_revalidate_s, life.stale_if_error_s, life.always_validate, life.never_stale);
            assert_eq!(found, expected, "{value}");
        }
        let error = of(&[], &[(":status", "503"), cache_control("max-age=60")]).unwrap();
        assert_eq!(error.stale_if_error_s, 0);
        assert!(of(&[], &[TAG, ("pragma", "no-cache")]).unwrap().always_validate);
    }

    #[test]
    fn a_response_is_stored_if_it_is_fresh_or_has_a_validator() {
        for (response, expected) in [
            (&[][..], false),
            (&[TAG], true),
            (&[LONG_AGO], true),
            (&[cache_control("public")], false),
            (&[cache_control("max-age=0")], false),
            (&[cache_control("max-age=0, stale-while-revalidate=5")], true),
            (&[cache_control("max-age=5"), ("age", "5")], false),
            (&[cache_control("max-age=5"), ("age", "5"), TAG], true),
            (&[cache_control("max-age=5, no-cache")], false),
            (&[cache_control("max-age=5, no-cache"), TAG], true),
        ] {
            let found = of(&[], response);
            assert_eq!(found.err(), (!expected).then_some(Past::NotUseful), "{response:?}");
        }
    }

    #[test]
    fn a_response_for_one_client_is_not_stored() {
        const FRESH: (&str, &str) = ("cache-control", "max-age=60");
        for (request, response, why) in [
            (&[(":method", "POST")][..], &[FRESH][..], Past::Method),
            (&[(":method", "HEAD")], &[FRESH], Past::Method),
            (&[("range", "bytes=0-1")], &[FRESH], Past::Partial),
            (&[], &[FRESH, (":status", "206")], Past::Partial),
            (&[], &[FRESH, (":status", "304")], Past::Status),
            (&[], &[FRESH, (":status", "429")], Past::Status),
            (&[], &[FRESH, (":status", "599"), ("cache-control", "must-understand")], Past::Status),
            (&[], &[TAG, LONG_AGO, (":status", "599")], Past::Status),
            (&[], &[FRESH, (":status", "599"), ("cache-control", "private")], Past::Private),
            (&[("cookie", "a=b")], &[FRESH, (":status", "499")], Past::Cookie),
            (&[], &[TAG, (":status", "302")], Past::Status),
            (&[], &[FRESH, ("cdn-cache-control", "max-age=1")], Past::Targeted),
            (&[("cache-control", "no-store")], &[FRESH], Past::NoStore),
            (&[], &[FRESH, ("cache-control", "no-store")], Past::NoStore),
            (&[], &[FRESH, ("cache-control", "private")], Past::Private),
            (&[], &[FRESH, ("set-cookie", "a=b"), ("cache-control", "public")], Past::SetCookie),
            (&[("authorization", "Basic YTpi")], &[FRESH], Past::Authorization),
            (&[("cookie", "a=b")], &[FRESH], Past::Cookie),
            (&[], &[FRESH, ("vary", "accept, *")], Past::VaryStar),
            (&[], &[FRESH, ("vary", "a b")], Past::VaryStar),
        ] {
            assert_eq!(of(request, response), Err(why), "{request:?} {response:?}");
        }
    }

    #[test]
    fn a_response_to_credentials_is_stored_if_the_origin_shares_it() {
        for (request, value, public) in [
            (("cookie", "a=b"), "public, max-age=60", true),
            (("cookie", "a=b"), "s-maxage=60", true),
            (("authorization", "Basic YTpi"), "public, max-age=60", true),
            (("authorization", "Basic YTpi"), "must-revalidate, max-age=60", false),
        ] {
            assert_eq!(of(&[request], &[cache_control(value)]).map(|life| life.public), Ok(public), "{value}");
        }
        assert!(of(&[], &[cache_control("no-store, must-understand, max-age=60")]).is_ok());
    }
}
