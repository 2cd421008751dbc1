//! The purpose of a URL in CSS, as far as the property says.

/// The purpose for which a browser fetches a URL in a style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// Backgrounds, list markers, cursors, borders, generated content, custom properties: fetched without CORS.
    Image,
    /// `@import`.
    Import,
    /// `src` of `@font-face`: always fetched with CORS.
    Font,
    /// Masks and shapes: images that are fetched with CORS.
    CorsImage,
    /// Filters, clip paths, paint servers, bindings: only same-origin documents are accepted.
    SameOrigin,
}

/// Properties whose URL names a part of a document or a program: browsers take these from the page's own origin only.
const SAME_ORIGIN: [&str; 12] = [
    "filter",
    "backdrop-filter",
    "clip-path",
    "fill",
    "stroke",
    "marker",
    "marker-start",
    "marker-mid",
    "marker-end",
    "offset-path",
    "behavior",
    "binding",
];
/// <https://drafts.fxtf.org/css-masking/#mask-image-fetch>, <https://drafts.csswg.org/css-shapes/#shape-outside-property>
const WITH_CORS: [&str; 7] = [
    "mask",
    "mask-image",
    "mask-border",
    "mask-border-source",
    "mask-box-image",
    "mask-box-image-source",
    "shape-outside",
];

/// The purpose of a URL in a declaration of this property.
pub(super) fn fetch_of_property(name: &str) -> Fetch {
    if !may_be_known(name) {
        return Fetch::Image;
    }
    let vendor = |prefix: &str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let prefix = ["-webkit-", "-moz-"].into_iter().find(|prefix| vendor(prefix)).unwrap_or_default();
    let bare = name.get(prefix.len()..).unwrap_or_default();
    if SAME_ORIGIN.iter().any(|known| bare.eq_ignore_ascii_case(known)) {
        Fetch::SameOrigin
    } else if WITH_CORS.iter().any(|known| bare.eq_ignore_ascii_case(known)) {
        Fetch::CorsImage
    } else {
        Fetch::Image
    }
}

/// False for most properties of which nothing is known, by first letter and length alone: there is a property for each
/// few bytes of a style sheet.
fn may_be_known(name: &str) -> bool {
    let first = name.bytes().next().map(|byte| byte.to_ascii_lowercase());
    matches!(
        (first, name.len()),
        (Some(b'-'), _)
            | (Some(b'b'), 7 | 8 | 15)
            | (Some(b'c'), 9)
            | (Some(b'f'), 4 | 6)
            | (Some(b'm'), 4 | 6 | 10..=12 | 14 | 18 | 21)
            | (Some(b'o'), 11)
            | (Some(b's'), 6 | 13)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_property_that_is_known_is_overlooked() {
        for name in SAME_ORIGIN.iter().chain(&WITH_CORS) {
            for name in [name.to_uppercase(), format!("-webkit-{name}"), format!("-moz-{name}")] {
                assert_ne!(fetch_of_property(&name), Fetch::Image, "{name}");
            }
        }
        for name in ["background-image", "color", "margin", "x-filter", "-webkit-", "", "-o-mask"] {
            assert_eq!(fetch_of_property(name), Fetch::Image, "{name}");
        }
    }
}
