//! Does this request accept a variant?

use http_semantics::Fields;

use crate::{Left, key};

/// Returns the reason why a request gets the origin's bytes, or None if a variant may take their place.
///
/// A browser requests an image with image types alone before `*/*`, and a page with `text/html`. The request for a
/// page that the user opens gets the original, so that saving it works.
pub fn left(fields: &Fields<'_>) -> Option<Left> {
    let says = |directive| fields.lists("cache-control", directive);
    let rows = [
        (fields.get(":method").is_none_or(|method| method != b"GET"), Left::Method),
        (!accepts_webp(fields), Left::Accept),
        (fields.has("range") || fields.has("if-range") || has_body(fields), Left::Range),
        (says("no-transform"), Left::NoTransform),
        (says("no-cache") || says("no-store") || fields.lists("pragma", "no-cache"), Left::Reload),
        (fields.has("authorization"), Left::Authorization),
        (fields.has("origin"), Left::Cors),
        (fields.has("upgrade"), Left::Method),
    ];
    rows.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
}

/// Returns the path under which a cache stores the variant that may take the place of the response. None if the request gets
/// the origin's bytes.
pub fn variant_path(fields: &Fields<'_>) -> Option<Vec<u8>> {
    if left(fields).is_some() { None } else { key::of(fields.get(":path")?) }
}

fn has_body(fields: &Fields<'_>) -> bool {
    fields.has("transfer-encoding") || fields.get("content-length").is_some_and(|length| length != b"0")
}

/// Returns true if the fields accept `image/webp` by name, and no page.
pub fn accepts_webp(fields: &Fields<'_>) -> bool {
    let mut webp = false;
    for item in fields.items("accept") {
        let mut parts = item.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let range = parts.next().unwrap_or_default();
        if range.eq_ignore_ascii_case(b"text/html") {
            return false;
        }
        // A weight that this does not read counts as refused.
        webp |= range.eq_ignore_ascii_case(b"image/webp") && parts.all(is_above_zero);
    }
    webp
}

/// Returns true for a weight above 0 (RFC 9110 section 12.4.2).
fn is_above_zero(parameter: &[u8]) -> bool {
    let Some(weight) = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q=")) else { return false };
    let is_number = weight.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    is_number && weight.iter().any(|byte| matches!(byte, b'1'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHROMIUM: (&str, &str) = ("accept", "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8");

    fn of(list: &[(&str, &str)]) -> Option<Left> {
        let list = [(":method", "GET"), (":path", "/a.jpg"), CHROMIUM].into_iter().chain(list.iter().copied());
        left(&list.collect::<Vec<_>>().iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect())
    }

    #[test]
    fn a_browsers_request_for_an_image_accepts_a_variant_and_its_neighbours_do_not() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("cookie", "a=b"), ("if-none-match", "\"x\""), ("cache-control", "max-age=0")]), None);
        for (field, reason) in [
            (("range", "bytes=0-"), Left::Range),
            (("content-length", "3"), Left::Range),
            (("cache-control", "no-cache"), Left::Reload),
            (("pragma", "no-cache"), Left::Reload),
            (("cache-control", "no-store"), Left::Reload),
            (("cache-control", "max-age=0, no-transform"), Left::NoTransform),
            (("authorization", "Basic YTpi"), Left::Authorization),
            (("origin", "http://a.test"), Left::Cors),
        ] {
            assert_eq!(of(&[field]), Some(reason), "{field:?}");
        }
    }

    #[test]
    fn only_who_names_webp_gets_it() {
        for (accept, expected) in [
            ("image/webp", true),
            ("image/*, image/WebP;q=0.5", true),
            ("image/*,*/*", false),
            ("image/webp;q=0", false),
            ("image/webp;q=0.000", false),
            ("image/webp;level=1", false),
            ("text/html,image/webp,*/*;q=0.8", false),
            ("", false),
        ] {
            let list = [(&b"accept"[..], accept.as_bytes())];
            assert_eq!(accepts_webp(&Fields::from(&list[..])), expected, "{accept}");
        }
        let post = [(&b":method"[..], &b"POST"[..]), (b"accept", b"image/webp")];
        assert_eq!(left(&Fields::from(&post[..])), Some(Left::Method));
    }
}
