//! Builds a worker's filter for its position from the configuration.

use std::rc::Rc;

use cache_admission::Position;
use filter_host::metrics::Metrics;
use filter_host::root::Filter;
use filter_host::stream::HttpStream;

use crate::counters::Counters;
use crate::fetch::FetchStream;
use crate::origin::OriginStream;
use crate::worker::Worker;

impl Filter for Worker {
    const NAME: &'static str = "cache-admission";

    fn configure(json: &[u8], metrics: &Metrics, _: u32) -> Result<Self, String> {
        Ok(Self::new(Position::from_json(json).map_err(|error| error.to_string())?, Counters::define(metrics)))
    }

    fn stream(self: &Rc<Self>, _: u32) -> Box<dyn HttpStream> {
        let worker = Rc::clone(self);
        match self.position {
            Position::Fetch { images } => Box::new(FetchStream::new(worker, images)),
            Position::Origin { object_bytes } => Box::new(OriginStream::new(worker, object_bytes)),
        }
    }
}
