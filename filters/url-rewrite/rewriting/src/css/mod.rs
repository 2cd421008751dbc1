//! URLs in style sheets, style elements and style attributes.
//!
//! | file | does |
//! |---|---|
//! | `scanner` | which tokens are URLs that are fetched, and what for (cssparser's tokens plus a little context) |
//! | `bytes` | bytes of any ASCII-compatible encoding seen as text with the same positions |
//! | `stream` | a sheet of any size in bounded memory, cut anywhere |
//! | `write` | a URL written so that it reads back as itself |
//! | `rewriter` | a `text/css` body: chunks in, chunks out |

mod bytes;
pub(crate) mod rewriter;
pub(crate) mod scanner;
pub(crate) mod stream;
pub(crate) mod write;

use url_mapping::{Reason, Use};

use crate::ledger::Ledger;
use crate::places::Place;
use scanner::Fetch;

/// What a URL in CSS is used as, or why it cannot move.
pub(crate) fn verdict(fetch: Fetch) -> Result<Use, Reason> {
    match fetch {
        Fetch::Image => Ok(Use::CssImage),
        Fetch::Import => Ok(Use::CssImport),
        Fetch::Font => Ok(Use::Font),
        Fetch::CorsImage => Err(Reason::Cors),
        Fetch::SameOrigin => Err(Reason::SameOriginOnly),
    }
}

/// The URL to write in place of `reference` (none if it could not be read), if it changes.
pub(crate) fn decide(
    ledger: &mut Ledger,
    place: &'static Place,
    offset: usize,
    reference: Option<&str>,
    too_long: bool,
    fetch: Fetch,
) -> Option<String> {
    match reference {
        Some(reference) => ledger.decide(place, offset, reference, verdict(fetch)),
        None => {
            let reason = if too_long { Reason::TooLong } else { Reason::Encoding };
            ledger.leave(place, offset, "", reason);
            None
        }
    }
}

/// A cheap test for declarations that cannot hold a URL, however it is written: every way to write one has a bracket.
pub(crate) fn may_hold_url(declarations: &[u8]) -> bool {
    memchr::memchr(b'(', declarations).is_some()
}
