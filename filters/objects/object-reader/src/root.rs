//! Builds a worker's filter from the configuration.

use std::rc::Rc;

use filter_host::metrics::Metrics;
use filter_host::root::Filter;
use filter_host::stream::HttpStream;

use crate::counters::Counters;
use crate::shelf::Shelf;
use crate::stream::Stream;
use crate::worker::Worker;

impl Filter for Worker {
    const NAME: &'static str = "object-reader";

    fn configure(json: &[u8], metrics: &Metrics, _: u32) -> Result<Self, String> {
        let config = serde_json::from_slice(json).map_err(|error| format!("object-reader: {error}"))?;
        Ok(Self { shelf: Shelf::of(config), counters: Counters::define(metrics) })
    }

    fn stream(self: &Rc<Self>, _: u32) -> Box<dyn HttpStream> {
        Box::new(Stream::new(Rc::clone(self)))
    }
}
