//! CoreDNS's counters.

use serde::Serialize;

use super::traffic::as_map;
use crate::scrape::Scrape;

/// Counts of CoreDNS.
#[derive(Debug, Serialize)]
pub(super) struct DnsCounts {
    /// True if listed names are steered. False if the proxy does not respond or steering is paused. None if no names
    /// are listed.
    pub steering: Option<bool>,
    /// The proxy's sockets that respond to CoreDNS's health check.
    pub proxies_up: Vec<String>,
    /// Those that do not.
    pub proxies_down: Vec<String>,
    /// All queries.
    pub questions: u64,
    /// Responses that contain or name the proxy.
    pub steered: u64,
    /// Responses that were replaced by "no such data".
    pub suppressed: u64,
    /// All other queries.
    pub untouched: u64,
    /// Queries that a remote served from memory, also with stale responses (`dns.remember`).
    pub remembered: u64,
    /// Those of them whose responses were stale.
    pub stale: u64,
    /// Those of them that the ground sent before anybody asked, at the first query.
    pub pushed: u64,
    /// Queries of clients that a remote sent to the ground, because it remembered no response.
    pub asked: u64,
    /// Responses before the truth was known, because a browser looked a name up first (`dns.instant`).
    pub instant: u64,
    /// Bytes of the responses that the ground sent unasked, and of those that a client requested later.
    pub pushed_bytes: u64,
    /// See `pushed_bytes`.
    pub pushed_used_bytes: u64,
    /// Bytes that this ground sent to remotes unasked.
    pub sent_bytes: u64,
    /// SERVFAIL responses: no resolver responded, or its response is not valid.
    pub failed: u64,
    /// The files of `dns.domains` and `dns.except` that are refused. The list before is in use.
    pub lists_refused: Vec<String>,
    /// Responses for listed names that were not steered, by reason.
    #[serde(serialize_with = "as_map")]
    pub left: Vec<(String, u64)>,
}

impl DnsCounts {
    /// Returns the share of a remote's lookups that took no round trip of the link, in percent. None without lookups.
    pub(super) fn without_round_trip_percent(&self) -> Option<u64> {
        ((self.remembered + self.instant) * 100).checked_div(self.remembered + self.asked.max(self.instant))
    }

    /// Reads the counters. The gauge of steering exists and is 0 even if no names are listed.
    pub(super) fn of(scrape: &Scrape, lists_names: bool) -> Self {
        let ours = |name| scrape.sum(&format!("coredns_longhaul_{name}_total"));
        let questions = scrape.sum("coredns_dns_requests_total");
        let steered = ours("rewrites") + ours("own_answers");
        let suppressed = ours("suppressed") + ours("canary_answers");
        let proxies = scrape.values("coredns_longhaul_proxy_up", "to");
        let (up, down): (Vec<_>, Vec<_>) = proxies.into_iter().partition(|(_, value)| *value > 0);
        let names = |found: Vec<(String, u64)>| found.into_iter().map(|(name, _)| name).collect();
        let mut refused = scrape.values("coredns_longhaul_list_refused", "file");
        refused.retain(|(_, value)| *value > 0);
        Self {
            proxies_up: names(up),
            proxies_down: names(down),
            lists_refused: names(refused),
            steering: lists_names.then(|| scrape.sum("coredns_longhaul_steering") > 0),
            questions,
            steered,
            suppressed,
            untouched: questions.saturating_sub(steered + suppressed),
            remembered: scrape.sum("coredns_remember_hits_total"),
            stale: scrape.sum_of("coredns_remember_hits_total", "age", "stale"),
            pushed: scrape.sum_of("coredns_remember_hits_total", "age", "pushed"),
            asked: scrape.sum_of("coredns_remember_asked_total", "reason", "new"),
            instant: scrape.sum_of("coredns_longhaul_browser_lookups_total", "outcome", "instant"),
            pushed_bytes: scrape.sum("coredns_remember_pushed_bytes_total"),
            pushed_used_bytes: scrape.sum("coredns_remember_pushed_used_bytes_total"),
            sent_bytes: scrape.sum("coredns_push_bytes_total"),
            failed: scrape.sum_of("coredns_dns_responses_total", "rcode", "SERVFAIL"),
            left: scrape.by("coredns_longhaul_skips_total", "reason"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_without_a_list_is_not_called_a_dns_that_steers_nobody() {
        let off = "coredns_dns_requests_total{} 3\ncoredns_longhaul_steering{} 0\n";
        let without = DnsCounts::of(&Scrape::parse(off), false);
        assert_eq!((without.steering, without.questions), (None, 3));
        assert_eq!(DnsCounts::of(&Scrape::parse(off), true).steering, Some(false));
        let on = off.replace("steering{} 0", "steering{} 1");
        assert_eq!(DnsCounts::of(&Scrape::parse(&on), true).steering, Some(true));
    }

    #[test]
    fn a_list_that_is_refused_is_named_until_it_is_read_again() {
        let text = "coredns_longhaul_list_refused{file=\"/etc/a.txt\"} 1\ncoredns_longhaul_list_refused{file=\"/etc/b.txt\"} 0\n";
        assert_eq!(DnsCounts::of(&Scrape::parse(text), true).lists_refused, ["/etc/a.txt"]);
    }

    #[test]
    fn failed_questions_are_counted_apart() {
        let text =
            "coredns_dns_responses_total{rcode=\"NOERROR\"} 5\ncoredns_dns_responses_total{rcode=\"SERVFAIL\"} 2\n";
        assert_eq!(DnsCounts::of(&Scrape::parse(text), true).failed, 2);
    }

    #[test]
    fn instant_responses_take_no_round_trip_although_the_ground_is_asked() {
        let text = "coredns_remember_hits_total{age=\"fresh\"} 5\ncoredns_remember_asked_total{reason=\"new\"} 5\n\
                    coredns_longhaul_browser_lookups_total{outcome=\"instant\"} 3\n\
                    coredns_longhaul_browser_lookups_total{outcome=\"alone\"} 2\n";
        let counts = DnsCounts::of(&Scrape::parse(text), false);
        assert_eq!((counts.instant, counts.without_round_trip_percent()), (3, Some(80)));
    }

    #[test]
    fn stale_responses_are_remembered_ones() {
        let text = "coredns_remember_hits_total{age=\"fresh\"} 5\ncoredns_remember_hits_total{age=\"stale\"} 2\n";
        let counts = DnsCounts::of(&Scrape::parse(text), true);
        assert_eq!((counts.remembered, counts.stale), (7, 2));
    }

    #[test]
    fn lookups_without_a_round_trip_are_those_that_nobody_asks_the_ground() {
        let text = "coredns_remember_hits_total{age=\"fresh\"} 5\ncoredns_remember_hits_total{age=\"pushed\"} 4\n\
                    coredns_remember_asked_total{reason=\"new\"} 3\ncoredns_remember_asked_total{reason=\"refresh\"} 9\n";
        let counts = DnsCounts::of(&Scrape::parse(text), true);
        assert_eq!((counts.remembered, counts.pushed, counts.asked), (9, 4, 3));
        assert_eq!(counts.without_round_trip_percent(), Some(75));
        assert_eq!(DnsCounts::of(&Scrape::parse(""), true).without_round_trip_percent(), None);
    }
}
