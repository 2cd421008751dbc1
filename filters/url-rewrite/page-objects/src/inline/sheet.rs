//! A style sheet in the page. Its URLs were relative to the style sheet. They are rewritten so that they mean the same in
//! the page, and moved like any other URL of the page.

use page_scanner::css::{Fetch, escape};
use url_mapping::{Outcome, Reason};
use url_rewriting::sheet::{SheetReference, references};
use url_rewriting::{DecidedUrl, Decider};

use super::NotInlined;
use super::text::Text;

/// A style sheet in a form that can stand in a page.
#[derive(Debug)]
pub(super) struct Transplant {
    pub(super) text: String,
    /// Its URLs and their outcomes.
    pub(super) urls: Vec<DecidedUrl>,
}

/// Rewrites the style sheet at `url` for the page of this decider.
pub(super) fn transplanted(sheet: &Text, url: &str, decider: &Decider<'_>) -> Result<Transplant, NotInlined> {
    let base = decider.base().with_href(url);
    let source = sheet.as_str();
    let found = references(source, decider, &base);
    // One that is not seen could not be told from one that means the same.
    let imports = found.iter().filter(|reference| reference.fetch == Fetch::Import).count();
    if source.to_ascii_lowercase().matches("@import").count() > imports {
        return Err(NotInlined::Unread);
    }
    let mut made = Transplant { text: String::with_capacity(source.len()), urls: Vec::new() };
    let mut at = 0;
    for SheetReference { range, fetch, decided } in found {
        // One that was too long to be read begins there, too.
        let written = source.get(range.start..).unwrap_or_default();
        let is_data = written.trim_ascii_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
        if is_data {
            continue;
        }
        if fetch == Fetch::Font && !base.is_at_home() {
            return Err(NotInlined::Fonts);
        }
        let url = decided.ok_or(NotInlined::Unread)?;
        let replacement = match &url.outcome {
            Outcome::Moved(moved) | Outcome::Pinned(moved, _) => Some(moved.clone()),
            // Browsers take it for a part of the page, wherever the sheet is.
            Outcome::Left(Reason::Fragment) => None,
            // Old ones take it for the sheet.
            Outcome::Left(Reason::Empty) => return Err(NotInlined::Unread),
            Outcome::Left(_) => decider.base().pinned(&base, &url.url),
        };
        if let Some(replacement) = replacement {
            made.text.push_str(source.get(at..range.start).unwrap_or_default());
            made.text.push_str(&escape(&replacement));
            at = range.end;
        }
        made.urls.push(url);
    }
    made.text.push_str(source.get(at..).unwrap_or_default());
    // It was looked at before its URLs changed.
    if made.text.to_ascii_lowercase().contains("</style") { Err(NotInlined::Text) } else { Ok(made) }
}
