//! What is known about a page so far, and what becomes of each tag.

use std::ops::Range;

use super::elements::Element;
use super::rules;
use super::value::{Edit, Value};
use crate::bail_out::BailOut;
use crate::charset::{Charset, label_in_content};
use crate::css;
use crate::css::stream::{SheetUrl, Stream};
use crate::ledger::Ledger;
use crate::markup::attributes::Attribute;
use crate::markup::tag::Tag;
use crate::patch::Patch;
use crate::places::{self, META_REFRESH, Place, STYLE_ELEMENT};
use crate::substitute::{Surroundings, TagContext};
use url_mapping::{Reason, Use};

/// Where a tag stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) in_svg: bool,
    pub(super) in_template: bool,
    pub(super) in_noscript: bool,
    /// What else decides whether an element with the object's own text could stand there.
    pub(super) surroundings: Surroundings,
}

/// A page on its way through.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) patch: Patch,
    pub(super) ledger: Ledger,
    pub(super) charset: Charset,
    base_seen: bool,
    found: Vec<SheetUrl>,
    edits: Vec<Edit>,
}

impl Page {
    pub(super) fn new(ledger: Ledger, charset: Charset) -> Self {
        Self {
            patch: Patch::new(ledger.plan.limits().output_growth_bytes),
            ledger,
            charset,
            base_seen: false,
            found: Vec::new(),
            edits: Vec::new(),
        }
    }

    /// The longest piece of markup that is held back to be looked at whole, in bytes.
    pub(super) fn longest_markup(&self) -> usize {
        self.ledger.plan.limits().page_memory_bytes / 4
    }

    /// Whether markup in a text is read, if that many texts are around it.
    pub(super) fn follows_markup_inside(&self, depth: usize) -> bool {
        depth < self.ledger.plan.limits().nesting
    }

    /// Decides what a tag holds.
    pub(super) fn look_at(
        &mut self,
        range: Range<usize>,
        name_length: usize,
        element: &Element,
        context: Context,
    ) -> Result<(), BailOut> {
        let tag = Tag::read(self.patch.bytes(range.clone()), name_length);
        if element.is_about_page {
            about_page(
                &tag,
                range.start,
                context,
                &mut self.ledger,
                &mut self.charset,
                &mut self.base_seen,
                &mut self.edits,
            );
        }
        let out_of_sight = context.in_template || context.in_noscript;
        let verdict = |place, tag: &Tag<'_>| rules::verdict(place, tag).map(|ask| ask.out_of_sight(out_of_sight));
        for attribute in tag.attributes() {
            let place = element.places.iter().find(|place| attribute.is(place.attribute));
            // Browsers drop all but the first attribute of a name.
            let first = |name| tag.get(name).is_some_and(|first: &Attribute<'_>| first.range == attribute.range);
            if let Some(place) = place.filter(|place| first(place.attribute)) {
                let value = Value::read(self.charset, attribute, range.start);
                let around = TagContext { tag: &tag, charset: self.charset, surroundings: context.surroundings };
                let verdict = match verdict(place, &tag) {
                    // What in HTML is an old name of `img` has its URL in `href` in SVG.
                    Ok(_) if context.in_svg && place.is_of_html_image() => Err(Reason::NotFetched),
                    // Browsers fetch icons late, and then a `base` that stands behind them counts.
                    Ok(ask) if ask.usage == Use::Icon && !self.base_seen && !names_host(&value.text()) => {
                        Err(Reason::LinkRel)
                    }
                    verdict => verdict,
                };
                let element = value.urls(&mut self.ledger, place, verdict, Some(&around), &mut self.edits);
                if let Some(element) = element {
                    // Nothing else of such a tag changes.
                    self.edits.push((range.clone(), element));
                    break;
                }
            } else if context.in_svg
                && let Some(place) = presentation(attribute).filter(|place| first(place.attribute))
            {
                let value = Value::read(self.charset, attribute, range.start);
                value.urls(&mut self.ledger, place, verdict(place, &tag), None, &mut self.edits);
            } else if attribute.is("style") && first("style") {
                let value = Value::read(self.charset, attribute, range.start);
                value.declarations(&mut self.ledger, &mut self.edits);
            }
        }
        for (range, with) in self.edits.drain(..) {
            self.patch.replace(range, with);
        }
        self.go_on()
    }

    /// Whether it matters what comes behind the start tag of a script: where the script's own text could stand there.
    pub(super) fn waits_behind_script(&self) -> bool {
        self.ledger.substitute.is_some()
    }

    /// The reader of a `style` element's text, if that is CSS. `tag`: its start tag.
    pub(super) fn style_sheet(&self, tag: &Range<usize>, name_length: usize) -> Option<Box<Stream>> {
        let tag = Tag::read(self.patch.bytes(tag.clone()), name_length);
        let is_css = tag.get("type").is_none_or(|_| tag.says("type", "") || tag.says("type", "text/css"));
        is_css.then(|| Box::new(Stream::new(self.charset, self.ledger.plan.limits().url_bytes)))
    }

    /// Reads more of the text of a `style` element that began at `start`, or, without a range, its end.
    pub(super) fn read_sheet(
        &mut self,
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
                self.ledger.leave(STYLE_ELEMENT, range.start, Reason::Encoding);
                continue;
            }
            css::patch(&mut self.ledger, &mut self.patch, self.charset, STYLE_ELEMENT, start, url);
        }
        self.go_on()
    }

    fn go_on(&self) -> Result<(), BailOut> {
        if !self.charset.is_ascii_compatible() {
            Err(BailOut::Encoding)
        } else if self.patch.is_full() {
            Err(BailOut::Growth)
        } else {
            Ok(())
        }
    }
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

/// `base` and `meta`: what they say holds from where they stand.
fn about_page(
    tag: &Tag<'_>,
    start: usize,
    context: Context,
    ledger: &mut Ledger,
    charset: &mut Charset,
    base_seen: &mut bool,
    edits: &mut Vec<Edit>,
) {
    if context.in_template {
        return;
    }
    if tag.is("base") {
        if let Some(href) = tag.get("href").filter(|_| !*base_seen && !context.in_svg) {
            *base_seen = true;
            let href = Value::read(*charset, href, start).text();
            let base = ledger.base.with_href(&href);
            if ledger.policies.permits_base(base.as_str()) {
                ledger.base = base;
            }
        }
        return;
    }
    if let Some(label) = tag.get("charset") {
        charset.meta(&label.text());
    }
    // A `charset` beside it does not switch `http-equiv` off.
    if let Some(content) = tag.get("content") {
        if tag.says("http-equiv", "content-type") {
            if let Some(label) = label_in_content(&content.text()).filter(|_| tag.get("charset").is_none()) {
                charset.meta(label);
            }
        } else if tag.says("http-equiv", "content-security-policy") {
            Value::read(*charset, content, start).policy(ledger, edits);
        } else if tag.says("http-equiv", "refresh") {
            let verdict = rules::verdict(META_REFRESH, tag);
            Value::read(*charset, content, start).urls(ledger, META_REFRESH, verdict, None, edits);
        }
    }
}
