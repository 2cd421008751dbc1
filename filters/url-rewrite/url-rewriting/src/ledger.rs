//! Every URL that is found passes here: it is decided, counted and, for `explain`, told.

use std::fmt;
use std::rc::Rc;

use url_mapping::{Base, Level, Object, Outcome, Reason, Use};

use crate::event::{Ask, Fetch, Mention, Observer, UrlEvent};
use crate::headers::csp::Policies;
use crate::kept::Kept;
use crate::links;
use crate::places::{Place, STYLE_ELEMENT};
use crate::plan::Plan;
use crate::preloads::Preloads;
use crate::savings::{MovedHosts, Savings};
use crate::substitute::{Put, Standing};

/// How many URLs of a body moved, and how many stayed for which reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// URLs that now point to the proxy.
    pub moved: u64,
    /// URLs in whose place stands the object itself.
    pub inlined: u64,
    /// Bytes of these objects, as they stand in the page.
    pub inlined_bytes: u64,
    kept: [u64; Kept::ALL.len()],
    left: [u64; Reason::ALL.len()],
    hosts: MovedHosts,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            moved: 0,
            inlined: 0,
            inlined_bytes: 0,
            kept: [0; Kept::ALL.len()],
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

    /// The reasons for which objects were not put into the page, and how many each; reasons without one are not listed.
    pub fn kept(&self) -> impl Iterator<Item = (Kept, u64)> {
        Kept::ALL.iter().copied().zip(self.kept).filter(|&(_, count)| count > 0)
    }

    /// What the moves so far save on the link, by estimate.
    pub fn savings(&self) -> Savings {
        self.hosts.savings()
    }

    fn count(&mut self, outcome: &Outcome, inline: Option<Result<usize, Kept>>, page_host: &str) {
        if let Some(Err(why)) = inline
            && let Some(count) = self.kept.get_mut(why.index())
        {
            *count += 1;
        }
        match outcome {
            Outcome::Moved(url) => {
                self.hosts.count(url, page_host);
                if let Some(Ok(bytes)) = inline {
                    self.inlined += 1;
                    self.inlined_bytes += bytes as u64;
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

/// Whoever may put objects into a page.
pub(crate) trait Substitute {
    /// A URL of the page was decided. Returns what stands in its place, or why the object does not; None where no object
    /// can. `standing`: for the object's text in the place of the whole tag.
    fn consider(
        &mut self,
        mention: &Mention<'_>,
        outcome: &Outcome,
        standing: Option<&Standing>,
        ledger: &Ledger,
    ) -> Option<Result<Put, Kept>>;
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
    pub(crate) inliner: Option<Box<dyn Substitute>>,
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
        Self { plan, base, policies, preloads, tally: Tally::default(), inliner: None, observer }
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
        match self.decide_standing(mention, None, fits)? {
            Written::Url(url) => Some(url),
            Written::Element(_) => None,
        }
    }

    /// The same where the object's text may be written in the place of the whole tag.
    pub(crate) fn decide_standing(
        &mut self,
        mention: &Mention<'_>,
        standing: Option<&Standing>,
        fits: impl FnOnce(&str) -> Result<(), Reason>,
    ) -> Option<Written> {
        let mut outcome = self.outcome(mention, &self.base);
        if self.waits_for_preload(mention, &outcome) {
            outcome = Outcome::Left(Reason::Preload);
        }
        let inline = self.inline(mention, &outcome, standing);
        let written = match (&outcome, &inline) {
            (Outcome::Left(_), _) | (_, Some(Ok(Put::Element { .. }))) => None,
            (_, Some(Ok(Put::Url(url)))) | (Outcome::Moved(url) | Outcome::Pinned(url, _), _) => Some(url),
        };
        if let Some(Err(reason)) = written.map(|url| fits(url)) {
            outcome = Outcome::Left(reason);
        }
        let told = inline.as_ref().map(|put| put.as_ref().map(Put::bytes).map_err(|why| *why));
        self.record(mention.place, mention.offset, mention.url, &outcome, fetch(mention.verdict.ok()), told);
        match (outcome, inline) {
            (Outcome::Left(_), _) => None,
            (_, Some(Ok(Put::Element { text, urls }))) => {
                for (url, outcome, ask) in urls {
                    self.record(STYLE_ELEMENT, mention.offset, &url, &outcome, fetch(ask), None);
                }
                Some(Written::Element(text))
            }
            (_, Some(Ok(Put::Url(url)))) | (Outcome::Moved(url) | Outcome::Pinned(url, _), _) => {
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
        self.inline(&Mention { place, offset, url: "", verdict: Err(reason) }, &outcome, None);
        self.record(place, offset, "", &outcome, None, None);
    }

    /// The object itself, if it can stand in the page, or why not; none where it never could.
    fn inline(
        &mut self,
        mention: &Mention<'_>,
        outcome: &Outcome,
        standing: Option<&Standing>,
    ) -> Option<Result<Put, Kept>> {
        let mut inliner = self.inliner.take()?;
        let put = inliner.consider(mention, outcome, standing, self);
        self.inliner = Some(inliner);
        put
    }

    /// What becomes of a URL that is relative to `base`. Nothing is counted.
    pub(crate) fn outcome(&self, mention: &Mention<'_>, base: &Base) -> Outcome {
        let mapper = self.plan.mapper();
        match mention.verdict {
            Ok(Ask { usage, cors, .. }) => mapper.forward_if(base, mention.url, usage, |object| {
                if cors && (self.plan.mapper().level() < Level::Full || self.is_own_origin(object)) {
                    return Err(Reason::Cors);
                }
                self.policies.permit(usage, object)
            }),
            Err(reason) => match mapper.forward_if(base, mention.url, Use::Image, |_| Err(reason)) {
                // Left or not, a reference in a sheet that was moved must go on meaning what it meant.
                Outcome::Pinned(url, _) => Outcome::Pinned(url, reason),
                Outcome::Left(none @ (Reason::Empty | Reason::Fragment | Reason::Scheme)) => Outcome::Left(none),
                _ => Outcome::Left(reason),
            },
        }
    }

    /// Whether the page may read the object without its server's consent today, which it could not after a move.
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
        fetch: Option<Fetch>,
        inline: Option<Result<usize, Kept>>,
    ) {
        self.tally.count(outcome, inline, self.base.page_host());
        if let Some(observer) = &mut self.observer {
            observer.url(&UrlEvent { place, url, outcome, inline, fetch, base: &self.base, offset });
        }
    }
}

fn fetch(ask: Option<Ask>) -> Option<Fetch> {
    ask.map(|ask| Fetch { usage: ask.usage, at_once: ask.at_once, cors: ask.cors })
}

impl fmt::Debug for Ledger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ledger").field("base", &self.base).field("tally", &self.tally).finish_non_exhaustive()
    }
}
