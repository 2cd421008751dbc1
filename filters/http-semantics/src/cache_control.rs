//! `Cache-Control` directives (RFC 9111 section 5.2), freshness lifetime and age.

use std::time::{Duration, SystemTime};

use crate::Fields;

/// The largest number of seconds. A larger one counts as this one (RFC 9111 section 1.2.2).
pub const MOST_SECONDS: u64 = 1 << 31;

/// The days of the week, as the three formats of a date write them.
const DAYS: [(&str, &str); 7] = [
    ("Mon", "Monday"),
    ("Tue", "Tuesday"),
    ("Wed", "Wednesday"),
    ("Thu", "Thursday"),
    ("Fri", "Friday"),
    ("Sat", "Saturday"),
    ("Sun", "Sunday"),
];

/// The length of the longest date.
const LONGEST_DATE: usize = "Wednesday, 18-Nov-26 13:00:00 GMT".len();

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
    // A number that does not fit in a signed 64-bit integer is most likely a mistake, and states nothing.
    text.parse::<i64>().ok().map(|seconds| seconds.unsigned_abs().min(MOST_SECONDS))
}

/// Returns `Expires` minus `Date`, in seconds. Returns None without a `Date`, because the result would then compare two
/// clocks.
fn until_expiry(fields: &Fields<'_>) -> Option<u64> {
    date(fields, "expires")?.duration_since(date(fields, "date")?).ok().map(|left: Duration| left.as_secs())
}

/// Reads a date (RFC 9110 section 5.6.7), in any case. Returns None if the field occurs more than once. The day of the week
/// must be one, but need not be the right one: recipients ought to be robust, and most do not compare it with the date.
pub fn date(fields: &Fields<'_>, name: &str) -> Option<SystemTime> {
    let mut values = fields.all(name);
    let value = values.next().filter(|_| values.next().is_none())?;
    let text = std::str::from_utf8(value).ok()?;
    httpdate::parse_http_date(text).ok().or_else(|| odd_date(text))
}

/// Reads a date whose letters have the wrong case, or whose day of the week is wrong.
fn odd_date(text: &str) -> Option<SystemTime> {
    if text.len() > LONGEST_DATE {
        return None;
    }
    let (said, rest) = text.split_at_checked(text.find([',', ' '])?)?;
    let is_short = said.len() == 3;
    let names = DAYS.map(|(short, long)| if is_short { short } else { long });
    if !names.iter().any(|name| said.eq_ignore_ascii_case(name)) {
        return None;
    }
    let rest = capitalised(rest).replace("Gmt", "GMT");
    // The parser refuses every day but the right one.
    names.iter().find_map(|name| httpdate::parse_http_date(&format!("{name}{rest}")).ok())
}

/// Returns the text with each word in lower case but for its first letter.
fn capitalised(text: &str) -> String {
    let mut is_inside = false;
    let usual = |letter: char| {
        let usual = if is_inside { letter.to_ascii_lowercase() } else { letter.to_ascii_uppercase() };
        is_inside = letter.is_ascii_alphabetic();
        usual
    };
    text.chars().map(usual).collect()
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
    fn a_date_is_read_in_any_case_and_without_regard_to_its_day_of_the_week() {
        // Sat, 21 Nov 2026 13:00:00 GMT
        let expected = SystemTime::UNIX_EPOCH + Duration::from_hours(498_685);
        for value in [
            "Sat, 21 Nov 2026 13:00:00 GMT",
            "Saturday, 21-Nov-26 13:00:00 GMT",
            "Sat Nov 21 13:00:00 2026",
            "SAT, 21 Nov 2026 13:00:00 GMT",
            "Sat, 21 NOV 2026 13:00:00 GMT",
            "sat, 21 nov 2026 13:00:00 gmt",
            "Sat, 21 Nov 2026 13:00:00 gMT",
            "SATURDAY, 21-nov-26 13:00:00 GMT",
            "sat nov 21 13:00:00 2026",
            "Thu, 21 Nov 2026 13:00:00 GMT",
            "Thursday, 21-Nov-26 13:00:00 GMT",
            "Thu Nov 21 13:00:00 2026",
        ] {
            assert_eq!(date(&fields(&[("date", value)]), "date"), Some(expected), "{value}");
        }
    }

    #[test]
    fn anything_else_is_no_date() {
        for value in [
            "",
            "0",
            "-1",
            "Sat",
            "Sat,",
            "Sat, 21 Nov 2026 13:00:00 UTC",
            "Sat, 21 Nov 2026 13:00:00 AEST",
            "Sat, 21 Nov 2026 13:00:00 +0000",
            "Sat, 21 Nov 26 13:00:00 GMT",
            "Sat 21 Nov 2026 13:00:00 GMT",
            "Sat, 21  Nov  2026 13:00:00 GMT",
            "Sat, 21-Nov-2026 13:00:00 GMT",
            "Sat, 21 Nov 2026 13.00.00 GMT",
            "Sat, 21 Nov 2026 3:00:00 GMT",
            "Sat, 31 Nov 2026 13:00:00 GMT",
            "Sat, 21 Xxx 2026 13:00:00 GMT",
            "Xxx, 21 Nov 2026 13:00:00 GMT",
            "Sature, 21-Nov-26 13:00:00 GMT",
            "Saturday, 21 Nov 2026 13:00:00 GMT",
            "21 Nov 2026 13:00:00 GMT",
            "Sat, 21 N\u{f6}v 2026 13:00:00 GMT",
            "Wednesday, 18-Nov-26 13:00:00 GMT and more",
        ] {
            assert_eq!(date(&fields(&[("date", value)]), "date"), None, "{value}");
        }
        let twice = ("date", "Sat, 21 Nov 2026 13:00:00 GMT");
        assert_eq!(date(&fields(&[twice, twice]), "date"), None);
    }
}
