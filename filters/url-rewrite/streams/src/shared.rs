//! State that all streams of a configuration share.

use crate::admission::Admission;
use crate::counters::Counters;
use crate::objects::Objects;
use cache_admission::Config as AdmissionConfig;
use std::rc::Rc;
use url_rewriting::Plans;

/// The configuration of the filter as written.
pub(crate) type Config = url_rewriting::Config<AdmissionConfig>;

/// State that all streams of a configuration share.
#[derive(Debug)]
pub struct Shared {
    pub(crate) plans: Plans,
    pub(crate) counters: Counters,
    /// `None` if nothing is prefetched.
    pub(crate) objects: Option<Objects>,
    /// `None` if this filter admits no requests to the cache.
    pub(crate) admission: Option<Rc<Admission>>,
}
