//! A filter: how it is configured, and what its root context hears.
//!
//! Either back end upholds this:
//! - An unreadable or refused configuration is logged at level error, and the proxy fails the plugin.
//! - Streams exist only once a configuration was accepted.
//! - The filter gets ticks and callout responses once it is configured.

use std::rc::Rc;

use crate::callout::Token;
use crate::metrics::Metrics;
use crate::stream::HttpStream;

/// The state that all streams of a worker share: the compiled configuration, counters, and the filter's own values.
pub trait Filter: Sized + 'static {
    /// The filter's name in the log, in lower case with hyphens; its metrics begin with it.
    const NAME: &'static str;

    /// Builds the filter from its configuration as written. `root` is the id of the root context, for calls on its
    /// behalf.
    ///
    /// # Errors
    /// The reason for a refusal, in one line that names the filter.
    fn configure(json: &[u8], metrics: &Metrics, root: u32) -> Result<Self, String>;

    /// Creates the context of the stream `id`.
    fn stream(self: &Rc<Self>, id: u32) -> Box<dyn HttpStream>;

    /// Handles a tick, at the period that [`crate::timer`] set.
    fn tick(&self) {}

    /// Handles the end of a request that the root context sent; [`crate::callout::ending`] tells the outcome.
    fn ended(&self, _token: Token, _header_count: usize, _body_bytes: usize) {}
}
