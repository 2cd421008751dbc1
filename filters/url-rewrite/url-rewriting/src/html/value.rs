//! The value of one attribute: its URLs decided, and what changes brought back to the bytes of the page.

use std::borrow::Cow;
use std::ops::Range;

use url_mapping::Reason;

use crate::char_refs::Decoded;
use crate::char_refs::Quote;
use crate::charset::{self, Charset, Text};
use crate::css;
use crate::css::scanner::Fetch;
use crate::event::{Ask, Mention};
use crate::headers::csp::{self, Policies};
use crate::headers::location;
use crate::ledger::{Ledger, Written};
use crate::markup::attributes::Attribute;
use crate::places::{Place, STYLE_ATTRIBUTE, Syntax};
use crate::srcset::{self, Candidates};
use crate::substitute::TagContext;

/// A replacement in the body.
pub(super) type Edit = (Range<usize>, Vec<u8>);

/// One attribute's value on its way through.
#[derive(Debug)]
pub(super) struct Value<'v> {
    charset: Charset,
    quote: Quote,
    /// Where it stands in the body.
    range: Range<usize>,
    /// As written, but in Unicode.
    written: Text<'v>,
}

/// What is to change in a value: ranges of its decoded text, in order, and what they become.
type Changes = Vec<(Range<usize>, String)>;

impl<'v> Value<'v> {
    /// `tag_start`: where the attribute's tag begins in the body.
    pub(super) fn read(charset: Charset, attribute: &Attribute<'v>, tag_start: usize) -> Self {
        let range = tag_start + attribute.range.start..tag_start + attribute.range.end;
        Self { charset, quote: attribute.quote, range, written: charset.read(attribute.value) }
    }

    /// What it says, character references decoded.
    pub(super) fn text(&self) -> String {
        Decoded::of(&self.written.text).text.into_owned()
    }

    /// Decides what stands in an attribute that holds URLs. Returns what is to stand in the place of its whole tag, if
    /// that is the object's own text.
    pub(super) fn urls(
        &self,
        ledger: &mut Ledger,
        place: &'static Place,
        verdict: Result<Ask, Reason>,
        tag: Option<&TagContext<'_>>,
        edits: &mut Vec<Edit>,
    ) -> Option<Vec<u8>> {
        let decoded = Decoded::of(&self.written.text);
        if self.is_unreadable(&decoded) {
            ledger.leave(place, self.range.start, Reason::Encoding);
            return None;
        }
        let changes = match place.syntax {
            Syntax::Url => match self.url(ledger, place, verdict, tag, &decoded.text)? {
                (_, Written::Element(element)) => return Some(element),
                (range, Written::Url(url)) => vec![(range, url)],
            },
            Syntax::Srcset => self.candidates(ledger, place, verdict, &decoded.text),
            Syntax::Css => self.css_urls(ledger, place, |_| verdict, &decoded.text),
            Syntax::Refresh => {
                if let Some((_, url)) = location::refreshed_to(&decoded.text) {
                    let mention = Mention { place, offset: self.range.start, url, verdict };
                    ledger.decide::<()>(&mention, |_| Err(Reason::Document));
                }
                Changes::new()
            }
            Syntax::Markup => {
                ledger.leave(place, self.range.start, Reason::Document);
                Changes::new()
            }
        };
        self.apply(&decoded, changes, edits);
        None
    }

    /// Decides the URLs in a `style` attribute.
    pub(super) fn declarations(&self, ledger: &mut Ledger, edits: &mut Vec<Edit>) {
        let decoded = Decoded::of(&self.written.text);
        if !css::may_hold_url(decoded.text.as_bytes()) {
            return;
        }
        if self.is_unreadable(&decoded) {
            ledger.leave(STYLE_ATTRIBUTE, self.range.start, Reason::Encoding);
            return;
        }
        let changes = self.css_urls(ledger, STYLE_ATTRIBUTE, css::verdict, &decoded.text);
        self.apply(&decoded, changes, edits);
    }

    /// A Content-Security-Policy, which holds from here on: translated, so that it allows what moves and nothing else.
    pub(super) fn policy(&self, ledger: &mut Ledger, edits: &mut Vec<Edit>) {
        let decoded = Decoded::of(&self.written.text);
        if self.written.opaque {
            ledger.policies.extend(Policies::unreadable(&ledger.base));
            return;
        }
        let translation = csp::translate(&ledger.plan, &ledger.base, &decoded.text);
        ledger.policies.extend(translation.policies);
        if ledger.policies.upgrade_insecure_requests() {
            ledger.base.upgrade_insecure_requests();
        }
        let whole = 0..decoded.text.len();
        let changes = translation.text.map(|text| (whole, text)).into_iter().collect();
        self.apply(&decoded, changes, edits);
    }

    /// What changes in one URL, and where that stands in the text.
    fn url(
        &self,
        ledger: &mut Ledger,
        place: &'static Place,
        verdict: Result<Ask, Reason>,
        tag: Option<&TagContext<'_>>,
        text: &str,
    ) -> Option<(Range<usize>, Written)> {
        // Browsers drop these around a URL. They are not part of what moves, so they stay.
        let is_dropped = |character: char| character <= ' ';
        let start = text.len() - text.trim_start_matches(is_dropped).len();
        let url = text.trim_matches(is_dropped);
        let mention = Mention { place, offset: self.range.start, url, verdict };
        let written = ledger.decide_in_tag(&mention, tag, |moved| self.fits(url, moved))?;
        Some((start..start + url.len(), written))
    }

    fn candidates(
        &self,
        ledger: &mut Ledger,
        place: &'static Place,
        verdict: Result<Ask, Reason>,
        text: &str,
    ) -> Changes {
        let offset = self.range.start;
        if Candidates::of(text).nth(ledger.plan.limits().srcset_candidates).is_some() {
            ledger.leave(place, offset, Reason::SrcsetLimit);
            return Changes::new();
        }
        let mut changes = Changes::new();
        for range in Candidates::of(text) {
            let url = text.get(range.clone()).unwrap_or_default();
            let moved = ledger.decide_as_is(&Mention { place, offset, url, verdict }, |moved| {
                self.fits(url, moved)?;
                if srcset::can_hold(moved) { Ok(()) } else { Err(Reason::Srcset) }
            });
            changes.extend(moved.map(|moved| (range, moved)));
        }
        changes
    }

    fn css_urls(
        &self,
        ledger: &mut Ledger,
        place: &'static Place,
        verdict: impl Fn(Fetch) -> Result<Ask, Reason>,
        text: &str,
    ) -> Changes {
        let offset = self.range.start;
        let mut found = Vec::new();
        let mut scanner = css::scanner::Scanner::new(ledger.plan.limits().url_bytes);
        scanner.scan(text, 0, 0, true, &mut |url| found.push(url));
        let mut changes = Changes::new();
        for url in found {
            if let Some(reason) = url.unread {
                ledger.leave(place, offset, reason);
                continue;
            }
            let Some(reference) = text.get(url.token).and_then(css::scanner::value) else { continue };
            let mention = Mention { place, offset, url: &reference, verdict: verdict(url.fetch) };
            let original = text.get(url.range.clone()).unwrap_or_default();
            let moved = ledger
                .decide(&mention, |moved| self.fits(original, moved).map(|()| css::write::escape(moved).into_owned()));
            changes.extend(moved.map(|moved| (url.range, moved)));
        }
        changes
    }

    /// Bytes that cannot be told from characters that references stand for: neither could be written again.
    fn is_unreadable(&self, decoded: &Decoded<'_>) -> bool {
        self.written.opaque && !charset::keeps_opaque(&self.written.text, &decoded.text)
    }

    /// Whether a part of the value can become `changed`.
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
