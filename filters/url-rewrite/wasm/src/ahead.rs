//! Fetching ahead: what the core's [`Fetcher`] orders is sent, and how it ended is told back.
//!
//! A request of a stream ends with the stream, and a page's end comes before its objects; so requests are sent by the root
//! context, which a timer wakes as soon as something waits.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use filter_host::callout::{self, Ending, Token};
use filter_host::log::{self, Level};
use filter_host::{HostError, timer};
use url_rewriting::headers::{Fields, request};
use url_rewriting::prefetch::{Asker, CLUSTER, Fetcher, Scout, Skip, TIMEOUT_MS, Wishes};
use url_rewriting::{Observer, Plan};

use crate::counters::Counters;

/// As soon as the callback that woke it is over.
const AT_ONCE: Duration = Duration::from_millis(1);

/// The fetches of one worker.
#[derive(Debug)]
pub(crate) struct Ahead {
    fetcher: RefCell<Fetcher>,
    started: Instant,
}

/// What a page's scout has found and nobody has taken yet.
pub(crate) type Found = Rc<RefCell<Wishes>>;

impl Ahead {
    /// None where nothing is fetched ahead.
    pub(crate) fn new(plan: &Plan) -> Option<Self> {
        plan.prefetches().then(|| Self { fetcher: RefCell::default(), started: Instant::now() })
    }

    /// A scout for a page, if anything of it is to be fetched.
    pub(crate) fn scout(
        plan: &Rc<Plan>,
        asker: Result<Asker, Skip>,
        answer: &Fields<'_>,
        counters: &Counters,
    ) -> Option<(Box<dyn Observer>, Found)> {
        match asker.and_then(|asker| asker.with_answer(answer)) {
            Ok(asker) => {
                let (scout, found) = Scout::new(Rc::clone(plan), asker);
                Some((Box::new(scout), found))
            }
            Err(why) => {
                counters.skipped(why);
                None
            }
        }
    }

    /// Takes what a page's scout has found.
    pub(crate) fn take(&self, found: &Found, counters: &Counters) {
        let (Ok(mut found), Ok(mut fetcher)) = (found.try_borrow_mut(), self.fetcher.try_borrow_mut()) else { return };
        found.skipped.drain(..).for_each(|why| counters.skipped(why));
        let now_ms = self.now_ms();
        for wish in found.wishes.drain(..) {
            if let Err(why) = fetcher.ask(wish, now_ms) {
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
            let fields = order.fields();
            let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            match callout::send(CLUSTER, &fields, Duration::from_millis(TIMEOUT_MS)) {
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
        if let Some(ended) = fetcher.ended(token.number(), pairs.as_ref(), self.now_ms()) {
            counters.fetched(ended);
        }
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
