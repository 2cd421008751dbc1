//! The media types that decide something (RFC 9110, 8.3).

/// The essence of a Content-Type: `type/subtype` without parameters, in lower case.
pub fn essence(content_type: &[u8]) -> String {
    let essence = content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    String::from_utf8_lossy(essence).to_ascii_lowercase()
}

/// The label of a `charset` parameter, without quotes.
pub fn charset(content_type: &[u8]) -> Option<&[u8]> {
    content_type.split(|&byte| byte == b';').skip(1).find_map(|parameter| {
        let at = parameter.iter().position(|&byte| byte == b'=')?;
        let (name, value) = parameter.split_at_checked(at)?;
        let value = value.get(1..)?.trim_ascii();
        let value = value.strip_prefix(b"\"").map_or(value, |inner| inner.strip_suffix(b"\"").unwrap_or(inner));
        name.trim_ascii().eq_ignore_ascii_case(b"charset").then_some(value)
    })
}

/// <https://mimesniff.spec.whatwg.org/#javascript-mime-type>
const JAVASCRIPT: [&str; 16] = [
    "application/ecmascript",
    "application/javascript",
    "application/x-ecmascript",
    "application/x-javascript",
    "text/ecmascript",
    "text/javascript",
    "text/javascript1.0",
    "text/javascript1.1",
    "text/javascript1.2",
    "text/javascript1.3",
    "text/javascript1.4",
    "text/javascript1.5",
    "text/jscript",
    "text/livescript",
    "text/x-ecmascript",
    "text/x-javascript",
];

/// Returns true if an essence, in any case, is one of JavaScript's.
pub fn is_javascript(essence: &[u8]) -> bool {
    JAVASCRIPT.iter().any(|known| essence.eq_ignore_ascii_case(known.as_bytes()))
}

/// Returns true for images, sound, video and fonts: no browser treats these as a script or a style sheet.
pub fn is_media(essence: &str) -> bool {
    ["image/", "audio/", "video/", "font/", "application/font-", "application/x-font-"]
        .iter()
        .any(|start| essence.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_read_as_people_write_them() {
        for (content_type, kind, label) in [
            (&b"text/html"[..], "text/html", None),
            (b"Text/HTML ; Charset=\"UTF-8\"", "text/html", Some(&b"UTF-8"[..])),
            (b"text/css;charset=iso-8859-1;x", "text/css", Some(b"iso-8859-1")),
            (b"text/html; boundary=charset; charset=x", "text/html", Some(b"x")),
            (b"", "", None),
            (b";charset", "", None),
        ] {
            assert_eq!((essence(content_type).as_str(), charset(content_type)), (kind, label));
        }
    }
}
