//! The protocols to which a connection may change at a client's wish (`Upgrade`, RFC 9110 section 7.8).
//!
//! Envoy passes on an upgrade whose name is in its configuration, and has no wildcard. A server may ignore any other
//! upgrade, so Envoy removes those from the request. The origin then serves it as plain HTTP. That is right for offers
//! such as `TLS/1.2`, which Apache `HttpClient` sends with every request. It is wrong for a protocol that the origin
//! requires. So this table has the protocols of programs that cannot do without.

use std::collections::BTreeMap;

use serde::Serialize;

/// The protocols that go through to the origin, besides `websocket`. Case does not matter.
const PASSED: &[&str] = &[
    // Docker and Podman: attach to and run programs in a container.
    "tcp",
    // kubectl before 1.31: exec, attach, port-forward.
    "SPDY/3.1",
    // Tailscale and Headscale: the control connection, and relays.
    "tailscale-control-protocol",
    "DERP",
    // AirPlay: requests from the player back to the sender.
    "PTTH/1.0",
    // RFC 9298 and RFC 9484: UDP and IP over HTTP.
    "connect-udp",
    "connect-ip",
];

/// The protocol of a `WebSocket` (RFC 6455). Its handshake is a GET, and both ends of a pair of any version know it.
const WEBSOCKET: &str = "websocket";

/// The treatment of upgrades.
#[derive(Debug, Serialize)]
pub(super) struct Upgrades {
    /// The protocols that pass.
    passed: Vec<Passed>,
    /// The regular expression of every other protocol. Envoy takes those out of requests.
    ignored: String,
}

#[derive(Debug, Serialize)]
struct Passed {
    name: &'static str,
    /// True if the request may have any method, and its refusal any status. Over the pipe of a pair, such an upgrade is an
    /// extended CONNECT (RFC 8441). That has room for neither, so the ends say them in a field.
    any_method: bool,
}

impl Upgrades {
    pub(super) fn new() -> Self {
        let websocket = Passed { name: WEBSOCKET, any_method: false };
        let others = PASSED.iter().map(|name| Passed { name, any_method: true });
        let passed: Vec<Passed> = [websocket].into_iter().chain(others).collect();
        let names: Vec<String> = passed.iter().map(|passed| passed.name.to_ascii_lowercase()).collect();
        let ignored = format!("(?is){}", none_of(&names.iter().map(String::as_str).collect::<Vec<_>>()));
        Self { passed, ignored }
    }
}

/// Returns a regular expression of every text that is none of `words`. (RE2 has no negation.) It reads the words as a
/// tree of letters. Another text leaves the tree, or ends where no word does.
fn none_of(words: &[&str]) -> String {
    let mut by_first: BTreeMap<char, Vec<&str>> = BTreeMap::new();
    for word in words {
        let mut letters = word.chars();
        if let Some(first) = letters.next() {
            by_first.entry(first).or_default().push(letters.as_str());
        }
    }
    if by_first.is_empty() {
        // Behind the end of a word.
        return ".+".to_owned();
    }
    let mut ways = vec![format!("[^{}].*", by_first.keys().map(|letter| literal(*letter)).collect::<String>())];
    ways.extend(by_first.iter().map(|(first, rests)| literal(*first) + &none_of(rests)));
    if !words.contains(&"") {
        ways.push(String::new());
    }
    format!("(?:{})", ways.join("|"))
}

/// Returns the expression of this character, within and without brackets.
fn literal(letter: char) -> String {
    if letter.is_ascii_alphanumeric() { letter.to_string() } else { format!("\\{letter}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expression_leaves_the_tree_of_words_or_ends_within_it() {
        assert_eq!(none_of(&["a"]), "(?:[^a].*|a.+|)");
        assert_eq!(none_of(&["ab", "a/"]), "(?:[^a].*|a(?:[^\\/b].*|\\/.+|b.+|)|)");
        assert_eq!(none_of(&["a", "ab"]), "(?:[^a].*|a(?:[^b].*|b.+)|)");
    }
}
