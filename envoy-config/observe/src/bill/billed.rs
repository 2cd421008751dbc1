//! A line with the bytes of a stream of HTTP, or of a connection that passes unread (`part/bill.yaml`).

use std::net::IpAddr;

use object_rules::Outcome;

/// The longest name of a site that is kept.
const LONGEST_SITE: usize = 255;

/// The bytes of a stream so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Billed {
    /// The stream. A later line of the same has larger counts.
    pub(crate) stream: String,
    /// True if no line of the stream follows.
    pub(crate) ended: bool,
    /// The client.
    pub(crate) client: IpAddr,
    /// The bytes to the client that crossed the link.
    pub(crate) down: u64,
    /// The bytes from it.
    pub(crate) up: u64,
    /// The host, without a port.
    pub(crate) site: String,
}

/// Bytes that a client moved since the line before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moved {
    /// The client.
    pub client: IpAddr,
    /// The host.
    pub site: String,
    /// The bytes to it over the link.
    pub down: u64,
    /// The bytes from it.
    pub up: u64,
}

impl Billed {
    /// Reads the line behind its mark: stream, kind of line, client, bytes to and from the other end with their frames, bytes
    /// from and to the client, outcome of the cache, and host. None if it is no such line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let mut word = || words.next();
        let (stream, kind, client) = (word()?.to_owned(), word()?, word()?.parse().ok()?);
        let [up_framed, down_framed, up_plain, down_plain] = [word()?, word()?, word()?, word()?].map(count);
        let from_cache = Outcome::of_label(word()?).is_some_and(Outcome::is_from_store);
        let site = word().unwrap_or("-");
        let (down, up) = match (up_framed, down_framed) {
            _ if from_cache => (0, 0),
            // No stream of the link belongs to it: it is a connection, or its object came ahead on another stream.
            (0, 0) => (down_plain, up_plain),
            framed => (framed.1, framed.0),
        };
        let ended = !kind.ends_with("Periodic");
        Some(Self { stream, ended, client, down, up, site: host(site) })
    }
}

fn count(word: &str) -> u64 {
    word.parse().unwrap_or(0)
}

/// Returns the name without its port. Bytes of a client may stand here, so nothing else passes.
fn host(authority: &str) -> String {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let allowed = |one: &char| one.is_ascii_alphanumeric() || ".-_:[]".contains(*one);
    host.chars().filter(allowed).take(LONGEST_SITE).collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(line: &str) -> (u64, u64, bool) {
        let billed = Billed::parse(line).unwrap();
        (billed.down, billed.up, billed.ended)
    }

    #[test]
    fn bytes_that_crossed_the_link_count_and_others_do_not() {
        assert_eq!(bytes("s DownstreamEnd 192.0.2.2 120 5000 0 9000 - www.example.org"), (5000, 120, true));
        assert_eq!(bytes("s DownstreamPeriodic 192.0.2.2 120 5000 0 9000 miss a.example"), (5000, 120, false));
        assert_eq!(bytes("s DownstreamEnd 192.0.2.2 120 5000 0 9000 hit a.example"), (0, 0, true));
        assert_eq!(bytes("s DownstreamEnd 192.0.2.2 0 0 10 9000 - a.example"), (9000, 10, true), "it came ahead");
        assert_eq!(bytes("7 TcpPeriodic 2001:db8::1 - - 300 70000 - a.example:443"), (70_000, 300, false));
        for line in ["", "s DownstreamEnd nobody 1 2 3 4 - a", "s DownstreamEnd 192.0.2.2 1 2 3"] {
            assert_eq!(Billed::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_site_is_a_host_without_a_port_and_nothing_else() {
        let site = |authority: &str| {
            Billed::parse(&format!("s TcpConnectionEnd 192.0.2.2 - - 1 1 - {authority}")).unwrap().site
        };
        assert_eq!(site("WWW.Example.org:443"), "www.example.org");
        assert_eq!(site("[2001:db8::1]:443"), "[2001:db8::1]");
        assert_eq!(site("198.51.100.7"), "198.51.100.7");
        assert_eq!(site("a\u{1b}[31m\"x"), "a[31mx");
    }
}
