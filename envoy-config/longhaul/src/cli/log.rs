//! `longhaul log [LOG]`: the access log in words.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use longhaul_config::AccessLog;
use longhaul_config::units::parse_duration;
use longhaul_observe::access_log::{Follower, Request, SlowPart, Summary, Times};
use longhaul_observe::report::{self, NoRun};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use url_mapping::Reason;

use super::{NOT_RUNNING, Outcome, fail, print};

/// The pause between two looks at a file that is followed.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Output is written in pieces of this size, in bytes.
const PIECE: usize = 1 << 16;
/// The duration of a slow request, where none is given.
const SLOW: &str = "500ms";

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The access log; - reads standard input, and none the log of the running box
    #[arg(value_name = "LOG")]
    log: Option<PathBuf>,
    /// Only requests that took this long or longer, with the part that took the time
    #[arg(long, value_name = "TIME", value_parser = slow_limit, num_args = 0..=1, require_equals = true, default_missing_value = SLOW)]
    slow: Option<u64>,
    /// Only pages with URLs that stayed, and the meaning of each reason
    #[arg(long)]
    left: bool,
    /// Only requests for this name and names below it
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
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

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let mut output = Output::new(arguments);
    match &arguments.log {
        Some(path) if path.as_os_str() == "-" => {
            for line in io::stdin().lock().split(b'\n') {
                match line {
                    Ok(line) => output.take(&String::from_utf8_lossy(&line))?,
                    Err(error) => return fail(&format!("cannot read standard input: {error}")),
                }
            }
        }
        Some(path) => read(path, arguments.follow, &mut output)?,
        None => read(&log_of_the_run(arguments)?, arguments.follow, &mut output)?,
    }
    output.finish()
}

/// Returns the access log of the running box. Says how to get one where there is none.
fn log_of_the_run(arguments: &Arguments) -> Result<PathBuf, u8> {
    let report = match report::find(arguments.config.as_deref(), arguments.state.as_deref()) {
        Ok(report) => report,
        Err(error @ NoRun::Nothing(_)) => {
            eprintln!("error: {error}. A log from earlier is read with `longhaul log LOG`");
            return Err(NOT_RUNNING);
        }
        Err(error) => return fail(&error.to_string()),
    };
    let problem = match report.access_log {
        AccessLog::File(path) => return Ok(path),
        AccessLog::Stderr => {
            "the access log of this run goes to its stderr; type `journalctl -u longhaul -o cat | longhaul log -`, or \
             `podman logs NAME 2>&1 | longhaul log -` for a container"
                .to_owned()
        }
        AccessLog::Off => format!(
            "this run keeps no access log. `longhaul run {} --access-log LOG` turns it on. The log holds the time, the \
             client's address, the URL, status, sizes and durations of each request",
            report.file.display()
        ),
    };
    fail(&problem)
}

fn read(path: &Path, follow: bool, output: &mut Output<'_>) -> Outcome {
    let mut log = Follower::open(path).or_else(|error| fail(&error.to_string()))?;
    let stopped = Arc::new(AtomicBool::new(false));
    if follow {
        for signal in [SIGINT, SIGTERM] {
            if let Err(error) = flag::register(signal, Arc::clone(&stopped)) {
                return fail(&format!("cannot wait for signals: {error}"));
            }
        }
    }
    loop {
        let mut outcome = Ok(());
        let done = log.read_new(|line| outcome = outcome.and_then(|()| output.take(line)));
        outcome?;
        if let Err(error) = done {
            return fail(&error.to_string());
        }
        if !follow || stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        output.write()?;
        thread::sleep(LOOK_EVERY);
    }
}

/// Chooses and prints requests, and sums them up.
struct Output<'a> {
    arguments: &'a Arguments,
    /// The duration of a slow request, in milliseconds.
    slow_ms: u64,
    summary: Summary,
    pending: String,
    /// Lines that are no requests.
    others: u64,
}

impl<'a> Output<'a> {
    fn new(arguments: &'a Arguments) -> Self {
        let slow_ms = arguments.slow.or_else(|| slow_limit(SLOW).ok()).unwrap_or(u64::MAX);
        Self { arguments, slow_ms, summary: Summary::default(), pending: String::new(), others: 0 }
    }

    fn take(&mut self, line: &str) -> Outcome {
        let Some(request) = Request::parse(line) else {
            self.others += u64::from(!line.trim().is_empty());
            return Ok(());
        };
        if !self.is_wanted(&request) {
            return Ok(());
        }
        self.summary.add(&request);
        let text = if self.arguments.json { self.json(&request) } else { self.words(&request) };
        self.pending.push_str(&text);
        self.pending.push('\n');
        if self.pending.len() < PIECE { Ok(()) } else { self.write() }
    }

    fn is_wanted(&self, request: &Request) -> bool {
        let asked = self.arguments;
        let stayed = || request.page.as_ref().is_some_and(|page| !page.left.is_empty());
        asked.site.as_ref().is_none_or(|site| request.is_of(site))
            && asked.slow.is_none_or(|limit| request.slow(limit).is_some())
            && (!asked.left || stayed())
    }

    fn words(&self, request: &Request) -> String {
        let time: String = request.time.chars().take(19).map(|one| if one == 'T' { ' ' } else { one }).collect();
        let status = request.status.map_or_else(|| "---".to_owned(), |status| status.to_string());
        let words = request.words(self.slow_ms);
        format!("{time}  {status}  {:>6} ms  {} {}  {words}", request.duration_ms, request.method, request.url)
    }

    fn json(&self, request: &Request) -> String {
        #[derive(serde::Serialize)]
        struct Line<'a> {
            #[serde(flatten)]
            request: &'a Request,
            slow: Option<SlowPart>,
        }
        serde_json::to_string(&Line { request, slow: request.slow(self.slow_ms) }).unwrap_or_default()
    }

    fn write(&mut self) -> Outcome {
        let text = std::mem::take(&mut self.pending);
        print(&text)
    }

    fn finish(mut self) -> Outcome {
        if self.arguments.json {
            #[derive(serde::Serialize)]
            struct Last<'a> {
                summary: &'a Summary,
                medians: Times,
            }
            let last = Last { summary: &self.summary, medians: self.summary.times() };
            self.pending.push_str(&serde_json::to_string(&last).unwrap_or_default());
            self.pending.push('\n');
            return self.write();
        }
        if self.arguments.left {
            self.pending.push_str(&reasons(&self.summary));
        }
        if !self.pending.is_empty() {
            self.pending.push('\n');
        }
        for line in self.summary.words() {
            self.pending.push_str(&line);
            self.pending.push('\n');
        }
        if self.others > 0 {
            eprintln!("{} lines are no requests and were skipped", self.others);
        }
        self.write()
    }
}

/// Returns the meaning of each reason, a line for each.
fn reasons(summary: &Summary) -> String {
    let known = |label: &str| Reason::ALL.iter().find(|reason| reason.as_str() == label);
    let line = |(label, urls): (String, u64)| {
        let meaning = known(&label).map_or("", |reason| reason.explanation());
        format!("\n{urls} URLs stayed ({label}): {meaning}")
    };
    summary.left_by_count().into_iter().map(line).chain(["\n".to_owned()]).collect()
}
