//! What all streams of a configuration share.

use crate::ahead::Ahead;
use crate::counters::Counters;
use std::rc::Rc;
use url_rewriting::Plan;

/// What all streams of a configuration share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Rc<Plan>,
    pub(crate) counters: Counters,
    /// None: nothing is fetched ahead.
    pub(crate) ahead: Option<Ahead>,
}
