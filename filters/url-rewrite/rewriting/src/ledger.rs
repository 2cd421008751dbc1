//! Every URL that is found passes here: it is decided, counted and, for `explain`, told.

use std::fmt;
use std::rc::Rc;

use url_mapping::{Base, Level, Object, Outcome, Reason, Use};

use crate::headers::csp::Policies;
use crate::inline::{Inliner, Kept, Put, Standing};
use crate::links;
use crate::places::{Place, STYLE_ELEMENT};
use crate::plan::Plan;
use crate::preloads::Preloads;
use crate::savings::{MovedHosts, Savings};

/// One URL of a body and what became of it.
#[derive(Debug)]
pub struct UrlEvent<'e> {
    /// Where it stands: element and attribute.
    pub place: &'static Place,
    /// What it says, decoded; empty where it was not read.
    pub url: &'e str,
    /// What became of it.
    pub outcome: &'e Outcome,
    /// Whether the object itself stands in the page instead, in how many bytes, or why not; none where it could not.
    pub inline: Option<Result<usize, Kept>>,
    /// What its place makes of the object; none where a browser fetches none, or in a way of its own.
    pub fetch: Option<Fetch>,
    /// What it is relative to, where it stands.
    pub base: &'e Base,
    /// Where its value begins, in bytes from the start of the body.
    pub offset: usize,
}

/// How a browser comes to fetch an object, as far as its place in the page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    /// What it is used as.
    pub usage: Use,
    /// It is fetched as soon as its place is read, whatever the window and the reader do: not one candidate of several, not
    /// lazily, not for another medium.
    pub at_once: bool,
    /// It is fetched with CORS: the answer is for the page's origin.
    pub cors: bool,
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

/// What is asked of the mapping for one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    /// What the object is used as.
    pub(crate) usage: Use,
    /// Fetched with CORS and without credentials: it can move if its server consents to the page's origin already, that
    /// is, if it is not the page's own.
    pub(crate) cors: bool,
    /// See [`Fetch::at_once`].
    pub(crate) at_once: bool,
    /// It only fetches ahead what something else uses; see [`Preloads`].
    pub(crate) is_preload: bool,
}

impl Ask {
    /// The same, where browsers with scripts do not look (`noscript`), or nobody does yet (`template`).
    pub(crate) fn out_of_sight(self, is_out_of_sight: bool) -> Self {
        Self { at_once: self.at_once && !is_out_of_sight, ..self }
    }
}

/// One URL that was found, and what its place says about it.
#[derive(Debug)]
pub(crate) struct Mention<'m> {
    pub(crate) place: &'static Place,
    /// Where it stands in the body.
    pub(crate) offset: usize,
    /// What it says, decoded.
    pub(crate) url: &'m str,
    /// What to ask, or why there is nothing to ask.
    pub(crate) verdict: Result<Ask, Reason>,
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
    pub(crate) inliner: Option<Box<Inliner>>,
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
