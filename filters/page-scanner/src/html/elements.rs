//! Facts that the name of an element tells, before anything else of its tag is read.

use super::names;
use super::raw_text::Text;
use crate::places::{PLACES, Place};

/// How an element's content is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// As markup, or there is none.
    Markup,
    /// As text that is of no interest.
    Ignored(Text),
    /// As a style sheet.
    Style,
    /// As text by browsers that run scripts, as markup by the others.
    Noscript,
}

/// One kind of element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element {
    name: &'static str,
    /// See [`key`].
    key: u64,
    /// Places where URLs can stand.
    pub(super) places: &'static [Place],
    pub(super) content: Content,
    /// Says something about the page as a whole: `base` and `meta`.
    pub(super) is_about_page: bool,
}

/// The entry of most elements.
static ANY: Element = Element::new("", Content::Markup);

/// The others, in the order of their keys.
static KNOWN: [Element; 33] = sorted([
    Element::new("audio", Content::Markup),
    Element::new("base", Content::Markup),
    Element::new("body", Content::Markup),
    Element::new("embed", Content::Markup),
    Element::new("feimage", Content::Markup),
    Element::new("frame", Content::Markup),
    Element::new("iframe", ignored("iframe")),
    Element::new("image", Content::Markup),
    Element::new("img", Content::Markup),
    Element::new("input", Content::Markup),
    Element::new("link", Content::Markup),
    Element::new("meta", Content::Markup),
    Element::new("noembed", ignored("noembed")),
    Element::new("noframes", ignored("noframes")),
    Element::new("noscript", Content::Noscript),
    Element::new("object", Content::Markup),
    Element::new("plaintext", Content::Ignored(Text::Forever)),
    Element::new("script", ignored("script")),
    Element::new("source", Content::Markup),
    Element::new("style", Content::Style),
    Element::new("table", Content::Markup),
    Element::new("tbody", Content::Markup),
    Element::new("td", Content::Markup),
    Element::new("textarea", ignored("textarea")),
    Element::new("tfoot", Content::Markup),
    Element::new("th", Content::Markup),
    Element::new("thead", Content::Markup),
    Element::new("title", ignored("title")),
    Element::new("tr", Content::Markup),
    Element::new("track", Content::Markup),
    Element::new("use", Content::Markup),
    Element::new("video", Content::Markup),
    Element::new("xmp", ignored("xmp")),
]);

/// The element of this name, as written.
pub(super) fn of(name: &[u8]) -> &'static Element {
    // Most names are of no known element, and need no search then.
    if !names::may_matter(name) {
        return &ANY;
    }
    let is_it = |known: &&Element| known.name.as_bytes().eq_ignore_ascii_case(name);
    let known = KNOWN.binary_search_by_key(&key(name), |known| known.key).ok().and_then(|at| KNOWN.get(at));
    known.filter(is_it).unwrap_or(&ANY)
}

/// The first eight bytes of a name as a number, so that one comparison tells nearly all names apart. Letters of both
/// cases are the same; so are a few signs.
const fn key(name: &[u8]) -> u64 {
    let mut key = 0;
    let mut rest = name;
    let mut bytes = 0;
    while let [first, behind @ ..] = rest
        && bytes < 8
    {
        key = key << 8 | (*first | 0x20) as u64;
        rest = behind;
        bytes += 1;
    }
    key
}

const fn ignored(name: &'static str) -> Content {
    Content::Ignored(Text::Until { name, told: false })
}

impl Element {
    const fn new(name: &'static str, content: Content) -> Self {
        let is_about_page = same(name, "base") || same(name, "meta");
        Self { name, key: key(name.as_bytes()), places: places_of(name), content, is_about_page }
    }
}

/// The rows of one element: they stand together in the table.
const fn places_of(name: &str) -> &'static [Place] {
    let mut rows = PLACES;
    while let [first, behind @ ..] = rows {
        if same(first.element, name) {
            break;
        }
        rows = behind;
    }
    let mut count = 0;
    let mut rest = rows;
    while let [first, behind @ ..] = rest {
        if !same(first.element, name) {
            break;
        }
        rest = behind;
        count += 1;
    }
    rows.split_at(count).0
}

const fn same(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    while let ([first, rest @ ..], [other_first, other_rest @ ..]) = (one, other) {
        if *first != *other_first {
            return false;
        }
        (one, other) = (rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn sorted<const N: usize>(mut elements: [Element; N]) -> [Element; N] {
    let mut end = 1;
    while end < N {
        let mut at = end;
        while at > 0 && elements[at].key < elements[at - 1].key {
            elements.swap(at, at - 1);
            at -= 1;
        }
        end += 1;
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_reached_by_its_elements_name() {
        for place in PLACES {
            let places = of(place.element.to_ascii_uppercase().as_bytes()).places;
            let is_it = |reached: &&Place| (reached.element, reached.attribute) == (place.element, place.attribute);
            assert_eq!(places.iter().filter(is_it).count(), 1, "{place:?}");
        }
    }

    #[test]
    fn every_known_element_is_known_by_its_name_and_by_no_other() {
        for known in &KNOWN {
            assert_eq!(of(known.name.to_ascii_uppercase().as_bytes()).name, known.name);
            assert_eq!(of(format!("{}x", known.name).as_bytes()).name, "");
            assert_eq!(of(&known.name.as_bytes()[..known.name.len() - 1]).name, "");
        }
        for name in ["", "div", "plaintexx", "averylongelementname", "im\u{47}", "[mg"] {
            let wanted = if name == "imG" { "img" } else { "" };
            assert_eq!(of(name.as_bytes()).name, wanted, "{name}");
        }
        assert!(of(b"div").places.is_empty());
    }
}
