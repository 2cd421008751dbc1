//! What is known about a page so far, and what to do with each tag.

use std::ops::Range;

use url_mapping::Reason;

use super::attributes::Attribute;
use super::tag::Tag;
use super::value;
use crate::bail_out::BailOut;
use crate::char_refs;
use crate::charset::{Charset, label_in_content};
use crate::css;
use crate::css::stream::{SheetUrl, Stream};
use crate::ledger::Ledger;
use crate::patch::Patch;
use crate::places::{self, Place, STYLE_ATTRIBUTE, STYLE_ELEMENT};
use crate::rules;

/// The namespace an element is in, as far as places differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespace {
    Html,
    Svg,
    Other,
}

/// A page on its way through.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) patch: Patch,
    pub(super) ledger: Ledger,
    pub(super) charset: Charset,
    pub(super) stopped: Option<BailOut>,
    /// How far the parser is done with the input.
    parsed: usize,
    base_seen: bool,
    style: Option<Style>,
    found: Vec<SheetUrl>,
}

/// The text of a `style` element, being read.
#[derive(Debug)]
struct Style {
    stream: Stream,
    /// Where the text begins.
    start: usize,
}

impl Page {
    pub(super) fn new(ledger: Ledger, charset: Charset) -> Self {
        Self {
            patch: Patch::default(),
            ledger,
            charset,
            stopped: None,
            parsed: 0,
            base_seen: false,
            style: None,
            found: Vec::new(),
        }
    }

    /// The longest piece of markup that is held back to be looked at whole, in bytes. The parser needs about twice as
    /// much again for its own copy.
    pub(super) fn longest_markup(&self) -> usize {
        self.ledger.plan.limits().page_memory_bytes / 4
    }

    /// Up to where the input may leave.
    pub(super) fn certain(&self) -> usize {
        self.parsed - self.style.as_ref().map_or(0, |style| style.stream.held()).min(self.parsed)
    }

    /// How much of the input the parser has taken and not decided about.
    pub(super) fn undecided(&self) -> usize {
        self.patch.end() - self.parsed
    }

    /// The parser is done with the next `count` bytes.
    pub(super) fn parsed(&mut self, count: usize) {
        let end = self.parsed + count;
        if let Some(mut style) = self.style.take() {
            let from = self.parsed.max(style.start);
            if from < end {
                let text = self.patch.bytes(from..end);
                if style.stream.push(text, &mut |url| self.found.push(url)).is_err() {
                    self.stopped = Some(BailOut::CssToken);
                }
                self.patch_style(style.start);
            }
            self.style = Some(style);
        }
        self.parsed = end;
    }

    /// The end of a `style` element, or of the page.
    pub(super) fn end_of_style(&mut self) {
        if let Some(mut style) = self.style.take() {
            if style.stream.finish(&mut |url| self.found.push(url)).is_err() {
                self.stopped = Some(BailOut::CssToken);
            }
            self.patch_style(style.start);
        }
    }

    fn patch_style(&mut self, start: usize) {
        for url in self.found.drain(..) {
            let range = start + url.range.start..start + url.range.end;
            let moved = css::decide(
                &mut self.ledger,
                STYLE_ELEMENT,
                range.start,
                url.value.as_deref(),
                url.too_long,
                url.fetch,
            );
            if let Some(moved) = moved {
                self.patch.replace(range, css::write::escape(&moved).into_owned().into_bytes());
            }
        }
    }

    /// Looks at a start tag. Returns whether the page needs to know where the element ends.
    pub(super) fn start_tag(&mut self, range: Range<usize>, namespace: Namespace) -> bool {
        if range.start != self.parsed {
            self.stopped = Some(BailOut::Parser);
            return false;
        }
        if range.len() > self.longest_markup() {
            self.stopped = Some(BailOut::Memory);
            return false;
        }
        // Edits borrow the page, so the tag is read from a copy; most tags that get here have a URL to look at.
        let bytes = self.patch.bytes(range.clone()).to_vec();
        let tag = Tag::read(&bytes);
        if namespace == Namespace::Html {
            self.page_facts(&tag);
        }
        let mut edits: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
        let places = match namespace {
            Namespace::Html => places::HTML,
            Namespace::Svg => places::SVG,
            Namespace::Other => &[],
        };
        for place in places.iter().filter(|place| tag.is(place.element)) {
            if let Some(attribute) = tag.get(place.attribute) {
                self.place(place, &tag, attribute, range.start, &mut edits);
            }
        }
        if let Some(attribute) = tag.get("style") {
            self.style_attribute(attribute, range.start, &mut edits);
        }
        edits.sort_by_key(|(range, _)| range.start);
        for (range, with) in edits {
            self.patch.replace(range, with);
        }
        if self.patch.growth() > self.ledger.plan.limits().output_growth_bytes {
            self.stopped = Some(BailOut::Growth);
        }
        if namespace == Namespace::Html && tag.is("style") {
            self.start_style(&tag, range.end);
            return true;
        }
        false
    }

    /// What a tag says about the page as a whole.
    fn page_facts(&mut self, tag: &Tag<'_>) {
        if tag.is("base") {
            if let Some(href) = tag.get("href").filter(|_| !self.base_seen) {
                self.base_seen = true;
                if let Ok(text) = self.charset.read(href.value) {
                    self.ledger.base = self.ledger.base.with_href(&value::decoded(text));
                }
            }
        } else if tag.is("meta") {
            if let Some(label) = tag.get("charset") {
                self.charset.meta(label.value);
            } else if tag.says("http-equiv", "content-type")
                && let Some(label) = tag.get("content").and_then(|content| label_in_content(content.value))
            {
                self.charset.meta(label);
            }
            if !self.charset.is_ascii_compatible() {
                self.stopped = Some(BailOut::Encoding);
            }
        }
    }

    fn place(
        &mut self,
        place: &'static Place,
        tag: &Tag<'_>,
        attribute: &Attribute<'_>,
        tag_start: usize,
        edits: &mut Vec<(Range<usize>, Vec<u8>)>,
    ) {
        let offset = tag_start + attribute.range.start;
        let verdict = rules::verdict(place, tag);
        let Ok(text) = self.charset.read(attribute.value) else {
            self.ledger.leave(place, offset, "", Reason::Encoding);
            return;
        };
        if let Some(changed) = value::rewrite(&mut self.ledger, place, offset, &value::decoded(text), verdict) {
            edits.push(self.edit(attribute, tag_start, &changed));
        }
    }

    fn style_attribute(
        &mut self,
        attribute: &Attribute<'_>,
        tag_start: usize,
        edits: &mut Vec<(Range<usize>, Vec<u8>)>,
    ) {
        let offset = tag_start + attribute.range.start;
        let Ok(text) = self.charset.read(attribute.value) else {
            if css::may_hold_url(attribute.value) {
                self.ledger.leave(STYLE_ATTRIBUTE, offset, "", Reason::Encoding);
            }
            return;
        };
        if let Some(changed) = value::declarations(&mut self.ledger, offset, &value::decoded(text)) {
            edits.push(self.edit(attribute, tag_start, &changed));
        }
    }

    fn edit(&self, attribute: &Attribute<'_>, tag_start: usize, changed: &str) -> (Range<usize>, Vec<u8>) {
        let range = tag_start + attribute.range.start..tag_start + attribute.range.end;
        let written = char_refs::encode(changed, attribute.quote);
        (range, self.charset.write(&written).into_owned())
    }

    fn start_style(&mut self, tag: &Tag<'_>, start: usize) {
        let is_css =
            tag.get("type").is_none_or(|kind| kind.value.is_empty() || kind.value.eq_ignore_ascii_case(b"text/css"));
        if is_css {
            let encoding = self.charset.encoding().unwrap_or(encoding_rs::UTF_8);
            let stream = Stream::new(encoding, self.ledger.plan.limits().url_bytes);
            self.style = Some(Style { stream, start });
        }
    }
}
