//! Every URL that is found passes here: it is decided, counted and, for `explain`, told.

use std::fmt;
use std::rc::Rc;

use url_mapping::{Base, Outcome, Reason, Use};

use crate::places::Place;
use crate::plan::Plan;

/// One URL of a body and what became of it.
#[derive(Debug)]
pub struct UrlEvent<'e> {
    /// Where it stands: element and attribute.
    pub place: &'static Place,
    /// What it says, decoded; empty where it was not read.
    pub url: &'e str,
    /// What became of it.
    pub outcome: &'e Outcome,
    /// Where its value begins, in bytes from the start of the body.
    pub offset: usize,
}

/// Is told of every URL, in the order of the body.
pub trait Observer {
    /// One URL was found and decided.
    fn url(&mut self, event: &UrlEvent<'_>);
}

impl<F: FnMut(&UrlEvent<'_>)> Observer for F {
    fn url(&mut self, event: &UrlEvent<'_>) {
        self(event);
    }
}

/// How many URLs of a body moved, and how many stayed for which reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// URLs that now point to the proxy.
    pub moved: u64,
    left: [u64; Reason::ALL.len()],
}

impl Default for Tally {
    fn default() -> Self {
        Self { moved: 0, left: [0; Reason::ALL.len()] }
    }
}

impl Tally {
    /// The reasons for which URLs stayed, and how many each; reasons without a URL are not listed.
    pub fn left(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().copied().zip(self.left).filter(|&(_, count)| count > 0)
    }

    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Moved(_) => self.moved += 1,
            Outcome::Left(reason) | Outcome::Pinned(_, reason) => {
                if let Some(count) = self.left.get_mut(reason.index()) {
                    *count += 1;
                }
            }
        }
    }
}

/// Decides and keeps count, for one body.
pub(crate) struct Ledger {
    pub(crate) plan: Rc<Plan>,
    pub(crate) base: Base,
    pub(crate) tally: Tally,
    observer: Option<Box<dyn Observer>>,
}

impl Ledger {
    pub(crate) fn new(plan: Rc<Plan>, base: Base, observer: Option<Box<dyn Observer>>) -> Self {
        Self { plan, base, tally: Tally::default(), observer }
    }

    /// The URL to write in place of `reference`, if it changes.
    pub(crate) fn decide(
        &mut self,
        place: &'static Place,
        offset: usize,
        reference: &str,
        verdict: Result<Use, Reason>,
    ) -> Option<String> {
        let outcome = match verdict {
            Ok(usage) => self.plan.mapper().forward(&self.base, reference, usage),
            Err(reason) => Outcome::Left(reason),
        };
        self.record(place, offset, reference, &outcome);
        match outcome {
            Outcome::Moved(url) | Outcome::Pinned(url, _) => Some(url),
            Outcome::Left(_) => None,
        }
    }

    /// Records a URL that was decided without being read.
    pub(crate) fn leave(&mut self, place: &'static Place, offset: usize, reference: &str, reason: Reason) {
        self.record(place, offset, reference, &Outcome::Left(reason));
    }

    fn record(&mut self, place: &'static Place, offset: usize, url: &str, outcome: &Outcome) {
        self.tally.count(outcome);
        if let Some(observer) = &mut self.observer {
            observer.url(&UrlEvent { place, url, outcome, offset });
        }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ledger").field("base", &self.base).field("tally", &self.tally).finish_non_exhaustive()
    }
}
