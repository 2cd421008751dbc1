//! Header lists. Names are in lower case, as in HTTP/2 and in Envoy; values are bytes.

use http_semantics::Fields;

/// Names and values, in order.
pub type FieldList = Vec<(Vec<u8>, Vec<u8>)>;

/// Returns the media type in lower case, without parameters.
pub(crate) fn media_type(fields: &Fields<'_>) -> Vec<u8> {
    head(fields.get("content-type").unwrap_or_default()).to_ascii_lowercase()
}

/// Returns the content encodings of a message without `identity`.
pub(crate) fn codings<'a>(fields: &Fields<'a>) -> Vec<&'a [u8]> {
    fields.items("content-encoding").filter(|coding| !coding.eq_ignore_ascii_case(b"identity")).collect()
}

/// Returns the part of `item` before its parameters.
pub(crate) fn head(item: &[u8]) -> &[u8] {
    let end = item.iter().position(|byte| matches!(byte, b';' | b'=')).unwrap_or(item.len());
    item.get(..end).unwrap_or(item).trim_ascii()
}

/// Returns true if `accepted`, a value of `Accept-Encoding`, names the content encoding `coding` with a weight above 0.
pub(crate) fn takes(accepted: &[u8], coding: &[u8]) -> bool {
    accepted.split(|&byte| byte == b',').any(|item| {
        let refused = item.split(|&byte| byte == b';').skip(1).any(|parameter| {
            let weight = parameter.trim_ascii().strip_prefix(b"q=").unwrap_or(b"1");
            weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
        });
        head(item).eq_ignore_ascii_case(coding) && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coding_is_taken_if_it_is_named_and_not_refused() {
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
}
