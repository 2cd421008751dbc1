//! The filters of the module, by name.

use std::rc::Rc;

use filter_host::callout::Token;
use filter_host::metrics::Metrics;
use filter_host::root::Filter;
use filter_host::stream::HttpStream;

/// A configured filter of one worker.
pub(crate) trait Served {
    /// Creates the state of the stream `id`.
    fn stream(&self, id: u32) -> Box<dyn HttpStream>;

    /// Handles a tick.
    fn tick(&self);

    /// Handles the end of a request that the filter sent outside of a stream.
    fn ended(&self, token: Token, header_count: usize, body_bytes: usize);
}

impl<F: Filter> Served for Rc<F> {
    fn stream(&self, id: u32) -> Box<dyn HttpStream> {
        F::stream(self, id)
    }

    fn tick(&self) {
        F::tick(self);
    }

    fn ended(&self, token: Token, header_count: usize, body_bytes: usize) {
        F::ended(self, token, header_count, body_bytes);
    }
}

/// Builds a filter from its configuration. The last argument is the id of the context outside of streams.
type Configure = fn(&[u8], u32) -> Result<Box<dyn Served>, String>;

/// A filter of the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The name in Envoy's configuration.
    name: &'static str,
    /// The name in the filter's counters: the two ends of bundling have one.
    pub(crate) counts_for: &'static str,
    pub(crate) configure: Configure,
}

impl Kind {
    /// Returns the row of a filter.
    pub(crate) const fn of<F: Filter>(name: &'static str) -> Self {
        Self { name, counts_for: F::NAME, configure: configure::<F> }
    }
}

fn configure<F: Filter>(json: &[u8], root: u32) -> Result<Box<dyn Served>, String> {
    F::configure(json, &Metrics::of(F::NAME), root).map(|filter| Box::new(Rc::new(filter)) as Box<dyn Served>)
}

const KINDS: &[Kind] = &[
    Kind::of::<bundling_streams::Ground>("bundling"),
    Kind::of::<bundling_streams::Remote>("bundling-remote"),
    Kind::of::<header_compression_streams::HeaderCompression>("header-compression"),
    Kind::of::<name_budget_streams::NameBudget>("name-budget"),
    Kind::of::<object_reader::ObjectReader>("object-reader"),
    Kind::of::<url_rewrite_streams::UrlRewrite>("url-rewrite"),
];

/// Returns the filter that a configuration names.
pub(crate) fn named(name: &str) -> Option<Kind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}
