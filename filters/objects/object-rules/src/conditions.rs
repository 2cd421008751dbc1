//! Conditional requests (RFC 9110 section 13, RFC 9111 section 4.3).
//!
//! | field of the request | evaluated by |
//! |---|---|
//! | `If-None-Match`, `If-Modified-Since` | [`not_modified`] |
//! | `If-Range` | [`crate::ranges`] |
//! | `If-Match`, `If-Unmodified-Since` | [`preconditions_hold`], else by the origin |

use http_semantics::cache_control::date;
use http_semantics::{FieldList, Fields};

use crate::tags;

/// The fields that make a request conditional.
pub const CONDITIONS: [&str; 5] = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range"];

/// Returns true if the request has a condition.
pub fn is_conditional(request: &Fields<'_>) -> bool {
    CONDITIONS.iter().any(|name| request.has(name))
}

/// Returns true if the client has the stored response already, so that a 304 suffices (RFC 9110 section 13.2.2). A stored
/// error never gives a 304 (section 13.2.1). A missing `:status` counts as 200.
pub fn not_modified(request: &Fields<'_>, stored: &Fields<'_>) -> bool {
    let is_read = matches!(request.get(":method").unwrap_or(b"GET"), b"GET" | b"HEAD");
    let is_success = !stored.has(":status") || (200..300).contains(&stored.status());
    if !is_read || !is_success {
        return false;
    }
    if request.has("if-none-match") {
        let tag = stored.get("etag");
        let is_had = |had: &[u8]| had == b"*" || tag.is_some_and(|tag| tags::weakly_equal(had, tag));
        // Some origins send tags with commas outside quotes, and clients return them. So the whole value counts too.
        return request
            .all("if-none-match")
            .any(|value| !value.is_empty() && (is_had(value) || tags::list(value).any(is_had)));
    }
    match (date(request, "if-modified-since"), date(stored, "last-modified")) {
        (Some(since), Some(changed)) => changed <= since,
        _ => false,
    }
}

/// Returns true if `If-Match` and `If-Unmodified-Since` are absent or clearly true of the stored response. Else the request
/// goes to the origin, because these conditions do not apply to a cache (RFC 9111 section 4.3.2). Programs that continue a
/// download send them with `Range`, so a cache that never evaluated them would be of no use to updates.
pub fn preconditions_hold(request: &Fields<'_>, stored: &Fields<'_>) -> bool {
    if request.has("if-match") {
        let Some(tag) = stored.get("etag") else { return false };
        return request.all("if-match").flat_map(tags::list).any(|had| tags::strongly_equal(had, tag));
    }
    if !request.has("if-unmodified-since") {
        return true;
    }
    match (date(request, "if-unmodified-since"), date(stored, "last-modified")) {
        (Some(since), Some(changed)) => changed <= since,
        _ => false,
    }
}

/// Returns the conditions of a request that validates the stored response (RFC 9111 section 4.3.1). They are empty if it has
/// no validator.
pub fn validators(stored: &Fields<'_>) -> FieldList {
    let tag = stored.get("etag").filter(|tag| !tag.is_empty()).map(|tag| (b"if-none-match".to_vec(), tag.to_vec()));
    let changed = stored.get("last-modified").filter(|_| date(stored, "last-modified").is_some());
    let since = changed.map(|changed| (b"if-modified-since".to_vec(), changed.to_vec()));
    tag.into_iter().chain(since).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "Sat, 21 Nov 2026 12:00:00 GMT";
    const NEW: &str = "Sat, 21 Nov 2026 13:00:00 GMT";

    fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    #[test]
    fn a_client_has_the_response_if_a_tag_or_the_date_fits() {
        const TAG: (&str, &str) = ("etag", "\"a\"");
        const CHANGED: (&str, &str) = ("last-modified", OLD);
        for (request, stored, expected) in [
            (&[("if-none-match", "\"a\"")][..], &[TAG][..], true),
            (&[("if-none-match", "W/\"a\"")], &[TAG], true),
            (&[("if-none-match", "\"a\"")], &[("etag", "W/\"a\"")], true),
            (&[("if-none-match", "\"x,y\", \"a\"")], &[TAG], true),
            (&[("if-none-match", "\"x\""), ("if-none-match", "\"a\"")], &[TAG], true),
            (&[("if-none-match", "a,b")], &[("etag", "a,b")], true),
            (&[("if-none-match", "*")], &[], true),
            (&[("if-none-match", "\"b\"")], &[TAG], false),
            (&[("if-none-match", "\"a\"")], &[], false),
            (&[("if-none-match", "")], &[("etag", "")], false),
            (&[("if-none-match", "\"b\""), ("if-modified-since", NEW)], &[TAG, CHANGED], false),
            (&[("if-modified-since", NEW)], &[CHANGED], true),
            (&[("if-modified-since", OLD)], &[CHANGED], true),
            (&[("if-modified-since", OLD)], &[("last-modified", NEW)], false),
            (&[("if-modified-since", NEW)], &[("date", OLD)], false),
            (&[("if-modified-since", "yesterday")], &[CHANGED], false),
            (&[("if-modified-since", NEW), ("if-modified-since", NEW)], &[CHANGED], false),
            (&[(":method", "HEAD"), ("if-none-match", "*")], &[TAG], true),
            (&[(":method", "POST"), ("if-none-match", "*")], &[TAG], false),
            (&[("if-none-match", "*")], &[TAG, (":status", "200")], true),
            (&[("if-none-match", "*")], &[TAG, (":status", "404")], false),
            (&[], &[TAG, CHANGED], false),
        ] {
            assert_eq!(not_modified(&fields(request), &fields(stored)), expected, "{request:?} {stored:?}");
        }
    }

    #[test]
    fn a_condition_for_the_origin_holds_only_if_it_is_clearly_true() {
        for (request, stored, expected) in [
            (&[][..], &[][..], true),
            (&[("if-match", "\"b\", \"a\"")], &[("etag", "\"a\"")], true),
            (&[("if-match", "\"a\"")], &[("etag", "W/\"a\"")], false),
            (&[("if-match", "*")], &[("etag", "\"a\"")], false),
            (&[("if-match", "\"a\"")], &[], false),
            (&[("if-unmodified-since", NEW)], &[("last-modified", OLD)], true),
            (&[("if-unmodified-since", OLD)], &[("last-modified", NEW)], false),
            (&[("if-unmodified-since", NEW)], &[], false),
        ] {
            assert_eq!(preconditions_hold(&fields(request), &fields(stored)), expected, "{request:?} {stored:?}");
        }
    }

    #[test]
    fn a_validating_request_names_both_validators() {
        let both = fields(&[("etag", " W/\"a\" "), ("last-modified", OLD)]);
        let expected: FieldList = fields(&[("if-none-match", "W/\"a\""), ("if-modified-since", OLD)]).to_list();
        assert_eq!(validators(&both), expected);
        assert!(validators(&fields(&[("etag", ""), ("last-modified", "yesterday")])).is_empty());
    }

    #[test]
    fn a_request_with_any_condition_is_conditional() {
        for name in CONDITIONS {
            assert!(is_conditional(&fields(&[(name, "x")])), "{name}");
        }
        assert!(!is_conditional(&fields(&[("range", "bytes=0-1"), ("if-x", "y")])));
    }
}
