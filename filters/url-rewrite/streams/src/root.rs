//! Reads the configuration into a [`Plan`]. A refusal carries the message of the pure crate.

use crate::counters::Counters;
use crate::objects::Objects;
use crate::shared::Shared;
use crate::stream::Stream;
use filter_host::callout::Token;
use filter_host::log::{self, Level};
use filter_host::metrics::Metrics;
use filter_host::root::Filter;
use filter_host::stream::HttpStream;
use filter_host::timer;
use object_bypass::Bypass;
use std::rc::Rc;
use url_rewriting::{Config, Plans};

impl Filter for Shared {
    const NAME: &'static str = "url-rewrite";

    fn configure(json: &[u8], metrics: &Metrics, _: u32) -> Result<Self, String> {
        let config = Config::from_json(json).map_err(|error| error.to_string())?;
        let plans = Plans::new(&config).map_err(|error| error.to_string())?;
        let objects = config.prefetch.then(Objects::new);
        let bypass = config.bypass.then(Bypass::default);
        Ok(Self { plans, counters: Counters::define(metrics), objects, bypass })
    }

    fn stream(self: &Rc<Self>, _: u32) -> Box<dyn HttpStream> {
        Box::new(Stream::new(Rc::clone(self)))
    }

    fn tick(&self) {
        // A superfluous tick does no harm.
        let _ = timer::stop();
        if let Some(objects) = &self.objects {
            objects.send(&self.counters);
        }
    }

    fn ended(&self, token: Token, header_count: usize, body_bytes: usize) {
        let Some(objects) = &self.objects else { return };
        if let Err(error) = objects.ended(token, header_count, body_bytes, &self.counters) {
            log::write(Level::Warn, &format!("url-rewrite: the response to a prefetch: {error}"));
        }
        objects.send(&self.counters);
    }
}
