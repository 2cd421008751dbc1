//! Configuration bytes to the end of the pipe that this worker is.

use crate::counters::Counters;
use crate::stream::{GroundHeaders, RemoteHeaders};
use filter_host::body::{self, Buffer};
use filter_host::log::{self, Level};
use filter_host::random;
use header_codec::config::{ClientKey, Config, Role};
use header_codec::{Dictionary, GroundEnd, RemoteEnd};
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

/// What all streams of a worker share.
#[derive(Debug)]
pub(crate) struct Shared<End> {
    /// Borrowed for the length of one call only, so it is never borrowed twice.
    pub(crate) end: RefCell<End>,
    pub(crate) counters: Counters,
    pub(crate) client: ClientKey,
    pub(crate) start: Instant,
}

#[derive(Debug, Clone)]
enum Worker {
    Remote(Rc<Shared<RemoteEnd>>),
    Ground(Rc<Shared<GroundEnd>>),
}

#[derive(Debug, Default)]
pub(crate) struct Root {
    worker: Option<Worker>,
}

impl Root {
    fn configure(&mut self, size: usize) -> Result<(), String> {
        let json = body::read(Buffer::PluginConfiguration, size)
            .map_err(|error| format!("header-compression: the configuration is unreadable: {error}"))?;
        let config = Config::from_json(&json).map_err(|error| error.to_string())?;
        let dictionary = Dictionary::first().ok_or("header-compression: the built-in dictionary is damaged")?;
        let dictionary = Rc::new(dictionary);
        let clients = usize::try_from(config.clients).unwrap_or(usize::MAX);
        let (counters, missing) = Counters::define();
        for name in missing {
            log::write(Level::Warn, &format!("header-compression: the proxy refused the metric {name}"));
        }
        let (client, start) = (config.client, Instant::now());
        self.worker = Some(match config.role {
            Role::Remote => {
                let end = RefCell::new(RemoteEnd::new(dictionary, u32::from_le_bytes(random::bytes()), clients));
                Worker::Remote(Rc::new(Shared { end, counters, client, start }))
            }
            Role::Ground => {
                let end = RefCell::new(GroundEnd::new(dictionary, clients));
                Worker::Ground(Rc::new(Shared { end, counters, client, start }))
            }
        });
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
        match &self.worker {
            Some(Worker::Remote(shared)) => Some(Box::new(RemoteHeaders::new(Rc::clone(shared)))),
            Some(Worker::Ground(shared)) => Some(Box::new(GroundHeaders::new(Rc::clone(shared)))),
            None => None,
        }
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
