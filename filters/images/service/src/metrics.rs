//! Counters, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use image_variants::Left;

/// The counters of the program.
#[derive(Debug)]
pub struct Metrics {
    shrunk: AtomicU64,
    left: Vec<AtomicU64>,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    cpu_us: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            shrunk: AtomicU64::new(0),
            left: Left::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            cpu_us: AtomicU64::new(0),
        }
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Metrics {
    /// Counts an image that a variant replaced.
    pub fn shrunk(&self, bytes_in: usize, bytes_out: usize) {
        add(&self.shrunk, 1);
        add(&self.bytes_in, bytes_in as u64);
        add(&self.bytes_out, bytes_out as u64);
    }

    /// Counts an image that stays.
    pub fn left(&self, reason: Left) {
        if let Some(counter) = self.left.get(reason.index()) {
            add(counter, 1);
        }
    }

    /// Counts the processor time of a child.
    pub fn cpu(&self, us: u32) {
        add(&self.cpu_us, us.into());
    }

    /// Returns the counters as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut row = |name: &str, help: &str, values: &[(String, u64)]| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP longhaul_images_{name} {help}\n# TYPE longhaul_images_{name} counter");
            for (labels, value) in values {
                let _ = writeln!(text, "longhaul_images_{name}{labels} {value}");
            }
        };
        let one = |counter| vec![(String::new(), get(counter))];
        row("shrunk_total", "Images that a smaller variant replaced.", &one(&self.shrunk));
        let left = Left::ALL.iter().zip(&self.left);
        let left: Vec<_> =
            left.map(|(left, count)| (format!("{{reason=\"{}\"}}", left.as_str()), get(count))).collect();
        row("left_total", "Responses that passed as their origins sent them.", &left);
        row("bytes_in_total", "Bytes of replaced images.", &one(&self.bytes_in));
        row("bytes_out_total", "Bytes of their variants.", &one(&self.bytes_out));
        row(
            "cpu_ms_total",
            "Processor time of child processes, in milliseconds.",
            &[(String::new(), get(&self.cpu_us) / 1000)],
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_row_from_the_start() {
        let metrics = Metrics::default();
        metrics.shrunk(1000, 400);
        metrics.left(Left::Busy);
        metrics.cpu(2_500);
        let text = metrics.text();
        for row in [
            "longhaul_images_shrunk_total 1",
            "longhaul_images_bytes_in_total 1000",
            "longhaul_images_bytes_out_total 400",
            "longhaul_images_cpu_ms_total 2",
            "longhaul_images_left_total{reason=\"busy\"} 1",
            "longhaul_images_left_total{reason=\"animated\"} 0",
        ] {
            assert!(text.lines().any(|line| line == row), "{row}\n{text}");
        }
    }
}
