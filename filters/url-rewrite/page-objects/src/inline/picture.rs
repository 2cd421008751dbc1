//! Pictures as `data:` URLs (RFC 2397).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A type of picture that browsers show alike under every URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Type {
    essence: &'static str,
    /// The beginnings of such a picture, each behind so many bytes.
    begins: &'static [(usize, &'static [u8])],
}

/// Browsers recognise pictures by their bytes, but a `data:` URL states a type. So both must agree. SVG is safe here: in an
/// `img` it neither runs scripts nor loads other files.
const TYPES: [Type; 6] = [
    Type { essence: "image/png", begins: &[(0, b"\x89PNG\r\n\x1a\n")] },
    Type { essence: "image/jpeg", begins: &[(0, b"\xFF\xD8\xFF")] },
    Type { essence: "image/gif", begins: &[(0, b"GIF87a"), (0, b"GIF89a")] },
    Type { essence: "image/webp", begins: &[(8, b"WEBPVP")] },
    Type { essence: "image/avif", begins: &[(4, b"ftypavif"), (4, b"ftypavis")] },
    Type { essence: "image/svg+xml", begins: &[(0, b"<svg"), (0, b"<?xml")] },
];

impl Type {
    /// Recognises the type by the first bytes and by `Content-Type`, which must be the type alone.
    pub(super) fn of(content_type: &[u8], body: &[u8]) -> Option<Self> {
        let said = TYPES.into_iter().find(|kind| content_type.eq_ignore_ascii_case(kind.essence.as_bytes()))?;
        let begins = |&(skip, magic): &(usize, &[u8])| body.get(skip..).is_some_and(|rest| rest.starts_with(magic));
        said.begins.iter().any(begins).then_some(said)
    }

    /// Returns the URL. Base64 needs no escapes in any attribute, quoted or not.
    pub(super) fn data_url(self, body: &[u8]) -> String {
        let mut url = String::with_capacity(self.data_url_bytes(body.len()));
        for part in ["data:", self.essence, ";base64,"] {
            url.push_str(part);
        }
        STANDARD.encode_string(body, &mut url);
        url
    }

    /// Returns the length of that URL in bytes.
    pub(super) fn data_url_bytes(self, body_bytes: usize) -> usize {
        "data:;base64,".len() + self.essence.len() + body_bytes.div_ceil(3).saturating_mul(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_becomes_a_url_of_the_length_that_was_said() {
        let gif = Type::of(b"Image/GIF", b"GIF89a..").unwrap();
        assert_eq!(gif.data_url(b"GIF89a.."), "data:image/gif;base64,R0lGODlhLi4=");
        for length in 0..10 {
            assert_eq!(gif.data_url(&vec![0; length]).len(), gif.data_url_bytes(length));
        }
    }

    #[test]
    fn a_type_and_bytes_that_disagree_are_no_picture_and_neither_is_another_type() {
        for (content_type, body) in [
            ("image/png", &b"GIF89a"[..]),
            ("image/gif", b""),
            ("image/gif; charset=utf-8", b"GIF89a"),
            ("text/html", b"<svg"),
            ("", b"GIF89a"),
            ("image/x-icon", b"\0\0\x01\0"),
        ] {
            assert_eq!(Type::of(content_type.as_bytes(), body), None, "{content_type}");
        }
        assert!(Type::of(b"image/webp", b"RIFF\x10\0\0\0WEBPVP8 ").is_some());
        assert!(Type::of(b"image/svg+xml", b"<svg/>").is_some());
    }
}
