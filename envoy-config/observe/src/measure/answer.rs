//! The link measured beside the configured one, and the `link:` line that fits.

use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::{Fill, Link, Rate, RoleName, Settings, show_duration};
use serde::Serialize;

use super::estimate::{Estimate, Measured, Samples, suggest};
use super::kernel::Kernel;
use super::proposal::{Direction, proposed_line};
use super::watched::Watched;
use crate::table::table;

/// The pause between two readings of the kernel's figures.
const STEP: Duration = Duration::from_millis(250);
/// The connections of clients that an estimate needs. A client may be elsewhere, or behind a slow network of its own.
const CLIENTS: usize = 5;
/// The connections of a pair that an estimate needs. All of them cross the link, and one may carry everything.
const OF_A_PAIR: usize = 1;
const WIDTH: usize = 100;

/// Measures the link for `time` from the kernel's figures of connections. `local` holds the addresses of this host.
///
/// # Errors
/// The kernel gives no figures.
pub fn measured(settings: &Settings, time: Duration, local: &[IpAddr]) -> io::Result<Answer> {
    let (kernel, watched) = (Kernel::open()?, Watched::of(settings));
    let mut samples = Samples::default();
    let start = Instant::now();
    loop {
        let mut connections = kernel.connections()?;
        connections.retain(|connection| watched.includes(&connection.id, local));
        samples.add(start.elapsed(), &connections);
        let left = time.saturating_sub(start.elapsed());
        if left.is_zero() {
            let least = if settings.role.is_alone() { CLIENTS } else { OF_A_PAIR };
            return Ok(Answer::of(settings, time, samples.estimate(least)));
        }
        thread::sleep(left.min(STEP));
    }
}

/// The measured link beside the configured one.
#[derive(Debug, Serialize)]
pub struct Answer {
    measured: Measured,
    /// The key of the rate: `down`, or `up` at a remote.
    direction: &'static str,
    /// The line for the configuration. None if the present one fits, or if nothing was measured.
    suggestion: Option<String>,
    #[serde(skip)]
    link: Link,
    #[serde(skip)]
    role: RoleName,
    #[serde(skip)]
    time: Duration,
}

impl Answer {
    fn of(settings: &Settings, time: Duration, measured: Measured) -> Self {
        let (link, direction) = (&settings.link, Direction::of(settings));
        let better = suggest(measured.rtt_us, measured.rate, link.rtt, direction.rate(link));
        let suggestion = proposed_line(link, direction, &better);
        Self { measured, direction: direction.key(), suggestion, link: link.clone(), role: settings.role.name(), time }
    }

    /// Returns it as JSON.
    ///
    /// # Errors
    /// None is known.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// Returns it in words, for a terminal.
    pub fn text(&self) -> String {
        let Self { measured, link, .. } = self;
        let whose = if self.role == RoleName::Edge { "of clients" } else { "to the other end" };
        let rate = |bits| Rate { bits_per_second: round(bits) }.to_string();
        let rtt = |us| show_duration(Duration::from_micros(round(us)));
        let (down, up) = if self.direction == Direction::Up.key() {
            ("not measured; run this command at the ground".to_owned(), known(measured.rate, rate))
        } else {
            let elsewhere = match self.role {
                RoleName::Ground => "not measured; run this command at the remote",
                _ => "not measured; the kernel keeps no rate of what clients send",
            };
            (known(measured.rate, rate), elsewhere.to_owned())
        };
        let rows = [
            ["rtt".to_owned(), show_duration(link.rtt), known(measured.rtt_us, rtt)],
            ["down".to_owned(), link.down.to_string(), down],
            ["up".to_owned(), link.up.to_string(), up],
        ];
        let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
        let again = match (measured.sent_again * 1000).checked_div(measured.segments) {
            Some(per_mille) => format!(", {}.{} % of the segments were sent again", per_mille / 10, per_mille % 10),
            None => String::new(),
        };
        let head = format!("{} connections {whose} in {}{again}", measured.connections, show_duration(self.time));
        let nothing = [measured.rtt_us, measured.rate].iter().all(|one| matches!(one, Estimate::TooFew { .. }));
        let end = match &self.suggestion {
            Some(better) => format!("This line fits the measured link:\n  {better}"),
            None if nothing => {
                "Too few connections. Run this command while people use the link, or longer: --time 60s".to_owned()
            }
            None => "The configured link fits.".to_owned(),
        };
        let limited = link.fill != Fill::Off && self.role != RoleName::Edge;
        let limit = if limited && matches!(measured.rate, Estimate::TooFew { .. }) {
            "With `link.fill`, this end sends less than the link carries. To measure the rate, write `fill: off`.\n"
        } else {
            ""
        };
        format!("{head}\n{}\n{end}\n{limit}", table(&["link", "configured", "measured"], &rows, WIDTH))
    }
}

fn known(estimate: Estimate, show: impl Fn(u64) -> String) -> String {
    match estimate {
        Estimate::Known { value, connections: 1 } => format!("{} from 1 connection", show(value)),
        Estimate::Known { value, connections } => format!("{} from {connections} connections", show(value)),
        Estimate::TooFew { connections, needed } => {
            format!("too few connections: {connections} that say something about it, of {needed}")
        }
    }
}

/// Returns the value with three digits.
fn round(value: u64) -> u64 {
    let unit = 10_u64.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(2));
    value / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_with_a_limit_says_why_it_shows_no_rate() {
        let said = |fill, role| {
            let few = Estimate::TooFew { connections: 0, needed: 1 };
            let measured = Measured { connections: 1, sent_again: 0, segments: 9, rtt_us: few, rate: few };
            let rate = Rate { bits_per_second: 2_000_000 };
            let rtt = Duration::from_millis(600);
            let link = Link { fill, ..Link::of(rtt, rate, rate) };
            let answer = Answer { measured, direction: "down", suggestion: None, link, role, time: rtt };
            answer.text().contains("write `fill: off`")
        };
        assert!(said(Fill::Auto, RoleName::Ground));
        assert!(!said(Fill::Off, RoleName::Ground));
        assert!(!said(Fill::Auto, RoleName::Edge), "one box limits nothing");
    }
}
