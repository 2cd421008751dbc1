//! The URLs of a whole style sheet, for whoever writes the sheet into a page.

use std::ops::Range;

use encoding_rs::UTF_8;
use url_mapping::Base;

use crate::charset::Charset;
use crate::css;
use crate::css::stream::{SheetUrl, Stream};
use crate::event::Mention;
use crate::places::STYLE_ELEMENT;
use crate::substitute::{DecidedUrl, Decider};

pub use crate::css::scanner::Fetch as SheetFetch;
pub use crate::css::write::escape;

/// A URL in a sheet.
#[derive(Debug)]
pub struct SheetReference {
    /// The bytes of the sheet that say it: between the quotes, or between `url(` and `)`. [`escape`] makes a URL fit there.
    pub range: Range<usize>,
    /// How a browser fetches it.
    pub fetch: SheetFetch,
    /// What it says and what becomes of it. None: it is longer than the page's limit, and was not read.
    pub decided: Option<DecidedUrl>,
}

/// Reads a sheet in UTF-8 and decides its URLs, in their order, as if it stood in the page of `decider`. They are relative
/// to `base`.
pub fn references(sheet: &str, decider: &Decider<'_>, base: &Base) -> Vec<SheetReference> {
    let mut found = Vec::new();
    let mut keep = |SheetUrl { range, value, fetch }| {
        let read = value.ok().map(|value| {
            let verdict = css::verdict(fetch);
            let mention = Mention { place: STYLE_ELEMENT, offset: 0, url: &value.url, verdict };
            let outcome = decider.outcome(&mention, base);
            DecidedUrl { url: value.url, outcome, fetch: verdict.ok().map(Into::into) }
        });
        found.push(SheetReference { range, fetch, decided: read });
    };
    let mut stream = Stream::new(Charset::from_header(Some(UTF_8)), decider.url_bytes());
    stream.push(sheet.as_bytes(), &mut keep);
    stream.finish(&mut keep);
    found
}
