//! Rewrites one body as a stream: the scanner finds URLs, and the decider decides each of them.

use std::rc::Rc;

use encoding_rs::Encoding;
use page_scanner::{BailOut, Broken, Chunk, Kind, Packing, Scanner};
use url_mapping::Base;

use crate::decider::{UrlCounts, UrlDecider};
use crate::event::Observer;
use crate::headers::csp::Policies;
use crate::plan::Plan;
use crate::preloads::Preloads;

/// The properties of a body that rewriting needs, from the headers of its response.
#[derive(Debug)]
pub struct Body {
    /// The kind of markup.
    pub kind: Kind,
    /// The content encoding. The rewriter's output is not compressed.
    pub packing: Packing,
    /// The base URL of its references.
    pub base: Base,
    /// The `charset` of the `Content-Type` field, if there is one.
    pub encoding: Option<&'static Encoding>,
    /// The translated Content-Security-Policy of the header fields, or the default without one.
    pub policies: Policies,
    /// The preloads of the header fields, or the default without one.
    pub preloads: Preloads,
}

/// Rewrites one body as a stream.
///
/// Each call appends all bytes that are certain by then. After any failure the output is still complete: rewritten up
/// to some point, and equal to the input from there. [`Rewriter::bail_out`] gives the reason.
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
}

impl Rewriter {
    /// Creates a rewriter for one body. `observer` receives every URL. The rewriter counts URLs with or without one.
    pub fn new(plan: Rc<Plan>, body: Body, observer: Option<Box<dyn Observer>>) -> Self {
        let Body { kind, packing, base, encoding, policies, preloads } = body;
        let scanner = Scanner::new(kind, packing, encoding, *plan.limits());
        let decider = UrlDecider::new(plan, base, policies, preloads, observer);
        Self { scanner, decider }
    }

    /// Reads the next bytes of the body and appends to `out` all bytes that are certain by now.
    pub fn write(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Chunk {
        self.scanner.write(chunk, &mut self.decider, out)
    }

    /// Ends the body and appends the rest to `out`. Later calls append nothing.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.scanner.finish(&mut self.decider, out);
    }

    /// Returns the number of bytes read so far, after decompression.
    pub fn bytes_read(&self) -> u64 {
        self.scanner.bytes_read()
    }

    /// Returns true if the input is compressed and the output is not.
    pub fn unpacks(&self) -> bool {
        self.scanner.unpacks()
    }

    /// Returns why a compressed body ended early, if it did; see [`Scanner::broken`].
    pub fn broken(&self) -> Option<Broken> {
        self.scanner.broken()
    }

    /// Returns why rewriting stopped, if it did.
    pub fn bail_out(&self) -> Option<BailOut> {
        self.scanner.bail_out()
    }

    /// Returns how many URLs moved and how many stayed so far.
    pub fn counts(&self) -> UrlCounts {
        self.decider.counts.clone()
    }
}
