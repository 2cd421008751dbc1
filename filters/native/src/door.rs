//! The filter `filter-calls`: it notes at which worker each way of [`crate::ways`] ends, and keeps the ways open.

use std::sync::Arc;
use std::time::Duration;

use crate::abi::{self, Map, Stream};
use crate::timer::Ticks;
use crate::ways::{self, WAY, Ways};
use crate::worker::{Event, Then};

/// The name of the filter.
pub(crate) const NAME: &str = "filter-calls";

/// The time between two requests of the filter itself, until it knows the end of each way.
const SEARCH_INTERVAL: Duration = Duration::from_millis(250);

/// The time between two such requests afterwards. It is shorter than the idle timeout of the clusters (600 s), so a
/// connection stays, and a way keeps its worker.
const KEEP_INTERVAL: Duration = Duration::from_mins(1);

/// One configuration of the filter.
#[derive(Debug)]
pub(crate) struct Door {
    ways: Ways,
    config: abi::Config,
    ticks: Ticks,
}

/// The only number of the filter's ticks.
const TICK: u64 = 0;

impl Door {
    /// Loads a configuration, on the main thread.
    pub(crate) fn load(config: abi::Config) -> Self {
        let this = Self { ways: Ways::of_this_process(), config, ticks: Ticks::new(config.bell()) };
        this.ticks.set(TICK, SEARCH_INTERVAL);
        this
    }

    /// Sends a request on each way whose end is not known, or on all to keep their connections.
    pub(crate) fn tick(&self) {
        self.ticks.handled(TICK);
        let unknown: Vec<usize> = self.ways.all().filter(|way| self.ways.end(*way).is_none()).collect();
        let (wanted, interval) =
            if unknown.is_empty() { (self.ways.all().collect(), KEEP_INTERVAL) } else { (unknown, SEARCH_INTERVAL) };
        let fields = [(":method", "GET"), (":scheme", "http"), (":authority", NAME), (":path", "/")];
        for way in wanted {
            // One that fails is sent again at the next tick.
            let _ = ways::send(self.config, way, &fields, SEARCH_INTERVAL);
        }
        self.ticks.set(TICK, interval);
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.ticks.end();
    }
}

/// A stream that has arrived through the listener.
#[derive(Debug)]
pub(crate) struct Arrival(Arc<Door>);

impl Arrival {
    pub(crate) fn new(door: Arc<Door>) -> Self {
        Self(door)
    }

    /// Handles a hook that filters have, too.
    pub(crate) fn hear(&self, stream: Stream, event: &Event) -> Then {
        if matches!(event, Event::RequestHeaders(_))
            && let Some(way) = stream.header(Map::Request, WAY.as_bytes())
        {
            self.0.ways.note(&way, stream.worker());
        }
        Then::PassOn
    }
}
