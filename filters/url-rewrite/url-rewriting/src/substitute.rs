//! The interface for code that puts objects into pages in place of their URLs. This crate decides URLs. It does not
//! know which objects are available, or when one may stand in a page.

use page_scanner::{LoadRequest, TagContext, UrlReference};
use url_mapping::{Base, Level, Object, Outcome, Reason, Use};

use crate::event::UrlEvent;
use crate::headers::csp::Policies;
use crate::plan::Plan;

/// Puts objects into one page.
pub trait Substitute {
    /// Considers a decided URL of the page, including one that stays. Returns the replacement if the object itself
    /// takes the URL's place. The URLs come in the order of the page, each once.
    ///
    /// `tag` is the tag of the URL. Without it, only a [`Substitution::Url`] can be written.
    fn consider(
        &mut self,
        event: &UrlEvent<'_>,
        tag: Option<&TagContext<'_>>,
        decider: &Decider<'_>,
    ) -> Option<Substitution>;
}

/// The replacement of a URL in the page.
#[derive(Debug)]
pub enum Substitution {
    /// A `data:` URL, in place of the URL.
    Url(String),
    /// An element, in place of the tag.
    Element {
        /// The markup, in the encoding of the page.
        text: Vec<u8>,
        /// The decided URLs of a style sheet in the markup. They are counted and observed as URLs of the page.
        urls: Vec<DecidedUrl>,
    },
}

impl Substitution {
    /// Returns the length in the page, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Url(url) => url.len(),
            Self::Element { text, .. } => text.len(),
        }
    }
}

/// A URL that was read and decided.
#[derive(Debug)]
pub struct DecidedUrl {
    /// The URL as written, decoded.
    pub url: String,
    /// The decision.
    pub outcome: Outcome,
    /// How a browser loads the object. `None` if it loads none, or under conditions that rule out a move.
    pub load: Option<LoadRequest>,
}

/// Decides URLs under the rules of one page, and counts nothing.
#[derive(Debug)]
pub struct Decider<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) base: &'p Base,
    pub(crate) policies: &'p Policies,
}

impl<'p> Decider<'p> {
    /// Returns the base URL of the page.
    pub fn base(&self) -> &'p Base {
        self.base
    }

    /// Returns true if the page's policies allow the object as a `data:` URL.
    pub fn permits_data(&self, usage: Use) -> bool {
        self.policies.permit_data(usage)
    }

    /// Returns true if the page's policies allow the object's text in an element.
    pub fn permits_inline(&self, usage: Use) -> bool {
        self.policies.permit_inline(usage)
    }

    /// Returns the largest reference that is read, in bytes as written.
    pub(crate) fn url_bytes(&self) -> usize {
        self.plan.limits().url_bytes
    }

    /// Decides a URL that is relative to `base`.
    pub(crate) fn outcome(&self, reference: &UrlReference<'_>, base: &Base) -> Outcome {
        let mapper = self.plan.mapper();
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
        let base = self.base;
        object.host == base.page_host() && object.scheme == base.page_scheme() && object.port == base.page_port()
    }
}
