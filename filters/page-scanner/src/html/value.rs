//! The value of one attribute: its URLs reported, and what changes brought back to the bytes of the page.

use std::borrow::Cow;
use std::ops::Range;

use url_mapping::Reason;

use crate::char_refs::Decoded;
use crate::char_refs::Quote;
use crate::charset::{self, Charset, Text};
use crate::css;
use crate::css::Fetch;
use crate::limits::Limits;
use crate::markup::attributes::Attribute;
use crate::places::{Place, STYLE_ATTRIBUTE, Syntax};
use crate::refresh;
use crate::srcset::{self, Candidates};
use crate::visitor::{LoadRequest, UrlReference, Visitor, ask};

/// A replacement in the body.
pub(super) type Edit = (Range<usize>, Vec<u8>);

/// One attribute's value on its way through.
#[derive(Debug)]
pub(super) struct Value<'v> {
    limits: &'v Limits,
    charset: Charset,
    quote: Quote,
    /// Where it stands in the body.
    range: Range<usize>,
    /// As written, but in Unicode.
    written: Text<'v>,
}

/// Changes of a value: ranges of its decoded text, in order, and their new texts.
type Changes = Vec<(Range<usize>, String)>;

impl<'v> Value<'v> {
    /// `tag_start`: where the attribute's tag begins in the body.
    pub(super) fn read(limits: &'v Limits, charset: Charset, attribute: &Attribute<'v>, tag_start: usize) -> Self {
        let range = tag_start + attribute.range.start..tag_start + attribute.range.end;
        Self { limits, charset, quote: attribute.quote, range, written: charset.read(attribute.value) }
    }

    /// Its text, character references decoded.
    pub(super) fn text(&self) -> String {
        Decoded::of(&self.written.text).text.into_owned()
    }

    /// Reports what stands in an attribute that holds URLs.
    pub(super) fn urls(
        &self,
        visitor: &mut dyn Visitor,
        place: &'static Place,
        request: Result<LoadRequest, Reason>,
        edits: &mut Vec<Edit>,
    ) {
        let decoded = Decoded::of(&self.written.text);
        if self.is_unreadable(&decoded) {
            visitor.unread(place, self.range.start, Reason::Encoding);
            return;
        }
        let changes = match place.syntax {
            Syntax::Url => self.url(visitor, place, request, &decoded.text).into_iter().collect(),
            Syntax::Srcset => self.candidates(visitor, place, request, &decoded.text),
            Syntax::Css => self.css_urls(visitor, place, |_| request, &decoded.text),
            Syntax::Refresh => {
                if let Some((_, url)) = refresh::target(&decoded.text) {
                    let reference = UrlReference { place, offset: self.range.start, url, request };
                    visitor.url(&reference, &mut |_| Err(Reason::Document));
                }
                Changes::new()
            }
            Syntax::Markup => {
                visitor.unread(place, self.range.start, Reason::Document);
                Changes::new()
            }
        };
        self.apply(&decoded, changes, edits);
    }

    /// Reports the URLs in a `style` attribute.
    pub(super) fn declarations(&self, visitor: &mut dyn Visitor, edits: &mut Vec<Edit>) {
        let decoded = Decoded::of(&self.written.text);
        if !css::may_hold_url(decoded.text.as_bytes()) {
            return;
        }
        if self.is_unreadable(&decoded) {
            visitor.unread(STYLE_ATTRIBUTE, self.range.start, Reason::Encoding);
            return;
        }
        let changes = self.css_urls(visitor, STYLE_ATTRIBUTE, css::load_request, &decoded.text);
        self.apply(&decoded, changes, edits);
    }

    /// A Content-Security-Policy, which holds from here on.
    pub(super) fn policy(&self, visitor: &mut dyn Visitor, edits: &mut Vec<Edit>) {
        let decoded = Decoded::of(&self.written.text);
        if self.written.opaque {
            visitor.policy(None);
            return;
        }
        let whole = 0..decoded.text.len();
        let changes = visitor.policy(Some(&decoded.text)).map(|text| (whole, text)).into_iter().collect();
        self.apply(&decoded, changes, edits);
    }

    /// The replacement of one URL, and where the URL stands in the text.
    fn url(
        &self,
        visitor: &mut dyn Visitor,
        place: &'static Place,
        request: Result<LoadRequest, Reason>,
        text: &str,
    ) -> Option<(Range<usize>, String)> {
        // Browsers drop these around a URL. They are not part of what moves, so they stay.
        let is_dropped = |character: char| character <= ' ';
        let start = text.len() - text.trim_start_matches(is_dropped).len();
        let url = text.trim_matches(is_dropped);
        let reference = UrlReference { place, offset: self.range.start, url, request };
        let moved = visitor.url(&reference, &mut |moved| self.fits(url, moved))?;
        Some((start..start + url.len(), moved))
    }

    fn candidates(
        &self,
        visitor: &mut dyn Visitor,
        place: &'static Place,
        request: Result<LoadRequest, Reason>,
        text: &str,
    ) -> Changes {
        let offset = self.range.start;
        if Candidates::of(text).nth(self.limits.srcset_candidates).is_some() {
            visitor.unread(place, offset, Reason::SrcsetLimit);
            return Changes::new();
        }
        let mut changes = Changes::new();
        for range in Candidates::of(text) {
            let url = text.get(range.clone()).unwrap_or_default();
            let reference = UrlReference { place, offset, url, request };
            let moved = visitor.url(&reference, &mut |moved| {
                self.fits(url, moved)?;
                if srcset::can_hold(moved) { Ok(()) } else { Err(Reason::Srcset) }
            });
            changes.extend(moved.map(|moved| (range, moved)));
        }
        changes
    }

    fn css_urls(
        &self,
        visitor: &mut dyn Visitor,
        place: &'static Place,
        request: impl Fn(Fetch) -> Result<LoadRequest, Reason>,
        text: &str,
    ) -> Changes {
        let offset = self.range.start;
        let mut found = Vec::new();
        let mut scanner = css::scanner::Scanner::new(self.limits.url_bytes);
        scanner.scan(text, 0, 0, true, &mut |url| found.push(url));
        let mut changes = Changes::new();
        for url in found {
            if let Some(reason) = url.unread {
                visitor.unread(place, offset, reason);
                continue;
            }
            let Some(reference) = text.get(url.token).and_then(css::scanner::value) else { continue };
            let reference = UrlReference { place, offset, url: &reference, request: request(url.fetch) };
            let original = text.get(url.range.clone()).unwrap_or_default();
            let moved =
                ask(visitor, &reference, |moved| self.fits(original, moved).map(|()| css::escape(moved).into_owned()));
            changes.extend(moved.map(|moved| (url.range, moved)));
        }
        changes
    }

    /// Returns true if its bytes look like characters that references stand for: neither could be written again.
    fn is_unreadable(&self, decoded: &Decoded<'_>) -> bool {
        self.written.opaque && !charset::keeps_opaque(&self.written.text, &decoded.text)
    }

    /// Returns true if a part of the value can become `changed`.
    fn fits(&self, original: &str, changed: &str) -> Result<(), Reason> {
        let fits = !self.written.opaque || charset::keeps_opaque(original, changed);
        if fits { Ok(()) } else { Err(Reason::Encoding) }
    }

    fn apply(&self, decoded: &Decoded<'_>, changes: Changes, edits: &mut Vec<Edit>) {
        let written = changes.into_iter().map(|(range, text)| decoded.replacement(range, text, self.quote));
        let whole = match &self.written.text {
            // The text is the bytes, so only what changes is replaced.
            Cow::Borrowed(_) => {
                let start = self.range.start;
                let moved = |range: Range<usize>| start + range.start..start + range.end;
                edits.extend(written.map(|(range, text)| (moved(range), self.charset.write(text, false))));
                return;
            }
            Cow::Owned(whole) => whole,
        };
        let mut text = String::new();
        let mut at = 0;
        for (range, with) in written {
            text.push_str(whole.get(at..range.start).unwrap_or_default());
            text.push_str(&with);
            at = range.end;
        }
        if at > 0 {
            text.push_str(whole.get(at..).unwrap_or_default());
            edits.push((self.range.clone(), self.charset.write(text, self.written.opaque)));
        }
    }
}
