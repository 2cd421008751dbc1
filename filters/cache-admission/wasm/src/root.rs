//! Configuration bytes to a worker's filter at its position.

use std::rc::Rc;

use cache_admission::{Config, Position};
use filter_host::body::{self, Buffer};
use filter_host::log::{self, Level};
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

use crate::client::ClientStream;
use crate::counters::Counters;
use crate::fetch::FetchStream;
use crate::origin::OriginStream;
use crate::worker::Worker;

#[derive(Debug, Default)]
pub(crate) struct Root {
    worker: Option<Rc<Worker>>,
}

impl Root {
    fn configure(&mut self, size: usize) -> Result<(), String> {
        let json = body::read(Buffer::PluginConfiguration, size)
            .map_err(|error| format!("cache-admission: the configuration is unreadable: {error}"))?;
        let config = Config::from_json(&json).map_err(|error| error.to_string())?;
        let (counters, missing) = Counters::define();
        for name in missing {
            log::write(Level::Warn, &format!("cache-admission: the proxy refused the metric {name}"));
        }
        self.worker = Some(Rc::new(Worker::new(config, counters)));
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
        let worker = self.worker.clone()?;
        Some(match worker.config.at {
            Position::Client => Box::new(ClientStream::new(worker)),
            Position::Fetch => Box::new(FetchStream::new(worker)),
            Position::Origin => Box::new(OriginStream::new(worker)),
        })
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
