//! The visitor of a body that is rewritten. It decides and counts every URL and reports it to the observer.

use std::fmt;
use std::rc::Rc;

use page_scanner::places::STYLE_ELEMENT;
use page_scanner::{Fits, LoadRequest, Place, Replacement, UrlReference, Visitor};
use url_mapping::{Base, Outcome, Reason};

use crate::event::{Observer, UrlEvent};
use crate::headers::csp::{self, Policies};
use crate::plan::Plan;
use crate::preloads::{Preloads, may_lack_consumer};
use crate::savings::{MovedHosts, Savings};
use crate::substitute::{DecidedUrl, Decider, Substitute, Substitution};

/// The number of URLs of a body that moved, and of those that stayed, by reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlCounts {
    /// URLs that now point to the proxy.
    pub moved: u64,
    /// URLs that the object itself replaced.
    pub substituted: u64,
    /// Bytes of these objects as they stand in the page.
    pub substituted_bytes: u64,
    left: [u64; Reason::ALL.len()],
    hosts: MovedHosts,
}

impl Default for UrlCounts {
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

impl UrlCounts {
    /// Returns each reason for which URLs stayed, with their number. Reasons without a URL are left out.
    pub fn left(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().copied().zip(self.left).filter(|&(_, count)| count > 0)
    }

    /// Returns an estimate of what the moves so far save on the link.
    pub fn savings(&self) -> Savings {
        self.hosts.savings()
    }

    /// Counts one URL. `substituted` is the length in bytes of the object itself, if it stands in the page.
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

/// Decides and counts the URLs of one body.
pub(crate) struct UrlDecider {
    pub(crate) plan: Rc<Plan>,
    pub(crate) base: Base,
    /// The Content-Security-Policy of the header fields and, from their position on, of `meta` elements.
    pub(crate) policies: Policies,
    preloads: Preloads,
    pub(crate) counts: UrlCounts,
    /// `None` if nothing is put into the page.
    pub(crate) substitute: Option<Box<dyn Substitute>>,
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
        Self { plan, base, policies, preloads, counts: UrlCounts::default(), substitute: None, observer }
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

    /// Returns the object itself, if it takes the URL's place.
    fn substituted(&mut self, reference: &UrlReference<'_>, outcome: &Outcome) -> Option<Substitution> {
        let Self { plan, base, policies, substitute: Some(substitute), .. } = self else { return None };
        let UrlReference { place, offset, url, request, tag } = *reference;
        let event = UrlEvent { place, url, outcome, load: request.ok(), base, offset };
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
        load: Option<LoadRequest>,
        substituted: Option<usize>,
    ) {
        self.counts.count(outcome, substituted, self.base.page_host());
        if let Some(observer) = &mut self.observer {
            observer.url(&UrlEvent { place, url, outcome, load, base: &self.base, offset });
        }
    }
}

impl Visitor for UrlDecider {
    fn url(&mut self, reference: &UrlReference<'_>, fits: Fits<'_>) -> Option<Replacement> {
        let mut outcome = self.decider().outcome(reference, &self.base);
        if self.waits_for_preload(reference, &outcome) {
            outcome = Outcome::Left(Reason::Preload);
        }
        let object = self.substituted(reference, &outcome);
        let written = match (&outcome, &object) {
            (Outcome::Left(_), _) | (_, Some(Substitution::Element { .. })) => None,
            (_, Some(Substitution::Url(url))) | (Outcome::Moved(url) | Outcome::Pinned(url, _), _) => Some(url),
        };
        if let Some(Err(reason)) = written.map(|url| fits(url)) {
            outcome = Outcome::Left(reason);
        }
        let bytes = object.as_ref().map(Substitution::bytes);
        let UrlReference { place, offset, url, request, .. } = *reference;
        self.record(place, offset, url, &outcome, request.ok(), bytes);
        match (outcome, object) {
            (Outcome::Left(_), _) => None,
            (_, Some(Substitution::Element { text, urls })) => {
                for DecidedUrl { url, outcome, load } in urls {
                    self.record(STYLE_ELEMENT, offset, &url, &outcome, load, None);
                }
                Some(Replacement::Element(text))
            }
            (_, Some(Substitution::Url(url))) | (Outcome::Moved(url) | Outcome::Pinned(url, _), _) => {
                Some(Replacement::Url(url))
            }
        }
    }

    fn unread(&mut self, place: &'static Place, offset: usize, reason: Reason) {
        let outcome = Outcome::Left(reason);
        // A substitute that counts the uses of objects must see this use, too.
        self.substituted(&UrlReference { place, offset, url: "", request: Err(reason), tag: None }, &outcome);
        self.record(place, offset, "", &outcome, None, None);
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

    fn replaces_scripts(&self) -> bool {
        self.substitute.is_some()
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
