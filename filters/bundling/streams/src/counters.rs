//! The filter's metrics, defined once for each configuration.

use filter_host::metrics::{self, Metrics};
use page_flights::{Config, Count, Counts};
use pipe_encoding::Event;

/// Every counter of the filter.
#[derive(Debug)]
pub(crate) struct Counters {
    /// None without flights.
    flights: Option<metrics::Counters>,
    bodies: metrics::Counters,
    /// Counts nothing without a cache at this end.
    bypassed: metrics::Counter,
}

/// The name of the counter of requests that bypass the cache.
const BYPASSED: &str = "bypassed_total";

impl Counters {
    /// Defines the counters of what the filter does.
    pub(crate) fn define(metrics: &Metrics, config: &Config) -> Self {
        Self {
            flights: config.flights.then(|| metrics.counters(Count::ALL.iter().map(|count| count.as_str()))),
            bodies: metrics.counters(Event::ALL.iter().map(|event| event.as_str())),
            bypassed: if config.caches { metrics.counter(BYPASSED) } else { metrics::Counter::default() },
        }
    }

    /// Adds the counts since the last call.
    pub(crate) fn add(&self, counts: &mut Counts) {
        for (count, amount) in counts.take() {
            if let Some(flights) = &self.flights {
                flights.at(count.index()).add(amount);
            }
        }
    }

    /// Adds events of one body.
    pub(crate) fn add_events(&self, events: Vec<(Event, u64)>) {
        for (event, amount) in events {
            self.bodies.at(event.index()).add(amount);
        }
    }

    /// Counts a request that bypasses the cache of this end.
    pub(crate) fn bypassed(&self) {
        self.bypassed.add(1);
    }
}

#[cfg(test)]
mod tests {
    use filter_host::tables;

    use super::{BYPASSED, Count, Event};

    #[test]
    fn the_table_of_the_document_has_every_counter() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
        let flights = Count::ALL.iter().map(|count| (count.as_str(), count.sentence()));
        let bodies = Event::ALL.iter().map(|event| (event.as_str(), event.sentence()));
        let bypassed =
            (BYPASSED, "Requests past the remote's cache, because responses for their URLs were not stored lately");
        let table = tables::of_names("longhaul_bundling_", flights.chain(bodies).chain([bypassed]));
        tables::check(path, "counters of bundling", &table).unwrap();
    }
}
