//! Content encodings that a client accepts (RFC 9110 section 12.5.3).

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
