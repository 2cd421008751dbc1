//! One request that a flight makes.

use std::rc::Rc;

use url_mapping::Use;

/// An object to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fetch {
    pub(super) index: usize,
    pub(super) url: String,
    pub(super) usage: Option<Use>,
    /// The page or style sheet that names the object. For an object that the page does not name, it is the page.
    pub(super) referrer: Rc<str>,
}
