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

/// The name of both modules in the log.
const NAME: &str = "bundling";

/// The filter at the remote.
#[derive(Debug)]
pub struct Remote(Rc<Worker<RemoteEnd>>);

/// The filter at the ground.
#[derive(Debug)]
pub struct Ground(Rc<Worker<GroundEnd>>);

/// Returns the name of the process's store. The first worker that calls this draws it.
fn store_name() -> [u8; 8] {
    shared_board::settled(&ProxyBoard, "store", random::bytes())
}

/// Reads the configuration, which must be of the end `role`.
fn read(json: &[u8], role: Role) -> Result<Config, String> {
    let config = Config::from_json(json).map_err(|error| error.to_string())?;
    if config.role == role { Ok(config) } else { Err(format!("{NAME}: this module is not of a {:?}", config.role)) }
}

impl Filter for Remote {
    const NAME: &'static str = NAME;

    fn configure(json: &[u8], metrics: &Metrics, root: u32) -> Result<Self, String> {
        let config = read(json, Role::Remote)?;
        let counters = Counters::define(metrics, config.flights);
        let end = RemoteEnd::new(&config, random::bytes(), store_name());
        Ok(Self(Rc::new(Worker::new(end, counters, config.cluster, config.deltas, root))))
    }

    fn stream(self: &Rc<Self>, id: u32) -> Box<dyn HttpContext> {
        Box::new(RemoteStream::new(id, Rc::clone(&self.0)))
    }

    fn tick(&self) {
        self.0.on_tick();
    }

    fn ended(&self, token: Token, header_count: usize, body_bytes: usize) {
        self.0.on_answer(token, header_count, body_bytes);
    }
}

impl Filter for Ground {
    const NAME: &'static str = NAME;

    fn configure(json: &[u8], metrics: &Metrics, root: u32) -> Result<Self, String> {
        let config = read(json, Role::Ground)?;
        let counters = Counters::define(metrics, config.flights);
        let end = GroundEnd::new(&config);
        Ok(Self(Rc::new(Worker::new(end, counters, config.cluster, config.deltas, root))))
    }

    fn stream(self: &Rc<Self>, id: u32) -> Box<dyn HttpContext> {
        Box::new(GroundStream::new(id, Rc::clone(&self.0)))
    }

    fn tick(&self) {
        self.0.on_tick();
    }

    fn ended(&self, token: Token, header_count: usize, body_bytes: usize) {
        self.0.on_answer(token, header_count, body_bytes);
    }
}
