//! Says a request in words.

use serde::Serialize;

use object_rules::Outcome;

use super::request::{Hop, Request};

/// The part of a request that took its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct SlowPart {
    /// The part.
    pub part: Part,
    /// Its time, in milliseconds.
    pub ms: u64,
}

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    /// The wait for the first byte: name, connection and response of the origin, or of the other end of a pair.
    FirstByte,
    /// The body, from its first to its last byte.
    Body,
}

/// Envoy's response flags in words, for those that an operator can meet.
/// <https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage>
const FLAGS: &[(&str, &str)] = &[
    ("DC", "the client closed the connection"),
    ("DF", "the name has no address"),
    ("DI", "a fault was injected"),
    ("DPE", "the client's request is not valid HTTP"),
    ("DT", "the request took longer than its limit"),
    ("IH", "a header of the request is refused"),
    ("LH", "a health check failed"),
    ("LR", "the connection was reset here"),
    ("NC", "the target does not exist"),
    ("NFCF", "the cached response was not usable"),
    ("NR", "no rule serves this request"),
    ("OM", "memory is short"),
    ("RL", "the client makes too many requests"),
    ("SI", "nothing was sent for too long"),
    ("UC", "the origin closed the connection"),
    ("UF", "the connection to the origin failed"),
    ("UH", "no origin is available"),
    ("UMSDR", "the request took longer than its limit"),
    ("UO", "too many connections or requests at once"),
    ("UPE", "the origin's response is not valid HTTP"),
    ("UR", "the origin reset the connection"),
    ("URX", "all retries failed"),
    ("UT", "the origin timed out"),
];

/// The flag of a connection that the client closed.
const CLIENT_CLOSED: &str = "DC";

/// The flag of a connection whose first attempt failed, if the second one did not.
const FIRST_ATTEMPT_FAILED: &str = "UF";

/// Envoy's words for a connection that the guard of the ground refused.
const REFUSED_BY_GROUND: &str = "tunnel_response:403";

/// The policies of the guard (`templates/ecds_guard.yaml.j2`) in words.
const GUARD: &[(&str, &str)] = &[
    ("own_address", "an address of this host"),
    ("denied", "an address in upstream.deny"),
    ("address_not_public", "not an address of the Internet"),
    ("port_not_listed", "a port that upstream.ports does not list"),
];

impl Request {
    /// Returns the part of a request that took most of its time. None for a request of less than `limit_ms`, and for a
    /// connection that passes unread: it lasts as long as its users want.
    pub(crate) fn slow(&self, limit_ms: u64) -> Option<SlowPart> {
        if self.duration_ms < limit_ms || self.hop == Hop::Tunnel {
            return None;
        }
        let first = self.first_byte_ms.unwrap_or(0);
        let body = self.duration_ms.saturating_sub(first);
        Some(if first >= body {
            SlowPart { part: Part::FirstByte, ms: first }
        } else {
            SlowPart { part: Part::Body, ms: body }
        })
    }

    /// Returns the outcome in words, without time, status and URL. `limit_ms` is the duration of a slow request.
    pub(crate) fn words(&self, limit_ms: u64) -> String {
        let mut words = Vec::new();
        if self.hop == Hop::Beyond {
            words.push("a request of the proxy itself failed".to_owned());
        }
        words.extend(self.failure());
        words.extend(self.by_cache().map(ToOwned::to_owned));
        if self.hop == Hop::Tunnel {
            words.push(self.passed());
            return words.join(", ");
        }
        match self.slow(limit_ms) {
            Some(SlowPart { part: Part::FirstByte, ms }) => {
                words.push(format!("slow: {} to the first byte", duration(ms)));
            }
            Some(SlowPart { part: Part::Body, ms }) => {
                words.push(format!(
                    "slow: {} for a body of {} ({})",
                    duration(ms),
                    bytes(self.bytes),
                    rate(self.bytes, ms)
                ));
            }
            None => words.extend(self.first_byte_ms.map(|ms| format!("first byte after {}", duration(ms)))),
        }
        if let Some(page) = &self.page {
            words.push(format!("{} URLs moved", page.moved));
            words.extend(left(&page.left));
            words.extend(page.bail_out.as_ref().map(|why| format!("rewriting stopped before the end ({why})")));
        }
        words.join(", ")
    }

    /// Returns how the cache served the request. None if it took no part.
    fn by_cache(&self) -> Option<&'static str> {
        match self.cache {
            Some(Outcome::StaleWhileRevalidate) => Some("from the cache, and validated afterwards"),
            Some(Outcome::StaleIfError) => Some("stale from the cache, because the origin failed"),
            Some(Outcome::Revalidated) => Some("from the cache, after validation"),
            Some(Outcome::Joined) => Some("together with another client's request"),
            _ => self.from_cache.then_some("from the cache"),
        }
    }

    /// Returns the status in a column of three letters. Connections that pass unread have their protocol there.
    pub(crate) fn column(&self) -> String {
        match self.status {
            _ if self.hop == Hop::Tunnel => if self.url.ends_with(":443") { "TLS" } else { "TCP" }.to_owned(),
            Some(status) => status.to_string(),
            None => "---".to_owned(),
        }
    }

    /// Returns the bytes of a connection that passed unread.
    fn passed(&self) -> String {
        if self.bytes == 0 && self.bytes_up > 0 && !self.has_failed() {
            return format!("no byte came back for {} up", bytes(self.bytes_up));
        }
        let past = match self.failure.as_deref() {
            _ if !self.past_pipe => "",
            Some(REFUSED_BY_GROUND) => " past the pipe, because the ground refused it",
            _ => " past the pipe, because the ground did not take it",
        };
        format!("passed unread{past}: {} down, {} up", bytes(self.bytes), bytes(self.bytes_up))
    }

    /// Returns the reason for a failure in words, with Envoy's own behind it.
    fn failure(&self) -> Option<String> {
        // Most connections end when the client closes them. The flag of a first attempt stays after the second one.
        let is_none = self.flags == CLIENT_CLOSED || (self.past_pipe && self.flags == FIRST_ATTEMPT_FAILED);
        if self.hop == Hop::Tunnel && is_none && !self.has_failed() {
            return None;
        }
        let policy = self.details.split_once("denied_matched_policy[").and_then(|(_, rest)| rest.split(']').next());
        let known = |table: &[(&str, &'static str)], key: &str| {
            table.iter().find(|(other, _)| *other == key).map(|(_, words)| *words)
        };
        if let Some(policy) = policy {
            return Some(format!("refused by the guard: {}", known(GUARD, policy).unwrap_or(policy)));
        }
        let flags: Vec<&str> = self.flags.split(',').filter_map(|flag| known(FLAGS, flag)).collect();
        let Some(words) = (!flags.is_empty()).then(|| flags.join(" and ")) else {
            return (self.hop == Hop::Beyond).then(|| self.status.map(|_| "the origin says so".to_owned())).flatten();
        };
        let known = |text: &&str| !matches!(*text, "" | "via_upstream");
        let more: Vec<&str> = [Some(self.details.as_str()), self.failure.as_deref()].into_iter().flatten().collect();
        let more: Vec<&str> = more.into_iter().filter(known).collect();
        Some(if more.is_empty() { words } else { format!("{words} ({})", more.join("; ")) })
    }
}

/// Returns `3 left: 2 document, 1 csp`. None if none is left.
pub(super) fn left(counts: &[(String, u64)]) -> Option<String> {
    let sum: u64 = counts.iter().map(|(_, urls)| urls).sum();
    let each: Vec<String> = counts.iter().map(|(reason, urls)| format!("{urls} {reason}")).collect();
    (sum > 0).then(|| format!("{sum} left: {}", each.join(", ")))
}

/// Returns milliseconds as `870 ms` or `2.31 s`.
pub(super) fn duration(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{}.{:02} s", ms / 1000, ms % 1000 / 10) }
}

/// Returns bytes as `870 B`, `12 KiB` or `3.1 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    match bytes {
        0..KIB => format!("{bytes} B"),
        KIB..MIB => format!("{} KiB", bytes / KIB),
        _ => format!("{}.{} MiB", bytes / MIB, bytes % MIB * 10 / MIB),
    }
}

fn rate(bytes: u64, ms: u64) -> String {
    match bytes.saturating_mul(8) / ms.max(1) {
        kbit @ 0..10_000 => format!("{kbit} kbit/s"),
        kbit => format!("{} Mbit/s", kbit / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::{line, request};
    use super::*;

    #[test]
    fn a_connection_past_the_pipe_says_why() {
        let words = |more: &str, flags: &str| {
            let line =
                line(more).replace("edge_http", "tunnel").replace(r#""flags":"-""#, &format!(r#""flags":"{flags}""#));
            Request::parse(&line).unwrap().words(500)
        };
        assert_eq!(words(r#""attempts":1,"#, "-"), "passed unread: 4 KiB down, 0 B up");
        let second = |response: u16, flags| {
            words(&format!(r#""attempts":2,"tls_failure":"tunnel_response:{response}","#), flags)
        };
        let past = "passed unread past the pipe, because the ground";
        assert_eq!(second(403, "UF"), format!("{past} refused it: 4 KiB down, 0 B up"));
        assert_eq!(second(503, "UF"), format!("{past} did not take it: 4 KiB down, 0 B up"));
        let neither = second(503, "UF,URX");
        assert!(neither.starts_with("the connection to the origin failed and all retries failed"), "{neither}");
    }

    #[test]
    fn a_slow_request_names_the_part_that_took_the_time() {
        let origin = request("");
        assert_eq!(origin.slow(500), Some(SlowPart { part: Part::FirstByte, ms: 701 }));
        assert_eq!(origin.slow(901), None);
        assert_eq!(origin.words(500), "slow: 701 ms to the first byte");
        assert_eq!(origin.words(1000), "first byte after 701 ms");
        let body = Request::parse(&line("").replace("\"duration_ms\":900", "\"duration_ms\":10900")).unwrap();
        assert_eq!(body.words(500), "slow: 10.19 s for a body of 4 KiB (3 kbit/s)");
        let tunnel = Request::parse(&line("").replace("edge_http", "tunnel")).unwrap();
        assert_eq!(tunnel.slow(500), None);
    }

    #[test]
    fn a_connection_that_passed_unread_has_its_bytes_both_ways() {
        let of = |from: &str, to: &str| {
            let line = line("").replace("edge_http", "tunnel").replace("www.example.org", "www.example.org:443");
            Request::parse(&line.replace("/a?b", "").replace(from, to)).unwrap()
        };
        let tls = of(r#""bytes_in":0"#, r#""bytes_in":517"#);
        assert_eq!((tls.column().as_str(), tls.url.as_str()), ("TLS", "www.example.org:443"));
        assert_eq!(tls.words(500), "passed unread: 4 KiB down, 517 B up");
        let closed = of(r#""flags":"-""#, r#""flags":"DC""#);
        assert_eq!(closed.words(500), "passed unread: 4 KiB down, 0 B up");
        assert_eq!(of("www.example.org:443", "198.51.100.7:22").column(), "TCP");
        assert_eq!(
            of(r#""bytes_in":0,"bytes_out":4727"#, r#""bytes_in":517"#).words(500),
            "no byte came back for 517 B up"
        );
        let refused = of(r#""flags":"-""#, r#""flags":"DF""#);
        assert_eq!(refused.words(500), "the name has no address, passed unread: 4 KiB down, 0 B up");
    }

    #[test]
    fn a_page_says_how_many_urls_stayed_and_why() {
        let page = request(r#""moved":"2","left":"csp=1 document=12","#);
        assert!(page.words(1000).ends_with("2 URLs moved, 13 left: 1 csp, 12 document"), "{}", page.words(1000));
    }

    #[test]
    fn failures_are_in_words() {
        let says = |from: &str, to: &str, words: &str| {
            let request = Request::parse(&line("").replace(from, to)).unwrap();
            assert!(request.words(5000).contains(words), "{}", request.words(5000));
        };
        says(r#""flags":"-""#, r#""flags":"DF""#, "the name has no address");
        says(r#""flags":"-""#, r#""flags":"UF,URX""#, "the connection to the origin failed and all retries failed");
        says(r#""flags":"-""#, r#""flags":"RFCF""#, "from the cache");
        let refused = "rbac_access_denied_matched_policy[address_not_public]";
        says("via_upstream", refused, "refused by the guard: not an address of the Internet");
        says("edge_http", "inner", "a request of the proxy itself failed, the origin says so");
        says(r#""flags":"-""#, r#""flags":"UF","tls_failure":"certificate expired""#, "failed (certificate expired)");
    }

    #[test]
    fn every_policy_of_the_guard_has_words() {
        let template = include_str!("../../../render/templates/ecds_guard.yaml.j2");
        for (policy, _) in GUARD {
            assert!(template.contains(&format!("\n        {policy}:\n")), "{policy}");
        }
        assert_eq!(template.matches("principals: [ { any: true } ]").count(), GUARD.len());
    }
}
