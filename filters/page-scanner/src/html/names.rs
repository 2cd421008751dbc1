//! Tells names of no interest by their first letter and length. Most names need no comparison then.

use super::tag_end::ends_name;
use crate::places::PLACES;

/// Elements that are of interest for another reason than a place of a URL. Their content is not markup, or is of another
/// language, or they say something about the page.
const OTHERS: [&str; 15] = [
    "style",
    "noscript",
    "title",
    "textarea",
    "xmp",
    "noembed",
    "noframes",
    "plaintext",
    "base",
    "meta",
    "template",
    "svg",
    "math",
    "script",
    "frameset",
];

/// For each letter the lengths of names that begin with it, as bits.
static LENGTHS: [u16; 26] = {
    let mut lengths = [0; 26];
    let mut places = PLACES;
    while let [place, rest @ ..] = places {
        lengths = with(lengths, place.element);
        places = rest;
    }
    let mut others: &[&str] = &OTHERS;
    while let [name, rest @ ..] = others {
        lengths = with(lengths, name);
        others = rest;
    }
    lengths
};

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn with(mut lengths: [u16; 26], name: &str) -> [u16; 26] {
    let bytes = name.as_bytes();
    lengths[(bytes[0] - b'a') as usize] |= 1 << bytes.len();
    lengths
}

/// False if `tag`, which begins with a letter, has no name of interest: no name ends where one of interest with this letter
/// would. Of end tags, only those are of interest that are counted.
#[inline]
pub(super) fn may_begin(tag: &[u8], closing: bool) -> bool {
    let Some(first) = tag.first().map(|first| first | 0x20) else { return false };
    if closing && !matches!(first, b's' | b'm' | b't') {
        return false;
    }
    let mut lengths = LENGTHS.get(usize::from(first.wrapping_sub(b'a'))).copied().unwrap_or_default();
    while lengths != 0 {
        if tag.get(lengths.trailing_zeros() as usize).is_none_or(|&byte| ends_name(byte)) {
            return true;
        }
        lengths &= lengths - 1;
    }
    false
}

/// False for most names that are of no interest and for none that is.
#[inline]
pub(super) fn may_matter(name: &[u8]) -> bool {
    let Some(first) = name.first() else { return false };
    let letter = (first | 0x20).wrapping_sub(b'a');
    let lengths = LENGTHS.get(usize::from(letter)).copied().unwrap_or_default();
    name.len() < 16 && lengths >> name.len() & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_element_of_interest_is_overlooked() {
        for name in OTHERS.into_iter().chain(PLACES.iter().map(|place| place.element)) {
            assert!(may_matter(name.as_bytes()), "{name}");
            assert!(may_matter(name.to_ascii_uppercase().as_bytes()), "{name}");
            for behind in ["", ">", " a", "/", "\n"] {
                assert!(may_begin(format!("{}{behind}", name.to_ascii_uppercase()).as_bytes(), false), "{name}");
            }
        }
    }

    #[test]
    fn no_end_tag_that_is_counted_is_overlooked() {
        for name in ["svg", "math", "template", "SVG", "MATH", "TEMPLATE"] {
            assert!(may_begin(format!("{name}>").as_bytes(), true), "{name}");
        }
        assert!(!may_begin(b"img>", true) && !may_begin(b"div>", false) && !may_begin(b"titles and more>", true));
    }

    #[test]
    fn the_most_usual_elements_are_of_none() {
        for name in ["a", "p", "div", "span", "ul", "li", "h1", "br", "b", "form", "label", "", "a-long-name-of-ours"] {
            assert!(!may_matter(name.as_bytes()), "{name}");
        }
    }
}
