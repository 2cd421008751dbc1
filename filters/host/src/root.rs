//! The root context, which is the same in every filter: it reads the configuration and creates the streams.
//!
//! A filter implements [`Filter`], and its module's entry point calls [`register`]. Then:
//! - The host logs an unreadable or refused configuration at level error, and the proxy fails the plugin.
//! - The proxy creates streams only after it has accepted a configuration.
//! - The filter gets ticks and callout responses once it is configured.

use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

use crate::body::{self, Buffer};
use crate::callout::Token;
use crate::log::{self, Level};
use crate::metrics::Metrics;

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
    fn stream(self: &Rc<Self>, id: u32) -> Box<dyn HttpContext>;

    /// Handles a tick, at the period that [`crate::timer`] set.
    fn tick(&self) {}

    /// Handles the end of a request that the root context sent; [`crate::callout::ending`] tells the outcome.
    fn ended(&self, _token: Token, _header_count: usize, _body_bytes: usize) {}
}

/// Makes `F` the filter of this module. Call it from the module's entry point.
pub fn register<F: Filter>() {
    log::report_panics(F::NAME);
    proxy_wasm::set_root_context(|id| -> Box<dyn RootContext> { Box::new(Root::<F> { id, filter: None }) });
}

/// The root context of a filter.
struct Root<F> {
    id: u32,
    filter: Option<Rc<F>>,
}

impl<F: Filter> Root<F> {
    fn configure(&mut self, size: usize) -> Result<(), String> {
        let json = body::read(Buffer::PluginConfiguration, size)
            .map_err(|error| format!("{}: the configuration is unreadable: {error}", F::NAME))?;
        self.filter = Some(Rc::new(F::configure(&json, &Metrics::of(F::NAME), self.id)?));
        Ok(())
    }
}

impl<F: Filter> Context for Root<F> {
    fn on_http_call_response(&mut self, token_id: u32, header_count: usize, body_bytes: usize, _: usize) {
        if let Some(filter) = &self.filter {
            filter.ended(Token::of_callback(token_id), header_count, body_bytes);
        }
    }
}

impl<F: Filter> RootContext for Root<F> {
    fn on_configure(&mut self, size: usize) -> bool {
        let outcome = self.configure(size);
        if let Err(message) = &outcome {
            log::write(Level::Error, message);
        }
        outcome.is_ok()
    }

    fn on_tick(&mut self) {
        if let Some(filter) = &self.filter {
            filter.tick();
        }
    }

    fn create_http_context(&self, id: u32) -> Option<Box<dyn HttpContext>> {
        self.filter.as_ref().map(|filter| filter.stream(id))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
