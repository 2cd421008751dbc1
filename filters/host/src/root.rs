//! The root context, which is the same in every filter: configuration in, streams out.
//!
//! A filter says what it is by [`Filter`], and its module's entry point calls [`register`]. What happens then:
//! - An unreadable or refused configuration is logged at level error, and the proxy fails the plugin.
//! - Streams come after a configuration. The proxy makes none for a filter whose configuration is refused.
//! - Ticks and answers go to the filter once it is configured.

use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

use crate::body::{self, Buffer};
use crate::callout::Token;
use crate::log::{self, Level};
use crate::metrics::Metrics;

/// What all streams of a worker share: a configuration as it is used, counters, and whatever else a filter keeps.
pub trait Filter: Sized + 'static {
    /// The filter's name in the log, in lower case with hyphens; its metrics begin with it.
    const NAME: &'static str;

    /// A filter from its configuration as written. `root` is the id of the root context, for acting on its behalf.
    ///
    /// # Errors
    /// Why the configuration is refused, in one line that names the filter.
    fn configure(json: &[u8], metrics: &Metrics, root: u32) -> Result<Self, String>;

    /// The context of the stream `id`.
    fn stream(self: &Rc<Self>, id: u32) -> Box<dyn HttpContext>;

    /// A tick, of the period that [`crate::timer`] was given.
    fn tick(&self) {}

    /// A request that was sent from the root context has ended; [`crate::callout::ending`] says how.
    fn ended(&self, _token: Token, _header_count: usize, _body_bytes: usize) {}
}

/// Makes `F` the filter of this module. For the module's entry point.
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
