//! Asks the ground at a remote which problems it has: its resolver, its disk and its programs are out of sight from here.
//!
//! The query is one of DNS, a stream of the pipe. A ground of an earlier version does not know the name.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use longhaul_config::{Price, Role, Settings};
use longhaul_observe::report::{GroundReport, ProblemRecord};
use longhaul_observe::why::Measured;
use serde::Deserialize;

use super::events::Event;
use super::publisher::now;
use super::watch_thread::Watch;
use crate::dns_query::{self, Over};

/// The name under which a ground tells its problems (`coredns-plugin/tell`).
const NAME: &str = "problems.pair.invalid";
/// The pause between two queries on a free link.
const PAUSE: Duration = Duration::from_secs(2);
/// The same on a metered link. A query costs some 200 bytes.
const DEAR: Duration = Duration::from_mins(4);
/// The time without a response after which the last one says nothing any more.
const FRESH: Duration = Duration::from_secs(30);
/// The problems that are shown, and the characters of each: the other end may be anything.
const MOST: usize = 12;
const LONGEST: usize = 600;

/// A smaller difference of clocks hinders nothing.
const CLOCKS_AGREE_S: i64 = 300;
/// The steps in which a difference of clocks is reported.
const STEP_S: i64 = 600;

/// The ground's response.
#[derive(Debug, Deserialize)]
struct Response {
    now: i64,
    problems: Vec<ProblemRecord>,
    /// None from a ground of an earlier version, and if another version has other types in it.
    #[serde(default, deserialize_with = "lenient")]
    costs: Option<Measured>,
}

/// Reads figures that may be those of another version.
fn lenient<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Measured>, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    Ok(serde_json::from_value(value).ok())
}

/// The way to ask. An edge and a ground ask nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asking {
    pause: Duration,
    patience: Duration,
}

impl Asking {
    fn of(settings: &Settings) -> Option<Self> {
        let Role::Remote(_) = settings.role else { return None };
        let pause = if settings.link.price == Price::Free { PAUSE } else { DEAR };
        let slow = settings.slowest_link();
        Some(Self { pause, patience: Duration::from_secs(2) + slow.rtt * 4 + slow.queueing_delay() })
    }
}

/// Starts the thread. It reports to `events` when the problems change. Envoy takes lookups for the ground at `lookups`.
pub(super) fn watch(settings: &Settings, lookups: SocketAddr, events: Sender<Event>) -> io::Result<Watch> {
    let mut asking = Asking::of(settings);
    Watch::start("ground", move |changes| {
        let (mut last, mut heard) = (GroundReport::default(), Instant::now());
        loop {
            let told = asking.and_then(|asking| ask(lookups, asking.patience));
            if told.is_some() {
                heard = Instant::now();
            }
            let is_old = asking.is_none_or(|asking| heard.elapsed() > FRESH + asking.pause);
            let told = told.or_else(|| is_old.then(GroundReport::default));
            if let Some(told) = told.filter(|told| *told != last) {
                last.clone_from(&told);
                if events.send(Event::GroundReports(told)).is_err() {
                    break;
                }
            }
            match changes.recv_timeout(asking.map_or(DEAR, |asking| asking.pause)) {
                Ok(next) => asking = Asking::of(&next),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    })
}

/// Returns what the ground tells. None: it does not respond, or tells nothing.
fn ask(lookups: SocketAddr, patience: Duration) -> Option<GroundReport> {
    let text = dns_query::text(lookups, NAME, Over::Stream, patience).ok()??;
    read(&text, i64::try_from(now()).ok()?)
}

fn read(text: &[u8], now_s: i64) -> Option<GroundReport> {
    let Response { now, mut problems, costs } = serde_json::from_slice(text).ok()?;
    problems.truncate(MOST);
    for problem in &mut problems {
        for text in [&mut problem.text, &mut problem.of] {
            *text = text.chars().filter(|one| !one.is_control()).take(LONGEST).collect();
        }
    }
    let ahead_s = now.saturating_sub(now_s);
    let differ = ahead_s.unsigned_abs() >= CLOCKS_AGREE_S.unsigned_abs();
    let clock_ahead_s = differ.then(|| ahead_s.saturating_add(ahead_s.signum() * STEP_S / 2) / STEP_S * STEP_S);
    Some(GroundReport { problems, clock_ahead_s, costs })
}

#[cfg(test)]
mod tests {
    use longhaul_observe::report::ProblemKind;

    use super::*;

    #[test]
    fn what_a_ground_tells_is_bounded_and_has_no_control_characters() {
        let one = ProblemRecord {
            kind: ProblemKind::ResolverDown,
            of: "192.0.2.53:53".to_owned(),
            text: format!("the resolver\u{1b}[31m {}", "x".repeat(5000)),
            began: 7,
            ended: None,
        };
        let text = format!(r#"{{"now":100,"problems":{}}}"#, serde_json::to_string(&vec![one; 40]).unwrap());
        let told = read(text.as_bytes(), 100).unwrap();
        assert_eq!(told.problems.len(), MOST);
        let first = &told.problems[0].text;
        assert!(first.starts_with("the resolver[31m xx") && first.len() == LONGEST, "{first}");
        assert_eq!(read(br#"{"now":100,"problems":[]}"#, 100), Some(GroundReport::default()));
        assert_eq!(read(b"an earlier version", 100), None);
        let figures = |costs: &str| {
            read(format!(r#"{{"now":100,"problems":[],"costs":{costs}}}"#).as_bytes(), 100).unwrap().costs
        };
        assert_eq!(figures(r#"{"over_s":60,"requests":7,"later":1}"#).map(|costs| costs.requests), Some(7));
        assert_eq!(figures(r#"{"over_s":"a minute"}"#), None, "the problems are shown all the same");
    }

    #[test]
    fn clocks_differ_from_five_minutes_on() {
        let ahead = |at| read(br#"{"now":1000000,"problems":[]}"#, at).unwrap().clock_ahead_s;
        assert_eq!([1_000_000, 1_000_200, 999_800].map(ahead), [None; 3]);
        assert_eq!(ahead(1_000_000 - 172_790), Some(172_800));
        assert_eq!(ahead(1_000_000 + 310), Some(-600));
    }
}
