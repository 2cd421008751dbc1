//! The tags that an element with the object's own text can replace.
//!
//! | tag | attributes it may have | becomes |
//! |---|---|---|
//! | `link` of a style sheet, in the head | `rel=stylesheet`, `href`, `type=text/css`, `media` | `<style media=...>TEXT</style>` |
//! | `script`, with nothing but white space inside | `src`, `type` | `<script type=...>TEXT`, and the end tag that is there |
//!
//! Any other attribute (`id`, `title`, `async`, `nonce`, `data-*`, ...) means something that the new element would not
//! mean, or that scripts may look for.

use page_scanner::Surroundings;
use page_scanner::markup::{Attribute, Quote, Tag};

use super::NotInlined;

/// The markup around the text of an object that replaces its tag.
#[derive(Debug)]
pub(super) struct Element {
    start: Vec<u8>,
    end: &'static str,
}

impl Element {
    /// Makes the element that replaces a `link` or a `script`.
    pub(super) fn of(tag: &Tag<'_>, surroundings: Surroundings) -> Result<Self, NotInlined> {
        if tag.is("script") { script(tag, surroundings) } else { sheet(tag, surroundings) }
    }

    /// Returns the markup with `text` in it.
    pub(super) fn around(&self, text: &str) -> Vec<u8> {
        [&self.start, text.as_bytes(), self.end.as_bytes()].concat()
    }

    /// Returns the length of that markup for a text of so many bytes.
    pub(super) fn bytes(&self, text_bytes: usize) -> usize {
        self.start.len() + text_bytes + self.end.len()
    }
}

fn sheet(tag: &Tag<'_>, surroundings: Surroundings) -> Result<Element, NotInlined> {
    let plain = tag.text("rel").trim_ascii().eq_ignore_ascii_case(b"stylesheet")
        && tag.get("type").is_none_or(|_| tag.says("type", "text/css"))
        && has_only(tag, &["rel", "href", "type", "media"]);
    if !plain {
        return Err(NotInlined::Attributes);
    }
    if !surroundings.in_head || !surroundings.only_html {
        return Err(NotInlined::Place);
    }
    Ok(Element { start: start(b"<style", tag.get("media").as_ref()), end: "</style>" })
}

fn script(tag: &Tag<'_>, surroundings: Surroundings) -> Result<Element, NotInlined> {
    if !has_only(tag, &["src", "type"]) {
        return Err(NotInlined::Attributes);
    }
    if !surroundings.only_html {
        return Err(NotInlined::Place);
    }
    if !surroundings.is_empty {
        return Err(NotInlined::Content);
    }
    Ok(Element { start: start(b"<script", tag.get("type").as_ref()), end: "" })
}

/// Returns true if a tag has each of these attributes at most once, and no other.
fn has_only(tag: &Tag<'_>, names: &[&str]) -> bool {
    let known = tag.attributes().all(|attribute| names.iter().any(|name| attribute.is(name)));
    known && names.iter().all(|name| tag.attributes().filter(|attribute| attribute.is(name)).count() <= 1)
}

/// Returns a start tag with this attribute as written.
fn start(name: &[u8], attribute: Option<&Attribute<'_>>) -> Vec<u8> {
    let mut tag = name.to_vec();
    if let Some(Attribute { name, value, quote, .. }) = attribute {
        let quote: &[u8] = match quote {
            Quote::Double => b"\"",
            Quote::Single => b"'",
            Quote::None => b"",
        };
        let sign: &[u8] = if value.is_empty() && quote.is_empty() { b"" } else { b"=" };
        tag.extend([b" ", *name, sign, quote, value, quote].concat());
    }
    tag.push(b'>');
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYWHERE: Surroundings = Surroundings { in_head: true, only_html: true, is_empty: true };

    fn of(tag: &str, surroundings: Surroundings) -> Result<String, NotInlined> {
        let name = tag.bytes().skip(1).take_while(u8::is_ascii_alphabetic).count();
        let element = Element::of(&Tag::read(tag.as_bytes(), name), surroundings)?;
        let made = element.around("x");
        assert_eq!(made.len(), element.bytes(1));
        Ok(String::from_utf8(made).unwrap())
    }

    #[test]
    fn a_plain_tag_becomes_an_element_of_its_text() {
        for (tag, element) in [
            ("<link rel=stylesheet href=a>", "<style>x</style>"),
            ("<LINK REL=' StyleSheet' type=\"text/css\" href='a' />", "<style>x</style>"),
            ("<link rel=stylesheet href=a media=\"screen\">", "<style media=\"screen\">x</style>"),
            ("<link rel=stylesheet media=all href=a>", "<style media=all>x</style>"),
            ("<link rel=stylesheet media href=a>", "<style media>x</style>"),
            ("<script src=a>", "<script>x"),
            ("<script type='text/javascript' src=a>", "<script type='text/javascript'>x"),
            ("<script type=\"\" src=a>", "<script type=\"\">x"),
        ] {
            assert_eq!(of(tag, ANYWHERE).as_deref(), Ok(element), "{tag}");
        }
    }

    #[test]
    fn a_tag_that_says_more_is_left_alone() {
        for tag in [
            "<link rel='stylesheet preload' href=a>",
            "<link rel=stylesheet href=a type=text/less>",
            "<link href=a>",
            "<link rel=stylesheet href=a href=b>",
        ] {
            assert_eq!(of(tag, ANYWHERE), Err(NotInlined::Attributes), "{tag}");
        }
        for more in
            ["id=a", "class=a", "title=a", "integrity=a", "crossorigin", "disabled", "onload=a", "data-a", "nonce=a"]
        {
            for tag in [format!("<link rel=stylesheet href=a {more}>"), format!("<script src=a {more}>")] {
                assert_eq!(of(&tag, ANYWHERE), Err(NotInlined::Attributes), "{tag}");
            }
        }
        for more in ["async", "defer", "nomodule", "charset=utf-8", "language=javascript", "fetchpriority=low"] {
            assert_eq!(of(&format!("<script src=a {more}>"), ANYWHERE), Err(NotInlined::Attributes), "{more}");
        }
    }

    #[test]
    fn a_tag_in_the_wrong_place_is_left_alone() {
        let sheet = |surroundings| of("<link rel=stylesheet href=a>", surroundings);
        let script = |surroundings| of("<script src=a>", surroundings);
        let in_body = Surroundings { in_head: false, ..ANYWHERE };
        assert_eq!((sheet(in_body), script(in_body).is_ok()), (Err(NotInlined::Place), true));
        let foreign = Surroundings { only_html: false, ..ANYWHERE };
        assert_eq!((sheet(foreign), script(foreign)), (Err(NotInlined::Place), Err(NotInlined::Place)));
        assert_eq!(script(Surroundings { is_empty: false, ..ANYWHERE }), Err(NotInlined::Content));
    }
}
