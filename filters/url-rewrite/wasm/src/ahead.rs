//! Fetching ahead, and what becomes of what came: what the core's [`Fetcher`] orders is sent, and how it ended is told back.
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
use url_rewriting::headers::{Fields, request};
use url_rewriting::inline::{Inliner, Shelf, Visitor};
use url_rewriting::prefetch::{Asker, CLUSTER, Fetcher, Scout, Skip, TIMEOUT_MS, Wish, Wishes};
use url_rewriting::{Observer, Plan};

use crate::board;
use crate::counters::Counters;

/// As soon as the callback that woke it is over.
const AT_ONCE: Duration = Duration::from_millis(1);

/// The fetches of one worker.
#[derive(Debug)]
pub(crate) struct Ahead {
    fetcher: RefCell<Fetcher>,
    /// What may be put into pages; None where nothing is.
    shelf: Option<Rc<RefCell<Shelf>>>,
    started: Instant,
    /// Of marks of visitors.
    salt: [u8; 8],
}

/// What a page's scout has found and nobody has taken yet.
pub(crate) type Found = Rc<RefCell<Wishes>>;

/// What goes along with a page.
pub(crate) struct Escort {
    scout: Box<dyn Observer>,
    found: Found,
    inliner: Option<Inliner>,
}

impl Escort {
    pub(crate) fn into_parts(self) -> (Option<Box<dyn Observer>>, Option<Found>, Option<Inliner>) {
        (Some(self.scout), Some(self.found), self.inliner)
    }
}

impl Ahead {
    /// None where nothing is fetched ahead.
    pub(crate) fn new(plan: &Plan) -> Option<Self> {
        plan.prefetches().then(|| Self {
            fetcher: RefCell::default(),
            shelf: Shelf::of(plan).map(|shelf| Rc::new(RefCell::new(shelf))),
            started: Instant::now(),
            salt: board::salt(),
        })
    }

    /// Who looks after the objects of a page, if any of them are to be fetched.
    pub(crate) fn escort(
        &self,
        plan: &Rc<Plan>,
        asker: Result<Asker, Skip>,
        visit: &request::Visit,
        answer: &Fields<'_>,
        counters: &Counters,
    ) -> Option<Escort> {
        match asker.and_then(|asker| asker.with_answer(answer)) {
            Ok(asker) => {
                let now_ms = self.now_ms();
                let inline = |objects| {
                    let address = board::client_address();
                    let visitor = Visitor { address: &address, salt: self.salt, now_h: board::now_h() };
                    Inliner::new(plan, objects, &asker, visit, answer, now_ms, (&visitor, &ProxyBoard))
                };
                let inliner = self.shelf.as_ref().and_then(inline);
                let (scout, found) = Scout::new(Rc::clone(plan), asker);
                Some(Escort { scout: Box::new(scout), found, inliner })
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
            match callout::send(CLUSTER, &order.fields(), Duration::from_millis(TIMEOUT_MS)) {
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
        let stored = |wish: &Wish, fresh_ms| self.shelve(wish, fields, body_bytes, fresh_ms, now_ms);
        if let Some(ended) = fetcher.ended(token.number(), fields, now_ms, stored) {
            counters.fetched(ended);
        }
        Ok(())
    }

    /// Keeps an object at hand, if it may be put into pages. Without its body it is not there, that is all.
    fn shelve(&self, wish: &Wish, fields: Option<&Fields<'_>>, body_bytes: usize, fresh_ms: u64, now_ms: u64) {
        let Some(mut objects) = self.shelf.as_ref().and_then(|objects| objects.try_borrow_mut().ok()) else { return };
        let Some(spot) = fields.and_then(|fields| objects.spot(wish, fields, body_bytes, fresh_ms, now_ms)) else {
            return;
        };
        if let Ok(body) = callout::read_body(body_bytes) {
            objects.put(&spot, &body);
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
