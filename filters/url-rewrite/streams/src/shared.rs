//! State that all streams of a configuration share.

use crate::counters::Counters;
use crate::objects::Objects;
use object_bypass::Bypass;
use url_rewriting::Plans;

/// State that all streams of a configuration share.
#[derive(Debug)]
pub struct Shared {
    pub(crate) plans: Plans,
    pub(crate) counters: Counters,
    /// `None` if nothing is prefetched.
    pub(crate) objects: Option<Objects>,
    /// `None` if no request bypasses the cache here.
    pub(crate) bypass: Option<Bypass<u64>>,
}
