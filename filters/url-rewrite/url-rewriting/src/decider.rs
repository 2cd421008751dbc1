//! The visitor of a body that is rewritten. It decides and counts every URL and reports it to the observer.

use std::fmt;
use std::rc::Rc;

use page_scanner::{Fits, LoadRequest, Place, UrlReference, Visitor};
use url_mapping::{Base, Level, Object, Outcome, Reason, Use};

use crate::event::{Observer, UrlEvent};
use crate::headers::csp::{self, Policies};
use crate::plan::Plan;
use crate::preloads::{Preloads, may_lack_consumer};
use crate::savings::{MovedHosts, Savings};

/// The number of URLs of a body that moved, and of those that stayed, by reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlCounts {
    /// URLs that now point to the proxy.
    pub moved: u64,
    left: [u64; Reason::ALL.len()],
    hosts: MovedHosts,
}

impl Default for UrlCounts {
    fn default() -> Self {
        Self { moved: 0, left: [0; Reason::ALL.len()], hosts: MovedHosts::default() }
    }
}

impl UrlCounts {
    /// Returns each reason for which URLs stayed, with their number. Reasons without a URL are left out.
    pub fn left(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().copied().zip(self.left).filter(|&(_, count)| count > 0)
    }

    /// Returns an estimate of what the moves so far save on the link.
    pub fn savings(&self) -> Savings {
        self.hosts.savings()
    }

    /// Counts one URL.
    fn count(&mut self, outcome: &Outcome, page_host: &str) {
        match outcome {
            Outcome::Moved(url) => {
                self.hosts.count(url, page_host);
                self.moved += 1;
            }
            Outcome::Left(reason) | Outcome::Pinned(_, reason) => {
                if let Some(count) = self.left.get_mut(reason.index()) {
                    *count += 1;
                }
            }
        }
    }
}

/// Decides and counts the URLs of one body.
pub(crate) struct UrlDecider {
    pub(crate) plan: Rc<Plan>,
    pub(crate) base: Base,
    /// The Content-Security-Policy of the header fields and, from their position on, of `meta` elements.
    pub(crate) policies: Policies,
    preloads: Preloads,
    pub(crate) counts: UrlCounts,
    observer: Option<Box<dyn Observer>>,
}

impl UrlDecider {
    pub(crate) fn new(
        plan: Rc<Plan>,
        base: Base,
        policies: Policies,
        preloads: Preloads,
        observer: Option<Box<dyn Observer>>,
    ) -> Self {
        Self { plan, base, policies, preloads, counts: UrlCounts::default(), observer }
    }

    /// Returns true for a preload that stays, and for any other use of the object that such a preload names.
    fn waits_for_preload(&mut self, reference: &UrlReference<'_>, outcome: &Outcome) -> bool {
        match (outcome, reference.request) {
            (Outcome::Moved(url), Ok(load)) if load.is_preload && may_lack_consumer(load.usage) => {
                !self.preloads.may_move_preload(url)
            }
            (Outcome::Moved(url), _) => !self.preloads.may_move(url),
            _ => false,
        }
    }

    fn outcome(&self, reference: &UrlReference<'_>) -> Outcome {
        let (mapper, base) = (self.plan.mapper(), &self.base);
        match reference.request {
            Ok(LoadRequest { usage, cors, .. }) => mapper.forward_if(base, reference.url, usage, |object| {
                if cors && (mapper.level() < Level::Full || self.is_own_origin(object)) {
                    return Err(Reason::Cors);
                }
                self.policies.permit(usage, object)
            }),
            Err(reason) => match mapper.forward_if(base, reference.url, Use::Image, |_| Err(reason)) {
                // A moved style sheet has another base, so its references must be pinned even if they stay.
                Outcome::Pinned(url, _) => Outcome::Pinned(url, reason),
                Outcome::Left(none @ (Reason::Empty | Reason::Fragment | Reason::Scheme)) => Outcome::Left(none),
                _ => Outcome::Left(reason),
            },
        }
    }

    /// Returns true if the object is of the page's own origin. The page may read it without CORS now, but could not
    /// after a move.
    fn is_own_origin(&self, object: &Object<'_>) -> bool {
        let base = &self.base;
        object.host == base.page_host() && object.scheme == base.page_scheme() && object.port == base.page_port()
    }

    fn record(
        &mut self,
        place: &'static Place,
        offset: usize,
        url: &str,
        outcome: &Outcome,
        load: Option<LoadRequest>,
    ) {
        self.counts.count(outcome, self.base.page_host());
        if let Some(observer) = &mut self.observer {
            observer.url(&UrlEvent { place, url, outcome, load, offset });
        }
    }
}

impl Visitor for UrlDecider {
    fn url(&mut self, reference: &UrlReference<'_>, fits: Fits<'_>) -> Option<String> {
        let mut outcome = self.outcome(reference);
        if self.waits_for_preload(reference, &outcome) {
            outcome = Outcome::Left(Reason::Preload);
        }
        if let Outcome::Moved(url) | Outcome::Pinned(url, _) = &outcome
            && let Err(reason) = fits(url)
        {
            outcome = Outcome::Left(reason);
        }
        let UrlReference { place, offset, url, request } = *reference;
        self.record(place, offset, url, &outcome, request.ok());
        match outcome {
            Outcome::Left(_) => None,
            Outcome::Moved(url) | Outcome::Pinned(url, _) => Some(url),
        }
    }

    fn unread(&mut self, place: &'static Place, offset: usize, reason: Reason) {
        let outcome = Outcome::Left(reason);
        self.record(place, offset, "", &outcome, None);
    }

    fn base(&mut self, href: &str) {
        let base = self.base.with_href(href);
        if self.policies.permits_base(base.as_str()) {
            self.base = base;
        }
    }

    /// Translates a policy so that it allows the moved objects and nothing else.
    fn policy(&mut self, policy: Option<&str>) -> Option<String> {
        let Some(policy) = policy else {
            self.policies.extend(Policies::unreadable(&self.base));
            return None;
        };
        let translation = csp::translate(&self.plan, &self.base, policy);
        self.policies.extend(translation.policies);
        if self.policies.upgrade_insecure_requests() {
            self.base.upgrade_insecure_requests();
        }
        translation.text
    }
}

impl fmt::Debug for UrlDecider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("UrlDecider")
            .field("base", &self.base)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
