//! The commands that show what a box does: `status`, `log` and `measure`. [`longhaul_observe`] holds what they print.

use std::fs;
use std::io::{self, BufRead};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::{AccessLog, Dns, parse_duration};
use longhaul_observe::access_log::{Choice, Follower, Output};
use longhaul_observe::bill::WhoSums;
use longhaul_observe::measure::measured;
use longhaul_observe::report::{NoRun, RunReport};
use longhaul_observe::status::Status as Gathered;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::since::Since;
use super::{FAILED, NOT_RUNNING, Outcome, fail, file_or_running, load_or_refuse, print};
use crate::run::local_addresses;
use crate::terminal::width;

/// The pause between two looks at a file that is followed.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The pause between two states that `status --watch` shows.
const WATCH_EVERY: Duration = Duration::from_secs(2);
/// Moves the cursor to the first line, and clears what is below it (ECMA-48: CUP and ED).
const CLEAR: &str = "\x1b[H\x1b[J";
/// Output is written in pieces of this size, in bytes.
const PIECE: usize = 1 << 16;
/// The duration of a slow request, where none is given.
const SLOW: &str = "500ms";
/// The length of the name of an hour, such as `2026-11-22T19`.
const HOUR: usize = 13;

#[derive(clap::Args)]
pub(super) struct Status {
    /// The configuration file of the run; optional if only one runs
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The state folder of the run, if it was started with --state
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
    /// The part of a request's way that costs the time: link, queue, resolver, place of the ground, origins, or clients
    #[arg(long)]
    why: bool,
    /// Show the state again every two seconds, until Ctrl-C
    #[arg(long, conflicts_with_all = ["json", "why"])]
    watch: bool,
}

pub(super) fn status(arguments: &Status) -> Outcome {
    if arguments.watch {
        return watch(arguments);
    }
    let status = gathered(arguments)?;
    if arguments.why {
        if arguments.json {
            print_json(status.why_json())?;
        } else {
            print(&status.why_text())?;
        }
        return if status.is_ok() && !status.is_slow() { Ok(()) } else { Err(FAILED) };
    }
    if arguments.json {
        print_json(status.json())?;
    } else {
        print(&status.text())?;
    }
    if status.is_ok() { Ok(()) } else { Err(FAILED) }
}

/// Shows the state again and again. A run that ends meanwhile may start again.
fn watch(arguments: &Status) -> Outcome {
    let stopped = until_stopped()?;
    let mut status = gathered(arguments)?;
    while !stopped.load(Ordering::Relaxed) {
        print(&format!("{CLEAR}{}", status.watch_text(width())))?;
        let pause = Instant::now();
        while pause.elapsed() < WATCH_EVERY && !stopped.load(Ordering::Relaxed) {
            thread::sleep(LOOK_EVERY);
        }
        status = gathered(arguments)?;
    }
    Ok(())
}

fn gathered(arguments: &Status) -> Result<Gathered, u8> {
    let report = match RunReport::find(arguments.file.as_deref(), arguments.state.as_deref()) {
        Ok(report) => report,
        Err(error @ NoRun::Nothing(_)) => {
            eprintln!("error: {error}");
            return Err(NOT_RUNNING);
        }
        Err(error) => return fail(&error.to_string()),
    };
    Ok(Gathered::gather(report))
}

/// Returns a flag that a signal to stop sets.
fn until_stopped() -> Result<Arc<AtomicBool>, u8> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        if let Err(error) = flag::register(signal, Arc::clone(&stopped)) {
            return fail(&format!("cannot wait for signals: {error}"));
        }
    }
    Ok(stopped)
}

fn print_json(json: serde_json::Result<String>) -> Outcome {
    match json {
        Ok(json) => print(&format!("{json}\n")),
        Err(error) => fail(&format!("internal fault: {error}")),
    }
}

#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "options of the command line are switches")]
pub(super) struct Log {
    /// The access log; - reads standard input, and none the log of the running box
    #[arg(value_name = "LOG", id = "log")]
    file: Option<PathBuf>,
    /// Only requests that took this long or longer, with the part that took the time
    #[arg(long, value_name = "TIME", value_parser = slow_limit, num_args = 0..=1, require_equals = true, default_missing_value = SLOW)]
    slow: Option<u64>,
    /// Only pages with URLs that stayed, and the meaning of each reason
    #[arg(long)]
    left: bool,
    /// Only requests for this name and names below it
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// Only requests since this time, from rotated files too: 2h, 2026-11-22 or 2026-11-22T19:30:00 (UTC)
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    since: Option<Since>,
    /// Sums by client instead of requests. With `log.who: on`, bytes by client and site, without an access log
    #[arg(long, conflicts_with = "follow")]
    who: bool,
    /// Wait for further requests, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// One JSON object a line; the last one is the summary
    #[arg(long)]
    json: bool,
    /// The configuration file of the run whose log is read, if several run
    #[arg(long, value_name = "FILE", conflicts_with = "log")]
    config: Option<PathBuf>,
    /// The state folder of that run, if it was started with --state
    #[arg(long, value_name = "DIR", conflicts_with = "log")]
    state: Option<PathBuf>,
}

fn slow_limit(text: &str) -> Result<u64, String> {
    let limit = parse_duration(text).map_err(|_| format!("`{text}` is not a time; expected a time such as {SLOW}"))?;
    u64::try_from(limit.as_millis()).map_err(|error| error.to_string())
}

pub(super) fn log(arguments: &Log) -> Outcome {
    if let (true, None) = (arguments.who, &arguments.file)
        && let Ok(RunReport { who: Some(folder), .. }) =
            RunReport::find(arguments.config.as_deref(), arguments.state.as_deref())
    {
        return who(&folder, arguments);
    }
    let choice = Choice {
        slow_ms: arguments.slow,
        left: arguments.left,
        site: arguments.site.clone(),
        since: arguments.since.as_ref().map(|since| since.text.clone()),
        who: arguments.who,
        json: arguments.json,
        instant: instant_addresses(arguments),
    };
    let mut output = Output::new(choice, slow_limit(SLOW).unwrap_or(u64::MAX));
    match &arguments.file {
        Some(path) if path.as_os_str() == "-" => {
            for line in io::stdin().lock().split(b'\n') {
                match line {
                    Ok(line) => take(&mut output, &String::from_utf8_lossy(&line))?,
                    Err(error) => return fail(&format!("cannot read standard input: {error}")),
                }
            }
        }
        Some(path) => read_all(path, arguments, &mut output)?,
        None => read_all(&log_of_the_run(arguments)?, arguments, &mut output)?,
    }
    output.finish();
    if output.others > 0 && !arguments.json {
        eprintln!("{} lines are no requests and were skipped", output.others);
    }
    write(&mut output)
}

/// Returns the addresses that names of the running box have before their true responses are known. Those of the default if
/// none runs.
fn instant_addresses(arguments: &Log) -> RangeInclusive<Ipv4Addr> {
    let run = RunReport::find(arguments.config.as_deref(), arguments.state.as_deref()).ok();
    let settings = run.and_then(|run| longhaul_config::load(&run.file).ok());
    let range = settings.map_or(Dns::INSTANT_RANGE, |loaded| loaded.settings.dns.instant_range);
    range.network()..=range.broadcast()
}

/// Prints who used which site, from the files of `log.who`.
fn who(folder: &Path, arguments: &Log) -> Outcome {
    let cannot = |error: &io::Error| format!("cannot read {}: {error}", folder.display());
    let mut sums = WhoSums::of(arguments.site.clone());
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // Nobody has used anything yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return fail(&cannot(&error)),
    };
    // A file has an hour, and its name is the beginning of it.
    let first = arguments.since.as_ref().and_then(|since| since.text.get(..HOUR)).unwrap_or_default();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if path.extension().is_none_or(|end| end != "jsonl") || name < first {
            continue;
        }
        match fs::read_to_string(&path) {
            Ok(text) => sums.add(&text),
            Err(error) => return fail(&cannot(&error)),
        }
    }
    if !arguments.json {
        return print(&sums.text());
    }
    match sums.json() {
        Ok(json) => print(&json),
        Err(error) => fail(&format!("internal fault: {error}")),
    }
}

/// Takes a line, and prints where much text waits.
fn take(output: &mut Output, line: &str) -> Outcome {
    output.take(line);
    if output.pending.len() < PIECE { Ok(()) } else { write(output) }
}

fn write(output: &mut Output) -> Outcome {
    print(&std::mem::take(&mut output.pending))
}

/// Returns the access log of the running box. Says how to get one where there is none.
fn log_of_the_run(arguments: &Log) -> Result<PathBuf, u8> {
    let report = match RunReport::find(arguments.config.as_deref(), arguments.state.as_deref()) {
        Ok(report) => report,
        Err(error @ NoRun::Nothing(_)) => {
            eprintln!("error: {error}. A log from earlier is read with `longhaul log LOG`");
            return Err(NOT_RUNNING);
        }
        Err(error) => return fail(&error.to_string()),
    };
    if let (AccessLog::Off, Some(fault)) = (&report.access_log, &report.access_log_fault) {
        return fail(&format!("the access log of this run cannot be written: {fault}"));
    }
    let problem = match report.access_log {
        AccessLog::File(path) => return Ok(path),
        AccessLog::Stderr => {
            "the access log of this run goes to its stderr; type `journalctl -u longhaul -o cat | longhaul log -`, or \
             `podman logs NAME 2>&1 | longhaul log -` for a container"
                .to_owned()
        }
        AccessLog::Off => format!(
            "this run keeps no access log. Write `log: {{ access: on }}` into {}; it applies while running. The log \
             holds the time, the URL, status, sizes and durations of each request, and the network of its client",
            report.file.display()
        ),
    };
    fail(&problem)
}

/// Reads the log, and before it the rotated files with lines of the wished time.
fn read_all(log: &Path, arguments: &Log, output: &mut Output) -> Outcome {
    let files = arguments.since.as_ref().map_or_else(|| vec![log.to_owned()], |since| since.files(log));
    for file in files {
        read(&file, arguments.follow && file == log, output)?;
    }
    Ok(())
}

fn read(path: &Path, follow: bool, output: &mut Output) -> Outcome {
    let cannot = |error: io::Error| format!("cannot read the access log {}: {error}", path.display());
    let mut log = Follower::open(path).or_else(|error| fail(&cannot(error)))?;
    let stopped = if follow { until_stopped()? } else { Arc::default() };
    loop {
        let mut outcome = Ok(());
        let done = log.read_new(|line| outcome = outcome.and_then(|()| take(output, line)));
        outcome?;
        if let Err(error) = done {
            return fail(&cannot(error));
        }
        if !follow || stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        write(output)?;
        thread::sleep(LOOK_EVERY);
    }
}

#[derive(clap::Args)]
pub(super) struct Measure {
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

pub(super) fn measure(arguments: &Measure) -> Outcome {
    let file = file_or_running(arguments.file.as_deref(), arguments.state.as_deref(), "measure")?;
    let settings = load_or_refuse(&file)?.settings;
    let answer = match measured(&settings, arguments.time, &local_addresses()) {
        Ok(answer) => answer,
        Err(error) => return fail(&format!("cannot read the kernel's figures of connections: {error}")),
    };
    if arguments.json { print_json(answer.json()) } else { print(&answer.text()) }
}
