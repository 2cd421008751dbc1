//! One body on its way through: the scanner finds URLs, and the decider answers.

use std::rc::Rc;

use encoding_rs::Encoding;
use page_scanner::{BailOut, Broken, Chunk, Kind, Packing, Scanner};
use url_mapping::Base;

use crate::decider::{UrlCounts, UrlDecider};
use crate::event::Observer;
use crate::headers::csp::Policies;
use crate::plan::Plan;
use crate::preloads::Preloads;
use crate::substitute::Substitute;

/// What the headers say about a body, as far as rewriting needs to know.
#[derive(Debug)]
pub struct Body {
    /// How to read it.
    pub kind: Kind,
    /// How it is packed. What leaves is plain.
    pub packing: Packing,
    /// What its references are relative to.
    pub base: Base,
    /// The `charset` of its Content-Type, if there is one.
    pub encoding: Option<&'static Encoding>,
    /// The Content-Security-Policy of its headers, translated; default where there is none.
    pub policies: Policies,
    /// The preloads of its headers; default where there is none.
    pub preloads: Preloads,
}

/// Rewrites one body as it streams by.
///
/// Every byte that is certain leaves with the call that made it so. Whatever goes wrong, the output is whole: rewritten up
/// to some point, and the input's own bytes from there ([`Rewriter::bail_out`] says why).
///
/// ```
/// use url_mapping::{Base, Scheme};
/// use url_rewriting::{Body, Kind, Packing, Plan, Policies, Preloads, Rewriter};
///
/// let plan = Plan::from_json(
///     br#"{"targets": {"https": ["pep.example.net"]}, "own": ["pep.example.net"], "level": "safe", "ports": [80, 443]}"#,
/// )?;
/// let base = Base::new(Scheme::Http, "www.example.org", "/").ok_or("not a URL")?;
/// let body =
///     Body { kind: Kind::Html, packing: Packing::Plain, base, encoding: None, policies: Policies::default(), preloads: Preloads::default() };
/// let mut rewriter = Rewriter::new(plan, body, None);
/// let mut out = Vec::new();
/// rewriter.write(b"<p><img alt=x src='http://img.exam", &mut out);
/// rewriter.write(b"ple.com/a.png'>", &mut out);
/// rewriter.finish(&mut out);
/// assert_eq!(out, b"<p><img alt=x src='https://pep.example.net/img.example.com/a.png'>");
/// assert_eq!(rewriter.counts().moved, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rewriter {
    scanner: Scanner,
    decider: UrlDecider,
    is_page: bool,
}

impl Rewriter {
    /// A rewriter for one body. `observer` is told of every URL; the counts are kept without one.
    pub fn new(plan: Rc<Plan>, body: Body, observer: Option<Box<dyn Observer>>) -> Self {
        let Body { kind, packing, base, encoding, policies, preloads } = body;
        let scanner = Scanner::new(kind, packing, encoding, *plan.limits());
        let decider = UrlDecider::new(plan, base, policies, preloads, observer);
        Self { scanner, decider, is_page: kind == Kind::Html }
    }

    /// Has objects put into the body, if it is a page. To be called before the first bytes.
    pub fn substitute(&mut self, substitute: Box<dyn Substitute>) {
        if self.is_page {
            self.decider.substitute = Some(substitute);
        }
    }

    /// Takes the next bytes of the body and appends to `out` all that is certain by now.
    pub fn write(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Chunk {
        self.scanner.write(chunk, &mut self.decider, out)
    }

    /// The body is complete: appends the rest. Later calls add nothing.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.scanner.finish(&mut self.decider, out);
    }

    /// Bytes of the body so far, decompressed.
    pub fn bytes_read(&self) -> u64 {
        self.scanner.bytes_read()
    }

    /// Returns true if the body comes compressed and leaves plain.
    pub fn unpacks(&self) -> bool {
        self.scanner.unpacks()
    }

    /// Why a compressed body ended before its end, if it did; see [`Scanner::broken`].
    pub fn broken(&self) -> Option<Broken> {
        self.scanner.broken()
    }

    /// Why rewriting stopped, if it did.
    pub fn bail_out(&self) -> Option<BailOut> {
        self.scanner.bail_out()
    }

    /// What was moved and left so far.
    pub fn counts(&self) -> UrlCounts {
        self.decider.counts.clone()
    }
}
