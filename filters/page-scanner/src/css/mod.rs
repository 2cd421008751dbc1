//! URLs in style sheets, style elements and style attributes.
//!
//! | file | does |
//! |---|---|
//! | `scanner` | which tokens are URLs that are fetched, and what for (cssparser's tokens plus a little context) |
//! | `blocks`, `piece`, `property`, `token`, `long` | its parts: open brackets, lookups, what properties fetch, single tokens |
//! | `bytes` | bytes of any ASCII-compatible encoding seen as text with the same positions |
//! | `stream` | a sheet of any size in bounded memory, cut anywhere |
//! | `write` | a URL written so that it reads back as itself |
//! | `sheet` | a `text/css` body: chunks in, chunks out |

mod blocks;
mod bytes;
mod long;
mod piece;
mod property;
pub(crate) mod scanner;
pub(crate) mod sheet;
mod specials;
mod stream;
#[cfg(test)]
mod tests;
mod token;
mod write;

use std::borrow::Cow;

use url_mapping::{Reason, Use};

use crate::charset::{self, Charset};
use crate::patch::Patch;
use crate::places::Place;
use crate::visitor::{LoadRequest, UrlReference, Visitor, ask};

pub(crate) use property::Fetch;
pub(crate) use stream::{SheetUrl, Stream};
pub(crate) use write::escape;

/// How a browser loads what a URL in CSS names.
///
/// # Errors
/// The reason why it cannot come from another origin than now.
pub(crate) fn load_request(fetch: Fetch) -> Result<LoadRequest, Reason> {
    let load = |usage| {
        Ok(LoadRequest { usage, cors: usage == Use::Font, at_once: usage == Use::CssImport, is_preload: false })
    };
    match fetch {
        Fetch::Image => load(Use::CssImage),
        Fetch::Import => load(Use::CssImport),
        Fetch::Font => load(Use::Font),
        Fetch::CorsImage => Err(Reason::Cors),
        Fetch::SameOrigin => Err(Reason::SameOriginOnly),
    }
}

/// Reports a URL of a style sheet that stands at `start` in the body, and patches it.
pub(crate) fn patch(
    visitor: &mut dyn Visitor,
    patch: &mut Patch,
    charset: Charset,
    place: &'static Place,
    start: usize,
    found: SheetUrl,
) {
    let range = start + found.range.start..start + found.range.end;
    let value = match found.value {
        Ok(value) => value,
        Err(reason) => return visitor.unread(place, range.start, reason),
    };
    let request = load_request(found.fetch);
    let reference = UrlReference { place, offset: range.start, url: &value.url, request };
    let written = ask(visitor, &reference, |url| {
        if value.opaque.as_ref().is_some_and(|original| !charset::keeps_opaque(original, url)) {
            return Err(Reason::Encoding);
        }
        let bytes = charset.write_raw(&escape(url), value.opaque.is_some()).map(Cow::into_owned);
        bytes.map_err(|_| Reason::Encoding)
    });
    if let Some(written) = written {
        patch.replace(range, written);
    }
}

/// The same for declarations in an attribute as written, where a bracket may be a character reference.
pub(crate) fn may_hold_url_written(value: &[u8]) -> bool {
    memchr::memchr2(b'(', b'&', value).is_some()
}

/// A cheap test for declarations that cannot hold a URL, however it is written: every way to write one has a bracket.
pub(crate) fn may_hold_url(declarations: &[u8]) -> bool {
    memchr::memchr(b'(', declarations).is_some()
}
