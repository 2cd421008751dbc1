//! One body of whichever kind: what the filter and `explain` see of rewriting.

use std::rc::Rc;

use encoding_rs::Encoding;
use url_mapping::Base;

use crate::bail_out::BailOut;
use crate::charset::Charset;
use crate::css::rewriter::CssRewriter;
use crate::headers::csp::Policies;
use crate::html::rewriter::HtmlRewriter;
use crate::ledger::{Ledger, Observer, Tally};
use crate::plan::Plan;

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
    /// What its references are relative to.
    pub base: Base,
    /// The `charset` of its Content-Type, if there is one.
    pub encoding: Option<&'static Encoding>,
    /// The Content-Security-Policy of its headers, translated; default where there is none.
    pub policies: Policies,
}

/// Rewrites one body as it streams by.
///
/// Every byte that is certain leaves with the call that made it so. Whatever goes wrong, the output is whole: rewritten up
/// to some point, and the input's own bytes from there ([`Rewriter::bail_out`] says why).
///
/// ```
/// use url_mapping::{Base, Scheme};
/// use url_rewriting::{Body, Kind, Plan, Policies, Rewriter};
///
/// let plan = Plan::from_json(
///     br#"{"targets": {"https": ["pep.example.net"]}, "own": ["pep.example.net"], "level": "safe", "ports": [80, 443]}"#,
/// )?;
/// let base = Base::new(Scheme::Http, "www.example.org", "/").ok_or("not a URL")?;
/// let body = Body { kind: Kind::Html, base, encoding: None, policies: Policies::default() };
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
pub struct Rewriter(Inner);

#[derive(Debug)]
enum Inner {
    Html(Box<HtmlRewriter>),
    Css(Box<CssRewriter>),
}

impl Rewriter {
    /// A rewriter for one body. `observer` is told of every URL; the counts are kept without one.
    pub fn new(plan: Rc<Plan>, body: Body, observer: Option<Box<dyn Observer>>) -> Self {
        let ledger = Ledger::new(plan, body.base, body.policies, observer);
        let charset = Charset::from_header(body.encoding);
        Self(match body.kind {
            Kind::Html => Inner::Html(Box::new(HtmlRewriter::new(ledger, charset))),
            Kind::Css => Inner::Css(Box::new(CssRewriter::new(ledger, charset))),
        })
    }

    /// Takes the next bytes of the body and appends to `out` all that is certain by now.
    pub fn write(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        match &mut self.0 {
            Inner::Html(html) => html.write(chunk, out),
            Inner::Css(css) => css.write(chunk, out),
        }
    }

    /// The body is complete: appends the rest. Later calls add nothing.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.0 {
            Inner::Html(html) => html.finish(out),
            Inner::Css(css) => css.finish(out),
        }
    }

    /// Why rewriting stopped, if it did.
    pub fn bail_out(&self) -> Option<BailOut> {
        match &self.0 {
            Inner::Html(html) => html.bail_out(),
            Inner::Css(css) => css.bail_out(),
        }
    }

    /// What was moved and left so far.
    pub fn tally(&self) -> Tally {
        match &self.0 {
            Inner::Html(html) => html.tally(),
            Inner::Css(css) => css.tally(),
        }
    }
}
