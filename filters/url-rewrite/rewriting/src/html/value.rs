//! The value of one attribute, with its URLs decided: what to write in its place, if anything changes.

use std::borrow::Cow;
use std::ops::Range;

use url_mapping::{Reason, Use};

use crate::css;
use crate::ledger::Ledger;
use crate::places::{Place, STYLE_ATTRIBUTE, Syntax};
use crate::srcset::{self, Candidates};

/// Decides what stands in an attribute. `value` is decoded; so is the answer.
pub(super) fn rewrite(
    ledger: &mut Ledger,
    place: &'static Place,
    offset: usize,
    value: &str,
    verdict: Result<Use, Reason>,
) -> Option<String> {
    match place.syntax {
        Syntax::Url => ledger.decide(place, offset, value, verdict),
        Syntax::Srcset => candidates(ledger, place, offset, value, verdict),
    }
}

fn candidates(
    ledger: &mut Ledger,
    place: &'static Place,
    offset: usize,
    value: &str,
    verdict: Result<Use, Reason>,
) -> Option<String> {
    let most = ledger.plan.limits().srcset_candidates;
    if Candidates::of(value).nth(most).is_some() {
        ledger.leave(place, offset, "", Reason::SrcsetLimit);
        return None;
    }
    let mut changed = Spliced::of(value);
    for range in Candidates::of(value) {
        let url = value.get(range.clone()).unwrap_or_default();
        if let Some(moved) = ledger.decide(place, offset, url, verdict).filter(|moved| srcset::can_hold(moved)) {
            changed.replace(range, &moved);
        }
    }
    changed.finish()
}

/// Decides the URLs in a `style` attribute. `value` is decoded; so is the answer.
pub(super) fn declarations(ledger: &mut Ledger, offset: usize, value: &str) -> Option<String> {
    if !css::may_hold_url(value.as_bytes()) {
        return None;
    }
    let mut found = Vec::new();
    let mut scanner = css::scanner::Scanner::new(ledger.plan.limits().url_bytes);
    // A name too long to be read ends the search; what came before it is decided.
    let _ = scanner.scan(value, true, &mut |url| found.push(url));
    let mut changed = Spliced::of(value);
    for url in found {
        let reference = if url.too_long { None } else { value.get(url.token).and_then(css::scanner::value) };
        if let Some(moved) = css::decide(ledger, STYLE_ATTRIBUTE, offset, reference.as_deref(), url.too_long, url.fetch)
        {
            changed.replace(url.range, &css::write::escape(&moved));
        }
    }
    changed.finish()
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

/// An attribute's value as its reader has it, character references decoded.
pub(super) fn decoded<'v>(text: Cow<'v, str>) -> Cow<'v, str> {
    match text {
        Cow::Borrowed(text) => crate::char_refs::decode(text),
        Cow::Owned(text) => Cow::Owned(crate::char_refs::decode(&text).into_owned()),
    }
}
