//! URLs in style sheets, style elements and style attributes.
//!
//! | file | does |
//! |---|---|
//! | `scanner` | which tokens are URLs that are fetched, and what for (cssparser's tokens plus a little context) |
//! | `piece`, `property`, `token`, `long` | what it is made of: looking things up, what properties fetch, single tokens |
//! | `bytes` | bytes of any ASCII-compatible encoding seen as text with the same positions |
//! | `stream` | a sheet of any size in bounded memory, cut anywhere |
//! | `write` | a URL written so that it reads back as itself |
//! | `rewriter` | a `text/css` body: chunks in, chunks out |

mod bytes;
mod long;
mod piece;
mod property;
pub(crate) mod rewriter;
pub(crate) mod scanner;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod token;
pub(crate) mod write;

use std::borrow::Cow;

use url_mapping::{Reason, Use};

use crate::charset::{self, Charset};
use crate::event::{Ask, Mention};
use crate::ledger::Ledger;
use crate::patch::Patch;
use crate::places::Place;
use scanner::Fetch;
use stream::SheetUrl;

/// What a URL in CSS is used as, or why it cannot move.
pub(crate) fn verdict(fetch: Fetch) -> Result<Ask, Reason> {
    let ask = |usage| Ok(Ask { usage, cors: usage == Use::Font, at_once: usage == Use::CssImport, is_preload: false });
    match fetch {
        Fetch::Image => ask(Use::CssImage),
        Fetch::Import => ask(Use::CssImport),
        Fetch::Font => ask(Use::Font),
        Fetch::CorsImage => Err(Reason::Cors),
        Fetch::SameOrigin => Err(Reason::SameOriginOnly),
    }
}

/// Decides a URL of a sheet that stands at `start` in the body, and patches it.
pub(crate) fn patch(
    ledger: &mut Ledger,
    patch: &mut Patch,
    charset: Charset,
    place: &'static Place,
    start: usize,
    found: SheetUrl,
) {
    let range = start + found.range.start..start + found.range.end;
    let value = match found.value {
        Ok(value) => value,
        Err(reason) => return ledger.leave(place, range.start, reason),
    };
    let mention = Mention { place, offset: range.start, url: &value.url, verdict: verdict(found.fetch) };
    let written = ledger.decide(&mention, |url| {
        if value.opaque.as_ref().is_some_and(|original| !charset::keeps_opaque(original, url)) {
            return Err(Reason::Encoding);
        }
        let bytes = charset.write_raw(&write::escape(url), value.opaque.is_some()).map(Cow::into_owned);
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
