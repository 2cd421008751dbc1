//! `Cache-Control` directives (RFC 9111 section 5.2), freshness lifetime and age.

use std::time::{Duration, SystemTime};

use crate::Fields;

/// The largest number of seconds. A larger one counts as this one (RFC 9111 section 1.2.2).
pub const MOST_SECONDS: u64 = 1 << 31;

/// The argument of a directive, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seconds {
    /// The directive is absent.
    Absent,
    /// One number. Equal repetitions count as one.
    Are(u64),
    /// Not a number, or two numbers that differ. Consider the response stale (RFC 9111 section 4.2.1).
    Malformed,
}

/// Reads the argument of `directive` in the field `cache-control`, in seconds.
fn seconds(fields: &Fields<'_>, directive: &str) -> Seconds {
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

/// Returns the freshness lifetime for a shared cache (RFC 9111 section 4.2.1), in seconds. Returns None if the response
/// states none, or states one that two readers could read differently.
pub(crate) fn lifetime(fields: &Fields<'_>) -> Option<u64> {
    match (seconds(fields, "s-maxage"), seconds(fields, "max-age")) {
        (Seconds::Are(said), Seconds::Absent | Seconds::Are(_)) | (Seconds::Absent, Seconds::Are(said)) => Some(said),
        (Seconds::Absent, Seconds::Absent) => until_expiry(fields),
        _ => None,
    }
}

/// Returns the value of `Age` in seconds (RFC 9111 section 5.1). Of a list, the first item counts. Returns None if it
/// is not a number.
pub fn said_age(fields: &Fields<'_>) -> Option<u64> {
    fields.get("age").and_then(|value| number(value.split(|&byte| byte == b',').next().unwrap_or_default()))
}

/// Returns the age of a response on arrival (RFC 9111 section 4.2.3), in seconds. Omits the response delay.
pub(crate) fn age(fields: &Fields<'_>, now: SystemTime) -> u64 {
    let apparent = date(fields, "date").and_then(|date| now.duration_since(date).ok()).map_or(0, |age| age.as_secs());
    apparent.max(said_age(fields).unwrap_or(0))
}

/// Reads digits, bare or in quotes: recipients ought to accept both (RFC 9111 section 5.2). Refuses signs and anything
/// else.
fn number(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    let value = value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value);
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| digits)?;
    // Envoy's cache ignores a number that does not fit in a signed 64-bit integer.
    text.parse::<i64>().ok().map(|seconds| seconds.unsigned_abs().min(MOST_SECONDS))
}

/// Returns `Expires` minus `Date`, in seconds. Returns None without a `Date`, because the result would then compare two
/// clocks.
fn until_expiry(fields: &Fields<'_>) -> Option<u64> {
    date(fields, "expires")?.duration_since(date(fields, "date")?).ok().map(|left: Duration| left.as_secs())
}

/// Reads a date (RFC 9110 section 5.6.7). Returns None if the field occurs more than once.
pub fn date(fields: &Fields<'_>, name: &str) -> Option<SystemTime> {
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
}
