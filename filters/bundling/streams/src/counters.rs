//! The filter's metrics, defined once for each configuration.

use filter_host::metrics::{self, Metrics};
use page_flights::{Count, Counts};
use pipe_encoding::Event;

/// Every counter of the filter.
#[derive(Debug)]
pub(crate) struct Counters {
    /// None without flights.
    flights: Option<metrics::Counters>,
    bodies: metrics::Counters,
}

impl Counters {
    /// Defines the counters of what the filter does.
    pub(crate) fn define(metrics: &Metrics, has_flights: bool) -> Self {
        Self {
            flights: has_flights.then(|| metrics.counters(Count::ALL.iter().map(|count| count.as_str()))),
            bodies: metrics.counters(Event::ALL.iter().map(|event| event.as_str())),
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
}

#[cfg(test)]
mod tests {
    use filter_host::tables;

    use super::{Count, Event};

    #[test]
    fn the_table_of_the_document_has_every_counter() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
        let flights = Count::ALL.iter().map(|count| (count.as_str(), count.sentence()));
        let bodies = Event::ALL.iter().map(|event| (event.as_str(), event.sentence()));
        let table = tables::of_names("longhaul_bundling_", flights.chain(bodies));
        tables::check(path, "counters of bundling", &table).unwrap();
    }
}
