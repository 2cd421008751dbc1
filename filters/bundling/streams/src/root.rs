//! Reads the configuration and creates the worker's end of the link.

use crate::counters::Counters;
use crate::ground::GroundStream;
use crate::remote::RemoteStream;
use crate::worker::Worker;
use filter_host::callout::Token;
use filter_host::metrics::Metrics;
use filter_host::random;
use filter_host::root::Filter;
use filter_host::shared::ProxyBoard;
use page_flights::{Config, GroundEnd, RemoteEnd, Role};
use proxy_wasm::traits::HttpContext;
use std::rc::Rc;

/// The end of the link that this worker serves.
#[derive(Debug)]
pub(crate) enum End {
    Remote(Rc<Worker<RemoteEnd>>),
    Ground(Rc<Worker<GroundEnd>>),
}

/// Returns the name of the process's store. The first worker that calls this draws it.
fn store_name() -> [u8; 8] {
    shared_board::settled(&ProxyBoard, "store", random::bytes())
}

impl Filter for End {
    const NAME: &'static str = "bundling";

    fn configure(json: &[u8], metrics: &Metrics, root: u32) -> Result<Self, String> {
        let config = Config::from_json(json).map_err(|error| error.to_string())?;
        let counters = Counters::define(metrics, config.flights);
        let cluster = config.cluster.clone();
        Ok(match config.role {
            Role::Remote => {
                let end = RemoteEnd::new(&config, random::bytes(), store_name());
                Self::Remote(Rc::new(Worker::new(end, counters, cluster, config.deltas, root)))
            }
            Role::Ground => {
                Self::Ground(Rc::new(Worker::new(GroundEnd::new(&config), counters, cluster, config.deltas, root)))
            }
        })
    }

    fn stream(self: &Rc<Self>, id: u32) -> Box<dyn HttpContext> {
        match &**self {
            Self::Remote(worker) => Box::new(RemoteStream::new(id, Rc::clone(worker))),
            Self::Ground(worker) => Box::new(GroundStream::new(id, Rc::clone(worker))),
        }
    }

    fn tick(&self) {
        match self {
            Self::Remote(worker) => worker.on_tick(),
            Self::Ground(worker) => worker.on_tick(),
        }
    }

    fn ended(&self, token: Token, header_count: usize, body_bytes: usize) {
        match self {
            Self::Remote(worker) => worker.on_answer(token, header_count, body_bytes),
            Self::Ground(worker) => worker.on_answer(token, header_count, body_bytes),
        }
    }
}
