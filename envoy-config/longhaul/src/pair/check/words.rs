//! The result of `longhaul pair check` as lines for people.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul_config::{HostPort, Identity};
use x509_parser::time::ASN1Time;

use super::credentials::Credentials;
use super::{Clock, Outcome, Shown, Unreached};

/// A difference of the clocks above this is a problem: 2 minutes, in milliseconds.
const MOST_APART_MS: i64 = 120_000;

/// The weight of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A fact without a verdict.
    Note,
    /// All is well.
    Good,
    /// Something is wrong: the command ends with status 1.
    Problem,
}

/// The subject of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// The handshake, and the files for it.
    Handshake,
    /// The clocks of both ends.
    Clock,
}

/// A line of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its subject.
    pub topic: Topic,
    /// Its weight.
    pub verdict: Verdict,
    /// The text, without a newline.
    pub text: String,
}

impl Line {
    fn good(text: String) -> Self {
        Self { topic: Topic::Handshake, verdict: Verdict::Good, text }
    }

    fn problem(text: String) -> Self {
        Self { topic: Topic::Handshake, verdict: Verdict::Problem, text }
    }

    fn about_clocks(self) -> Self {
        Self { topic: Topic::Clock, ..self }
    }

    fn note(text: String) -> Self {
        Self { topic: Topic::Handshake, verdict: Verdict::Note, text }
    }
}

/// Returns the lines about this end's own files.
pub(super) fn files(own: &Credentials, identity: &Identity, now: SystemTime) -> Vec<Line> {
    let now_s = now.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    let authority = own.shown_authorities.iter().max_by_key(|shown| shown.until_s).cloned().unwrap_or_default();
    vec![
        file("certificate", &identity.cert.display().to_string(), &own.shown, now_s),
        file("authority", &identity.ca.display().to_string(), &authority, now_s),
    ]
}

fn file(kind: &str, path: &str, shown: &Shown, now_s: i64) -> Line {
    let names = if shown.names.is_empty() { String::new() } else { format!(" for {}", shown.names.join(", ")) };
    let (from, until) = (date(shown.from_s), date(shown.until_s));
    if now_s < shown.from_s {
        Line::problem(format!(
            "the {kind} {path}{names} is not valid before {from}, and this machine's clock says {}. Set the clock",
            date(now_s)
        ))
    } else if now_s > shown.until_s {
        Line::problem(format!(
            "the {kind} {path}{names} expired on {until}, and this machine's clock says {}. Renew it, or set the clock",
            date(now_s)
        ))
    } else {
        Line::good(format!("the {kind} {path}{names} is valid until {until}"))
    }
}

/// Returns the line for a ground, which waits for remotes.
pub(super) fn dialled(listen: SocketAddr) -> Line {
    Line::note(format!(
        "The remote dials, and this ground listens on {listen}. Try the handshake on the remote: longhaul pair check FILE"
    ))
}

/// Returns the line for a remote without a ground.
pub(super) fn no_ground() -> Line {
    Line::problem(
        "this remote has no ground: write its HOST:PORT into `split.peer`, and see `longhaul check`".to_owned(),
    )
}

/// Returns the line before those about one of several grounds.
pub(super) fn heading(at: &HostPort) -> Line {
    Line::note(format!("The ground {at}:"))
}

/// Returns the lines about the attempt to reach the ground at `at`.
pub(super) fn outcome(outcome: &Outcome, at: &HostPort, own: &Shown) -> Vec<Line> {
    match outcome {
        Outcome::Unresolved(why) => {
            vec![Line::problem(format!("the name {} of the ground has no address: {why}. Check `split.peer`", at.host))]
        }
        Outcome::Unreached { address, why } => vec![Line::problem(match why {
            Unreached::Refused => {
                format!("{address} refuses TCP connections. Start `longhaul` on the ground, or check `split.peer`")
            }
            Unreached::TimedOut(after) => format!(
                "{address} did not respond within {} s. Check `split.peer`, the link, and firewalls for TCP port {}",
                after.as_secs(),
                address.port()
            ),
            Unreached::Other(why) => format!("cannot connect to {address}: {why}"),
        })],
        Outcome::NoHandshake { address, why } => vec![
            Line::good(format!("{address} accepts TCP connections")),
            Line::problem(format!(
                "no TLS handshake with {address}: {why}. Check that a Longhaul ground listens there"
            )),
        ],
        Outcome::TheirsRefused { address, why, shown, clock } => {
            let mut lines = vec![
                Line::good(format!("{address} accepts TCP connections")),
                Line::problem(format!(
                    "this remote refuses the certificate of the ground: {}{}",
                    why.words("remote"),
                    facts(shown)
                )),
            ];
            lines.extend(clock.map(clocks));
            lines
        }
        Outcome::OursRefused { address, why, shown } => {
            let mut lines = vec![Line::good(format!("{address} accepts TCP connections"))];
            lines.extend(theirs(shown));
            lines.push(Line::problem(format!(
                "the ground refuses the certificate of this remote: {}{}",
                why.words("ground"),
                facts(own)
            )));
            lines
        }
        Outcome::Silent { address, why } => vec![
            Line::good(format!("{address} accepts TCP connections and the TLS handshake")),
            Line::problem(format!("the ground did not respond on the connection: {why}")),
        ],
        Outcome::Connected { address, round_trip, shown, clock } => {
            let mut lines = vec![Line::good(format!("{address} responds within {} ms", round_trip.as_millis()))];
            lines.extend(theirs(shown));
            lines.push(Line::good("the ground accepts the certificate of this remote".to_owned()));
            lines.push(clock.map_or_else(
                || {
                    let text = "The ground does not tell its time on this port, so the clocks are not compared.";
                    Line::note(text.to_owned()).about_clocks()
                },
                clocks,
            ));
            lines
        }
    }
}

fn theirs(shown: &Shown) -> Option<Line> {
    (*shown != Shown::default())
        .then(|| Line::good(format!("the certificate of the ground is valid until {}", date(shown.until_s))))
}

/// Describes a refused certificate, as the end of a sentence.
fn facts(shown: &Shown) -> String {
    if *shown == Shown::default() {
        return String::new();
    }
    let names = if shown.names.is_empty() { "no name".to_owned() } else { shown.names.join(", ") };
    format!(" (it is for {names}, valid from {} until {})", date(shown.from_s), date(shown.until_s))
}

fn clocks(clock: Clock) -> Line {
    apart(clock).about_clocks()
}

fn apart(clock: Clock) -> Line {
    let (ahead_ms, within_ms) = (clock.ahead_ms, clock.within_ms);
    let way = if ahead_ms < 0 { "behind" } else { "ahead" };
    let apart = ahead_ms.abs();
    let error = seconds(within_ms);
    if apart <= within_ms {
        Line::good(format!("the clocks of both ends agree, within {error}"))
    } else if apart - within_ms <= MOST_APART_MS {
        Line::good(format!("the clock of the ground is {} {way}, within {error}", seconds(apart)))
    } else {
        Line::problem(format!(
            "the clock of the ground is {} {way}, within {error}. Set the wrong clock; certificates are judged by both",
            span(apart / 1000)
        ))
    }
}

fn seconds(ms: i64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

/// Formats a long time in its two largest units.
fn span(s: i64) -> String {
    let (days, hours, minutes) = (s / 86_400, s / 3_600 % 24, s / 60 % 60);
    if days > 0 {
        format!("{days} days {hours} h")
    } else if hours > 0 {
        format!("{hours} h {minutes} min")
    } else {
        format!("{minutes} min {} s", s % 60)
    }
}

/// Formats Unix time as a date and a time of day in UTC.
fn date(unix_s: i64) -> String {
    ASN1Time::from_timestamp(unix_s).map_or_else(
        |_| "an unknown time".to_owned(),
        |time| {
            let time = time.to_datetime();
            format!("{} {:02}:{:02} UTC", time.date(), time.hour(), time.minute())
        },
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pair::reason::Reason;

    const ADDRESS: &str = "192.0.2.1:8443";

    fn lines(result: &Outcome) -> Vec<(Verdict, String)> {
        let at = HostPort::parse("ground.example.org:8443").unwrap();
        let own = Shown { names: vec!["ship.example".to_owned()], from_s: 0, until_s: 86_400 };
        outcome(result, &at, &own).into_iter().map(|line| (line.verdict, line.text)).collect()
    }

    fn shown() -> Shown {
        Shown { names: vec!["ground.example.org".to_owned()], from_s: 1_700_000_000, until_s: 1_800_000_000 }
    }

    fn problem(result: &Outcome) -> String {
        let mut problems = lines(result).into_iter().filter(|(verdict, _)| *verdict == Verdict::Problem);
        let (_, text) = problems.next().unwrap();
        assert_eq!(problems.next(), None);
        text
    }

    #[test]
    fn every_failure_says_where_it_is_and_what_to_do() {
        let address = ADDRESS.parse().unwrap();
        let unreached = |why| problem(&Outcome::Unreached { address, why });
        assert_eq!(
            unreached(Unreached::Refused),
            "192.0.2.1:8443 refuses TCP connections. Start `longhaul` on the ground, or check `split.peer`"
        );
        assert_eq!(
            unreached(Unreached::TimedOut(Duration::from_secs(7))),
            "192.0.2.1:8443 did not respond within 7 s. Check `split.peer`, the link, and firewalls for TCP port 8443"
        );
        assert!(problem(&Outcome::Unresolved("not found".to_owned())).contains("ground.example.org of the ground"));
        assert!(problem(&Outcome::NoHandshake { address, why: "eof".to_owned() }).ends_with("listens there"));
        assert_eq!(
            problem(&Outcome::OursRefused { address, why: Reason::OutOfTime, shown: shown() }),
            "the ground refuses the certificate of this remote: it has expired or is not valid yet, by the clock of the \
             ground. Compare that clock with its dates (it is for ship.example, valid from 1970-01-01 00:00 UTC until \
             1970-01-02 00:00 UTC)"
        );
    }

    #[test]
    fn a_certificate_refused_for_its_time_comes_with_the_difference_of_the_clocks() {
        let clock = Some(Clock { ahead_ms: -400 * 86_400_000, within_ms: 1_000 });
        let address = ADDRESS.parse().unwrap();
        let lines = lines(&Outcome::TheirsRefused { address, why: Reason::NotYetValid, shown: shown(), clock });
        let [_, (_, refused), (verdict, clock)] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(refused.starts_with(
            "this remote refuses the certificate of the ground: it is not valid yet by the clock of the remote."
        ));
        assert_eq!(*verdict, Verdict::Problem);
        assert!(clock.starts_with("the clock of the ground is 400 days 0 h behind"), "{clock}");
    }

    #[test]
    fn clocks_are_a_problem_from_two_minutes_on() {
        let line = |ahead_ms| clocks(Clock { ahead_ms, within_ms: 1_000 });
        assert_eq!(line(900).text, "the clocks of both ends agree, within 1.0 s");
        assert_eq!(line(-90_000).text, "the clock of the ground is 90.0 s behind, within 1.0 s");
        assert_eq!(line(121_000).verdict, Verdict::Good);
        assert_eq!(line(122_000).verdict, Verdict::Problem);
        assert!(line(7_300_000).text.contains("2 h 1 min ahead"));
    }

    #[test]
    fn a_file_is_judged_by_this_machines_clock() {
        let verdict = |now_s| file("certificate", "/etc/a.pem", &shown(), now_s).verdict;
        assert_eq!(verdict(1_750_000_000), Verdict::Good);
        assert_eq!(verdict(1_600_000_000), Verdict::Problem);
        assert_eq!(verdict(1_900_000_000), Verdict::Problem);
    }
}
