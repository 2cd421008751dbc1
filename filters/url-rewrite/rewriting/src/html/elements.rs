//! What the name of an element says, before anything else of its tag is read.

use super::raw_text::Text;
use crate::places::{self, Place};

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
    /// Places where URLs can stand.
    pub(super) places: &'static [Place],
    pub(super) content: Content,
    /// Says something about the page as a whole: `base` and `meta`.
    pub(super) is_about_page: bool,
}

/// The element of this name, as written.
pub(super) fn of(name: &[u8]) -> Element {
    let until = |name| Content::Ignored(Text::Until { name, told: false });
    let mut lower = [0; 9];
    let lower = match lower.get_mut(..name.len()) {
        Some(lower) => {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            &*lower
        }
        // No element of interest has such a long name.
        None => &[],
    };
    let places = match lower {
        // Asked first, because most elements are none of these.
        b"img" | b"source" | b"input" | b"video" | b"audio" | b"track" | b"script" | b"link" | b"body" | b"table"
        | b"thead" | b"tbody" | b"tfoot" | b"tr" | b"td" | b"th" | b"iframe" | b"frame" | b"embed" | b"object"
        | b"image" | b"feimage" | b"use" => places::of_element(lower),
        _ => &[],
    };
    let content = match lower {
        b"script" => until("script"),
        b"style" => Content::Style,
        b"noscript" => Content::Noscript,
        b"title" => until("title"),
        b"textarea" => until("textarea"),
        b"iframe" => until("iframe"),
        b"xmp" => until("xmp"),
        b"noembed" => until("noembed"),
        b"noframes" => until("noframes"),
        b"plaintext" => Content::Ignored(Text::Forever),
        _ => Content::Markup,
    };
    Element { places, content, is_about_page: matches!(lower, b"base" | b"meta") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_reached_by_its_elements_name() {
        for place in places::PLACES {
            let places = of(place.element.to_ascii_uppercase().as_bytes()).places;
            assert!(places.iter().any(|reached| std::ptr::eq(reached, place)), "{place:?}");
        }
        assert!(of(b"div").places.is_empty());
        assert!(of(b"averylongelementname").places.is_empty());
    }
}
