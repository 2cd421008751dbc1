//! Chooses requests, says them in words or in JSON, and sums them up.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use serde::Serialize;
use url_mapping::Reason;

use super::joined::Joined;
use super::request::Request;
use super::summary::{Summary, Times};
use super::who::Who;
use super::words::SlowPart;

/// The requests to show, and their form.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Only requests that took this long or longer, in milliseconds.
    pub slow_ms: Option<u64>,
    /// Only pages with URLs that stayed, and the meaning of each reason.
    pub left: bool,
    /// Only requests for this name and names below it.
    pub site: Option<String>,
    /// Only lines of this time or later, in RFC 3339 in UTC, to the millisecond.
    pub since: Option<String>,
    /// Sums by client instead of requests.
    pub who: bool,
    /// A JSON object for each line.
    pub json: bool,
    /// The addresses that names have before their true responses are known (`dns.instant_range`).
    pub instant: RangeInclusive<Ipv4Addr>,
}

/// The text about a log.
#[derive(Debug)]
pub struct Output {
    choice: Choice,
    /// The duration of a slow request, in milliseconds.
    slow_ms: u64,
    joined: Joined,
    summary: Summary,
    who: Who,
    /// The text that is complete and was not printed yet.
    pub pending: String,
    /// Lines that are no requests.
    pub others: u64,
}

impl Output {
    /// Begins without a line. A request counts as slow from `slow_ms` on, unless `choice` has a time of its own.
    pub fn new(choice: Choice, slow_ms: u64) -> Self {
        let slow_ms = choice.slow_ms.unwrap_or(slow_ms);
        let (joined, summary, who) = (Joined::default(), Summary::default(), Who::default());
        Self { choice, slow_ms, joined, summary, who, pending: String::new(), others: 0 }
    }

    /// Adds a line of the log.
    pub fn take(&mut self, line: &str) {
        let Some(request) = Request::parse(line) else {
            self.others += u64::from(!line.trim().is_empty());
            return;
        };
        for request in self.joined.take(request) {
            self.add(&request);
        }
    }

    fn add(&mut self, request: &Request) {
        if !self.is_wanted(request) {
            return;
        }
        self.summary.add(request);
        if self.choice.who {
            self.who.add(request);
            return;
        }
        let text = if self.choice.json { self.json(request) } else { self.words(request) };
        self.pending.push_str(&text);
        self.pending.push('\n');
    }

    fn is_wanted(&self, request: &Request) -> bool {
        let asked = &self.choice;
        let stayed = || request.page.as_ref().is_some_and(|page| !page.left.is_empty());
        asked.since.as_deref().is_none_or(|since| request.time.as_str() >= since)
            && asked.site.as_ref().is_none_or(|site| request.is_of(site))
            && asked.slow_ms.is_none_or(|limit| request.slow(limit).is_some())
            && (!asked.left || stayed())
    }

    fn words(&self, request: &Request) -> String {
        let time: String = request.time.chars().take(19).map(|one| if one == 'T' { ' ' } else { one }).collect();
        let (column, words) = (request.column(), request.words(self.slow_ms));
        // A connection that passes unread has no method of its client.
        let method = if request.is_tunnel() { String::new() } else { format!("{} ", request.method) };
        let instant = if self.is_instant(request) { ", at an instant address" } else { "" };
        format!("{time}  {column}  {:>6} ms  {method}{}  {words}{instant}", request.duration_ms, request.url)
    }

    /// Returns true if the client dialled an address that its name had before the true response was known.
    fn is_instant(&self, request: &Request) -> bool {
        matches!(request.dialled, Some(IpAddr::V4(dialled)) if self.choice.instant.contains(&dialled))
    }

    fn json(&self, request: &Request) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            #[serde(flatten)]
            request: &'a Request,
            slow: Option<SlowPart>,
            instant: bool,
        }
        let (slow, instant) = (request.slow(self.slow_ms), self.is_instant(request));
        serde_json::to_string(&Line { request, slow, instant }).unwrap_or_default()
    }

    /// Adds the clients and the summary, as JSON.
    fn finish_json(&mut self) {
        #[derive(Serialize)]
        struct Last<'a> {
            summary: &'a Summary,
            medians: Times,
        }
        let last = Last { summary: &self.summary, medians: self.summary.times() };
        let clients = self.who.by_bytes();
        let clients = clients.into_iter().map(serde_json::to_string);
        for line in clients.chain([serde_json::to_string(&last)]) {
            self.pending.push_str(&line.unwrap_or_default());
            self.pending.push('\n');
        }
    }

    /// Adds the requests that waited for a second line, the clients, and the summary.
    pub fn finish(&mut self) {
        for request in self.joined.rest() {
            self.add(&request);
        }
        if self.choice.json {
            return self.finish_json();
        }
        for line in self.who.words() {
            self.pending.push_str(&line);
            self.pending.push('\n');
        }
        if self.choice.left {
            self.pending.push_str(&reasons(&self.summary));
        }
        if !self.pending.is_empty() {
            self.pending.push('\n');
        }
        for line in self.summary.words() {
            self.pending.push_str(&line);
            self.pending.push('\n');
        }
    }
}

/// Returns the meaning of each reason, a line for each.
fn reasons(summary: &Summary) -> String {
    let known = |label: &str| Reason::ALL.iter().find(|reason| reason.as_str() == label);
    let line = |(label, urls): (String, u64)| {
        let meaning = known(&label).map_or("", |reason| reason.explanation());
        format!("\n{urls} URLs stayed ({label}): {meaning}")
    };
    summary.left_by_count().into_iter().map(line).chain(["\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::line;
    use super::*;

    #[test]
    fn a_connection_to_an_instant_address_says_so() {
        let said = |more: &str, json| {
            let (first, last) = (Ipv4Addr::new(198, 18, 0, 0), Ipv4Addr::new(198, 19, 255, 255));
            let choice =
                Choice { slow_ms: None, left: false, site: None, since: None, who: false, json, instant: first..=last };
            let mut output = Output::new(choice, 5000);
            output.take(&line(more));
            output.pending
        };
        let (instant, true_address) = (r#""dialled":"198.18.3.4","#, r#""dialled":"203.0.113.9","#);
        assert!(said(instant, false).trim_end().ends_with(", at an instant address"), "{}", said(instant, false));
        assert!(said(instant, true).contains(r#""instant":true"#));
        for other in [true_address, "", r#""dialled":"2001:db8::1","#, r#""dialled":"x","#] {
            assert!(!said(other, false).contains("instant"), "{other}");
            assert!(said(other, true).contains(r#""instant":false"#), "{other}");
        }
    }
}
