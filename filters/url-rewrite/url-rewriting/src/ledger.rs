//! Every URL that is found passes here: it is decided, counted and, for `explain`, told.

use std::fmt;
use std::rc::Rc;

use url_mapping::{Base, Outcome, Reason};

use crate::event::{Fetch, Mention, Observer, UrlEvent};
use crate::headers::csp::Policies;
use crate::links;
use crate::places::{Place, STYLE_ELEMENT};
use crate::plan::Plan;
use crate::preloads::Preloads;
use crate::savings::{MovedHosts, Savings};
use crate::substitute::{DecidedUrl, Decider, Substitute, Substitution, TagContext};

/// How many URLs of a body moved, and how many stayed for which reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// URLs that now point to the proxy.
    pub moved: u64,
    /// URLs in whose place stands the object itself.
    pub substituted: u64,
    /// Bytes of these objects, as they stand in the page.
    pub substituted_bytes: u64,
    left: [u64; Reason::ALL.len()],
    hosts: MovedHosts,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            moved: 0,
            substituted: 0,
            substituted_bytes: 0,
            left: [0; Reason::ALL.len()],
            hosts: MovedHosts::default(),
        }
    }
}

impl Tally {
    /// The reasons for which URLs stayed, and how many each; reasons without a URL are not listed.
    pub fn left(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().copied().zip(self.left).filter(|&(_, count)| count > 0)
    }

    /// What the moves so far save on the link, by estimate.
    pub fn savings(&self) -> Savings {
        self.hosts.savings()
    }

    /// `substituted`: the bytes of the object itself, if that stands in the page.
    fn count(&mut self, outcome: &Outcome, substituted: Option<usize>, page_host: &str) {
        match outcome {
            Outcome::Moved(url) => {
                self.hosts.count(url, page_host);
                if let Some(bytes) = substituted {
                    self.substituted += 1;
                    self.substituted_bytes += bytes as u64;
                } else {
                    self.moved += 1;
                }
            }
            Outcome::Left(reason) | Outcome::Pinned(_, reason) => {
                if let Some(count) = self.left.get_mut(reason.index()) {
                    *count += 1;
                }
            }
        }
    }
}

/// What is written for a URL that changes.
#[derive(Debug)]
pub(crate) enum Written {
    /// In its place.
    Url(String),
    /// In the place of the whole tag.
    Element(Vec<u8>),
}

/// Decides and keeps count, for one body.
pub(crate) struct Ledger {
    pub(crate) plan: Rc<Plan>,
    pub(crate) base: Base,
    /// Content-Security-Policy of headers and, from where they stand, of `meta` elements.
    pub(crate) policies: Policies,
    preloads: Preloads,
    pub(crate) tally: Tally,
    /// None where nothing is put into the page.
    pub(crate) substitute: Option<Box<dyn Substitute>>,
    observer: Option<Box<dyn Observer>>,
}

impl Ledger {
    pub(crate) fn new(
        plan: Rc<Plan>,
        base: Base,
        policies: Policies,
        preloads: Preloads,
        observer: Option<Box<dyn Observer>>,
    ) -> Self {
        Self { plan, base, policies, preloads, tally: Tally::default(), substitute: None, observer }
    }

    /// Decides one URL. If it changes, `write` turns the new URL into what is written in its place, or says why it cannot
    /// be written there.
    pub(crate) fn decide<T>(
        &mut self,
        mention: &Mention<'_>,
        write: impl FnOnce(&str) -> Result<T, Reason>,
    ) -> Option<T> {
        let mut written = None;
        self.decide_as_is(mention, |url| {
            written = Some(write(url)?);
            Ok(())
        });
        written
    }

    /// The same where the new URL, or the object itself as one, is written as it is, if it `fits`.
    pub(crate) fn decide_as_is(
        &mut self,
        mention: &Mention<'_>,
        fits: impl FnOnce(&str) -> Result<(), Reason>,
    ) -> Option<String> {
        match self.decide_in_tag(mention, None, fits)? {
            Written::Url(url) => Some(url),
            Written::Element(_) => None,
        }
    }

    /// The same where the object's text may be written in the place of the whole tag.
    pub(crate) fn decide_in_tag(
        &mut self,
        mention: &Mention<'_>,
        tag: Option<&TagContext<'_>>,
        fits: impl FnOnce(&str) -> Result<(), Reason>,
    ) -> Option<Written> {
        let mut outcome = self.decider().outcome(mention, &self.base);
        if self.waits_for_preload(mention, &outcome) {
            outcome = Outcome::Left(Reason::Preload);
        }
        let object = self.substituted(mention, &outcome, tag);
        let written = match (&outcome, &object) {
            (Outcome::Left(_), _) | (_, Some(Substitution::Element { .. })) => None,
            (_, Some(Substitution::Url(url))) | (Outcome::Moved(url) | Outcome::Pinned(url, _), _) => Some(url),
        };
        if let Some(Err(reason)) = written.map(|url| fits(url)) {
            outcome = Outcome::Left(reason);
        }
        let bytes = object.as_ref().map(Substitution::bytes);
        self.record(mention.place, mention.offset, mention.url, &outcome, mention.fetch(), bytes);
        match (outcome, object) {
            (Outcome::Left(_), _) => None,
            (_, Some(Substitution::Element { text, urls })) => {
                for DecidedUrl { url, outcome, fetch } in urls {
                    self.record(STYLE_ELEMENT, mention.offset, &url, &outcome, fetch, None);
                }
                Some(Written::Element(text))
            }
            (_, Some(Substitution::Url(url))) | (Outcome::Moved(url) | Outcome::Pinned(url, _), _) => {
                Some(Written::Url(url))
            }
        }
    }

    /// Returns true for a preload that stays, and for any other use of the object that such a preload names.
    fn waits_for_preload(&mut self, mention: &Mention<'_>, outcome: &Outcome) -> bool {
        match (outcome, mention.verdict) {
            (Outcome::Moved(url), Ok(ask)) if ask.is_preload && links::may_lack_consumer(ask.usage) => {
                !self.preloads.may_move_preload(url)
            }
            (Outcome::Moved(url), _) => !self.preloads.may_move(url),
            _ => false,
        }
    }

    /// Records a URL that stays for a reason that is known without looking at it.
    pub(crate) fn leave(&mut self, place: &'static Place, offset: usize, reason: Reason) {
        let outcome = Outcome::Left(reason);
        // Whoever counts the uses of objects must see it.
        self.substituted(&Mention { place, offset, url: "", verdict: Err(reason) }, &outcome, None);
        self.record(place, offset, "", &outcome, None, None);
    }

    /// The object itself, if it stands in the page.
    fn substituted(
        &mut self,
        mention: &Mention<'_>,
        outcome: &Outcome,
        tag: Option<&TagContext<'_>>,
    ) -> Option<Substitution> {
        let Self { plan, base, policies, substitute: Some(substitute), .. } = self else { return None };
        let Mention { place, offset, url, .. } = *mention;
        let event = UrlEvent { place, url, outcome, fetch: mention.fetch(), base, offset };
        substitute.consider(&event, tag, &Decider { plan, base, policies })
    }

    fn decider(&self) -> Decider<'_> {
        Decider { plan: &self.plan, base: &self.base, policies: &self.policies }
    }

    fn record(
        &mut self,
        place: &'static Place,
        offset: usize,
        url: &str,
        outcome: &Outcome,
        fetch: Option<Fetch>,
        substituted: Option<usize>,
    ) {
        self.tally.count(outcome, substituted, self.base.page_host());
        if let Some(observer) = &mut self.observer {
            observer.url(&UrlEvent { place, url, outcome, fetch, base: &self.base, offset });
        }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ledger").field("base", &self.base).field("tally", &self.tally).finish_non_exhaustive()
    }
}
