//! The URLs of a whole style sheet, for code that writes the style sheet into a page.

use std::ops::Range;

use encoding_rs::UTF_8;
use page_scanner::css::{self, SheetUrl, Stream};
use page_scanner::places::STYLE_ELEMENT;
use page_scanner::{Charset, UrlReference};
use url_mapping::Base;

use crate::substitute::{DecidedUrl, Decider};

/// A URL in a style sheet.
#[derive(Debug)]
pub struct SheetReference {
    /// Its bytes in the style sheet: between the quotes, or between `url(` and `)`. [`css::escape`] makes a URL fit
    /// there.
    pub range: Range<usize>,
    /// How a browser fetches it.
    pub fetch: css::Fetch,
    /// The URL and the decision. `None` if it is longer than the page's limit, and was not read.
    pub decided: Option<DecidedUrl>,
}

/// Reads a style sheet in UTF-8 and decides its URLs in their order, as if it stood in the page of `decider`. The URLs
/// are relative to `base`.
pub fn references(sheet: &str, decider: &Decider<'_>, base: &Base) -> Vec<SheetReference> {
    let mut found = Vec::new();
    let mut keep = |SheetUrl { range, value, fetch }| {
        let read = value.ok().map(|value| {
            let request = css::load_request(fetch);
            let reference = UrlReference { place: STYLE_ELEMENT, offset: 0, url: &value.url, request, tag: None };
            let outcome = decider.outcome(&reference, base);
            DecidedUrl { url: value.url, outcome, load: request.ok() }
        });
        found.push(SheetReference { range, fetch, decided: read });
    };
    let mut stream = Stream::new(Charset::from_header(Some(UTF_8)), decider.url_bytes());
    stream.push(sheet.as_bytes(), &mut keep);
    stream.finish(&mut keep);
    found
}
