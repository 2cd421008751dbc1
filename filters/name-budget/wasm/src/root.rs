//! Configuration bytes to a worker's filter.

use std::rc::Rc;

use filter_host::body::{self, Buffer};
use filter_host::log::{self, Level};
use name_budget::Config;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

use crate::stream::Stream;
use crate::worker::Worker;

#[derive(Debug, Default)]
pub(crate) struct Root {
    worker: Option<Rc<Worker>>,
}

impl Root {
    fn configure(&mut self, size: usize) -> Result<(), String> {
        let json = body::read(Buffer::PluginConfiguration, size)
            .map_err(|error| format!("name-budget: the configuration is unreadable: {error}"))?;
        let config = Config::from_json(&json).map_err(|error| error.to_string())?;
        let (worker, missing) = Worker::new(&config);
        for name in missing {
            log::write(Level::Warn, &format!("name-budget: the proxy refused the metric {name}"));
        }
        self.worker = Some(Rc::new(worker));
        Ok(())
    }
}

impl Context for Root {}

impl RootContext for Root {
    fn on_configure(&mut self, size: usize) -> bool {
        let outcome = self.configure(size);
        if let Err(message) = &outcome {
            log::write(Level::Error, message);
        }
        outcome.is_ok()
    }

    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Stream::new(self.worker.clone()?)))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
