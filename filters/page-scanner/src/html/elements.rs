//! Facts about an element that follow from its name alone.

use crate::markup::tag::bits;
use crate::places::{PLACES, Place};

/// Elements whose content is not markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// Ends at an end tag of this name; of interest or not.
    Until { name: &'static str, told: bool },
    /// The same, of interest, but any tag ends it: an element of SVG, whose text is only text.
    UntilMarkup,
    /// Never ends (`plaintext`).
    Forever,
}

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

/// The part that an element has in how those around it are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    None,
    Svg,
    Math,
    Template,
}

/// One kind of element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element {
    pub(super) name: &'static str,
    /// See [`key`].
    key: u64,
    pub(super) role: Role,
    /// Places where URLs can stand.
    pub(super) places: &'static [Place],
    /// The bits of the attributes of these places, and of `style`.
    pub(super) attributes: u64,
    pub(super) content: Content,
    /// Says something about the page as a whole: `base` and `meta`.
    pub(super) is_about_page: bool,
}

/// The entry of most elements.
static ANY: Element = NOTHING;
const NOTHING: Element = Element::new("", Content::Markup);

/// Elements with something else to know of them than places. Those of `PLACES` alone have no row here.
const SPECIAL: &[(&str, Content)] = &[
    ("base", Content::Markup),
    ("iframe", ignored("iframe")),
    ("math", Content::Markup),
    ("meta", Content::Markup),
    ("noembed", ignored("noembed")),
    ("noframes", ignored("noframes")),
    ("noscript", Content::Noscript),
    ("plaintext", Content::Ignored(Text::Forever)),
    ("script", ignored("script")),
    ("style", Content::Style),
    ("svg", Content::Markup),
    ("template", Content::Markup),
    ("textarea", ignored("textarea")),
    ("title", ignored("title")),
    ("xmp", ignored("xmp")),
];

/// The elements of [`SPECIAL`] and of `PLACES`, in the order of their keys.
pub(super) static KNOWN: [Element; COUNT] = sorted(known().0);
const COUNT: usize = known::<0>().1;

/// Returns the first elements, and the number of all.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn known<const N: usize>() -> ([Element; N], usize) {
    let (mut elements, mut count) = ([NOTHING; N], 0);
    while count < SPECIAL.len() {
        if count < N {
            elements[count] = Element::new(SPECIAL[count].0, SPECIAL[count].1);
        }
        count += 1;
    }
    let (mut rows, mut before) = (PLACES, "");
    while let [Place { element, .. }, behind @ ..] = rows {
        if !same(element, before) && !is_special(element) {
            if count < N {
                elements[count] = Element::new(element, Content::Markup);
            }
            count += 1;
        }
        (rows, before) = (behind, element);
    }
    (elements, count)
}

const fn is_special(name: &str) -> bool {
    let mut rest = SPECIAL;
    while let [(special, _), behind @ ..] = rest {
        if same(special, name) {
            return true;
        }
        rest = behind;
    }
    false
}

/// The element of this name, as written.
pub(super) fn of(name: &[u8]) -> &'static Element {
    let key = key(name);
    let known = KNOWN.binary_search_by(|known| known.key.cmp(&key)).ok().and_then(|at| KNOWN.get(at));
    // Of a name that fits into it, the key tells everything: its letters differ from all other bytes in more than one bit.
    known
        .filter(|known| {
            known.name.len() <= KEY_BYTES && name.len() <= KEY_BYTES || name.eq_ignore_ascii_case(known.name.as_bytes())
        })
        .unwrap_or(&ANY)
}

/// How many bytes of a name its key has.
const KEY_BYTES: usize = 8;

/// The first eight bytes of a name as a number, so that one comparison tells nearly all names apart. Letters of both
/// cases are the same; so are a few signs.
#[inline]
const fn key(name: &[u8]) -> u64 {
    const LOWER: u64 = 0x2020_2020_2020_2020;
    if let Some(start) = name.first_chunk() {
        return u64::from_le_bytes(*start) | LOWER;
    }
    // The two words may overlap.
    let length = name.len();
    let bytes = if let (Some(start), Some(end)) = (name.first_chunk(), name.last_chunk()) {
        u32::from_le_bytes(*start) as u64 | (u32::from_le_bytes(*end) as u64) << (8 * (length - 4))
    } else {
        match name {
            [first] => *first as u64,
            [first, second] => u16::from_le_bytes([*first, *second]) as u64,
            [first, second, third] => u32::from_le_bytes([*first, *second, *third, 0]) as u64,
            _ => return 0,
        }
    };
    bytes | LOWER >> (8 * (KEY_BYTES - length))
}

const fn ignored(name: &'static str) -> Content {
    Content::Ignored(Text::Until { name, told: false })
}

impl Element {
    const fn new(name: &'static str, content: Content) -> Self {
        let is_about_page = same(name, "base") || same(name, "meta");
        let places = places_of(name);
        let mut attributes = bits(&["style"]);
        let mut rest = places;
        while let [place, behind @ ..] = rest {
            attributes |= bits(&[place.attribute]);
            rest = behind;
        }
        Self { name, key: key(name.as_bytes()), role: Role::of(name), places, attributes, content, is_about_page }
    }

    /// Returns true if nothing is known of this element.
    pub(super) fn is_any(&self) -> bool {
        self.name.is_empty()
    }
}

impl Role {
    const fn of(name: &str) -> Self {
        match name.as_bytes() {
            b"svg" => Self::Svg,
            b"math" => Self::Math,
            b"template" => Self::Template,
            _ => Self::None,
        }
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
        assert!(KNOWN.is_sorted_by(|one, next| one.key < next.key), "an element stands twice");
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
