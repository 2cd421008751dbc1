//! Reads the configuration and creates the worker's end of the pipe.

use crate::counters::Counters;
use crate::shared::Shared;
use crate::stream::{GroundHeaders, RemoteHeaders};
use filter_host::metrics::Metrics;
use filter_host::random;
use filter_host::root::Filter;
use filter_host::stream::HttpStream;
use header_codec::{Dictionary, GroundEnd, RemoteEnd};
use header_compression_config::{Config, Role};
use std::cell::RefCell;
use std::rc::Rc;

/// The filter of one worker.
#[derive(Debug)]
pub struct Worker(End);

/// The end of the pipe that a worker serves.
#[derive(Debug)]
enum End {
    Remote(Rc<Shared<RemoteEnd>>),
    Ground(Rc<Shared<GroundEnd>>),
}

impl Filter for Worker {
    const NAME: &'static str = "header-compression";

    fn configure(json: &[u8], metrics: &Metrics, _: u32) -> Result<Self, String> {
        let config = Config::from_json(json).map_err(|error| error.to_string())?;
        let dictionary = Dictionary::first().ok_or("header-compression: the built-in dictionary is damaged")?;
        let dictionary = Rc::new(dictionary);
        let clients = usize::try_from(config.clients).unwrap_or(usize::MAX);
        let (client, counters) = (config.client, Counters::define(metrics));
        Ok(Self(match config.role {
            Role::Remote => {
                let session = u32::from_le_bytes(random::bytes());
                let end = RefCell::new(RemoteEnd::new(dictionary, session, clients));
                End::Remote(Rc::new(Shared { end, counters, client }))
            }
            Role::Ground => {
                let end = RefCell::new(GroundEnd::new(dictionary, clients));
                End::Ground(Rc::new(Shared { end, counters, client }))
            }
        }))
    }

    fn stream(self: &Rc<Self>, _: u32) -> Box<dyn HttpStream> {
        match &self.0 {
            End::Remote(shared) => Box::new(RemoteHeaders::new(Rc::clone(shared))),
            End::Ground(shared) => Box::new(GroundHeaders::new(Rc::clone(shared))),
        }
    }
}
