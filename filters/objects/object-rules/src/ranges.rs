//! Range requests (RFC 9110 section 14).

use std::ops::Range;
use std::time::Duration;

use http_semantics::Fields;
use http_semantics::cache_control::date;

use crate::tags;

/// The most ranges of one request. More of them give the whole body (RFC 9110 section 14.2).
pub const MOST_RANGES: usize = 16;

/// The part of a body that a request wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranges {
    /// The whole body, as if the request had no `Range`.
    Whole,
    /// Parts of the body in the order of the request: one or more, not empty, inside the body, and without overlap. Each ends
    /// before its `end`.
    Parts(Vec<Range<u64>>),
    /// A part that the origin must send. Nothing of the body lies in the ranges, and the origin's 416 has a body and fields of
    /// its own. Or the proxy may have compressed the body: a client that joins parts has others of the plain one.
    Origins,
}

/// Returns what a request asks of a stored response with a body of `length` bytes. Ranges that overlap give the whole body,
/// so a response is never longer than the body and the heads of its parts. A stored `Content-Range` would be untrue beside
/// several parts (RFC 9110 section 15.3.7.2), so such a response is sent whole.
pub fn requested(request: &Fields<'_>, stored: &Fields<'_>, length: u64) -> Ranges {
    let is_get = request.get(":method").is_none_or(|method| method == b"GET");
    let is_ok = !stored.has(":status") || stored.status() == 200;
    let mut values = request.all("range");
    // A second field makes the request ambiguous.
    let (Some(value), None) = (values.next(), values.next()) else { return Ranges::Whole };
    if !is_get || !is_ok || stored.has("content-range") {
        return Ranges::Whole;
    }
    if stored.has("content-encoding") && !has_strong_tag(stored) {
        return Ranges::Origins;
    }
    if !is_current(request, stored) {
        return Ranges::Whole;
    }
    let Some(specs) = specs(value) else { return Ranges::Whole };
    let parts: Vec<_> = specs.iter().filter_map(|spec| spec.part(length)).collect();
    if overlap(&parts) || (length == 0 && specs.iter().any(|spec| matches!(spec, Spec::Suffix(1..)))) {
        return Ranges::Whole;
    }
    if parts.is_empty() { Ranges::Origins } else { Ranges::Parts(parts) }
}

/// Returns true if the origin has named these very bytes. Compression weakens a tag.
fn has_strong_tag(stored: &Fields<'_>) -> bool {
    stored.get("etag").is_some_and(|tag| tags::strongly_equal(tag, tag))
}

/// Returns how many bytes the only range of a request can give at most. An open one has no limit. None without a range, for
/// several ranges, and for what a server ignores.
pub(crate) fn extent(request: &Fields<'_>) -> Option<u64> {
    let mut values = request.all("range");
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    match specs(value)?.as_slice() {
        [Spec::From(_)] => Some(u64::MAX),
        [Spec::Between(first, last)] => Some(last.saturating_sub(*first).saturating_add(1)),
        [Spec::Suffix(count)] => Some(*count),
        _ => None,
    }
}

/// Returns the value of `Content-Range` for a part (RFC 9110 section 14.4). `last` is the position of the last byte.
pub fn content_range(first: u64, last: u64, total: u64) -> String {
    format!("bytes {first}-{last}/{total}")
}

/// Returns true without `If-Range`, or if it names the stored response (RFC 9110 section 13.1.5). The comparison is strong,
/// because parts of different bodies must not be joined.
fn is_current(request: &Fields<'_>, stored: &Fields<'_>) -> bool {
    let mut values = request.all("if-range");
    let Some(value) = values.next() else { return true };
    if values.next().is_some() {
        return false;
    }
    stored.get("etag").is_some_and(|tag| tags::strongly_equal(value, tag)) || is_strong_date(value, stored)
}

/// A date is strong if the response was made well after the change: a second by one clock (RFC 9110 section 8.8.2.2).
/// `Date` and `Last-Modified` may come from two clocks, so a minute is required, as in RFC 7232.
fn is_strong_date(value: &[u8], stored: &Fields<'_>) -> bool {
    let (Some(changed), Some(made)) = (date(stored, "last-modified"), date(stored, "date")) else { return false };
    let gap = made.duration_since(changed).unwrap_or_default();
    stored.get("last-modified") == Some(value) && gap >= Duration::from_mins(1)
}

/// One item of `Range`.
enum Spec {
    /// From a position to the end.
    From(u64),
    /// From a position to another one, both included.
    Between(u64, u64),
    /// The last bytes.
    Suffix(u64),
}

impl Spec {
    fn read(text: &[u8]) -> Option<Self> {
        let at = text.iter().position(|&byte| byte == b'-')?;
        let (first, last) = (text.get(..at)?, text.get(at + 1..)?);
        match (first, last) {
            ([], last) => position(last).map(Self::Suffix),
            (first, []) => position(first).map(Self::From),
            (first, last) => {
                let (first, last) = (position(first)?, position(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    /// Returns the part of a body of `length` bytes. Returns None if there is none.
    fn part(&self, length: u64) -> Option<Range<u64>> {
        let part = match *self {
            Self::From(first) => first..length,
            Self::Between(first, last) => first..last.saturating_add(1).min(length),
            Self::Suffix(count) => length.saturating_sub(count)..length,
        };
        (part.start < part.end).then_some(part)
    }
}

/// Reads `bytes=...`. Returns None for another unit, for too many ranges and for what is malformed: a server ignores such a
/// field (RFC 9110 section 14.2).
fn specs(value: &[u8]) -> Option<Vec<Spec>> {
    let at = value.iter().position(|&byte| byte == b'=')?;
    let (unit, set) = (value.get(..at)?, value.get(at + 1..)?);
    if !unit.trim_ascii().eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let items = || set.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty());
    let count = items().take(MOST_RANGES + 1).count();
    if (1..=MOST_RANGES).contains(&count) { items().map(Spec::read).collect() } else { None }
}

/// Reads digits. A number that is too large is beyond every body.
fn position(digits: &[u8]) -> Option<u64> {
    let add = |sum: u64, byte: &u8| {
        byte.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

fn overlap(parts: &[Range<u64>]) -> bool {
    let mut sorted: Vec<_> = parts.iter().collect();
    sorted.sort_unstable_by_key(|part| part.start);
    sorted.iter().zip(sorted.iter().skip(1)).any(|(one, next)| next.start < one.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "Sat, 21 Nov 2026 12:00:00 GMT";
    const NEW: &str = "Sat, 21 Nov 2026 12:01:00 GMT";
    const TOO_NEW: &str = "Sat, 21 Nov 2026 12:00:59 GMT";

    fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    fn of(range: &str, length: u64) -> Ranges {
        requested(&fields(&[("range", range)]), &Fields::default(), length)
    }

    #[test]
    fn ranges_are_parts_of_the_body_in_the_order_of_the_request() {
        for (range, length, expected) in [
            ("bytes=0-0", 10, &[(0, 1)][..]),
            ("bytes=2-5", 10, &[(2, 6)]),
            ("BYTES=2-5", 10, &[(2, 6)]),
            ("bytes=5-", 10, &[(5, 10)]),
            ("bytes=5-99", 10, &[(5, 10)]),
            ("bytes=5-99999999999999999999999", 10, &[(5, 10)]),
            ("bytes=-3", 10, &[(7, 10)]),
            ("bytes=-30", 10, &[(0, 10)]),
            ("bytes= 8-9 , 0-1,", 10, &[(8, 10), (0, 2)]),
            ("bytes=0-1,2-3,-2", 10, &[(0, 2), (2, 4), (8, 10)]),
            ("bytes=0-1,20-30", 10, &[(0, 2)]),
            ("bytes=0-", u64::MAX, &[(0, u64::MAX)]),
        ] {
            let parts = expected.iter().map(|&(start, end)| start..end).collect();
            assert_eq!(of(range, length), Ranges::Parts(parts), "{range}");
        }
    }

    #[test]
    fn a_range_of_a_body_that_the_proxy_may_have_compressed_is_the_origins() {
        let gzip = ("content-encoding", "gzip");
        for (stored, is_origins) in [
            (&[gzip][..], true),
            (&[gzip, ("etag", "W/\"a\"")], true),
            (&[gzip, ("etag", "\"a\"")], false),
            (&[("etag", "W/\"a\"")], false),
            (&[], false),
        ] {
            for condition in ["", "\"a\""] {
                let request: Vec<_> = [("range", "bytes=0-1")]
                    .into_iter()
                    .chain((!condition.is_empty()).then_some(("if-range", condition)))
                    .collect();
                let found = requested(&fields(&request), &fields(stored), 10);
                assert_eq!(found == Ranges::Origins, is_origins, "{request:?} {stored:?}");
            }
        }
    }

    #[test]
    fn a_range_outside_the_body_is_the_origins() {
        for (range, length) in [
            ("bytes=10-", 10),
            ("bytes=10-20, 30-40", 10),
            ("bytes=-0", 10),
            ("bytes=0-", 0),
            ("bytes=99999999999999999999999-", 10),
        ] {
            assert_eq!(of(range, length), Ranges::Origins, "{range}");
        }
    }

    #[test]
    fn a_range_that_is_malformed_or_too_much_gives_the_whole() {
        let many = |count: usize| format!("bytes={}", "0-0,".repeat(count).trim_end_matches(','));
        let apart = |count: usize| {
            let list: Vec<_> = (0..count).map(|at| format!("{at}-{at}")).collect();
            format!("bytes={}", list.join(","))
        };
        for range in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=5",
            "bytes=5-2",
            "bytes=1-2-3",
            "bytes=+1-2",
            "bytes=1 - 2",
            "items=0-1",
            "bytes=0-1,x",
            "bytes=0-5,5-6",
            "bytes=0-,0-",
            "bytes=-5,-4",
        ] {
            assert_eq!(of(range, 10), Ranges::Whole, "{range}");
        }
        assert_eq!(of("bytes=-5", 0), Ranges::Whole);
        assert_eq!(of(&many(2), 10), Ranges::Whole);
        assert!(matches!(of(&apart(MOST_RANGES), 100), Ranges::Parts(parts) if parts.len() == MOST_RANGES));
        assert_eq!(of(&apart(MOST_RANGES + 1), 100), Ranges::Whole);
    }

    #[test]
    fn ranges_belong_to_get_and_to_complete_responses() {
        const RANGE: (&str, &str) = ("range", "bytes=0-1");
        for (request, stored, expected) in [
            (&[RANGE][..], &[][..], true),
            (&[RANGE, (":method", "GET")], &[(":status", "200")], true),
            (&[RANGE, (":method", "HEAD")], &[], false),
            (&[RANGE], &[(":status", "404")], false),
            (&[RANGE], &[("content-range", "posts 0-24/319")], false),
            (&[RANGE, ("range", "bytes=2-3")], &[], false),
            (&[], &[], false),
        ] {
            let found = requested(&fields(request), &fields(stored), 10);
            assert_eq!(matches!(found, Ranges::Parts(_)), expected, "{request:?} {stored:?}");
        }
    }

    #[test]
    fn if_range_names_the_same_bytes_or_the_whole_is_sent() {
        for (condition, stored, expected) in [
            ("\"a\"", &[("etag", "\"a\"")][..], true),
            ("\"b\"", &[("etag", "\"a\"")], false),
            ("W/\"a\"", &[("etag", "W/\"a\"")], false),
            ("\"a\"", &[], false),
            ("", &[("etag", "")], false),
            (OLD, &[("last-modified", OLD), ("date", NEW)], true),
            (OLD, &[("last-modified", OLD), ("date", TOO_NEW)], false),
            (OLD, &[("last-modified", NEW), ("date", OLD)], false),
            (NEW, &[("last-modified", NEW), ("date", OLD)], false),
            (OLD, &[("last-modified", OLD)], false),
            (NEW, &[("last-modified", OLD), ("date", NEW)], false),
            ("x", &[("last-modified", "x"), ("date", NEW)], false),
        ] {
            let request = fields(&[("range", "bytes=0-1"), ("if-range", condition)]);
            let found = requested(&request, &fields(stored), 10);
            assert_eq!(matches!(found, Ranges::Parts(_)), expected, "{condition} {stored:?}");
        }
        let twice = fields(&[("range", "bytes=0-1"), ("if-range", "\"a\""), ("if-range", "\"b\"")]);
        assert_eq!(requested(&twice, &fields(&[("etag", "\"a\"")]), 10), Ranges::Whole);
    }

    #[test]
    fn content_range_states_first_last_and_total() {
        assert_eq!(content_range(0, 9, 100), "bytes 0-9/100");
    }
}
