//! Sums requests up: counts, medians, and the reasons why URLs stayed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::request::{Hop, Request};
use super::words;

/// The sum over requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    /// Requests of clients.
    pub requests: u64,
    /// Connections that passed unread.
    pub tunnels: u64,
    /// The bytes that they brought to clients.
    pub tunnel_bytes: u64,
    /// Requests of the proxy itself that failed.
    pub failed_beyond: u64,
    /// Requests of clients that the cache served.
    pub from_cache: u64,
    /// Responses to clients of status 400 and above, or without a response.
    pub failed: u64,
    /// Pages that were rewritten.
    pub pages: u64,
    /// URLs that were moved.
    pub moved: u64,
    /// URLs that stayed, by reason.
    pub left: BTreeMap<String, u64>,
    /// The bodies of responses to clients, in bytes.
    pub bytes: u64,
    #[serde(skip)]
    first_bytes: Vec<u64>,
    #[serde(skip)]
    durations: Vec<u64>,
}

/// The medians of a summary, in milliseconds. None without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Times {
    /// Of the time to the first byte.
    pub first_byte_ms: Option<u64>,
    /// Of the time to the last byte.
    pub duration_ms: Option<u64>,
}

impl Summary {
    /// Adds a request.
    pub(crate) fn add(&mut self, request: &Request) {
        match request.hop {
            Hop::Tunnel => {
                self.tunnels += 1;
                self.tunnel_bytes += request.bytes;
            }
            Hop::Beyond => self.failed_beyond += 1,
            Hop::Client => self.add_of_client(request),
        }
    }

    fn add_of_client(&mut self, request: &Request) {
        self.requests += 1;
        self.from_cache += u64::from(request.from_cache);
        self.failed += u64::from(request.status.is_none_or(|status| status >= 400));
        self.bytes += request.bytes;
        self.first_bytes.extend(request.first_byte_ms);
        self.durations.push(request.duration_ms);
        if let Some(page) = &request.page {
            self.pages += 1;
            self.moved += page.moved;
            for (reason, urls) in &page.left {
                *self.left.entry(reason.clone()).or_default() += urls;
            }
        }
    }

    /// Returns the medians over the requests of clients.
    pub(crate) fn times(&self) -> Times {
        Times { first_byte_ms: median(&self.first_bytes), duration_ms: median(&self.durations) }
    }

    /// Returns the summary in words, a line for each subject.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{}, {} from the cache, {} failed, {} sent",
            number(self.requests, "request"),
            self.from_cache,
            self.failed,
            words::bytes(self.bytes)
        )];
        let times = self.times();
        if let (Some(first), Some(duration)) = (times.first_byte_ms, times.duration_ms) {
            let (first, duration) = (words::duration(first), words::duration(duration));
            lines.push(format!("medians: first byte after {first}, last byte after {duration}"));
        }
        if self.pages > 0 {
            let left: Vec<(String, u64)> = self.left_by_count();
            let left = words::left(&left).map(|left| format!(", {left}")).unwrap_or_default();
            lines.push(format!("{}: {} URLs moved{left}", number(self.pages, "rewritten page"), self.moved));
        }
        if self.tunnels > 0 {
            let (connections, bytes) = (number(self.tunnels, "connection"), words::bytes(self.tunnel_bytes));
            lines.push(format!("{connections} passed unread, {bytes} sent"));
        }
        if self.failed_beyond > 0 {
            lines.push(format!("{} of the proxy itself failed", number(self.failed_beyond, "request")));
        }
        lines
    }

    /// Returns the reasons why URLs stayed, most first.
    pub(crate) fn left_by_count(&self) -> Vec<(String, u64)> {
        let mut left: Vec<_> = self.left.iter().map(|(reason, urls)| (reason.clone(), *urls)).collect();
        left.sort_by_key(|(_, urls)| std::cmp::Reverse(*urls));
        left
    }
}

fn number(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns the lower median.
fn median(values: &[u64]) -> Option<u64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::{line, request};
    use super::*;

    #[test]
    fn requests_are_counted_by_their_outcome() {
        let mut summary = Summary::default();
        assert_eq!(summary.words(), ["0 requests, 0 from the cache, 0 failed, 0 B sent"]);
        summary.add(&request(r#""moved":"2","left":"csp=1 document=12","#));
        summary.add(&request(r#""moved":"1","left":"csp=13","#));
        for (from, to) in [
            ("edge_http", "tunnel"),
            ("edge_http", "inner"),
            (r#""status":200"#, r#""status":502"#),
            (r#""first_byte_ms":701,"flags":"-""#, r#""flags":"RFCF""#),
        ] {
            summary.add(&Request::parse(&line("").replace(from, to)).unwrap());
        }
        assert_eq!(
            summary.words(),
            [
                "4 requests, 1 from the cache, 1 failed, 18 KiB sent",
                "medians: first byte after 701 ms, last byte after 900 ms",
                "2 rewritten pages: 3 URLs moved, 26 left: 14 csp, 12 document",
                "1 connection passed unread, 4 KiB sent",
                "1 request of the proxy itself failed",
            ]
        );
    }

    #[test]
    fn the_median_is_the_value_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[9]), Some(9));
        assert_eq!(median(&[9, 1, 5]), Some(5));
        assert_eq!(median(&[9, 1, 5, 3]), Some(3));
    }
}
