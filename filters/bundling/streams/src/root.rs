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
use filter_host::stream::HttpStream;
use page_flights::{Config, End, GroundEnd, RemoteEnd, Role};
use std::rc::Rc;

/// An end of the link, and the streams that it serves.
pub(crate) trait ServedEnd: End + Sized + 'static {
    /// The role of its configuration.
    const ROLE: Role;

    /// Creates the worker's end.
    fn create(config: &Config) -> Self;

    /// Creates the context of the stream `id`.
    fn stream(id: u32, worker: Rc<Worker<Self>>) -> Box<dyn HttpStream>;
}

/// The filter at one end.
#[derive(Debug)]
pub struct Bundling<E>(Rc<Worker<E>>);

/// The filter at the remote.
pub type Remote = Bundling<RemoteEnd>;

/// The filter at the ground.
pub type Ground = Bundling<GroundEnd>;

impl ServedEnd for RemoteEnd {
    const ROLE: Role = Role::Remote;

    fn create(config: &Config) -> Self {
        Self::new(config, random::bytes(), store_name())
    }

    fn stream(id: u32, worker: Rc<Worker<Self>>) -> Box<dyn HttpStream> {
        Box::new(RemoteStream::new(id, worker))
    }
}

impl ServedEnd for GroundEnd {
    const ROLE: Role = Role::Ground;

    fn create(config: &Config) -> Self {
        Self::new(config)
    }

    fn stream(id: u32, worker: Rc<Worker<Self>>) -> Box<dyn HttpStream> {
        Box::new(GroundStream::new(id, worker))
    }
}

/// Returns the name of the process's store. The first worker that calls this draws it.
fn store_name() -> [u8; 8] {
    shared_board::settled(&ProxyBoard, "store", random::bytes())
}

impl<E: ServedEnd> Filter for Bundling<E> {
    const NAME: &'static str = "bundling";

    fn configure(json: &[u8], metrics: &Metrics, root: u32) -> Result<Self, String> {
        let config = Config::from_json(json).map_err(|error| error.to_string())?;
        if config.role != E::ROLE {
            return Err(format!("{}: this module is not of a {:?}", Self::NAME, config.role));
        }
        let counters = Counters::define(metrics, &config);
        let end = E::create(&config);
        Ok(Self(Rc::new(Worker::new(end, counters, config, root))))
    }

    fn stream(self: &Rc<Self>, id: u32) -> Box<dyn HttpStream> {
        E::stream(id, Rc::clone(&self.0))
    }

    fn tick(&self) {
        self.0.on_tick();
    }

    fn ended(&self, token: Token, header_count: usize, body_bytes: usize) {
        self.0.on_answer(token, header_count, body_bytes);
    }
}
