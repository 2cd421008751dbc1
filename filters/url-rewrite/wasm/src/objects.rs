//! Prefetching and inlining. Sends the requests that [`Fetcher`] orders, reports each result back to it, and keeps the
//! objects that may be inlined in pages.
//!
//! A stream's requests end with the stream, and a page ends before its objects arrive. So the root context sends the
//! requests. A timer wakes it as soon as a request waits.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use filter_host::callout::{self, Ending, Token};
use filter_host::log::{self, Level};
use filter_host::shared::ProxyBoard;
use filter_host::{HostError, timer};
use page_objects::Config;
use page_objects::inline::{Inliner, ObjectStore, Refusals, Visitor};
use page_objects::prefetch::{Candidate, Candidates, Fetcher, PrefetchObserver, RequestTemplate, Skip};
use url_rewriting::headers::{Fields, request};
use url_rewriting::{Observer, Plan};

use crate::board;
use crate::counters::Counters;

/// The cluster that leads through the cache and the guard (`envoy-config/templates/part/fetch_listener.yaml.j2`).
const CLUSTER: &str = "fetch";

/// Time limit for an object, to its last byte. After it the cache continues without this filter.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The delay of a timer that fires right after the current callback.
const AT_ONCE: Duration = Duration::from_millis(1);

/// One worker's state for the objects of pages.
#[derive(Debug)]
pub(crate) struct Objects {
    fetcher: RefCell<Fetcher>,
    /// The objects that may be inlined; `None` if nothing is inlined.
    store: Option<Rc<RefCell<ObjectStore>>>,
    started: Instant,
    /// The secret for the marks of visitors.
    secret: [u8; 16],
}

/// Candidates that a page's observer has found and that are not yet taken.
pub(crate) type Found = Rc<RefCell<Candidates>>;

/// The helpers that accompany a page.
#[derive(Default)]
pub(crate) struct PageAssist {
    pub(crate) observer: Option<Box<dyn Observer>>,
    pub(crate) found: Option<Found>,
    pub(crate) inliner: Option<(Inliner, Refusals)>,
}

impl Objects {
    /// Returns `None` if the configuration disables prefetching.
    pub(crate) fn new<Admission>(config: &Config<Admission>) -> Option<Self> {
        config.prefetch.then(|| Self {
            fetcher: RefCell::default(),
            store: ObjectStore::of(config).map(|store| Rc::new(RefCell::new(store))),
            started: Instant::now(),
            secret: board::secret(),
        })
    }

    /// Returns the helpers for the objects of a page. They are empty if no object may be prefetched.
    pub(crate) fn assist(
        &self,
        plan: &Rc<Plan>,
        template: Result<RequestTemplate, Skip>,
        visit: &request::Visit,
        answer: &Fields<'_>,
        counters: &Counters,
    ) -> PageAssist {
        match template.and_then(|template| template.with_answer(answer)) {
            Ok(template) => {
                let now_ms = self.now_ms();
                let inline = |store| {
                    let address = board::client_address();
                    let visitor = Visitor { address: &address, secret: self.secret, now_h: board::now_h() };
                    Inliner::new(plan, store, &template, visit, answer, now_ms, (&visitor, &ProxyBoard))
                };
                let inliner = self.store.as_ref().and_then(inline);
                let (observer, found) = PrefetchObserver::new(Rc::clone(plan), template);
                PageAssist { observer: Some(Box::new(observer)), found: Some(found), inliner }
            }
            Err(why) => {
                counters.skipped(why);
                PageAssist::default()
            }
        }
    }

    /// Passes the candidates of a page's observer to the fetcher.
    pub(crate) fn take(&self, found: &Found, counters: &Counters) {
        let (Ok(mut found), Ok(mut fetcher)) = (found.try_borrow_mut(), self.fetcher.try_borrow_mut()) else { return };
        found.skipped.drain(..).for_each(|why| counters.skipped(why));
        let now_ms = self.now_ms();
        for candidate in found.candidates.drain(..) {
            if let Err(why) = fetcher.ask(candidate, now_ms) {
                counters.skipped(why);
            }
        }
        if !fetcher.is_idle()
            && let Err(error) = timer::start(AT_ONCE)
        {
            log::write(Level::Warn, &format!("url-rewrite: no timer, so nothing is prefetched: {error}"));
        }
    }

    /// Passes the response to a browser's request to the fetcher, which learns from it.
    pub(crate) fn saw(&self, visit: &request::Visit, answer: &Fields<'_>) {
        if let Ok(mut fetcher) = self.fetcher.try_borrow_mut() {
            fetcher.saw(visit, answer, self.now_ms());
        }
    }

    /// Sends the requests that are due. Call it in the root context, because the responses arrive at the context that
    /// sent the request.
    pub(crate) fn send(&self, counters: &Counters) {
        let Ok(mut fetcher) = self.fetcher.try_borrow_mut() else { return };
        let now_ms = self.now_ms();
        while let Some(order) = fetcher.next(now_ms, |why| counters.skipped(why)) {
            match callout::send(CLUSTER, &order.fields(), TIMEOUT) {
                Ok(token) => fetcher.sent(order, token.number()),
                Err(_) => counters.fetched(fetcher.not_sent(&order, now_ms)),
            }
        }
    }

    /// Handles the end of a request that this filter sent.
    pub(crate) fn ended(
        &self,
        token: Token,
        header_count: usize,
        body_bytes: usize,
        counters: &Counters,
    ) -> Result<(), HostError> {
        let ending = callout::ending(header_count, body_bytes)?;
        let pairs = match &ending {
            Ending::Answered { headers, .. } => Some(headers.iter().collect::<Fields<'_>>()),
            Ending::Failed => None,
        };
        let Ok(mut fetcher) = self.fetcher.try_borrow_mut() else { return Ok(()) };
        let now_ms = self.now_ms();
        let fields = pairs.as_ref();
        let stored = |candidate: &Candidate, fresh_ms| self.keep(candidate, fields, body_bytes, fresh_ms, now_ms);
        if let Some(ended) = fetcher.ended(token.number(), fields, now_ms, stored) {
            counters.fetched(ended);
        }
        Ok(())
    }

    /// Keeps an object that may be inlined. If its body cannot be read, the object is not kept.
    fn keep(&self, candidate: &Candidate, fields: Option<&Fields<'_>>, body_bytes: usize, fresh_ms: u64, now_ms: u64) {
        let Some(mut store) = self.store.as_ref().and_then(|store| store.try_borrow_mut().ok()) else { return };
        let reservation = fields.and_then(|fields| store.reserve(candidate, fields, body_bytes, fresh_ms, now_ms));
        let Some(reservation) = reservation else { return };
        if let Ok(body) = callout::read_body(body_bytes) {
            store.put(&reservation, &body);
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
