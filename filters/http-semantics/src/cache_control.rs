//! `Cache-Control` as it is written (RFC 9111 section 5.2): directives, and what is left of a response's freshness.

use std::time::{Duration, SystemTime};

use crate::Fields;

/// RFC 9111 section 1.2.2: a larger number of seconds means this one.
const MOST_SECONDS: u64 = 1 << 31;

/// What a directive with an argument in seconds says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seconds {
    /// It is not there.
    Absent,
    /// One number, however often it is said.
    Are(u64),
    /// Something else than a number, or two numbers that differ (RFC 9111 section 4.2.1: consider it stale).
    Malformed,
}

/// The argument of `directive` in the list `cache-control`, in seconds.
pub fn seconds(fields: &Fields<'_>, directive: &str) -> Seconds {
    let mut found = Seconds::Absent;
    for item in fields.all("cache-control").flat_map(|value| value.split(|&byte| byte == b',')) {
        let mut parts = item.splitn(2, |&byte| byte == b'=');
        let name = parts.next().unwrap_or_default().trim_ascii();
        if !name.eq_ignore_ascii_case(directive.as_bytes()) {
            continue;
        }
        let said = number(parts.next().unwrap_or_default());
        found = match (found, said) {
            (Seconds::Absent, Some(said)) => Seconds::Are(said),
            (Seconds::Are(before), Some(said)) if before == said => found,
            _ => return Seconds::Malformed,
        };
    }
    found
}

/// For how long a browser, or a cache in front of it, may show a response without asking, in milliseconds: 0 where the
/// response says nothing, because then browsers guess by `Last-Modified` alone.
pub fn kept_by_browsers_ms(fields: &Fields<'_>) -> u64 {
    let says = |directive| fields.lists("cache-control", directive);
    if says("no-store") || says("no-cache") {
        return 0;
    }
    let of = |directive| match seconds(fields, directive) {
        Seconds::Are(said) => Some(said),
        Seconds::Absent | Seconds::Malformed => None,
    };
    let longest = [of("max-age"), of("s-maxage"), until_expiry(fields)].into_iter().flatten().max().unwrap_or(0);
    longest.saturating_add(of("stale-while-revalidate").unwrap_or(0)).saturating_mul(1_000)
}

/// The freshness lifetime for a shared cache (RFC 9111 section 4.2.1), in seconds. None where the response does not
/// state one, or states it in a way that two readers could read differently.
pub(crate) fn lifetime(fields: &Fields<'_>) -> Option<u64> {
    match (seconds(fields, "s-maxage"), seconds(fields, "max-age")) {
        (Seconds::Are(said), Seconds::Absent | Seconds::Are(_)) | (Seconds::Absent, Seconds::Are(said)) => Some(said),
        (Seconds::Absent, Seconds::Absent) => until_expiry(fields),
        _ => None,
    }
}

/// The age that a response states, in seconds: of a list the first, and nothing where it is no number (RFC 9111
/// section 5.1).
pub fn said_age(fields: &Fields<'_>) -> Option<u64> {
    fields.get("age").and_then(|value| number(value.split(|&byte| byte == b',').next().unwrap_or_default()))
}

/// The age that a response has on arrival (RFC 9111 section 4.2.3, without the delay of the way), in seconds.
pub(crate) fn age(fields: &Fields<'_>, now: SystemTime) -> u64 {
    let apparent = date(fields, "date").and_then(|date| now.duration_since(date).ok()).map_or(0, |age| age.as_secs());
    apparent.max(said_age(fields).unwrap_or(0))
}

/// Digits, bare or in quotes (RFC 9111 section 5.2 asks recipients for both). No sign, nothing beside them.
fn number(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    let value = value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value);
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| digits)?;
    // Envoy's cache ignores what is beyond a signed 64-bit number.
    text.parse::<i64>().ok().map(|seconds| seconds.unsigned_abs().min(MOST_SECONDS))
}

/// `Expires` less `Date`, in seconds. Without a `Date` it says nothing, as two clocks are compared then.
fn until_expiry(fields: &Fields<'_>) -> Option<u64> {
    date(fields, "expires")?.duration_since(date(fields, "date")?).ok().map(|left: Duration| left.as_secs())
}

/// A date that stands there once (RFC 9110 section 5.6.7).
fn date(fields: &Fields<'_>, name: &str) -> Option<SystemTime> {
    let mut values = fields.all(name);
    let value = values.next().filter(|_| values.next().is_none())?;
    httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    #[test]
    fn a_directive_has_one_number_or_none() {
        for (value, expected) in [
            ("public", Seconds::Absent),
            ("max-age=60", Seconds::Are(60)),
            ("public, Max-Age=\"60\"", Seconds::Are(60)),
            ("max-age=60, max-age=60", Seconds::Are(60)),
            ("max-age=99999999999", Seconds::Are(MOST_SECONDS)),
            ("max-age=60, max-age=61", Seconds::Malformed),
            ("max-age", Seconds::Malformed),
            ("max-age=", Seconds::Malformed),
            ("max-age=+60", Seconds::Malformed),
            ("max-age=-1", Seconds::Malformed),
            ("max-age=1.5", Seconds::Malformed),
            ("max-age=99999999999999999999", Seconds::Malformed),
        ] {
            assert_eq!(seconds(&fields(&[("cache-control", value)]), "max-age"), expected, "{value}");
        }
    }

    #[test]
    fn what_browsers_keep_is_the_longest_that_is_said_and_nothing_where_nothing_is() {
        let of = |value| {
            kept_by_browsers_ms(&fields(&[
                ("cache-control", value),
                ("last-modified", "Sat, 21 Nov 2026 13:00:00 GMT"),
            ]))
        };
        assert_eq!(of("private, max-age=60"), 60_000);
        assert_eq!(of("max-age=60, s-maxage=5, stale-while-revalidate=10"), 70_000);
        assert_eq!((of("no-store, max-age=60"), of("no-cache, max-age=60"), of("public")), (0, 0, 0));
    }
}
