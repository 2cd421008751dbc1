//! The value of one attribute, with its URLs decided: what to write in its place, if anything changes.

use std::borrow::Cow;
use std::ops::Range;

use url_mapping::Reason;

use super::attributes::{Attribute, Quote};
use crate::char_refs;
use crate::charset::{self, Charset, Text};
use crate::css;
use crate::ledger::{Ask, Ledger, Mention};
use crate::places::{Place, STYLE_ATTRIBUTE, Syntax};
use crate::srcset::{self, Candidates};

/// One attribute's value on its way through.
#[derive(Debug)]
pub(super) struct Value<'v> {
    charset: Charset,
    quote: Quote,
    /// As written, but in Unicode.
    written: Text<'v>,
    /// As its reader has it: character references decoded.
    pub(super) text: Cow<'v, str>,
    /// Where it begins in the body.
    offset: usize,
}

impl<'v> Value<'v> {
    pub(super) fn read(charset: Charset, attribute: &Attribute<'v>, offset: usize) -> Self {
        let written = charset.read(attribute.value);
        let text = match &written.text {
            Cow::Borrowed(text) => char_refs::decode(text),
            Cow::Owned(text) => Cow::Owned(char_refs::decode(text).into_owned()),
        };
        Self { charset, quote: attribute.quote, written, text, offset }
    }

    /// Bytes that cannot be told from characters that references stand for: neither could be written again.
    fn is_unreadable(&self) -> bool {
        self.written.opaque && !charset::keeps_opaque(&self.written.text, &self.text)
    }

    /// Whether a part of the value can become `changed`.
    fn fits(&self, original: &str, changed: &str) -> Result<(), Reason> {
        let fits = !self.written.opaque || charset::keeps_opaque(original, changed);
        if fits { Ok(()) } else { Err(Reason::Encoding) }
    }

    /// The bytes to write for the changed value.
    fn write(&self, changed: &str) -> Vec<u8> {
        self.charset.write(&char_refs::encode(changed, self.quote), self.written.opaque).into_owned()
    }

    /// Decides what stands in an attribute that holds URLs; the bytes to write in its place if anything changes.
    pub(super) fn urls(
        &self,
        ledger: &mut Ledger,
        place: &'static Place,
        verdict: Result<Ask, Reason>,
    ) -> Option<Vec<u8>> {
        if self.is_unreadable() {
            ledger.leave(place, self.offset, Reason::Encoding);
            return None;
        }
        let mention = Mention { place, offset: self.offset, url: &self.text, verdict };
        match place.syntax {
            Syntax::Url => ledger.decide(&mention, |url| self.fits(&self.text, url).map(|()| self.write(url))),
            Syntax::Srcset => self.candidates(ledger, &mention),
        }
    }

    fn candidates(&self, ledger: &mut Ledger, list: &Mention<'_>) -> Option<Vec<u8>> {
        let most = ledger.plan.limits().srcset_candidates;
        if Candidates::of(&self.text).nth(most).is_some() {
            ledger.leave(list.place, list.offset, Reason::SrcsetLimit);
            return None;
        }
        let mut changed = Spliced::of(&self.text);
        for range in Candidates::of(&self.text) {
            let url = self.text.get(range.clone()).unwrap_or_default();
            let moved = ledger.decide(&Mention { url, ..*list }, |moved| {
                self.fits(url, moved)?;
                if srcset::can_hold(moved) { Ok(moved.to_owned()) } else { Err(Reason::Srcset) }
            });
            if let Some(moved) = moved {
                changed.replace(range, &moved);
            }
        }
        changed.finish().map(|changed| self.write(&changed))
    }

    /// Decides the URLs in a `style` attribute; the bytes to write in its place if anything changes.
    pub(super) fn declarations(&self, ledger: &mut Ledger) -> Option<Vec<u8>> {
        if !css::may_hold_url(self.text.as_bytes()) {
            return None;
        }
        if self.is_unreadable() {
            ledger.leave(STYLE_ATTRIBUTE, self.offset, Reason::Encoding);
            return None;
        }
        let mut found = Vec::new();
        let mut scanner = css::scanner::Scanner::new(ledger.plan.limits().url_bytes);
        // A name too long to be read ends the search; what came before it is decided.
        let _ = scanner.scan(&self.text, true, &mut |url| found.push(url));
        let mut changed = Spliced::of(&self.text);
        for url in found {
            if let Some(reason) = url.unread {
                ledger.leave(STYLE_ATTRIBUTE, self.offset, reason);
                continue;
            }
            let Some(reference) = self.text.get(url.token).and_then(css::scanner::value) else { continue };
            let mention = Mention {
                place: STYLE_ATTRIBUTE,
                offset: self.offset,
                url: &reference,
                verdict: css::verdict(url.fetch),
            };
            let original = self.text.get(url.range.clone()).unwrap_or_default();
            let moved = ledger
                .decide(&mention, |moved| self.fits(original, moved).map(|()| css::write::escape(moved).into_owned()));
            if let Some(moved) = moved {
                changed.replace(url.range, &moved);
            }
        }
        changed.finish().map(|changed| self.write(&changed))
    }
}

/// A text with some ranges replaced.
struct Spliced<'v> {
    original: &'v str,
    text: String,
    at: usize,
}

impl<'v> Spliced<'v> {
    fn of(original: &'v str) -> Self {
        Self { original, text: String::new(), at: 0 }
    }

    fn replace(&mut self, range: Range<usize>, with: &str) {
        self.text.push_str(self.original.get(self.at..range.start).unwrap_or_default());
        self.text.push_str(with);
        self.at = range.end;
    }

    fn finish(mut self) -> Option<String> {
        if self.at == 0 {
            return None;
        }
        self.text.push_str(self.original.get(self.at..).unwrap_or_default());
        Some(self.text)
    }
}
