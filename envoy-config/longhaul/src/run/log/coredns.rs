//! The log lines of CoreDNS.
//!
//! The plugin *errors* writes `RCODE NAME. TYPE: REASON` for the first failed query of a kind in a minute, and then
//! `COUNT errors like 'PATTERN' occurred in last 1m0s`. The patterns are those of [`longhaul_render::DNS_FAILURES`].

use longhaul_render::DNS_FAILURES;

use super::record::{Level, Record};

/// Messages that tell an operator nothing.
const NOISE: &[&str] = &["maxprocs: ", "plugin/reload: Running configuration SHA512"];

/// A line of CoreDNS.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Message(Record),
    /// A further line of the message before.
    Further(String),
    Noise,
}

/// Parses a line of CoreDNS's output.
pub(super) fn parse(line: &str) -> Line {
    let (level, message) = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((level, message)) => match level_of(level) {
            Some(level) => (level, message),
            None => return Line::Further(line.to_owned()),
        },
        // Before its first line, CoreDNS may end with a panic or a message of a library.
        None if is_noise(line) => return Line::Noise,
        None => return Line::Further(line.to_owned()),
    };
    if is_noise(message) {
        return Line::Noise;
    }
    let message = failed_query(message).or_else(|| further_failures(message)).unwrap_or_else(|| message.to_owned());
    Line::Message(Record { level, part: "coredns".to_owned(), message })
}

fn is_noise(message: &str) -> bool {
    NOISE.iter().any(|noise| message.starts_with(noise))
}

fn level_of(name: &str) -> Option<Level> {
    match name {
        "ERROR" | "FATAL" | "PANIC" => Some(Level::Error),
        "WARNING" => Some(Level::Warning),
        "INFO" | "DEBUG" => Some(Level::Info),
        _ => None,
    }
}

/// Words the first failed query of a kind.
fn failed_query(message: &str) -> Option<String> {
    let (_, rest) = message.strip_prefix("plugin/errors: ")?.split_once(' ')?;
    let (name, rest) = rest.split_once(". ")?;
    let (kind, reason) = rest.split_once(": ")?;
    if kind.contains(' ') {
        return None;
    }
    let why = match words_of(reason) {
        Some(words) => match resolver(reason) {
            Some(address) => format!("the resolver {address} {words} ({reason})"),
            None => format!("{} ({reason})", whole(words)),
        },
        None => reason.to_owned(),
    };
    Some(format!("the query for {name} ({kind}) failed: {why}"))
}

/// Returns a sentence about resolvers from the words about one.
fn whole(words: &str) -> String {
    format!("a resolver {words}")
}

fn words_of(reason: &str) -> Option<&'static str> {
    DNS_FAILURES.iter().find(|(text, _)| reason.contains(text)).map(|(_, words)| *words)
}

/// Returns the resolver in `read udp 192.0.2.1:4000->192.0.2.53:53: i/o timeout` or `dial tcp 192.0.2.53:53: ...`.
fn resolver(reason: &str) -> Option<&str> {
    let address = match reason.split_once("->") {
        Some((_, rest)) => rest.split_once(": ")?.0,
        None => reason.strip_prefix("dial ")?.split_once(' ')?.1.split_once(": ")?.0,
    };
    address.parse::<std::net::SocketAddr>().is_ok().then_some(address)
}

/// Words the number of failed queries of a kind.
fn further_failures(message: &str) -> Option<String> {
    let (count, rest) = message.strip_prefix("plugin/errors: ")?.split_once(" errors like '")?;
    let (pattern, _) = rest.split_once("' occurred in last ")?;
    let why =
        words_of(pattern).map_or_else(|| "for other reasons".to_owned(), |words| format!("because {}", whole(words)));
    Some(format!("{count} queries failed within a minute {why}; the message about the first has its name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(line: &str) -> String {
        match parse(line) {
            Line::Message(record) => record.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failed_query_says_which_name_and_why() {
        assert_eq!(
            message(
                "[WARNING] plugin/errors: 2 www.example.org. A: read udp 192.0.2.1:40000->192.0.2.53:53: i/o timeout"
            ),
            "the query for www.example.org (A) failed: the resolver 192.0.2.53:53 did not respond in time (read udp \
             192.0.2.1:40000->192.0.2.53:53: i/o timeout)"
        );
        assert!(
            message("[WARNING] plugin/errors: 2 a.test. AAAA: dial tcp 192.0.2.53:53: connect: connection refused")
                .contains("the query for a.test (AAAA) failed: the resolver 192.0.2.53:53 refused the connection")
        );
        assert!(message("[ERROR] plugin/errors: 2 a.test. A: no such thing").ends_with("(A) failed: no such thing"));
    }

    #[test]
    fn a_number_of_failed_queries_says_why() {
        let line = |pattern: &str| {
            message(&format!("[WARNING] plugin/errors: 7 errors like '{pattern}' occurred in last 1m0s"))
        };
        assert_eq!(
            line("i/o timeout"),
            "7 queries failed within a minute because a resolver did not respond in time; the message about the first has \
             its name"
        );
        assert!(line(".*").contains("for other reasons"));
    }

    #[test]
    fn noise_is_dropped_and_other_messages_stay() {
        assert_eq!(parse("[INFO] plugin/reload: Running configuration SHA512 = 00"), Line::Noise);
        assert_eq!(parse("maxprocs: Leaving GOMAXPROCS=2: CPU quota undefined"), Line::Noise);
        assert_eq!(message("[INFO] Reloading complete"), "Reloading complete");
        assert_eq!(parse("goroutine 1 [running]:"), Line::Further("goroutine 1 [running]:".to_owned()));
    }
}
