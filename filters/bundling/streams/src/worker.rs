//! State that all streams of a worker share. It carries out the decisions of an end.

use crate::counters::Counters;
use filter_host::headers::{self, Map};
use filter_host::log::{self, Level};
use filter_host::shared::ProxyBoard;
use filter_host::stream::Action;
use filter_host::{HostError, callout, clock, context, reply, timer};
use http_semantics::Reply;
use object_bypass::Bypass;
use page_flights::{Answer, Callee, Config, End, Release, VALID_FIELD};
use pipe_encoding::Windows;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;

/// Returns milliseconds on a monotonic clock that all workers share. If a deadline used the time of day, setting that
/// clock back would hold a browser's request for the same time.
pub(crate) fn now_ms() -> u64 {
    let elapsed = clock::monotonic().unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// A worker's end, and its access to the proxy.
#[derive(Debug)]
pub(crate) struct Worker<E> {
    /// Borrowed only during one call, so it is never borrowed twice.
    pub(crate) end: RefCell<E>,
    pub(crate) counters: Counters,
    /// The memory of all coders.
    pub(crate) windows: Windows,
    /// True if pages cross the link as deltas.
    pub(crate) deltas: bool,
    /// None without a cache at this end.
    pub(crate) bypass: Option<Bypass<u64>>,
    pub(crate) cluster: String,
    /// The cluster of the resolver that learns which hosts pages name. Empty: none is.
    names: String,
    root: u32,
    /// The filter's own pending requests, with the end's id for each.
    calls: RefCell<HashMap<callout::Token, u64>>,
    period: Cell<Option<Duration>>,
}

impl<E: End> Worker<E> {
    pub(crate) fn new(end: E, counters: Counters, config: Config, root: u32) -> Self {
        Self {
            end: RefCell::new(end),
            counters,
            windows: Windows::default(),
            deltas: config.deltas,
            bypass: config.caches.then(Bypass::default),
            cluster: config.cluster,
            names: config.names.unwrap_or_default(),
            root,
            calls: RefCell::default(),
            period: Cell::default(),
        }
    }

    /// Carries out the decisions of the end, in a callback of the context `own`.
    pub(crate) fn settle(&self, own: u32) {
        let Ok(mut end) = self.end.try_borrow_mut() else { return };
        for (stream, release) in end.take_releases() {
            let done = context::on_behalf_of(stream, own, || match &release {
                Release::Answer(answer) => send(answer),
                Release::GoOn => context::continue_request(),
                Release::Valid(lines) => {
                    // Without the field, the cache validates the object itself.
                    let set = headers::set(Map::Request, VALID_FIELD, lines.as_bytes());
                    context::continue_request().and(set)
                }
                Release::GoOnDown => context::continue_response(),
            });
            if let Err(error) = done {
                log::write(Level::Debug, &format!("bundling: a held stream has ended: {error}"));
            }
        }
        self.counters.add(end.counts());
        let period = end.next_tick();
        if period != self.period.get() {
            let set = context::on_behalf_of(self.root, own, || period.map_or_else(timer::stop, timer::start));
            if set.is_ok() {
                self.period.set(period);
            }
        }
    }

    /// Returns the decision about a request of the stream `own`. The request passes unchanged if the host failed.
    pub(crate) fn decided(&self, own: u32, outcome: Result<Action, HostError>) -> Action {
        let action = outcome.unwrap_or_else(|error| {
            log::write(Level::Warn, &format!("bundling: a request passes unchanged: {error}"));
            Action::Continue
        });
        self.settle(own);
        action
    }

    /// Sends the requests of the end. Call it only in a callback of the root context. A response arrives at the context
    /// whose callback sent the request, and no other context outlives a page.
    fn send_calls(&self) {
        let Ok(mut end) = self.end.try_borrow_mut() else { return };
        for call in end.take_calls() {
            let cluster = match call.to {
                Callee::Own => &self.cluster,
                Callee::Names => &self.names,
            };
            match callout::send(cluster, &call.fields, Duration::from_millis(call.timeout_ms)) {
                Ok(token) => {
                    if let Ok(mut calls) = self.calls.try_borrow_mut() {
                        calls.insert(token, call.id);
                    }
                }
                Err(error) => {
                    log::write(Level::Warn, &format!("bundling: cannot send an HTTP call: {error}"));
                    end.answered(&ProxyBoard, call.id, &Answer::Failed, now_ms());
                }
            }
        }
    }

    pub(crate) fn on_tick(&self) {
        if let Ok(mut end) = self.end.try_borrow_mut() {
            end.tick(&ProxyBoard, now_ms());
        }
        self.send_calls();
        self.settle(self.root);
    }

    pub(crate) fn on_answer(&self, token: callout::Token, header_count: usize, body_bytes: usize) {
        let call = self.calls.try_borrow_mut().ok().and_then(|mut calls| calls.remove(&token));
        let Some(call) = call else { return };
        let came = read(header_count, body_bytes);
        if let Ok(mut end) = self.end.try_borrow_mut() {
            match &came {
                Ok(Some((headers, body))) => {
                    let headers: Vec<(&[u8], &[u8])> = headers.iter().collect();
                    end.answered(&ProxyBoard, call, &Answer::Came(&headers, body), now_ms());
                }
                Ok(None) | Err(_) => end.answered(&ProxyBoard, call, &Answer::Failed, now_ms()),
            }
        }
        self.send_calls();
        self.settle(self.root);
    }

    pub(crate) fn on_gone(&self, stream: u32) {
        if let Ok(mut end) = self.end.try_borrow_mut() {
            end.gone(stream);
        }
        self.settle(self.root);
    }
}

/// A response to a request of the filter. None if no response came.
type Came = Option<(filter_host::headers::Pairs, Vec<u8>)>;

/// Reads the response to a request of the filter, in its callback.
pub(crate) fn read(header_count: usize, body_bytes: usize) -> Result<Came, HostError> {
    match callout::ending(header_count, body_bytes)? {
        callout::Ending::Answered { headers, body_bytes } => Ok(Some((headers, callout::read_body(body_bytes)?))),
        callout::Ending::Failed => Ok(None),
    }
}

/// Sends a response on the stream of the effective context.
pub(crate) fn send(answer: &Reply) -> Result<(), HostError> {
    reply::send(answer, "longhaul_bundling")
}
