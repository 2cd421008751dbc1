//! The filter's metrics, defined once a configuration.

use filter_host::metrics::{self, Counter, Metrics};
use header_codec::{Count, Counts};
use std::time::Duration;

/// Every counter of the filter.
#[derive(Debug)]
pub(crate) struct Counters {
    counts: metrics::Counters,
    encode_nanoseconds: Counter,
    decode_nanoseconds: Counter,
}

/// What a call into the codec did.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    Encode,
    Decode,
}

impl Counters {
    /// Defines all of them.
    pub(crate) fn define(metrics: &Metrics) -> Self {
        Self {
            counts: metrics.counters(Count::ALL.iter().map(|count| count.name())),
            encode_nanoseconds: metrics.counter("encode_nanoseconds_total"),
            decode_nanoseconds: metrics.counter("decode_nanoseconds_total"),
        }
    }

    /// Adds what an end has counted since it was asked last, and the time it took.
    pub(crate) fn add(&self, counts: &mut Counts, work: Work, time: Duration) {
        for (count, amount) in counts.take() {
            self.counts.at(count as usize).add(amount);
        }
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(0);
        match work {
            Work::Encode => self.encode_nanoseconds.add(nanoseconds),
            Work::Decode => self.decode_nanoseconds.add(nanoseconds),
        }
    }
}
