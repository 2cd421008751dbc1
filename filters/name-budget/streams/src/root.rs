//! Builds a worker's filter from the configuration.

use std::rc::Rc;

use filter_host::metrics::Metrics;
use filter_host::root::Filter;
use filter_host::stream::HttpStream;
use name_budget::Config;

use crate::stream::Stream;
use crate::worker::Worker;

impl Filter for Worker {
    const NAME: &'static str = "name-budget";

    fn configure(json: &[u8], metrics: &Metrics, _: u32) -> Result<Self, String> {
        Ok(Self::new(&Config::from_json(json).map_err(|error| error.to_string())?, metrics))
    }

    fn stream(self: &Rc<Self>, _: u32) -> Box<dyn HttpStream> {
        Box::new(Stream::new(Rc::clone(self)))
    }
}
