//! Counters, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use object_rules::{Outcome, Past};
use object_store::Counts;

/// The counters of the program.
#[derive(Debug)]
pub(crate) struct Metrics {
    outcomes: Vec<AtomicU64>,
    past: Vec<AtomicU64>,
    fetched: AtomicU64,
    sent: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            outcomes: zeros(Outcome::ALL.len()),
            past: zeros(Past::ALL.len()),
            fetched: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        }
    }
}

impl Metrics {
    /// Counts the end of a request.
    pub(crate) fn outcome(&self, outcome: Outcome) {
        add(self.outcomes.get(outcome.index()));
    }

    /// Counts a response that is not stored.
    pub(crate) fn past(&self, why: Past) {
        add(self.past.get(why.index()));
    }

    /// Counts bytes of a body in blocks that came from the origin.
    pub(crate) fn fetched(&self, bytes: u64) {
        self.fetched.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes of a body in blocks that went to a client.
    pub(crate) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the counters and the figures of the store as text.
    pub(crate) fn text(&self, store: Counts) -> String {
        let mut text = String::new();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let outcomes: Vec<_> = Outcome::ALL.iter().map(|one| one.as_str()).zip(self.outcomes.iter().map(get)).collect();
        let past: Vec<_> = Past::ALL.iter().map(|one| one.as_str()).zip(self.past.iter().map(get)).collect();
        labelled(&mut text, "requests_total", "Requests, by what the client got.", &outcomes);
        labelled(&mut text, "not_stored_total", "Responses that are not stored, by the reason.", &past);
        let rows = [
            ("entries", "gauge", "Stored responses and markers of URLs.", store.entries),
            ("disk_bytes", "gauge", "Bytes on disk of stored responses.", store.disk_bytes),
            ("limit_bytes", "gauge", "The most bytes on disk, by `cache.size`.", store.max_bytes),
            ("hot_bytes", "gauge", "Bytes of stored responses in memory.", store.hot_bytes),
            (
                "held_bytes",
                "gauge",
                "Bytes on disk of files in the making, and of removed ones in use.",
                store.unlinked_bytes,
            ),
            ("sliced_fetched_bytes_total", "counter", "Bytes from origins for bodies in blocks.", get(&self.fetched)),
            ("sliced_sent_bytes_total", "counter", "Bytes of bodies in blocks to clients.", get(&self.sent)),
            ("write_errors_total", "counter", "Writes to the disk that failed.", store.errors),
        ];
        for (name, kind, help, value) in rows {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP longhaul_objects_{name} {help}\n# TYPE longhaul_objects_{name} {kind}");
            let _ = writeln!(text, "longhaul_objects_{name} {value}");
        }
        text
    }
}

fn add(counter: Option<&AtomicU64>) {
    if let Some(counter) = counter {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn labelled(text: &mut String, name: &str, help: &str, rows: &[(&str, u64)]) {
    let _ = writeln!(text, "# HELP longhaul_objects_{name} {help}\n# TYPE longhaul_objects_{name} counter");
    for (reason, value) in rows {
        let _ = writeln!(text, "longhaul_objects_{name}{{reason=\"{reason}\"}} {value}");
    }
}
