//! Whether the cache keeps an answer, and for how long it needs no question (RFC 9111, as Envoy's `cache_v2` reads it:
//! explicit freshness only, nothing with a `Vary`).

use std::time::{Duration, SystemTime};

use crate::headers::Fields;

/// What an answer with status 200 is to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storable {
    /// Kept, and fresh from now on for so long, in milliseconds.
    For(u64),
    /// Not kept, or never fresh.
    No,
}

pub(super) fn storable(fields: &Fields<'_>) -> Storable {
    let says = |directive| fields.lists("cache-control", directive);
    if says("no-store") || says("private") || says("no-cache") || fields.get("vary").is_some() {
        return Storable::No;
    }
    let lifetime = seconds(fields, "s-maxage").or_else(|| seconds(fields, "max-age")).or_else(|| until_expiry(fields));
    let age = fields.get("age").and_then(number).unwrap_or(0);
    match lifetime.and_then(|lifetime| lifetime.checked_sub(age)) {
        None | Some(0) => Storable::No,
        Some(left) => Storable::For(left.saturating_mul(1_000)),
    }
}

/// For how long a browser, or a cache in front of it, may show an answer without asking: 0 where it says nothing, as it is
/// only by `Last-Modified` that they guess.
pub(crate) fn kept_by_browsers_ms(fields: &Fields<'_>) -> u64 {
    let says = |directive| fields.lists("cache-control", directive);
    if says("no-store") || says("no-cache") {
        return 0;
    }
    let lifetime = [seconds(fields, "max-age"), seconds(fields, "s-maxage"), until_expiry(fields)];
    let longest = lifetime.into_iter().flatten().max().unwrap_or(0);
    let beyond = seconds(fields, "stale-while-revalidate").unwrap_or(0);
    longest.saturating_add(beyond).saturating_mul(1_000)
}

/// The argument of a directive of `Cache-Control`.
fn seconds(fields: &Fields<'_>, directive: &str) -> Option<u64> {
    fields.all("cache-control").flat_map(|value| value.split(|&byte| byte == b',')).find_map(|item| {
        let (name, argument) = item.split_at_checked(item.iter().position(|&byte| byte == b'=')?)?;
        let same = name.trim_ascii().eq_ignore_ascii_case(directive.as_bytes());
        same.then(|| number(argument.get(1..)?)).flatten()
    })
}

fn number(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    let value = value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value);
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// `Expires` less `Date`, in seconds.
fn until_expiry(fields: &Fields<'_>) -> Option<u64> {
    let date =
        |name| -> Option<SystemTime> { httpdate::parse_http_date(std::str::from_utf8(fields.get(name)?).ok()?).ok() };
    date("expires")?.duration_since(date("date")?).ok().map(|left: Duration| left.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> Storable {
        storable(&fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect())
    }

    #[test]
    fn what_is_explicitly_fresh_is_kept_for_what_is_left() {
        for (fields, seconds) in [
            (&[("cache-control", "max-age=60")][..], 60),
            (&[("cache-control", "public, Max-Age=\"60\"")], 60),
            (&[("cache-control", "max-age=5, s-maxage=60")], 60),
            (&[("cache-control", "max-age=60"), ("age", "50")], 10),
            (&[("date", "Sat, 21 Nov 2026 13:00:00 GMT"), ("expires", "Sat, 21 Nov 2026 13:01:00 GMT")], 60),
        ] {
            assert_eq!(of(fields), Storable::For(seconds * 1_000), "{fields:?}");
        }
    }

    #[test]
    fn what_browsers_keep_is_the_longest_that_is_said_and_nothing_where_nothing_is() {
        let of = |value: &str| {
            let fields =
                [(&b"cache-control"[..], value.as_bytes()), (b"last-modified", b"Sat, 21 Nov 2026 13:00:00 GMT")];
            kept_by_browsers_ms(&fields.into_iter().collect())
        };
        assert_eq!(of("private, max-age=60"), 60_000);
        assert_eq!(of("max-age=60, s-maxage=5, stale-while-revalidate=10"), 70_000);
        assert_eq!((of("no-store, max-age=60"), of("no-cache, max-age=60"), of("public")), (0, 0, 0));
    }

    #[test]
    fn what_is_not_is_not() {
        for fields in [
            &[][..],
            &[("cache-control", "public")],
            &[("cache-control", "max-age=0")],
            &[("cache-control", "max-age=soon")],
            &[("cache-control", "private, max-age=60")],
            &[("cache-control", "max-age=60"), ("cache-control", "no-store")],
            &[("cache-control", "no-cache, max-age=60")],
            &[("cache-control", "max-age=60"), ("vary", "Accept")],
            &[("cache-control", "max-age=60"), ("age", "60")],
            &[("expires", "Sat, 21 Nov 2026 13:01:00 GMT")],
            &[("date", "Sat, 21 Nov 2026 13:02:00 GMT"), ("expires", "Sat, 21 Nov 2026 13:01:00 GMT")],
        ] {
            assert_eq!(of(fields), Storable::No, "{fields:?}");
        }
    }
}
