//! The filter's metrics, defined once for each configuration.

use filter_host::metrics::{self, Counter, Metrics};
use header_codec::{Count, Counts};
use std::time::Duration;

/// The names of the counters of time, and their meaning.
const TIMES: [(&str, &str); 2] = [
    ("encode_nanoseconds_total", "Time spent on compression."),
    ("decode_nanoseconds_total", "Time spent on decompression."),
];

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
            counts: metrics.counters(Count::ALL.iter().map(|count| count.as_str())),
            encode_nanoseconds: metrics.counter(TIMES[0].0),
            decode_nanoseconds: metrics.counter(TIMES[1].0),
        }
    }

    /// Adds the counts since the last call, and the time of this one.
    pub(crate) fn add(&self, counts: &mut Counts, work: Work, time: Duration) {
        for (count, amount) in counts.take() {
            self.counts.at(count.index()).add(amount);
        }
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(0);
        match work {
            Work::Encode => self.encode_nanoseconds.add(nanoseconds),
            Work::Decode => self.decode_nanoseconds.add(nanoseconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use filter_host::tables;

    use super::{Count, TIMES};

    #[test]
    fn the_table_of_the_document_has_every_counter() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../envoy-config/METRICS.md");
        let counts = Count::ALL.iter().map(|count| (count.as_str(), count.sentence()));
        let table = tables::of_names("longhaul_header_compression_", counts.chain(TIMES));
        tables::check(path, "counters of header-compression", &table).unwrap();
    }
}
