//! The seam to whoever puts objects into pages in the place of their URLs. This crate decides URLs; it knows neither which
//! objects are at hand nor when one may stand in a page.

use page_scanner::{LoadRequest, TagContext, UrlReference};
use url_mapping::{Base, Level, Object, Outcome, Reason, Use};

use crate::event::UrlEvent;
use crate::headers::csp::Policies;
use crate::plan::Plan;

/// Puts objects into one page.
pub trait Substitute {
    /// Considers a URL of the page that was decided, also one that stays. Returns what stands in its place, if the object
    /// itself does. The URLs come in the order of the page, and each comes once.
    ///
    /// `tag`: the tag of the URL. Without it, only a [`Substitution::Url`] can be written.
    fn consider(
        &mut self,
        event: &UrlEvent<'_>,
        tag: Option<&TagContext<'_>>,
        decider: &Decider<'_>,
    ) -> Option<Substitution>;
}

/// What stands in the page instead of a URL.
#[derive(Debug)]
pub enum Substitution {
    /// A `data:` URL, in the place of the URL.
    Url(String),
    /// An element, in the place of the tag.
    Element {
        /// The markup, in the encoding of the page.
        text: Vec<u8>,
        /// URLs of a sheet in it, and what became of them: they are counted and observed as URLs of the page.
        urls: Vec<DecidedUrl>,
    },
}

impl Substitution {
    /// Bytes in the page.
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
    /// What it says, decoded.
    pub url: String,
    /// What becomes of it.
    pub outcome: Outcome,
    /// How a browser loads the object; none where it loads none, or in a way of its own.
    pub load: Option<LoadRequest>,
}

/// Decides URLs as the page does that it is of, and counts nothing.
#[derive(Debug)]
pub struct Decider<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) base: &'p Base,
    pub(crate) policies: &'p Policies,
}

impl<'p> Decider<'p> {
    /// What URLs of the page are relative to.
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

    /// The longest reference that is looked at, in bytes as written.
    pub(crate) fn url_bytes(&self) -> usize {
        self.plan.limits().url_bytes
    }

    /// What becomes of a URL that is relative to `base`.
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
                // Left or not, a reference in a sheet that was moved must go on meaning what it meant.
                Outcome::Pinned(url, _) => Outcome::Pinned(url, reason),
                Outcome::Left(none @ (Reason::Empty | Reason::Fragment | Reason::Scheme)) => Outcome::Left(none),
                _ => Outcome::Left(reason),
            },
        }
    }

    /// Whether the page may read the object without its server's consent today, which it could not after a move.
    fn is_own_origin(&self, object: &Object<'_>) -> bool {
        let base = self.base;
        object.host == base.page_host() && object.scheme == base.page_scheme() && object.port == base.page_port()
    }
}
