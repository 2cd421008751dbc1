//! Prefetching. Sends the requests that [`Fetcher`] orders, and reports each result back to it.
//!
//! A stream's requests end with the stream, and a page ends before its objects arrive. So the root context sends the
//! requests. A timer wakes it as soon as a request waits.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use filter_host::callout::{self, Ending, Token};
use filter_host::log::{self, Level};
use filter_host::{HostError, clock, timer};
use page_objects::{Candidates, Fetcher, PrefetchObserver, RequestTemplate, Skip};
use url_rewriting::headers::{Fields, request};
use url_rewriting::{Observer, Plan};

use crate::counters::Counters;

/// The cluster that leads through the cache and the guard (`envoy-config/render/templates/part/fetch_listener.yaml.j2`).
const CLUSTER: &str = "fetch";

/// Time limit for an object, to its last byte. After it the cache continues without this filter.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The delay of a timer that fires right after the current callback.
const AT_ONCE: Duration = Duration::from_millis(1);

/// One worker's state for the objects of pages.
#[derive(Debug)]
pub(crate) struct Objects {
    fetcher: RefCell<Fetcher>,
}

/// Candidates that a page's observer has found and that are not yet taken.
pub(crate) type Found = Rc<RefCell<Candidates>>;

/// Returns the observer of a page, and the place where it leaves its finds. `None` if no object may be prefetched.
pub(crate) fn observe(
    plan: &Rc<Plan>,
    template: Result<RequestTemplate, Skip>,
    answer: &Fields<'_>,
    counters: &Counters,
) -> Option<(Box<dyn Observer>, Found)> {
    match template.and_then(|template| template.with_answer(answer)) {
        Ok(template) => {
            let (observer, found) = PrefetchObserver::new(Rc::clone(plan), template);
            Some((Box::new(observer), found))
        }
        Err(why) => {
            counters.skipped(why);
            None
        }
    }
}

impl Objects {
    pub(crate) fn new() -> Self {
        Self { fetcher: RefCell::default() }
    }

    /// Passes the candidates of a page's observer to the fetcher.
    pub(crate) fn take(&self, found: &Found, counters: &Counters) {
        let (Ok(mut found), Ok(mut fetcher)) = (found.try_borrow_mut(), self.fetcher.try_borrow_mut()) else { return };
        found.skipped.drain(..).for_each(|why| counters.skipped(why));
        let now_ms = now_ms();
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
            fetcher.saw(visit, answer, now_ms());
        }
    }

    /// Sends the requests that are due. Call it in the root context, because the responses arrive at the context that
    /// sent the request.
    pub(crate) fn send(&self, counters: &Counters) {
        let Ok(mut fetcher) = self.fetcher.try_borrow_mut() else { return };
        let now_ms = now_ms();
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
        if let Some(ended) = fetcher.ended(token.number(), pairs.as_ref(), now_ms()) {
            counters.fetched(ended);
        }
        Ok(())
    }
}

fn now_ms() -> u64 {
    u64::try_from(clock::monotonic().unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
