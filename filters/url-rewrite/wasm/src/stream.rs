//! One request and its response: each callback is one call into the core.

use crate::account;
use crate::objects::{Found, Objects, PageAssist};
use crate::shared::Shared;
use filter_host::body::{self, Buffer};
use filter_host::headers::{self, Map};
use filter_host::log::{self, Level};
use filter_host::{HostError, reply};
use page_objects::inline::Refusals;
use page_objects::prefetch::{RequestTemplate, Skip};
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;
use std::rc::Rc;
use url_rewriting::headers::{Edit, Reply, request};
use url_rewriting::response;
use url_rewriting::{Chunk, Rewriter};

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    shared: Rc<Shared>,
    visit: Option<request::Visit>,
    /// What requests for the page's objects repeat, if they are to be prefetched.
    template: Option<Result<RequestTemplate, Skip>>,
    page: Option<Page>,
}

/// What a chunk became is kept room for up to this: a packed one becomes several times as long.
const KEPT_BYTES: usize = 64 * 1024;

/// A body that is being rewritten.
#[derive(Debug)]
struct Page {
    rewriter: Rewriter,
    found: Option<Found>,
    refusals: Option<Refusals>,
    /// Kept from chunk to chunk, so that a page costs one allocation of a chunk's size.
    out: Vec<u8>,
    bytes_in: u64,
    bytes_out: u64,
}

impl Stream {
    pub(crate) fn new(shared: Rc<Shared>) -> Self {
        Self { shared, visit: None, template: None, page: None }
    }

    fn request(&mut self, shared: &Shared) -> Result<Action, HostError> {
        let pairs = headers::list(Map::Request)?;
        let fields = pairs.iter().collect();
        #[cfg(feature = "panic-for-tests")]
        panic_for_tests(&fields);
        match request::decide(&shared.plan, &fields) {
            request::Decision::Forward { edits, visit } => {
                apply(Map::Request, &edits)?;
                self.template = shared.objects.as_ref().and_then(|_| RequestTemplate::of(&visit, &fields));
                self.visit = Some(visit);
                Ok(Action::Continue)
            }
            request::Decision::Reply(reply) => send(shared, &reply),
        }
    }

    fn response(&mut self, shared: &Shared, visit: &request::Visit) -> Result<Action, HostError> {
        let pairs = headers::list(Map::Response)?;
        let fields = pairs.iter().collect();
        if let Some(objects) = &shared.objects {
            objects.saw(visit, &fields);
        }
        match response::decide(&shared.plan, visit, &fields) {
            response::Decision::Pass { edits } => apply(Map::Response, &edits)?,
            response::Decision::Rewrite { edits, body } => {
                apply(Map::Response, &edits)?;
                shared.counters.pages.add(1);
                let assist = |(objects, template): (&Objects, _)| {
                    objects.assist(&shared.plan, template, visit, &fields, &shared.counters)
                };
                let assist = shared.objects.as_ref().zip(self.template.take()).map(assist);
                let PageAssist { observer, found, inliner } = assist.unwrap_or_default();
                let mut rewriter = Rewriter::new(shared.plan.clone(), *body, observer);
                let mut refusals = None;
                if let Some((inliner, refused)) = inliner {
                    apply(Map::Response, &inliner.edits())?;
                    rewriter.substitute(Box::new(inliner));
                    refusals = Some(refused);
                }
                self.page = Some(Page { rewriter, found, refusals, out: Vec::new(), bytes_in: 0, bytes_out: 0 });
            }
            response::Decision::Reply(reply) => return send(shared, &reply),
        }
        Ok(Action::Continue)
    }
}

impl Context for Stream {}

impl HttpContext for Stream {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        let shared = Rc::clone(&self.shared);
        self.request(&shared).unwrap_or_else(|error| refuse("request headers", error))
    }

    fn on_http_response_headers(&mut self, _: usize, _: bool) -> Action {
        // No visit: the reply is ours or the proxy's own.
        let Some(visit) = self.visit.take() else { return Action::Continue };
        let shared = Rc::clone(&self.shared);
        self.response(&shared, &visit).unwrap_or_else(|error| refuse("response headers", error))
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        let (shared, Some(page)) = (&self.shared, &mut self.page) else { return Action::Continue };
        let outcome = page.pass(shared, size, end_of_stream);
        if let Err(error) = &outcome {
            page.give_up(*error);
        }
        if end_of_stream || outcome.is_err() {
            page.leave_account(shared);
            page.count(shared);
            self.page = None;
        }
        Action::Continue
    }

    /// Trailers take the place of the body's end, and no body can be sent any more: what is held back (the beginning of
    /// an unfinished tag, no more) is lost. Filters behind this one must not add any; decompressors do.
    fn on_http_response_trailers(&mut self, _: usize) -> Action {
        if let Some(mut page) = self.page.take() {
            let shared = &self.shared;
            page.out.clear();
            page.rewriter.finish(&mut page.out);
            if page.rewriter.broken().is_some() {
                page.break_off(shared);
            } else if !page.out.is_empty() {
                shared.counters.cut_by_trailers();
                log::write(
                    Level::Warn,
                    "url-rewrite: a body ended with trailers in the middle of a tag, which is lost",
                );
            }
            page.leave_account(shared);
            page.count(shared);
        }
        Action::Continue
    }
}

impl Drop for Stream {
    /// The client left mid-page: what was done still counts.
    fn drop(&mut self) {
        if let Some(page) = &self.page {
            page.count(&self.shared);
        }
    }
}

impl Page {
    fn pass(&mut self, shared: &Shared, size: usize, end_of_stream: bool) -> Result<(), HostError> {
        if self.rewriter.broken().is_some() {
            // All that came of it was let out by the callbacks before.
            self.break_off(shared);
            return Ok(());
        }
        let chunk = body::read(Buffer::ResponseBody, size)?;
        self.out.clear();
        let became = self.rewriter.write(&chunk, &mut self.out);
        if end_of_stream {
            self.rewriter.finish(&mut self.out);
        }
        if let (Some(objects), Some(found)) = (&shared.objects, &self.found) {
            objects.take(found, &shared.counters);
        }
        self.bytes_in = self.rewriter.bytes_read();
        self.bytes_out += self.out.len() as u64;
        let replaced = match became {
            Chunk::AsItCame => Ok(()),
            Chunk::Changed => body::replace(Buffer::ResponseBody, size, &self.out),
        };
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        if end_of_stream && self.rewriter.broken().is_some() {
            self.break_off(shared);
        }
        replaced
    }

    /// Makes a body that cannot be unpacked to its end look as broken as it is.
    fn break_off(&self, shared: &Shared) {
        let Some(why) = self.rewriter.broken() else { return };
        shared.counters.broken.add(1);
        log::write(Level::Warn, &format!("url-rewrite: a body is broken off: {why}"));
        if let Err(error) = body::break_off() {
            log::write(Level::Error, &format!("url-rewrite: a broken body cannot be broken off: {error}"));
        }
    }

    /// The host would not give or take a chunk: the rest passes as it is, unless that means nothing behind what was unpacked.
    fn give_up(&self, error: HostError) {
        if self.rewriter.unpacks() && body::break_off().is_ok() {
            log::write(Level::Warn, &format!("url-rewrite: response body: {error}; it is packed, and broken off"));
        } else {
            log::write(Level::Warn, &format!("url-rewrite: response body: {error}; the rest is passed as it is"));
        }
    }

    fn leave_account(&self, shared: &Shared) {
        if !shared.plan.keeps_account() {
            return;
        }
        account::leave(&self.rewriter.counts(), self.rewriter.bail_out(), self.bytes_in);
    }

    fn count(&self, shared: &Shared) {
        shared.counters.bytes_in.add(self.bytes_in);
        shared.counters.bytes_out.add(self.bytes_out);
        shared.counters.rewritten(&self.rewriter.counts(), self.rewriter.bail_out());
        if let Some(refusals) = &self.refusals {
            shared.counters.not_inlined(refusals);
        }
    }
}

fn apply(map: Map, edits: &[Edit]) -> Result<(), HostError> {
    for edit in edits {
        match edit {
            Edit::Set(name, value) => headers::set(map, name, value)?,
            Edit::Add(name, value) => headers::add(map, name, value)?,
            Edit::Remove(name) => headers::remove(map, name)?,
        }
    }
    Ok(())
}

fn send(shared: &Shared, answer: &Reply) -> Result<Action, HostError> {
    let fields: Vec<(&str, &[u8])> = answer.headers.iter().map(|(name, value)| (*name, value.as_slice())).collect();
    reply::send(answer.status, "longhaul_url_rewrite", &fields, answer.body.as_bytes())?;
    shared.counters.replied(answer.because);
    Ok(Action::Pause)
}

/// A header that could not be edited may be a credential, or what keeps a page out of the proxy's origin: better no
/// answer than that.
fn refuse(phase: &str, error: HostError) -> Action {
    log::write(Level::Error, &format!("url-rewrite: {phase}: {error}; answered 502"));
    let sent = reply::send(502, "longhaul_url_rewrite_host_error", &[], b"");
    if sent.is_ok() { Action::Pause } else { Action::Continue }
}

#[cfg(feature = "panic-for-tests")]
#[allow(clippy::panic)] // its purpose
fn panic_for_tests(fields: &url_rewriting::headers::Fields<'_>) {
    assert!(fields.get("x-panic-for-tests").is_none(), "asked to panic by x-panic-for-tests");
}
