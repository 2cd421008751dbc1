//! Configuration bytes to the end of the link that this worker is.

use crate::counters::Counters;
use crate::ground::GroundStream;
use crate::remote::RemoteStream;
use crate::worker::Worker;
use filter_host::body::{self, Buffer};
use filter_host::log::{self, Level};
use filter_host::random;
use filter_host::shared::ProxyBoard;
use page_flights::{Config, GroundEnd, RemoteEnd, Role};
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;
use std::rc::Rc;

#[derive(Debug, Clone)]
enum End {
    Remote(Rc<Worker<RemoteEnd>>),
    Ground(Rc<Worker<GroundEnd>>),
}

#[derive(Debug)]
pub(crate) struct Root {
    id: u32,
    worker: Option<End>,
}

impl Root {
    pub(crate) fn new(id: u32) -> Self {
        Self { id, worker: None }
    }

    fn configure(&mut self, size: usize) -> Result<(), String> {
        let json = body::read(Buffer::PluginConfiguration, size)
            .map_err(|error| format!("bundling: the configuration is unreadable: {error}"))?;
        let config = Config::from_json(&json).map_err(|error| error.to_string())?;
        let (counters, missing) = Counters::define();
        for name in missing {
            log::write(Level::Warn, &format!("bundling: the proxy refused the metric {name}"));
        }
        let cluster = config.cluster.clone();
        self.worker = Some(match config.role {
            Role::Remote => {
                let end = RemoteEnd::new(&config, random::bytes(), store_name());
                End::Remote(Rc::new(Worker::new(end, counters, cluster, self.id)))
            }
            Role::Ground => End::Ground(Rc::new(Worker::new(GroundEnd::new(&config), counters, cluster, self.id))),
        });
        Ok(())
    }
}

/// The name of what the process keeps, drawn by the first worker that asks.
fn store_name() -> [u8; 8] {
    shared_board::settled(&ProxyBoard, "store", random::bytes())
}

impl Context for Root {
    fn on_http_call_response(&mut self, token: u32, header_count: usize, body_bytes: usize, _: usize) {
        match &self.worker {
            Some(End::Remote(worker)) => worker.on_answer(token, header_count, body_bytes),
            Some(End::Ground(worker)) => worker.on_answer(token, header_count, body_bytes),
            None => {}
        }
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, size: usize) -> bool {
        let outcome = self.configure(size);
        if let Err(message) = &outcome {
            log::write(Level::Error, message);
        }
        outcome.is_ok()
    }

    fn on_tick(&mut self) {
        match &self.worker {
            Some(End::Remote(worker)) => worker.on_tick(),
            Some(End::Ground(worker)) => worker.on_tick(),
            None => {}
        }
    }

    fn create_http_context(&self, id: u32) -> Option<Box<dyn HttpContext>> {
        match &self.worker {
            Some(End::Remote(worker)) => Some(Box::new(RemoteStream::new(id, worker.clone()))),
            Some(End::Ground(worker)) => Some(Box::new(GroundStream::new(id, worker.clone()))),
            None => None,
        }
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
