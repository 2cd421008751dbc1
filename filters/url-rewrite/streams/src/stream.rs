//! One request and its response. Each callback makes one call into the pure crates.

use crate::account;
use crate::objects::{self, Found};
use crate::shared::Shared;
use filter_host::body::{self, Buffer};
use filter_host::headers::{self, Map, apply};
use filter_host::log::{self, Level};
use filter_host::stream::{Action, HttpStream};
use filter_host::{HostError, property, reply};
use object_bypass::Way;
use object_config::PRIVATE;
use page_objects::{RequestTemplate, Skip};
use std::rc::Rc;
use url_rewriting::headers::{Fields, Reply, ReplyReason, request};
use url_rewriting::response;
use url_rewriting::{Chunk, Ends, Plan, Rewriter};

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    shared: Rc<Shared>,
    /// The request, and the plan for its client.
    visit: Option<(request::Visit, Rc<Plan>)>,
    /// The fields that requests for the page's objects repeat, if the objects may be prefetched.
    template: Option<Result<RequestTemplate, Skip>>,
    page: Option<Page>,
    /// The way of the request, if it may bypass the cache.
    way: Option<Way<u64>>,
}

/// The output buffer keeps at most this many bytes of capacity between chunks. The output of a compressed chunk is
/// several times as long.
const KEPT_BYTES: usize = 64 * 1024;

/// A body that the filter rewrites.
#[derive(Debug)]
struct Page {
    rewriter: Rewriter,
    found: Option<Found>,
    /// Reused for every chunk, so that a page costs one allocation of a chunk's size.
    out: Vec<u8>,
    bytes_in: u64,
    bytes_out: u64,
}

impl Stream {
    pub(crate) fn new(shared: Rc<Shared>) -> Self {
        Self { shared, visit: None, template: None, page: None, way: None }
    }

    fn request(&mut self, shared: &Shared) -> Result<Action, HostError> {
        let pairs = headers::list(Map::Request)?;
        let fields: Fields<'_> = pairs.iter().collect();
        #[cfg(feature = "panic-for-tests")]
        panic_for_tests(&fields);
        let plan = shared.plans.of_connection(&ClientConnection);
        match request::decide(&plan, &fields) {
            request::Decision::Forward { edits, visit } => {
                apply(Map::Request, &edits)?;
                self.template = shared.objects.as_ref().and_then(|_| RequestTemplate::of(&visit, &fields));
                if let Some(bypass) = &shared.bypass {
                    let [scheme, authority, path] = [visit.scheme.as_str(), &visit.authority, &visit.path];
                    let url = object_bypass::key(scheme.as_bytes(), authority.as_bytes(), path.as_bytes());
                    let way = bypass.request(url, visit.bears_cookie)?;
                    shared.counters.bypassed.add(u64::from(way == Way::Past));
                    self.way = Some(way);
                }
                self.visit = Some((visit, plan));
                Ok(Action::Continue)
            }
            request::Decision::Reply(reply, because) => send(shared, &reply, because),
        }
    }

    fn response(&mut self, shared: &Shared, visit: &request::Visit, plan: &Rc<Plan>) -> Result<Action, HostError> {
        let pairs = headers::list(Map::Response)?;
        let fields: Fields<'_> = pairs.iter().collect();
        if let (Some(bypass), Some(way)) = (&shared.bypass, self.way) {
            bypass.response(way, fields.get(PRIVATE))?;
        }
        if let Some(objects) = &shared.objects {
            objects.saw(visit, &fields);
        }
        match response::decide(plan, visit, &fields) {
            response::Decision::Pass { edits } => apply(Map::Response, &edits)?,
            response::Decision::Rewrite { edits, body } => {
                apply(Map::Response, &edits)?;
                shared.counters.pages.add(1);
                let observe = |template| objects::observe(plan, template, &fields, &shared.counters);
                let (observer, found) = self.template.take().and_then(observe).unzip();
                let rewriter = Rewriter::new(Rc::clone(plan), *body, observer);
                self.page = Some(Page { rewriter, found, out: Vec::new(), bytes_in: 0, bytes_out: 0 });
            }
            response::Decision::Reply(reply, because) => return send(shared, &reply, because),
        }
        Ok(Action::Continue)
    }
}

impl HttpStream for Stream {
    fn request_headers(&mut self, _: bool) -> Action {
        let shared = Rc::clone(&self.shared);
        self.request(&shared).unwrap_or_else(|error| refuse("request headers", error))
    }

    fn response_headers(&mut self, _: bool) -> Action {
        // Without a visit the filter or the proxy wrote the reply itself.
        let Some((visit, plan)) = self.visit.take() else { return Action::Continue };
        let shared = Rc::clone(&self.shared);
        self.response(&shared, &visit, &plan).unwrap_or_else(|error| refuse("response headers", error))
    }

    fn response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
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

    /// Trailers replace the end of the body, so no more body can be sent. The held bytes (at most the beginning of an
    /// unfinished tag) are lost. Filters behind this one must not add trailers; decompressors do.
    fn response_trailers(&mut self) -> Action {
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
    /// If the client disconnects within a page, the work so far still counts.
    fn drop(&mut self) {
        if let Some(page) = &self.page {
            page.count(&self.shared);
        }
    }
}

impl Page {
    fn pass(&mut self, shared: &Shared, size: usize, end_of_stream: bool) -> Result<(), HostError> {
        if self.rewriter.broken().is_some() {
            // Earlier callbacks released all usable output.
            self.break_off(shared);
            return Ok(());
        }
        let Self { rewriter, out, bytes_out, .. } = self;
        let replaced = body::rewrite(Buffer::ResponseBody, size, out, &mut |piece, is_last, out| {
            // Behind the end of a body that is broken, there is nothing to read.
            let became = if rewriter.broken().is_some() { Chunk::Changed } else { rewriter.write(piece, out) };
            if is_last && end_of_stream {
                rewriter.finish(out);
            }
            *bytes_out += out.len() as u64;
            became == Chunk::Changed
        });
        if let (Some(objects), Some(found)) = (&shared.objects, &self.found) {
            objects.take(found, &shared.counters);
        }
        self.bytes_in = self.rewriter.bytes_read();
        self.out.shrink_to(KEPT_BYTES);
        if end_of_stream && self.rewriter.broken().is_some() {
            self.break_off(shared);
        }
        replaced
    }

    /// Resets the stream of a body that could not be decompressed to its end, so that it looks as incomplete as it is.
    fn break_off(&self, shared: &Shared) {
        let Some(why) = self.rewriter.broken() else { return };
        shared.counters.broken.add(1);
        log::write(Level::Warn, &format!("url-rewrite: reset a response whose body cannot be decompressed: {why}"));
        if let Err(error) = body::break_off() {
            log::write(Level::Error, &format!("url-rewrite: cannot reset the response: {error}"));
        }
    }

    /// Handles a chunk that the host would not read or replace. The rest passes unchanged. If the filter decompresses
    /// the body, it resets the stream instead, because the client could not read the compressed rest.
    fn give_up(&self, error: HostError) {
        if self.rewriter.unpacks() && body::break_off().is_ok() {
            log::write(Level::Warn, &format!("url-rewrite: response body: {error}; it is compressed, and reset"));
        } else {
            log::write(Level::Warn, &format!("url-rewrite: response body: {error}; the rest passes unchanged"));
        }
    }

    fn leave_account(&self, shared: &Shared) {
        if !shared.plans.keep_account() {
            return;
        }
        account::leave(&self.rewriter.counts(), self.rewriter.bail_out(), self.bytes_in);
    }

    fn count(&self, shared: &Shared) {
        shared.counters.bytes_in.add(self.bytes_in);
        shared.counters.bytes_out.add(self.bytes_out);
        shared.counters.rewritten(&self.rewriter.counts(), self.rewriter.bail_out());
    }
}

/// The client's connection of the present stream. An end that the proxy does not report is empty.
struct ClientConnection;

impl Ends for ClientConnection {
    fn client(&self) -> Vec<u8> {
        property::get(&["source", "address"]).ok().flatten().unwrap_or_default()
    }

    fn server(&self) -> Vec<u8> {
        property::get(&["destination", "address"]).ok().flatten().unwrap_or_default()
    }
}

fn send(shared: &Shared, answer: &Reply, because: ReplyReason) -> Result<Action, HostError> {
    reply::send(answer, "longhaul_url_rewrite")?;
    shared.counters.replied(because);
    Ok(Action::Pause)
}

/// A header that cannot be edited may be a credential, or may keep a page out of the proxy's origin. A 502 is safer
/// than such a response.
fn refuse(phase: &str, error: HostError) -> Action {
    log::write(Level::Error, &format!("url-rewrite: {phase}: {error}; responded with 502"));
    let sent = reply::send(&Reply::empty(502), "longhaul_url_rewrite_host_error");
    if sent.is_ok() { Action::Pause } else { Action::Continue }
}

#[cfg(feature = "panic-for-tests")]
#[allow(clippy::panic)] // its purpose
fn panic_for_tests(fields: &Fields<'_>) {
    assert!(fields.get("x-panic-for-tests").is_none(), "asked to panic by x-panic-for-tests");
}
