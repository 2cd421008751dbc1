//! The back end of a module in a proxy-wasm host: the SDK's dispatcher above, host calls below.

pub(crate) mod calls;

use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{self, ContextType};

use crate::body::{self, Buffer};
use crate::callout::Token;
use crate::log::{self, Level};
use crate::metrics::Metrics;
use crate::root::Filter;
use crate::stream::{Action, HttpStream};

/// Makes `F` the filter of this module. [`entry_point`](crate::entry_point) calls it.
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
        let stream = self.filter.as_ref()?.stream(id);
        Some(Box::new(OnStream(stream)))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

/// A stream as the SDK calls it.
struct OnStream(Box<dyn HttpStream>);

impl Context for OnStream {
    fn on_http_call_response(&mut self, _: u32, header_count: usize, body_bytes: usize, _: usize) {
        self.0.callout_ended(header_count, body_bytes);
    }
}

impl HttpContext for OnStream {
    fn on_http_request_headers(&mut self, _: usize, end_of_stream: bool) -> types::Action {
        of(self.0.request_headers(end_of_stream))
    }

    fn on_http_response_headers(&mut self, _: usize, end_of_stream: bool) -> types::Action {
        of(self.0.response_headers(end_of_stream))
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> types::Action {
        of(self.0.response_body(size, end_of_stream))
    }

    fn on_http_response_trailers(&mut self, _: usize) -> types::Action {
        of(self.0.response_trailers())
    }
}

fn of(action: Action) -> types::Action {
    match action {
        Action::Continue => types::Action::Continue,
        Action::Pause => types::Action::Pause,
    }
}

/// Exports the entry point of a module whose filter is `$filter`. Native builds of the crate export nothing.
#[macro_export]
macro_rules! entry_point {
    ($filter:ty) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(missing_docs)] // the SDK's macro exports it without documentation
        mod entry {
            $crate::proxy_wasm::main! {{ $crate::register::<$filter>() }}
        }
    };
}
