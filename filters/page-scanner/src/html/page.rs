//! Reads each tag and style sheet of a page, and reports their URLs.

use std::borrow::Cow;
use std::ops::Range;

use super::elements::Element;
use super::value::{Edit, Value};
use crate::bail_out::BailOut;
use crate::charset::{Charset, label_in_content};
use crate::css;
use crate::css::{SheetUrl, Stream};
use crate::limits::Limits;
use crate::markup::attributes::{Attribute, Span};
use crate::markup::tag::Tag;
use crate::patch::Patch;
use crate::places::{self, META_REFRESH, Place, STYLE_ELEMENT};
use crate::rules;
use crate::visitor::Visitor;
use url_mapping::{Reason, Use};

/// Where a tag stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) in_svg: bool,
    pub(super) in_template: bool,
    pub(super) in_noscript: bool,
}

/// A page on its way through.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) patch: Patch,
    pub(super) known: Known,
    found: Vec<SheetUrl>,
    edits: Vec<Edit>,
}

/// Facts about a page that hold for all that follows.
#[derive(Debug)]
pub(super) struct Known {
    limits: Limits,
    pub(super) charset: Charset,
    base_seen: bool,
}

impl Page {
    pub(super) fn new(limits: Limits, charset: Charset) -> Self {
        let patch = Patch::new(limits.output_growth_bytes);
        Self { patch, known: Known { limits, charset, base_seen: false }, found: Vec::new(), edits: Vec::new() }
    }

    /// The longest piece of markup that is held back to be looked at whole, in bytes.
    pub(super) fn longest_markup(&self) -> usize {
        self.known.limits.page_memory_bytes / 4
    }

    /// Returns true if markup in a text is read, if that many texts are around it.
    pub(super) fn follows_markup_inside(&self, depth: usize) -> bool {
        depth < self.known.limits.nesting
    }

    /// Reads a tag.
    pub(super) fn look_at(
        &mut self,
        visitor: &mut dyn Visitor,
        range: Range<usize>,
        name_length: usize,
        attributes: &[Span],
        element: &Element,
        context: Context,
    ) -> Result<(), BailOut> {
        let tag = Tag::of(self.patch.bytes(range.clone()), name_length, Cow::Borrowed(attributes));
        if element.is_about_page {
            self.known.learn(&tag, range.start, context, visitor, &mut self.edits);
        }
        if !context.in_svg && !tag.may_have(element.attributes) && self.edits.is_empty() {
            return self.go_on();
        }
        let out_of_sight = context.in_template || context.in_noscript;
        let request = |place| rules::load_request(place, &tag).map(|request| request.out_of_sight(out_of_sight));
        let known = &self.known;
        let wanted = if context.in_svg { u64::MAX } else { element.attributes };
        for attribute in tag.attributes_of(wanted) {
            let place = element.places.iter().find(|place| attribute.is(place.attribute));
            // Browsers drop all but the first attribute of a name.
            let first = |name| tag.get(name).is_some_and(|first| first.range == attribute.range);
            if let Some(place) = place.filter(|place| first(place.attribute)) {
                let value = known.value(&attribute, range.start);
                let request = match request(place) {
                    // What in HTML is an old name of `img` has its URL in `href` in SVG.
                    Ok(_) if context.in_svg && place.is_of_html_image() => Err(Reason::NotFetched),
                    // Browsers fetch icons late, and then a `base` that stands behind them counts.
                    Ok(load) if load.usage == Use::Icon && !known.base_seen && !names_host(&value.text()) => {
                        Err(Reason::LinkRel)
                    }
                    request => request,
                };
                if request == Err(Reason::LinkRel) && prepares_connection(&tag) {
                    visitor.hint(&value.text());
                }
                value.urls(visitor, place, request, &mut self.edits);
            } else if context.in_svg
                && let Some(place) = presentation(&attribute).filter(|place| first(place.attribute))
            {
                let value = known.value(&attribute, range.start);
                value.urls(visitor, place, request(place), &mut self.edits);
            } else if attribute.is("style") && first("style") {
                let value = known.value(&attribute, range.start);
                value.declarations(visitor, &mut self.edits);
            }
        }
        for (range, with) in self.edits.drain(..) {
            self.patch.replace(range, with);
        }
        self.go_on()
    }

    /// The reader of a `style` element's text, if that is CSS. `tag`: its start tag.
    pub(super) fn style_sheet(
        &self,
        tag: &Range<usize>,
        name_length: usize,
        attributes: &[Span],
    ) -> Option<Box<Stream>> {
        let tag = Tag::of(self.patch.bytes(tag.clone()), name_length, Cow::Borrowed(attributes));
        let is_css = tag.get("type").is_none_or(|_| tag.says("type", "") || tag.says("type", "text/css"));
        is_css.then(|| Box::new(Stream::new(self.known.charset, self.known.limits.url_bytes)))
    }

    /// Reads more of the text of a `style` element that began at `start`, or, without a range, its end.
    pub(super) fn read_sheet(
        &mut self,
        visitor: &mut dyn Visitor,
        stream: &mut Stream,
        start: usize,
        in_svg: bool,
        range: Option<Range<usize>>,
    ) -> Result<(), BailOut> {
        let mut tell = |url| self.found.push(url);
        match range {
            Some(range) => stream.push(self.patch.bytes(range), &mut tell),
            None => stream.finish(&mut tell),
        }
        for url in self.found.drain(..) {
            let range = start + url.range.start..start + url.range.end;
            if in_svg && memchr::memchr(b'&', self.patch.bytes(range.clone())).is_some() {
                // Only in SVG are there character references in a sheet.
                visitor.unread(STYLE_ELEMENT, range.start, Reason::Encoding);
                continue;
            }
            css::patch(visitor, &mut self.patch, self.known.charset, STYLE_ELEMENT, start, url);
        }
        self.go_on()
    }

    fn go_on(&self) -> Result<(), BailOut> {
        if !self.known.charset.is_ascii_compatible() {
            Err(BailOut::Encoding)
        } else if self.patch.is_full() {
            Err(BailOut::Growth)
        } else {
            Ok(())
        }
    }
}

/// Returns true for a link whose host browsers look up ahead of time.
fn prepares_connection(tag: &Tag<'_>) -> bool {
    tag.lists("rel", "preconnect") || tag.lists("rel", "dns-prefetch")
}

/// Returns true if a reference says its host, so that no `base` changes where it leads.
fn names_host(reference: &str) -> bool {
    let reference = reference.trim_start_matches(|character| character <= ' ');
    ["//", "http://", "https://"]
        .iter()
        .any(|start| reference.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)))
}

/// The place that an attribute is in SVG, if its value may hold a URL.
pub(super) fn presentation(attribute: &Attribute<'_>) -> Option<&'static Place> {
    let may = css::may_hold_url_written(attribute.value);
    places::PRESENTATION.iter().find(|place| may && attribute.is(place.attribute))
}

impl Known {
    fn value<'v>(&'v self, attribute: &Attribute<'v>, tag_start: usize) -> Value<'v> {
        Value::read(&self.limits, self.charset, attribute, tag_start)
    }

    /// `base` and `meta`: what they say holds from where they stand.
    fn learn(
        &mut self,
        tag: &Tag<'_>,
        start: usize,
        context: Context,
        visitor: &mut dyn Visitor,
        edits: &mut Vec<Edit>,
    ) {
        if context.in_template {
            return;
        }
        if tag.is("base") {
            if let Some(href) = tag.get("href").filter(|_| !self.base_seen && !context.in_svg) {
                self.base_seen = true;
                visitor.base(&self.value(&href, start).text());
            }
            return;
        }
        if let Some(label) = tag.get("charset") {
            self.charset.meta(&label.text());
        }
        // A `charset` beside it does not switch `http-equiv` off.
        if let Some(content) = tag.get("content") {
            if tag.says("http-equiv", "content-type") {
                if let Some(label) = label_in_content(&content.text()).filter(|_| tag.get("charset").is_none()) {
                    self.charset.meta(label);
                }
            } else if tag.says("http-equiv", "content-security-policy") {
                self.value(&content, start).policy(visitor, edits);
            } else if tag.says("http-equiv", "refresh") {
                let request = rules::load_request(META_REFRESH, tag);
                self.value(&content, start).urls(visitor, META_REFRESH, request, edits);
            }
        }
    }
}
