//! The filter's metrics, defined once for each configuration.

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

/// Direction of a call into the codec.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    Encode,
    Decode,
}

impl Counters {
    /// Defines every counter.
    pub(crate) fn define(metrics: &Metrics) -> Self {
        Self {
            counts: metrics.counters(Count::ALL.iter().map(|count| count.name())),
            encode_nanoseconds: metrics.counter("encode_nanoseconds_total"),
            decode_nanoseconds: metrics.counter("decode_nanoseconds_total"),
        }
    }

    /// Adds the counts since the last call, and the time of this one.
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
