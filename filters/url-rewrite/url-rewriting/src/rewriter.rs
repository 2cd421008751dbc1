//! One body of whichever kind: what the filter and `explain` see of rewriting.

use std::rc::Rc;

use encoding_rs::Encoding;
use url_mapping::Base;

use crate::bail_out::BailOut;
use crate::charset::Charset;
use crate::css::rewriter::CssRewriter;
use crate::event::Observer;
use crate::headers::csp::Policies;
use crate::html::rewriter::HtmlRewriter;
use crate::ledger::{Ledger, Tally};
use crate::plan::Plan;
use crate::preloads::Preloads;
use crate::substitute::Substitute;
use crate::unpack::{Broken, Packing, Unpacker};

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `text/html`
    Html,
    /// `text/css`
    Css,
}

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

/// What became of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk {
    /// Nothing: what was appended are its bytes, no more and no fewer.
    AsItCame,
    /// Something was replaced, held back, or let go that had been held back.
    Changed,
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
/// assert_eq!(rewriter.tally().moved, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rewriter {
    inner: Inner,
    unpacker: Option<Box<Unpacker>>,
    broken: Option<Broken>,
    bytes_read: u64,
}

#[derive(Debug)]
enum Inner {
    Html(Box<HtmlRewriter>),
    Css(Box<CssRewriter>),
}

impl Rewriter {
    /// A rewriter for one body. `observer` is told of every URL; the counts are kept without one.
    pub fn new(plan: Rc<Plan>, body: Body, observer: Option<Box<dyn Observer>>) -> Self {
        let ledger = Ledger::new(plan, body.base, body.policies, body.preloads, observer);
        let charset = Charset::from_header(body.encoding);
        let inner = match body.kind {
            Kind::Html => Inner::Html(Box::new(HtmlRewriter::new(ledger, charset))),
            Kind::Css => Inner::Css(Box::new(CssRewriter::new(ledger, charset))),
        };
        let unpacker = (body.packing == Packing::Gzip).then(|| Box::new(Unpacker::new()));
        Self { inner, unpacker, broken: None, bytes_read: 0 }
    }

    /// Has objects put into the body, if it is a page. To be called before the first bytes.
    pub fn substitute(&mut self, substitute: Box<dyn Substitute>) {
        if let Inner::Html(html) = &mut self.inner {
            html.substitute(substitute);
        }
    }

    /// Takes the next bytes of the body and appends to `out` all that is certain by now.
    pub fn write(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Chunk {
        let Self { inner, unpacker, broken, bytes_read } = self;
        let (was_empty, made) = (inner.is_empty(), inner.made());
        let mut read = |plain: &[u8]| {
            *bytes_read += plain.len() as u64;
            inner.write(plain, out);
        };
        match unpacker {
            None => read(chunk),
            Some(unpacker) if broken.is_none() => {
                *broken = unpacker.write(chunk, read).err();
                if broken.is_some() {
                    inner.finish(out);
                }
            }
            Some(_) => {}
        }
        let as_it_came = unpacker.is_none() && was_empty && inner.is_empty() && inner.made() == made;
        if as_it_came { Chunk::AsItCame } else { Chunk::Changed }
    }

    /// The body is complete: appends the rest. Later calls add nothing.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let Self { inner, unpacker, broken, bytes_read } = self;
        if let Some(unpacker) = unpacker
            && broken.is_none()
        {
            let read = |plain: &[u8]| {
                *bytes_read += plain.len() as u64;
                inner.write(plain, out);
            };
            *broken = unpacker.finish(read).err();
        }
        inner.finish(out);
    }

    /// Bytes of the body so far, unpacked.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Whether the body comes packed and leaves plain.
    pub fn unpacks(&self) -> bool {
        self.unpacker.is_some()
    }

    /// Why a packed body ended before its end, if it did. All that came of it is in the output, but whoever gets that must
    /// see that it is not the whole.
    pub fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// Why rewriting stopped, if it did.
    pub fn bail_out(&self) -> Option<BailOut> {
        match &self.inner {
            Inner::Html(html) => html.bail_out(),
            Inner::Css(css) => css.bail_out(),
        }
    }

    /// What was moved and left so far.
    pub fn tally(&self) -> Tally {
        match &self.inner {
            Inner::Html(html) => html.tally(),
            Inner::Css(css) => css.tally(),
        }
    }
}

impl Inner {
    fn write(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Html(html) => html.write(chunk, out),
            Self::Css(css) => css.write(chunk, out),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Html(html) => html.is_empty(),
            Self::Css(css) => css.is_empty(),
        }
    }

    fn made(&self) -> u64 {
        match self {
            Self::Html(html) => html.made(),
            Self::Css(css) => css.made(),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Html(html) => html.finish(out),
            Self::Css(css) => css.finish(out),
        }
    }
}
