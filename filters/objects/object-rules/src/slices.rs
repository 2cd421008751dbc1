//! Objects that are stored in blocks, so that ranges of them can be shared and a download can be resumed.
//!
//! Blocks come in responses to several requests. They may be joined only if all have one strong validator (RFC 9111 section
//! 3.4, RFC 9110 section 15.3.7.3).

use std::ops::Range;

use http_semantics::Fields;

use crate::conditions::CONDITIONS;
use crate::ranges;
use crate::tags;
use crate::{Directives, Life, Past, storable};

/// The bytes of a block. The last block of an object may be shorter.
pub const BLOCK: u64 = 1 << 20;
/// The most blocks of one request to the origin. A client that leaves costs no more than these.
pub const MOST_RUN: u64 = 16;
/// The shortest range in bytes that is worth whole blocks. Programs read directories of archives in shorter ones, and the
/// link may lie between the cache and the origin.
pub const LEAST_RANGE: u64 = 256 << 10;
/// The shortest object in bytes that is stored in blocks because a range of it came.
pub const LEAST_LENGTH: u64 = BLOCK;
/// The shortest object in bytes that is stored in blocks if it comes whole.
pub const LEAST_WHOLE: u64 = 4 * BLOCK;
/// The longest object in bytes that is stored in blocks. It bounds the memory for the map of its blocks.
pub const MOST_LENGTH: u64 = 1 << 40;

/// The conditions of a client that continues a download. They can be judged by the head of a response, so the origin is asked
/// without them.
const JUDGED: [&str; 3] = ["if-range", "if-match", "if-unmodified-since"];

/// Fields of a partial response that describe the part (RFC 9530 section 2, RFC 2616 section 14.15).
const OF_PART: [&[u8]; 3] = [b"content-range", b"content-digest", b"content-md5"];

/// The blocks of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// The length of the object in bytes.
    pub length: u64,
}

impl Blocks {
    /// Returns how many blocks there are.
    pub const fn count(self) -> u64 {
        self.length.div_ceil(BLOCK)
    }

    /// Returns the block that has the byte `at`.
    pub const fn of(at: u64) -> u64 {
        at / BLOCK
    }

    /// Returns the bytes of a block. They are empty beyond the end.
    pub fn bytes(self, block: u64) -> Range<u64> {
        let start = block.saturating_mul(BLOCK).min(self.length);
        start..start.saturating_add(BLOCK).min(self.length)
    }

    /// Returns the blocks that have bytes of a range.
    pub fn touched(self, bytes: &Range<u64>) -> Range<u64> {
        let end = bytes.end.min(self.length);
        if bytes.start < end { Self::of(bytes.start)..end.div_ceil(BLOCK) } else { 0..0 }
    }

    /// Returns the blocks whose bytes all lie in a range.
    pub fn covered(self, bytes: &Range<u64>) -> Range<u64> {
        let first = bytes.start.div_ceil(BLOCK);
        let end = if bytes.end >= self.length { self.count() } else { Self::of(bytes.end) };
        first..end.max(first)
    }

    /// Returns the bytes of one request to the origin: those of the missing block `first`, and of the missing ones
    /// behind it up to the byte `end`.
    pub fn run(self, first: u64, end: u64, is_missing: impl Fn(u64) -> bool) -> Range<u64> {
        let wanted = self.touched(&(self.bytes(first).start..end)).end;
        let most = first.saturating_add(MOST_RUN).min(wanted);
        let last = (first.saturating_add(1)..most).take_while(|block| is_missing(*block)).last().unwrap_or(first);
        self.bytes(first).start..self.bytes(last).end
    }
}

/// The part of an object that a response has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The bytes of the object. They are not empty.
    pub bytes: Range<u64>,
    /// The length of the object in bytes.
    pub total: u64,
}

impl Part {
    /// Reads the `Content-Range` of a response (RFC 9110 section 14.4). None unless there is one, with a known length.
    pub fn of(response: &Fields<'_>) -> Option<Self> {
        let mut values = response.all("content-range");
        let (value, None) = (values.next()?, values.next()) else { return None };
        let (unit, rest) = value.split_at_checked(6)?;
        let dash = rest.iter().position(|&byte| byte == b'-')?;
        let slash = rest.iter().position(|&byte| byte == b'/')?;
        let first = exact(rest.get(..dash)?)?;
        let last = exact(rest.get(dash + 1..slash)?)?;
        let total = exact(rest.get(slash + 1..)?)?;
        let is_part = unit.eq_ignore_ascii_case(b"bytes ") && first <= last && last < total;
        is_part.then(|| Self { bytes: first..last.saturating_add(1), total })
    }
}

/// Reads digits. None for a number that does not fit.
fn exact(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// Returns true if the response to a range may be worth blocks: one range that is not short, without conditions that only the
/// origin can judge. The store has nothing for the request.
pub fn may_begin(request: &Fields<'_>) -> bool {
    let is_get = request.get(":method").is_none_or(|method| method == b"GET");
    let is_judged = CONDITIONS.iter().all(|name| JUDGED.contains(name) || !request.has(name));
    is_get
        && is_judged
        && !request.has("authorization")
        && !Directives::of(request).has("no-store")
        && ranges::extent(request).is_some_and(|bytes| bytes >= LEAST_RANGE)
}

/// Decides if the parts of an object may be stored, by the response that has one of them. `now_s` and `delay_s` are those of
/// [`storable`].
///
/// # Errors
/// The reason why they must not be stored.
pub fn storable_part(
    request: &Fields<'_>,
    response: &Fields<'_>,
    now_s: u64,
    delay_s: u64,
) -> Result<(Life, Part), Past> {
    let part = Part::of(response).filter(|_| response.status() == 206).ok_or(Past::Partial)?;
    let life = storable(&without_part(request), &whole(response), now_s, delay_s)?;
    if strong_tag(response).is_none() {
        return Err(Past::WeakTag);
    }
    if !(LEAST_LENGTH..=MOST_LENGTH).contains(&part.total) {
        return Err(Past::Partial);
    }
    Ok((life, part))
}

/// Returns true if a whole response of `length` bytes, which may be stored, is stored in blocks. The origin must be able to
/// give the blocks that a broken download lacks.
pub fn suits_whole(response: &Fields<'_>, length: Option<u64>) -> bool {
    response.status() == 200
        && length.is_some_and(|length| (LEAST_WHOLE..=MOST_LENGTH).contains(&length))
        && response.lists("accept-ranges", "bytes")
        && !response.has("content-range")
        && strong_tag(response).is_some()
}

/// Returns true if a response continues a stored object of `total` bytes with the bytes `asked`: the validator, the part and
/// the length are the same.
pub fn continues(stored: &Fields<'_>, total: u64, asked: &Range<u64>, response: &Fields<'_>) -> bool {
    let is_same = strong_tag(stored).zip(strong_tag(response)).is_some_and(|(one, other)| one == other);
    let is_asked = |part: Part| part.total == total && part.bytes == *asked;
    response.status() == 206 && is_same && Part::of(response).is_some_and(is_asked)
}

/// Returns the strong tag of a message. None if it has another one, or several.
pub fn strong_tag<'a>(message: &Fields<'a>) -> Option<&'a [u8]> {
    let mut values = message.all("etag");
    let (tag, None) = (values.next()?, values.next()) else { return None };
    tags::strongly_equal(tag, tag).then_some(tag)
}

/// Returns the fields of a whole response, given those of a part.
pub fn whole<'a>(part: &Fields<'a>) -> Fields<'a> {
    let status = std::iter::once((&b":status"[..], &b"200"[..]));
    let fields =
        part.iter().filter(|(name, _)| !OF_PART.contains(name) && *name != b":status" && *name != b"content-length");
    status.chain(fields).collect()
}

/// Returns a request without its range and the conditions that go with it.
fn without_part<'a>(request: &Fields<'a>) -> Fields<'a> {
    request.iter().filter(|(name, _)| *name != b"range" && *name != b"if-range").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;
    const FRESH: (&str, &str) = ("cache-control", "max-age=60");
    const TAG: (&str, &str) = ("etag", "\"a\"");
    const RANGE: (&str, &str) = ("content-range", "bytes 0-1048575/5000000");

    fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    #[test]
    fn blocks_divide_an_object() {
        let blocks = Blocks { length: 3 * BLOCK + 5 };
        assert_eq!((blocks.count(), Blocks { length: BLOCK }.count(), Blocks { length: 0 }.count()), (4, 1, 0));
        assert_eq!((blocks.bytes(3), blocks.bytes(9).is_empty()), (3 * BLOCK..3 * BLOCK + 5, true));
        for (bytes, touched, covered) in [
            (0..BLOCK, 0..1, 0..1),
            (1..BLOCK, 0..1, 1..1),
            (0..BLOCK + 1, 0..2, 0..1),
            (1..3 * BLOCK, 0..3, 1..3),
            (BLOCK - 1..3 * BLOCK + 5, 0..4, 1..4),
            (3 * BLOCK..3 * BLOCK + 4, 3..4, 3..3),
            (5..5, 0..0, 1..1),
        ] {
            assert_eq!((blocks.touched(&bytes), blocks.covered(&bytes)), (touched, covered), "{bytes:?}");
        }
    }

    #[test]
    fn a_run_ends_at_a_block_that_is_there_at_the_range_and_after_sixteen() {
        let blocks = Blocks { length: 40 * BLOCK + 5 };
        for (first, end, there, expected) in [
            (0, 1, 99, 0..BLOCK),
            (0, 3 * BLOCK, 99, 0..3 * BLOCK),
            (0, 3 * BLOCK + 1, 99, 0..4 * BLOCK),
            (0, u64::MAX, 99, 0..16 * BLOCK),
            (0, u64::MAX, 2, 0..2 * BLOCK),
            (0, u64::MAX, 1, 0..BLOCK),
            (39, u64::MAX, 99, 39 * BLOCK..40 * BLOCK + 5),
            (40, u64::MAX, 99, 40 * BLOCK..40 * BLOCK + 5),
        ] {
            assert_eq!(blocks.run(first, end, |block| block != there), expected, "{first} {end} {there}");
        }
    }

    #[test]
    fn a_part_has_one_range_and_a_known_length() {
        for (value, expected) in [
            ("bytes 0-9/20", Some((0..10, 20))),
            ("Bytes 19-19/20", Some((19..20, 20))),
            ("bytes 0-9/*", None),
            ("bytes */20", None),
            ("bytes 9-0/20", None),
            ("bytes 0-20/20", None),
            ("bytes 0-9/99999999999999999999", None),
            ("bytes +0-9/20", None),
            ("bytes 0-9", None),
            ("bytes/0-9", None),
            ("lines 0-9/20", None),
            ("", None),
        ] {
            let expected = expected.map(|(bytes, total)| Part { bytes, total });
            assert_eq!(Part::of(&fields(&[("content-range", value)])), expected, "{value}");
        }
        assert_eq!(Part::of(&fields(&[RANGE, RANGE])), None);
    }

    #[test]
    fn a_long_range_without_the_origins_conditions_may_begin_blocks() {
        let long = ("range", "bytes=0-1048575");
        for (request, expected) in [
            (&[long][..], true),
            (&[long, ("if-range", "\"a\"")], true),
            (&[long, ("if-match", "\"a\"")], true),
            (&[long, ("if-unmodified-since", "Sat, 21 Nov 2026 12:00:00 GMT")], true),
            (&[("range", "bytes=5-")], true),
            (&[("range", "bytes=-262144")], true),
            (&[("range", "bytes=0-262143")], true),
            (&[("range", "bytes=0-262142")], false),
            (&[("range", "bytes=-262143")], false),
            (&[("range", "bytes=0-1048575, 2000000-3000000")], false),
            (&[("range", "bytes=9-5")], false),
            (&[("range", "lines=0-1048575")], false),
            (&[long, long], false),
            (&[], false),
            (&[long, (":method", "HEAD")], false),
            (&[long, ("if-none-match", "\"a\"")], false),
            (&[long, ("if-modified-since", "Sat, 21 Nov 2026 12:00:00 GMT")], false),
            (&[long, ("authorization", "Basic YTpi")], false),
            (&[long, ("cache-control", "no-store")], false),
        ] {
            assert_eq!(may_begin(&fields(request)), expected, "{request:?}");
        }
    }

    #[test]
    fn a_part_is_stored_by_the_rules_of_a_whole_response_and_with_a_strong_tag() {
        const PART: (&str, &str) = (":status", "206");
        for (request, response, expected) in [
            (&[][..], &[PART, FRESH, TAG, RANGE][..], Ok(())),
            (&[("range", "bytes=0-1048575"), ("if-range", "\"a\"")], &[PART, FRESH, TAG, RANGE], Ok(())),
            (&[], &[PART, TAG, RANGE], Ok(())),
            (&[], &[(":status", "200"), FRESH, TAG, RANGE], Err(Past::Partial)),
            (&[], &[PART, FRESH, TAG], Err(Past::Partial)),
            (&[], &[PART, FRESH, TAG, ("content-range", "bytes 0-9/*")], Err(Past::Partial)),
            (&[], &[PART, FRESH, TAG, ("content-range", "bytes 0-9/1048575")], Err(Past::Partial)),
            (&[], &[PART, FRESH, TAG, ("content-range", "bytes 0-9/1099511627777")], Err(Past::Partial)),
            (&[], &[PART, FRESH, RANGE], Err(Past::WeakTag)),
            (&[], &[PART, FRESH, ("etag", "W/\"a\""), RANGE], Err(Past::WeakTag)),
            (&[], &[PART, FRESH, TAG, TAG, RANGE], Err(Past::WeakTag)),
            (&[], &[PART, FRESH, TAG, RANGE, ("set-cookie", "a=b")], Err(Past::SetCookie)),
            (&[], &[PART, ("cache-control", "private"), TAG, RANGE], Err(Past::Private)),
            (&[("cookie", "a=b")], &[PART, FRESH, TAG, RANGE], Err(Past::Cookie)),
            (&[("cookie", "a=b")], &[PART, ("cache-control", "public"), TAG, RANGE], Ok(())),
            (&[], &[PART, FRESH, TAG, RANGE, ("vary", "*")], Err(Past::VaryStar)),
        ] {
            let found = storable_part(&fields(request), &fields(response), NOW, 0).map(|_| ());
            assert_eq!(found, expected, "{request:?} {response:?}");
        }
    }

    #[test]
    fn a_whole_response_is_stored_in_blocks_if_the_origin_gives_parts() {
        const OK: (&str, &str) = (":status", "200");
        const PARTS: (&str, &str) = ("accept-ranges", "bytes");
        for (response, length, expected) in [
            (&[OK, TAG, PARTS][..], Some(LEAST_WHOLE), true),
            (&[OK, TAG, PARTS], Some(LEAST_WHOLE - 1), false),
            (&[OK, TAG, PARTS], Some(MOST_LENGTH + 1), false),
            (&[OK, TAG, PARTS], None, false),
            (&[OK, TAG], Some(LEAST_WHOLE), false),
            (&[OK, TAG, ("accept-ranges", "none")], Some(LEAST_WHOLE), false),
            (&[OK, PARTS], Some(LEAST_WHOLE), false),
            (&[OK, PARTS, ("etag", "W/\"a\"")], Some(LEAST_WHOLE), false),
            (&[(":status", "404"), TAG, PARTS], Some(LEAST_WHOLE), false),
        ] {
            assert_eq!(suits_whole(&fields(response), length), expected, "{response:?} {length:?}");
        }
    }

    #[test]
    fn a_response_continues_an_object_with_the_same_tag_length_and_part_alone() {
        let right = [(":status", "206"), TAG, RANGE];
        let of = |response: &[(&str, &str)]| continues(&fields(&[TAG]), 5_000_000, &(0..BLOCK), &fields(response));
        assert!(of(&right));
        for (at, wrong) in [
            (0, (":status", "200")),
            (1, ("etag", "\"b\"")),
            (1, ("etag", "W/\"a\"")),
            (1, ("x", "y")),
            (2, ("content-range", "bytes 0-1048575/5000001")),
            (2, ("content-range", "bytes 0-1048574/5000000")),
            (2, ("content-range", "bytes 1-1048575/5000000")),
        ] {
            let mut response = right;
            response[at] = wrong;
            assert!(!of(&response), "{wrong:?}");
        }
    }

    #[test]
    fn fields_of_a_part_do_not_describe_the_whole() {
        let part =
            [(":status", "206"), RANGE, ("content-length", "5"), ("content-digest", "x"), ("repr-digest", "y"), TAG];
        let whole = whole(&fields(&part)).to_list();
        let expected = fields(&[(":status", "200"), ("repr-digest", "y"), TAG]).to_list();
        assert_eq!(whole, expected);
    }
}
