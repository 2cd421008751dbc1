//! Content encodings that a client accepts (RFC 9110 section 12.5.3), and those of them that an origin hears of.

use crate::Fields;

/// Returns the value of `Accept-Encoding` for the origin: the client's own acceptance, less what Longhaul cannot
/// decompress, and never more. None if the client sent no such field, and then the origin gets none.
///
/// | the client | the origin hears |
/// |---|---|
/// | accepts gzip, by its name or by `*` | `gzip` |
/// | sent a field that does not accept gzip | `identity` |
/// | sent no field | nothing |
///
/// Envoy cuts brotli above 100:1 without an error, because its output has no bound. gzip never exceeds 1032:1.
pub fn for_origin(request: &Fields<'_>) -> Option<&'static str> {
    request.get("accept-encoding")?;
    Some(if takes_gzip(request) { "gzip" } else { "identity" })
}

/// Returns the value that a filter must give the request's `Accept-Encoding` for the origin. None if the field is right, or
/// if Envoy makes it so: its filter `accept_gzip` turns every value that names gzip in lower case into `gzip`. A change by
/// WebAssembly costs more, and nearly every client accepts gzip by that name.
pub fn change_for_origin(request: &Fields<'_>) -> Option<&'static str> {
    let said = request.get("accept-encoding")?;
    let names_gzip = said.windows(4).any(|window| window == b"gzip");
    for_origin(request).filter(|heard| said != heard.as_bytes() && !(names_gzip && *heard == "gzip"))
}

/// Returns true if a request accepts gzip by its name or by `*`. A request without `Accept-Encoding` does not: such
/// programs store what they get.
pub fn takes_gzip(request: &Fields<'_>) -> bool {
    let named = |coding: &[u8]| request.all("accept-encoding").find_map(|value| weighs(value, coding).next());
    named(b"gzip").or_else(|| named(b"x-gzip")).or_else(|| named(b"*")).unwrap_or(false)
}

/// Returns true if `accepted`, a value of `Accept-Encoding`, names the content encoding `coding` with a weight above 0.
pub fn takes(accepted: &[u8], coding: &[u8]) -> bool {
    weighs(accepted, coding).any(|is_accepted| is_accepted)
}

/// Returns true if `accepted` refuses a response without a content encoding: `identity;q=0`, or `*;q=0` without
/// `identity`.
pub fn refuses_plain(accepted: &[u8]) -> bool {
    let of = |coding| weighs(accepted, coding).next();
    !of(b"identity").or_else(|| of(b"*")).unwrap_or(true)
}

/// Iterates over the items with the name `coding`: true if the weight is above 0.
fn weighs(accepted: &[u8], coding: &[u8]) -> impl Iterator<Item = bool> {
    accepted.split(|&byte| byte == b',').filter_map(move |item| {
        let mut parts = item.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let is_named = parts.next()?.eq_ignore_ascii_case(coding);
        let is_refused = parts.any(|parameter| {
            let weight = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q=")).unwrap_or(b"1");
            weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
        });
        is_named.then_some(!is_refused)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_hears_the_clients_acceptance_and_never_more() {
        for (accepted, heard) in [
            (&["gzip, deflate, br, zstd"][..], Some("gzip")),
            (&["gzip"], Some("gzip")),
            (&["X-Gzip"], Some("gzip")),
            (&["gzip;q=0.5, identity"], Some("gzip")),
            (&["*"], Some("gzip")),
            (&["br", "gzip"], Some("gzip")),
            (&["gzip;q=0"], Some("identity")),
            (&["gzip;q=0, *"], Some("identity")),
            (&["identity;q=1, *;q=0"], Some("identity")),
            (&["br"], Some("identity")),
            (&["deflate, zstd"], Some("identity")),
            (&[""], Some("identity")),
            (&[], None),
        ] {
            let request: Fields<'_> =
                accepted.iter().map(|value| (&b"accept-encoding"[..], value.as_bytes())).collect();
            assert_eq!(for_origin(&request), heard, "{accepted:?}");
            assert_eq!(takes_gzip(&request), heard == Some("gzip"), "{accepted:?}");
        }
    }

    #[test]
    fn a_filter_changes_the_field_of_rare_clients_alone() {
        for (accepted, change) in [
            ("gzip, deflate, br, zstd", None),
            ("gzip", None),
            ("x-gzip", None),
            ("identity", None),
            ("GZIP", Some("gzip")),
            ("*", Some("gzip")),
            ("br", Some("identity")),
            ("gzip;q=0", Some("identity")),
            ("gzip;q=0, *", Some("identity")),
        ] {
            let list = [(&b"accept-encoding"[..], accepted.as_bytes())];
            assert_eq!(change_for_origin(&Fields::from(&list[..])), change, "{accepted}");
        }
        assert_eq!(change_for_origin(&Fields::default()), None);
    }

    #[test]
    fn a_content_encoding_is_accepted_if_it_is_named_and_not_refused() {
        for (accepted, takes_gzip) in [
            ("gzip, deflate", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("deflate", false),
            ("", false),
        ] {
            assert_eq!(takes(accepted.as_bytes(), b"gzip"), takes_gzip, "{accepted}");
        }
    }

    #[test]
    fn a_plain_response_is_accepted_unless_it_is_refused() {
        for (accepted, refused) in [
            ("", false),
            ("gzip", false),
            ("identity", false),
            ("gzip, *;q=0.1", false),
            ("identity;q=0.5, *;q=0", false),
            ("gzip, identity;q=0", true),
            ("gzip, *;q=0", true),
        ] {
            assert_eq!(refuses_plain(accepted.as_bytes()), refused, "{accepted}");
        }
    }
}
