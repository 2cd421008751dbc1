//! What is known about a page so far, and what to do with each tag.

use std::ops::Range;

use super::attributes::Attribute;
use super::tag::Tag;
use super::value::{Edit, Value};
use crate::bail_out::BailOut;
use crate::charset::{Charset, label_in_content};
use crate::css;
use crate::css::stream::{SheetUrl, Stream};
use crate::ledger::Ledger;
use crate::patch::Patch;
use crate::places::{self, STYLE_ELEMENT};
use crate::rules;

/// The namespace an element is in, as far as places differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespace {
    Html,
    Svg,
    Other,
}

/// An element whose end tag matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Style,
    Noscript,
    Template,
}

/// A page on its way through.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) patch: Patch,
    pub(super) ledger: Ledger,
    pub(super) charset: Charset,
    pub(super) stopped: Option<BailOut>,
    /// The parser of the page, and on it the ones of markup inside (`noscript`).
    readers: Vec<Reader>,
    templates: usize,
    base_seen: bool,
    found: Vec<SheetUrl>,
    edits: Vec<Edit>,
}

/// How far one parser is.
#[derive(Debug, Default)]
struct Reader {
    /// Where its input begins in the body.
    start: usize,
    /// Up to where in the body it is done.
    parsed: usize,
    style: Option<Style>,
    /// Where the text of a `noscript` begins that is being kept to be read as markup.
    noscript: Option<usize>,
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
            patch: Patch::new(ledger.plan.limits().output_growth_bytes),
            ledger,
            charset,
            stopped: None,
            readers: vec![Reader::default()],
            templates: 0,
            base_seen: false,
            found: Vec::new(),
            edits: Vec::new(),
        }
    }

    /// The longest piece of markup that is held back to be looked at whole, in bytes. The parser needs about twice as
    /// much again for its own copy.
    pub(super) fn longest_markup(&self) -> usize {
        self.ledger.plan.limits().page_memory_bytes / 4
    }

    /// Up to where the input may leave.
    pub(super) fn certain(&self) -> usize {
        let Some(reader) = self.readers.first() else { return 0 };
        let held = reader.style.as_ref().map_or(0, |style| style.stream.held());
        reader.parsed.saturating_sub(held).min(reader.noscript.unwrap_or(usize::MAX))
    }

    /// How much of the input the parser has taken and not decided about.
    pub(super) fn undecided(&self) -> usize {
        self.readers.first().map_or(0, |reader| self.patch.end().saturating_sub(reader.parsed))
    }

    /// A parser begins on markup inside the page's, at `start` of the body.
    pub(super) fn begin_inner(&mut self, start: usize) {
        self.readers.push(Reader { start, parsed: start, style: None, noscript: None });
    }

    /// The innermost parser is done. If it ended in a `noscript`, the text of that is still to be read.
    pub(super) fn end_inner(&mut self) -> Option<(usize, Vec<u8>)> {
        self.end_of_style();
        let open = self.end_of_noscript();
        if self.readers.len() > 1 {
            self.readers.pop();
        }
        open
    }

    /// The innermost parser is done with the next `count` bytes.
    pub(super) fn parsed(&mut self, count: usize) {
        let Some(reader) = self.readers.last_mut() else { return };
        let end = reader.parsed + count;
        let from = reader.parsed;
        reader.parsed = end;
        if let Some(style) = &mut reader.style
            && end > style.start
        {
            let start = style.start;
            let text = self.patch.bytes(from.max(start)..end);
            if style.stream.push(text, &mut |url| self.found.push(url)).is_err() {
                // No sheet that works holds such a name: the rest of this one stays as it is.
                reader.style = None;
            }
            self.patch_style(start);
        }
        let longest = self.longest_markup();
        if let Some(reader) = self.readers.last_mut()
            && reader.noscript.is_some_and(|start| end.saturating_sub(start) > longest)
        {
            // Longer than anything that is kept: it goes as it is.
            reader.noscript = None;
        }
    }

    /// The end of a `style` element, or of the text it is in.
    pub(super) fn end_of_style(&mut self) {
        if let Some(mut style) = self.readers.last_mut().and_then(|reader| reader.style.take()) {
            // A name too long to be read at the very end takes nothing with it.
            let _ = style.stream.finish(&mut |url| self.found.push(url));
            self.patch_style(style.start);
        }
    }

    /// The end of a `noscript` element: its text and where that stands, if it is to be read as markup.
    pub(super) fn end_of_noscript(&mut self) -> Option<(usize, Vec<u8>)> {
        let reader = self.readers.last_mut()?;
        let start = reader.noscript.take()?;
        let end = reader.parsed;
        let text = self.patch.bytes(start..end);
        // Without one of these there is neither an attribute nor a `url()`.
        memchr::memchr2(b'=', b'(', text)?;
        Some((start, text.to_vec()))
    }

    pub(super) fn end_of_template(&mut self) {
        self.templates = self.templates.saturating_sub(1);
    }

    fn patch_style(&mut self, start: usize) {
        for url in self.found.drain(..) {
            css::patch(&mut self.ledger, &mut self.patch, self.charset, STYLE_ELEMENT, start, url);
        }
        self.stop_if_full();
    }

    fn stop_if_full(&mut self) {
        if self.patch.is_full() {
            self.stopped = Some(BailOut::Growth);
        }
    }

    /// Looks at a start tag, at `range` of the innermost parser's input. Says whether it matters where the element ends.
    pub(super) fn start_tag(&mut self, range: Range<usize>, namespace: Namespace) -> Option<Ends> {
        let reader = self.readers.last()?;
        let range = reader.start + range.start..reader.start + range.end;
        if range.start != reader.parsed {
            self.stopped = Some(BailOut::Parser);
            return None;
        }
        if range.len() > self.longest_markup() {
            self.stopped = Some(BailOut::Memory);
            return None;
        }
        let mut edits = std::mem::take(&mut self.edits);
        let ends = self.look_at(range, namespace, &mut edits);
        for (range, with) in edits.drain(..) {
            self.patch.replace(range, with);
        }
        self.edits = edits;
        self.stop_if_full();
        ends
    }

    fn look_at(
        &mut self,
        range: Range<usize>,
        namespace: Namespace,
        edits: &mut Vec<Edit>,
    ) -> Option<Ends> {
        let tag = Tag::read(self.patch.bytes(range.clone()));
        if namespace == Namespace::Html {
            if tag.is("base") {
                if let Some(href) = tag.get("href").filter(|_| !self.base_seen && self.templates == 0) {
                    self.base_seen = true;
                    let href = Value::read(self.charset, href, range.start).text();
                    let base = self.ledger.base.with_href(&href);
                    if self.ledger.policies.permits_base(base.as_str()) {
                        self.ledger.base = base;
                    }
                }
            } else if tag.is("meta") {
                declare_charset(&tag, &mut self.charset);
                if !self.charset.is_ascii_compatible() {
                    self.stopped = Some(BailOut::Encoding);
                }
                if tag.says("http-equiv", "content-security-policy")
                    && let Some(content) = tag.get("content").filter(|_| self.templates == 0)
                {
                    Value::read(self.charset, content, range.start).policy(&mut self.ledger, edits);
                }
            }
        }
        let places = match namespace {
            Namespace::Html => places::of_element(places::HTML, tag.name),
            Namespace::Svg => places::of_element(places::SVG, tag.name),
            Namespace::Other => &[],
        };
        for attribute in tag.attributes() {
            let place = places.iter().find(|place| attribute.is(place.attribute));
            let is_style = attribute.is("style");
            // Browsers drop all but the first attribute of a name.
            let first = |attribute: &Attribute<'_>, name| tag.get(name).is_some_and(|first| first.range == attribute.range);
            if !place.map_or(is_style, |place| first(attribute, place.attribute)) {
                continue;
            }
            let value = Value::read(self.charset, attribute, range.start);
            match place {
                Some(place) => value.urls(&mut self.ledger, place, rules::verdict(place, &tag), edits),
                None if first(attribute, "style") => value.declarations(&mut self.ledger, edits),
                None => {}
            }
        }
        if namespace != Namespace::Html {
            return None;
        }
        if tag.is("style") {
            let is_css = tag.get("type").is_none_or(|_| tag.says("type", "") || tag.says("type", "text/css"));
            if is_css && let Some(reader) = self.readers.last_mut() {
                let stream = Stream::new(self.charset, self.ledger.plan.limits().url_bytes);
                reader.style = Some(Style { stream, start: range.end });
            }
            is_css.then_some(Ends::Style)
        } else if tag.is("noscript") {
            let depth = self.readers.len();
            let reader = self.readers.last_mut()?;
            if depth > self.ledger.plan.limits().nesting {
                return None;
            }
            reader.noscript = Some(range.end);
            Some(Ends::Noscript)
        } else if tag.is("template") {
            self.templates += 1;
            Some(Ends::Template)
        } else {
            None
        }
    }
}

/// `<meta charset>` and its older form.
fn declare_charset(tag: &Tag<'_>, charset: &mut Charset) {
    if let Some(label) = tag.get("charset") {
        charset.meta(label.value);
    } else if tag.says("http-equiv", "content-type")
        && let Some(label) = tag.get("content").and_then(|content| label_in_content(content.value))
    {
        charset.meta(label);
    }
}
