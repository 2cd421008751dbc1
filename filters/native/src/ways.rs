//! The ways from Envoy's main thread to its workers, for requests that filters send outside of streams.
//!
//! Such a request starts on the main thread, where neither internal listeners nor the connections of workers can be reached. So
//! it enters a worker through the listener `filter_calls`, by one of as many clusters as there are workers. Each of those has
//! one connection, and Envoy gives each worker one of them (`exact_balance`), but does not say which. The filter `filter-calls`
//! in that listener writes down the worker at which each way ends.
//!
//! Objects of a page need the way to the page's worker: the ground expects them on the pipe that the page took.

use std::time::Duration;

use crate::abi;
use crate::board::SharedBoard;

/// The name of the board.
const BOARD: &str = "filter-calls";

/// The first part of a cluster's name. The number of the way follows.
const CLUSTER: &str = "filter_calls_";

/// The field that names the cluster to which the worker sends the request. A request without it ends at the worker.
const CALLED: &str = "x-longhaul-called";

/// The field with the number of the way.
pub(crate) const WAY: &str = "x-longhaul-way";

/// The ways of this process.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    /// The worker of each way, by the way's number.
    board: SharedBoard,
    count: usize,
}

impl Ways {
    /// Returns the ways. Only the main thread may call it.
    pub(crate) fn of_this_process() -> Self {
        Self { board: SharedBoard::named(BOARD), count: abi::workers() }
    }

    /// Sends a request for the worker `index` to the cluster `called`, from the main thread. While the way to that worker is not
    /// known, the request takes any.
    pub(crate) fn call(
        &self,
        config: abi::Config,
        index: usize,
        called: &str,
        fields: &[(&str, &str)],
        timeout: Duration,
    ) -> Result<u64, abi::Refused> {
        let way = self.all().find(|way| self.end(*way) == Some(index)).unwrap_or_default();
        send(config, way, &[fields, &[(CALLED, called)]].concat(), timeout)
    }

    /// Returns every way's number.
    pub(crate) fn all(&self) -> std::ops::Range<usize> {
        0..self.count
    }

    /// Returns the worker at which a way ends. None: no request has arrived on it.
    pub(crate) fn end(&self, way: usize) -> Option<usize> {
        let (worker, _) = self.board.get(&way.to_string()).ok()?;
        std::str::from_utf8(&worker).ok()?.parse().ok()
    }

    /// Notes that a request has arrived on a way.
    pub(crate) fn note(&self, way: &[u8], worker: usize) {
        let way = std::str::from_utf8(way).ok().and_then(|way| way.parse().ok()).filter(|way| *way < self.count);
        if let Some(way) = way.filter(|way| self.end(*way) != Some(worker)) {
            // Version 0: the last request is right.
            let _ = self.board.set(&way.to_string(), worker.to_string().as_bytes(), 0);
        }
    }
}

/// Sends a request on a way. Without the name of a cluster, it ends at the worker.
pub(crate) fn send(
    config: abi::Config,
    way: usize,
    fields: &[(&str, &str)],
    timeout: Duration,
) -> Result<u64, abi::Refused> {
    let number = way.to_string();
    let fields = [fields, &[(WAY, number.as_str())]].concat();
    config.call(&[CLUSTER, &number].concat(), &fields, timeout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{fake, token};

    fn called(ways: &Ways, index: usize) -> String {
        // SAFETY: nobody follows the pointer.
        #[allow(unsafe_code)]
        let config = unsafe { abi::Config::of(token()) };
        fake(|fake| fake.calls.clear());
        ways.call(config, index, "pipe", &[(":path", "/")], Duration::from_secs(1)).unwrap();
        fake(|fake| fake.calls.concat())
    }

    #[test]
    fn a_request_takes_the_way_that_ends_at_its_worker() {
        let ways = Ways { board: SharedBoard::named("ways of a test"), count: 3 };
        assert_eq!(called(&ways, 1), "main thread calls filter_calls_0", "no way is known");
        ways.note(b"2", 1);
        assert_eq!(called(&ways, 1), "main thread calls filter_calls_2");
        assert_eq!(called(&ways, 0), "main thread calls filter_calls_0");
        // Another connection of the same way.
        ways.note(b"2", 0);
        assert_eq!(called(&ways, 0), "main thread calls filter_calls_2");
        assert_eq!(called(&ways, 1), "main thread calls filter_calls_0");
        for odd in [&b"3"[..], b"-1", b"", b"\xff"] {
            ways.note(odd, 1);
        }
        assert_eq!(called(&ways, 1), "main thread calls filter_calls_0");
    }
}
