//! The filter's metrics, defined once a configuration.
//!
//! A label is the tail of the name (`..._total_reason_history`); the bootstrap's `stats_tags` turn it into one.

use filter_host::metrics::Counter;
use header_codec::{Count, Counts};
use std::time::Duration;

/// Every counter of the filter. One that the host would not define counts nothing.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    counts: Vec<Counter>,
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
    /// Defines all of them. The names of those the host refused are returned.
    pub(crate) fn define() -> (Self, Vec<String>) {
        let mut missing = Vec::new();
        let mut counter = |name: &str| {
            let name = format!("longhaul_header_compression_{name}");
            Counter::define(&name).unwrap_or_else(|_| {
                missing.push(name);
                Counter::default()
            })
        };
        let counters = Self {
            counts: Count::ALL.iter().map(|count| counter(count.name())).collect(),
            encode_nanoseconds: counter("encode_nanoseconds_total"),
            decode_nanoseconds: counter("decode_nanoseconds_total"),
        };
        (counters, missing)
    }

    /// Adds what an end has counted since it was asked last, and the time it took.
    pub(crate) fn add(&self, counts: &mut Counts, work: Work, time: Duration) {
        for (count, amount) in counts.take() {
            self.counts.get(count as usize).copied().unwrap_or_default().add(amount);
        }
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(0);
        match work {
            Work::Encode => self.encode_nanoseconds.add(nanoseconds),
            Work::Decode => self.decode_nanoseconds.add(nanoseconds),
        }
    }
}
