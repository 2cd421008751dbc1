//! State that all streams of a configuration share.

use crate::counters::Counters;
use crate::objects::Objects;
use std::rc::Rc;
use url_rewriting::Plan;

/// State that all streams of a configuration share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Rc<Plan>,
    pub(crate) counters: Counters,
    /// `None` if nothing is prefetched.
    pub(crate) objects: Option<Objects>,
}
