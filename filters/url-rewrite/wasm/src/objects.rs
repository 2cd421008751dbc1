//! Prefetching and inlining: sends the requests that the core's [`Fetcher`] orders, reports each result back to it, and keeps
//! what may be put into pages.
//!
//! A request of a stream ends with the stream, and a page's end comes before its objects; so requests are sent by the root
//! context, which a timer wakes as soon as something waits.

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

/// How long an object may take, to its last byte. The cache goes on without us.
const TIMEOUT: Duration = Duration::from_secs(30);

/// As soon as the callback that woke it is over.
const AT_ONCE: Duration = Duration::from_millis(1);

/// What one worker does about the objects of pages.
#[derive(Debug)]
pub(crate) struct Objects {
    fetcher: RefCell<Fetcher>,
    /// What may be put into pages; None where nothing is.
    store: Option<Rc<RefCell<ObjectStore>>>,
    started: Instant,
    /// Of marks of visitors.
    salt: [u8; 8],
}

/// What a page's observer has found and nobody has taken yet.
pub(crate) type Found = Rc<RefCell<Candidates>>;

/// What goes along with a page.
#[derive(Default)]
pub(crate) struct PageAssist {
    pub(crate) observer: Option<Box<dyn Observer>>,
    pub(crate) found: Option<Found>,
    pub(crate) inliner: Option<(Inliner, Refusals)>,
}

impl Objects {
    /// None where nothing is prefetched.
    pub(crate) fn new(config: &Config) -> Option<Self> {
        config.prefetch.then(|| Self {
            fetcher: RefCell::default(),
            store: ObjectStore::of(config).map(|store| Rc::new(RefCell::new(store))),
            started: Instant::now(),
            salt: board::salt(),
        })
    }

    /// What looks after the objects of a page; nothing where none of them are to be fetched.
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
                    let visitor = Visitor { address: &address, salt: self.salt, now_h: board::now_h() };
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

    /// Takes what a page's observer has found.
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
            log::write(Level::Warn, &format!("url-rewrite: no timer, nothing is fetched ahead: {error}"));
        }
    }

    /// Learns from the answer to a browser's request.
    pub(crate) fn saw(&self, visit: &request::Visit, answer: &Fields<'_>) {
        if let Ok(mut fetcher) = self.fetcher.try_borrow_mut() {
            fetcher.saw(visit, answer, self.now_ms());
        }
    }

    /// Sends what may be sent now. Of the root context: the answers come there.
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

    /// A request of ours ended.
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

    /// Keeps an object at hand, if it may be put into pages. Without its body it is not there, that is all.
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
