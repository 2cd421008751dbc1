//! Estimates what a page's moved URLs save on the slow link, from the hosts that the browser no longer connects to.
//!
//! The estimate covers the setup of connections alone. The effect of fewer, fuller connections and of the proxy's cache
//! depends on the browser. Experiments measure that effect.

use memchr::memchr_iter;

/// Round trips to one host: the lookup of its name and the TCP handshake. For https, the TLS 1.3 handshake adds one.
const PLAIN_ROUND_TRIPS: u64 = 2;
const TLS_ROUND_TRIPS: u64 = 3;
/// Cost of the page's first use of the proxy's own origin. http targets are addresses, which need no lookup.
const PLAIN_TARGET_ROUND_TRIPS: u64 = 1;
const TLS_TARGET_ROUND_TRIPS: u64 = 3;

/// DNS query and response with their headers, and seven TCP segments without data.
const PLAIN_BYTES: u64 = 200 + 7 * 52;
/// A TLS client hello of 1.8 kB (post-quantum key share). The response: 1.2 kB of key share and 2.5 kB of certificates.
/// The end of the handshake: 0.2 kB.
const TLS_BYTES: u64 = PLAIN_BYTES + 5_700;
const PLAIN_TARGET_BYTES: u64 = 7 * 52;
const TLS_TARGET_BYTES: u64 = TLS_BYTES;

/// The largest number of hosts counted per scheme. It bounds the memory for any page.
const MOST_HOSTS: usize = 64;

/// The round trips and bytes that a page saves on the link, both directions together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Savings {
    /// Hosts that the browser no longer connects to, each once.
    pub hosts: u64,
    /// Round trips of name lookups and handshakes. Some of them may have run in parallel.
    pub round_trips: u64,
    /// Bytes of name lookups and handshakes.
    pub bytes: u64,
}

/// The hosts whose objects moved, each once, as 64-bit hashes. Hosts with equal hashes count as one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MovedHosts {
    plain: Vec<u64>,
    tls: Vec<u64>,
    to_tls: bool,
}

impl MovedHosts {
    /// Counts the host in `moved`, a URL in its moved form: `SCHEME://TARGET/HOST[:PORT]/...`. The page's own host does
    /// not count, because the browser has connected to it already.
    pub(crate) fn count(&mut self, moved: &str, page_host: &str) {
        // `https://NAME/HOST/...`
        let mut slashes = memchr_iter(b'/', moved.as_bytes()).skip(2);
        let host = slashes.next().and_then(|before| moved.get(before + 1..slashes.next().unwrap_or(moved.len())));
        let Some(host) = host else { return };
        if host.strip_prefix(page_host).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')) {
            return;
        }
        self.to_tls |= moved.starts_with("https:");
        // In the moved form, port 443 means https, and every other port means http.
        let seen = if host.ends_with(":443") { &mut self.tls } else { &mut self.plain };
        let hash = fnv1a(host.as_bytes());
        if seen.len() < MOST_HOSTS && !seen.contains(&hash) {
            seen.push(hash);
        }
    }

    pub(crate) fn savings(&self) -> Savings {
        let (plain, tls) = (self.plain.len() as u64, self.tls.len() as u64);
        let (own_round_trips, own_bytes) = if self.to_tls {
            (TLS_TARGET_ROUND_TRIPS, TLS_TARGET_BYTES)
        } else {
            (PLAIN_TARGET_ROUND_TRIPS, PLAIN_TARGET_BYTES)
        };
        Savings {
            hosts: plain + tls,
            round_trips: (plain * PLAIN_ROUND_TRIPS + tls * TLS_ROUND_TRIPS).saturating_sub(own_round_trips),
            bytes: (plain * PLAIN_BYTES + tls * TLS_BYTES).saturating_sub(own_bytes),
        }
    }
}

/// Returns the FNV-1a hash, 64 bits. An author whose page names colliding hosts only makes the estimate for that page
/// too small.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn savings(moved: &[&str]) -> Savings {
        let mut hosts = MovedHosts::default();
        for url in moved {
            hosts.count(url, "www.example");
        }
        hosts.savings()
    }

    #[test]
    fn a_page_that_moved_nothing_saves_nothing() {
        assert_eq!(savings(&[]), Savings::default());
    }

    #[test]
    fn a_host_counts_once_however_many_of_its_objects_moved() {
        let once = savings(&["http://192.0.2.1/a.example/1", "http://192.0.2.1/b.example/1"]);
        let often = savings(&[
            "http://192.0.2.1/a.example/1",
            "http://192.0.2.1/b.example/1",
            "http://192.0.2.1/a.example/2?x=/b",
            "http://192.0.2.1/a.example",
            "http://192.0.2.1/www.example/own",
            "http://192.0.2.1/www.example:8080/own",
        ]);
        assert_eq!(once, Savings { hosts: 2, round_trips: 3, bytes: 2 * 564 - 364 });
        assert_eq!(often, once);
    }

    #[test]
    fn an_https_host_saves_a_handshake_more_and_an_https_target_costs_one() {
        let all = [
            "https://pep.example.net/a.example:443/1",
            "https://pep.example.net/b.example:443/1",
            "https://pep.example.net/c.example:8080/1",
        ];
        assert_eq!(savings(&all).round_trips, 3 + 3 + 2 - 3);
        assert_eq!(savings(&all[2..]), Savings { hosts: 1, round_trips: 0, bytes: 0 }, "one host for another");
    }

    #[test]
    fn hosts_without_end_are_bounded() {
        let urls: Vec<String> = (0..1000).map(|n| format!("http://192.0.2.1/h{n}.example/")).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        assert_eq!(savings(&urls).hosts, 64);
    }
}
