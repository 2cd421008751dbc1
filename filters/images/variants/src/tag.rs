//! The entity tag of a variant (RFC 9110 section 8.8.3). It is weak, because a variant is not the origin's bytes.

/// The end of the opaque part of a variant's tag, before its quality.
const SUFFIX: &[u8] = b";lh-webp";

/// The settings of a variant, as its tag names them. A tag of other settings does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// The quality of JPEG images, 1 to 100.
    pub quality: u8,
}

impl Variant {
    /// Returns the tag of the variant: `"x"` and `W/"x"` become `W/"x;lh-webp75"`. Returns None for a value that is no
    /// entity tag.
    pub fn tag(self, origin: &[u8]) -> Option<Vec<u8>> {
        let opaque = opaque(origin)?;
        let quality = self.quality.to_string();
        Some([b"W/\"", opaque, SUFFIX, quality.as_bytes(), b"\""].concat())
    }

    /// Returns the tag of the origin from the variant's one, without its weakness. Returns None if the tag is not of
    /// this variant.
    pub fn origin(self, tag: &[u8]) -> Option<Vec<u8>> {
        let quality = self.quality.to_string();
        let ours = [SUFFIX, quality.as_bytes()].concat();
        let opaque = opaque(tag)?.strip_suffix(ours.as_slice())?;
        Some([b"\"", opaque, b"\""].concat())
    }
}

/// Returns true if the tag is one of a variant, of any quality.
pub fn is_of_variant(tag: &[u8]) -> bool {
    let quality = |opaque: &[u8]| {
        let at = opaque.windows(SUFFIX.len()).rposition(|window| window == SUFFIX)?;
        opaque.get(at + SUFFIX.len()..).map(|quality| !quality.is_empty() && quality.iter().all(u8::is_ascii_digit))
    };
    opaque(tag).and_then(quality).unwrap_or(false)
}

/// The opaque part of an entity tag, without its quotes.
fn opaque(tag: &[u8]) -> Option<&[u8]> {
    let tag = tag.trim_ascii();
    let tag = tag.strip_prefix(b"W/").unwrap_or(tag);
    let opaque = tag.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (!opaque.contains(&b'"')).then_some(opaque)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VARIANT: Variant = Variant { quality: 75 };

    proptest! {
        #[test]
        fn the_origins_tag_comes_back(opaque in "[!#-~]{0,40}", weak: bool) {
            let tag = format!("{}\"{opaque}\"", if weak { "W/" } else { "" });
            let variant = VARIANT.tag(tag.as_bytes()).unwrap();
            prop_assert_eq!(VARIANT.origin(&variant), Some(format!("\"{opaque}\"").into_bytes()));
            prop_assert!(is_of_variant(&variant));
        }
    }

    #[test]
    fn tags_of_others_are_left() {
        assert_eq!(VARIANT.tag(b"\"x\"").unwrap(), b"W/\"x;lh-webp75\"");
        for tag in [&b"\"x\""[..], b"W/\"x\"", b"W/\"x;lh-webp50\"", b"*", b"", b"\"", b"x;lh-webp75"] {
            assert_eq!(VARIANT.origin(tag), None, "{tag:?}");
        }
        for tag in [&b"\"x\""[..], b"\"x;lh-webp\"", b"\"x;lh-webp5x\"", b"x;lh-webp75", b""] {
            assert!(!is_of_variant(tag), "{tag:?}");
        }
        for tag in [&b""[..], b"x", b"\"", b"\"a\"b\""] {
            assert_eq!(VARIANT.tag(tag), None, "{tag:?}");
        }
    }
}
