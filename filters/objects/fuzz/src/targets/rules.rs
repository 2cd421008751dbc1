//! The rules of the cache, for a request and a response.

use http_semantics::{FieldList, Fields};
use object_rules::multipart::Multipart;
use object_rules::ranges::{MOST_RANGES, Ranges, requested};
use object_rules::slices::{BLOCK, Blocks, MOST_RUN, continues, may_begin, storable_part, suits_whole, whole};
use object_rules::{Use, conditions, storable, update, variant};

/// Fri, 15 Jan 2027 08:00:00 GMT
const NOW_S: u64 = 1_800_000_000;
const LENGTH: u64 = 1000;

/// Two header lists, one field a line, with an empty line between them: a request and a response.
pub fn rules(data: &[u8]) {
    read(data);
}

/// Returns true if the response was stored.
pub(crate) fn read(data: &[u8]) -> bool {
    let at = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(data.len());
    let request = fields(&data[..at]);
    let response = fields(&data[(at + 2).min(data.len())..]);
    select(&request, &response);
    ranges(&request, &response);
    refresh(&request, &response);
    let is_part = slices(&request, &response);
    store(&request, &response) || is_part
}

/// Laws: a part lies in its object and is stored by the rules of the whole. A run consists of blocks, and is bounded.
fn slices(request: &Fields<'_>, response: &Fields<'_>) -> bool {
    may_begin(request);
    assert!(!suits_whole(response, Some(LENGTH)));
    let Ok((life, part)) = storable_part(request, response, NOW_S, 1) else { return false };
    assert!(!response.has("set-cookie") && !response.lists("cache-control", "private"));
    assert!(life.public || !request.has("cookie"));
    assert!(part.bytes.start < part.bytes.end && part.bytes.end <= part.total);
    assert!(continues(response, part.total, &part.bytes, response));
    assert!(!whole(response).has("content-range") && whole(response).status() == 200);
    let blocks = Blocks { length: part.total };
    for block in blocks.covered(&part.bytes) {
        assert!(part.bytes.start <= blocks.bytes(block).start && blocks.bytes(block).end <= part.bytes.end);
    }
    let first = Blocks::of(part.bytes.start);
    let run = blocks.run(first, part.bytes.end, |block| block % 5 != 0);
    assert!(run.start == blocks.bytes(first).start && run.end <= part.total && run.end - run.start <= MOST_RUN * BLOCK);
    true
}

fn fields(lines: &[u8]) -> Fields<'_> {
    let lines = lines.split(|&byte| byte == b'\n');
    lines
        .filter_map(|line| {
            let at = line.iter().skip(1).position(|&byte| byte == b':')? + 1;
            Some((&line[..at], &line[at + 1..]))
        })
        .collect()
}

/// Laws: what is private is not stored, and what is not shared explicitly goes to no client with credentials.
fn store(request: &Fields<'_>, response: &Fields<'_>) -> bool {
    let Ok(life) = storable(request, response, NOW_S, 1) else { return false };
    assert!(!response.has("set-cookie") && !response.lists("cache-control", "private"));
    assert!(life.public || !request.has("cookie"));
    for now_s in [0, NOW_S, NOW_S + 100, u64::MAX] {
        let found = life.allows(request, now_s);
        let has_credentials = request.has("cookie") || request.has("authorization");
        assert!(life.public || !has_credentials || matches!(found, Use::Past(_)));
        assert!(now_s != 0 || !matches!(found, Use::Fresh | Use::StaleWhileRevalidate));
    }
    true
}

/// Laws: names in `Vary` are sorted, and equal requests have equal values.
fn select(request: &Fields<'_>, response: &Fields<'_>) {
    let Some(names) = variant::names(response) else { return };
    assert!(names.is_sorted() && names.len() <= variant::MOST_NAMES);
    let copy = request.to_list();
    assert_eq!(variant::values(request, &names), variant::values(&borrowed(&copy), &names));
}

/// Law: parts lie in the body, and are no longer than it.
fn ranges(request: &Fields<'_>, response: &Fields<'_>) {
    let Ranges::Parts(parts) = requested(request, response, LENGTH) else { return };
    assert!(!parts.is_empty() && parts.len() <= MOST_RANGES);
    assert!(parts.iter().all(|part| part.start < part.end && part.end <= LENGTH));
    let sum: u64 = parts.iter().map(|part| part.end - part.start).sum();
    assert!(sum <= LENGTH);
    let frame = Multipart::new(1, response.get("content-type"));
    assert!(frame.length(&parts, LENGTH) > sum);
}

/// Laws: a second update changes nothing, and a response fits its own validators.
fn refresh(request: &Fields<'_>, response: &Fields<'_>) {
    let once = update::updated(request, response);
    assert_eq!(update::updated(&borrowed(&once), response), once);
    assert!(update::matches(response, response));
    conditions::preconditions_hold(request, response);
    conditions::not_modified(request, response);
    let validating = conditions::validators(response);
    let has_status = response.has(":status");
    assert!(has_status || validating.is_empty() || conditions::not_modified(&borrowed(&validating), response));
}

fn borrowed(list: &FieldList) -> Fields<'_> {
    list.iter().map(|(name, value)| (&name[..], &value[..])).collect()
}
