//! A style sheet in the page: its URLs, which were relative to the sheet, written so that they mean the same there, and
//! moved like any other of the page.

use url_mapping::Outcome;

use super::Kept;
use super::text::Text;
use crate::charset::Charset;
use crate::css;
use crate::css::scanner::Fetch;
use crate::css::stream::{SheetUrl, Stream};
use crate::event::{Ask, Mention};
use crate::ledger::Ledger;
use crate::places::STYLE_ELEMENT;

/// A sheet as it can stand in a page.
#[derive(Debug)]
pub(crate) struct Transplant {
    pub(super) text: String,
    /// Its URLs, and what became of them.
    pub(crate) urls: Vec<(String, Outcome, Option<Ask>)>,
}

/// The sheet at `url`, which the page of this ledger names.
pub(super) fn transplanted(sheet: &Text, url: &str, ledger: &Ledger) -> Result<Transplant, Kept> {
    let base = ledger.base.with_href(url);
    let source = sheet.as_str();
    let found = urls(source, ledger);
    // One that is not seen could not be told from one that means the same.
    let imports = found.iter().filter(|url| url.fetch == Fetch::Import).count();
    if source.to_ascii_lowercase().matches("@import").count() > imports {
        return Err(Kept::Unread);
    }
    let mut made = Transplant { text: String::with_capacity(source.len()), urls: Vec::new() };
    let mut at = 0;
    for SheetUrl { range, value, fetch } in found {
        // One that was too long to be read begins there, too.
        let written = source.get(range.start..).unwrap_or_default();
        let is_data = written.trim_ascii_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
        if is_data {
            continue;
        }
        if fetch == Fetch::Font && !base.is_at_home() {
            return Err(Kept::Fonts);
        }
        let Ok(value) = value else { return Err(Kept::Unread) };
        let verdict = css::verdict(fetch);
        let mention = Mention { place: STYLE_ELEMENT, offset: 0, url: &value.url, verdict };
        let outcome = ledger.outcome(&mention, &base);
        let replacement = match &outcome {
            Outcome::Moved(moved) | Outcome::Pinned(moved, _) => Some(moved.clone()),
            // Browsers take it for a part of the page, wherever the sheet is.
            Outcome::Left(url_mapping::Reason::Fragment) => None,
            // Old ones take it for the sheet.
            Outcome::Left(url_mapping::Reason::Empty) => return Err(Kept::Unread),
            Outcome::Left(_) => ledger.base.pinned(&base, &value.url),
        };
        if let Some(replacement) = replacement {
            made.text.push_str(source.get(at..range.start).unwrap_or_default());
            made.text.push_str(&css::write::escape(&replacement));
            at = range.end;
        }
        made.urls.push((value.url, outcome, verdict.ok()));
    }
    made.text.push_str(source.get(at..).unwrap_or_default());
    // It was looked at before its URLs changed.
    if made.text.to_ascii_lowercase().contains("</style") { Err(Kept::Text) } else { Ok(made) }
}

fn urls(source: &str, ledger: &Ledger) -> Vec<SheetUrl> {
    let charset = Charset::from_header(Some(encoding_rs::UTF_8));
    let mut stream = Stream::new(charset, ledger.plan.limits().url_bytes);
    let mut found = Vec::new();
    stream.push(source.as_bytes(), &mut |url| found.push(url));
    stream.finish(&mut |url| found.push(url));
    found
}
