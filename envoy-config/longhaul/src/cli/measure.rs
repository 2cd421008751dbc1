//! `longhaul measure [FILE]`: the link measured, beside the configured one, and the `link:` line that fits.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::units::{Rate, parse_duration, show_duration};
use longhaul_config::{RoleName, Settings};
use longhaul_observe::measure::{Direction, Estimate, Kernel, Measured, Samples, Watched, proposed_line, suggest};
use longhaul_observe::report::{self, NoRun};
use serde::Serialize;

use super::table::table;
use super::{ConfigFile, NOT_RUNNING, Outcome, fail, load_or_refuse, print};
use crate::run::local_addresses;

/// The pause between two readings of the kernel's figures.
const STEP: Duration = Duration::from_millis(250);
/// The connections of clients that an estimate needs. A client may be elsewhere, or behind a slow network of its own.
const CLIENTS: usize = 5;
/// The connections of a pair that an estimate needs. All of them cross the link, and one may carry everything.
const OF_A_PAIR: usize = 1;
const WIDTH: usize = 100;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The configuration file; optional if only one box runs
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The time for which connections are watched
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    time: Duration,
    /// The state folder of the run, if it was started with --state
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    state: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; expected a time such as 10s"))
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let file = match &arguments.file {
        Some(file) => file.clone(),
        None => match report::find(None, arguments.state.as_deref()) {
            Ok(report) => report.file,
            Err(error @ NoRun::Nothing(_)) => {
                eprintln!("error: {error}. `longhaul measure FILE` needs no running box");
                return Err(NOT_RUNNING);
            }
            Err(error) => return fail(&error.to_string()),
        },
    };
    let settings = load_or_refuse(&ConfigFile { file }.file)?.settings;
    let measured = match watch(&settings, arguments.time) {
        Ok(measured) => measured,
        Err(error) => return fail(&format!("cannot read the kernel's figures of connections: {error}")),
    };
    let result = Answer::of(&settings, &measured);
    if arguments.json {
        return match serde_json::to_string_pretty(&result) {
            Ok(json) => print(&format!("{json}\n")),
            Err(error) => fail(&format!("internal fault: {error}")),
        };
    }
    print(&result.words(&settings, arguments.time))
}

/// Reads the kernel's figures for `time`.
fn watch(settings: &Settings, time: Duration) -> std::io::Result<Measured> {
    let (kernel, watched, local) = (Kernel::open()?, Watched::of(settings), local_addresses());
    let mut samples = Samples::default();
    let start = Instant::now();
    loop {
        let mut connections = kernel.connections()?;
        connections.retain(|connection| watched.includes(&connection.id, &local));
        samples.add(start.elapsed(), &connections);
        let left = time.saturating_sub(start.elapsed());
        if left.is_zero() {
            let least = if settings.role.is_alone() { CLIENTS } else { OF_A_PAIR };
            return Ok(samples.estimate(least));
        }
        thread::sleep(left.min(STEP));
    }
}

/// The measured link beside the configured one.
#[derive(Serialize)]
struct Answer {
    measured: Measured,
    /// The key of the rate: `down`, or `up` at a remote.
    direction: &'static str,
    /// The line for the configuration. None if the present one fits, or if nothing was measured.
    suggestion: Option<String>,
}

impl Answer {
    fn of(settings: &Settings, measured: &Measured) -> Self {
        let (link, direction) = (&settings.link, Direction::of(settings));
        let better = suggest(measured.rtt_us, measured.rate, link.rtt, direction.rate(link));
        Self { measured: *measured, direction: direction.key(), suggestion: proposed_line(link, direction, &better) }
    }

    fn words(&self, settings: &Settings, time: Duration) -> String {
        let measured = &self.measured;
        let link = &settings.link;
        let sends_up = Direction::of(settings) == Direction::Up;
        let whose = if settings.role.is_alone() { "of clients" } else { "to the other end" };
        let rate = |bits| Rate::from_bits_per_second(round(bits)).to_string();
        let rtt = |us| show_duration(Duration::from_micros(round(us)));
        let (down, up) = if sends_up {
            ("not measured; run this command at the ground".to_owned(), known(measured.rate, rate))
        } else {
            let elsewhere = match settings.role.name() {
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
        let head = format!("{} connections {whose} in {}{again}", measured.connections, show_duration(time));
        let nothing = [measured.rtt_us, measured.rate].iter().all(|one| matches!(one, Estimate::TooFew { .. }));
        let end = match &self.suggestion {
            Some(better) => format!("This line fits the measured link:\n  {better}"),
            None if nothing => {
                "Too few connections. Run this command while people use the link, or longer: --time 60s".to_owned()
            }
            None => "The configured link fits.".to_owned(),
        };
        format!("{head}\n{}\n{end}\n", table(&["link", "configured", "measured"], &rows, WIDTH))
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
