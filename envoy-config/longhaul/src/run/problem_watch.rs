//! Looks for problems while a run serves, as `longhaul status` does, and records when each began and ended. Each look also
//! gives the figures of `longhaul status --why`.
//!
//! The journal has a line for each beginning and each end. The record outlives restarts: it is a file in the state folder.
//! Another file has those that the other end of a pair should know, for its DNS queries (`coredns-plugin/tell`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use longhaul_config::Settings;
use longhaul_observe::report::ProblemRecord;
use longhaul_observe::status::{Status, time};
use longhaul_observe::why::Measured;
use serde::Serialize;

use super::costs::Costs;
use super::events::Event;
use super::log::{Level, say_with};
use super::notices::{Notices, event};
use super::problem_log::{News, ProblemLog};
use super::publisher::{LastReport, now};
use super::watch_thread::Watch;
use crate::replaced_file;

/// The pause between two looks. A problem is recorded at its second one.
const PAUSE: Duration = Duration::from_secs(2);
/// The name of the record in the folder that outlives restarts.
const RECORD: &str = "problems.json";

/// Starts the thread. It reports to `events` when the record changes, which is in the folder `kept`, and with the costs
/// of a request from time to time. `tell` is for the other end, and `notices` for the operator's program.
pub(super) fn watch(
    settings: &Settings,
    report: LastReport,
    kept: &Path,
    tell: Tell,
    notices: Notices,
    events: Sender<Event>,
) -> io::Result<Watch> {
    let mut watching = Watching {
        path: kept.join(RECORD),
        log: ProblemLog::of(read(&kept.join(RECORD))),
        last: Vec::new(),
        told: None,
        tell,
        notices,
        costs: Costs::open(settings, kept),
    };
    Watch::start("problems", move |changes| {
        loop {
            let state = report.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if state.map(Status::gather).is_some_and(|status| !watching.look(&status, &events)) {
                break;
            }
            if !watching.pause(&changes) {
                break;
            }
        }
    })
}

/// The state of the thread.
struct Watching {
    path: PathBuf,
    log: ProblemLog,
    last: Vec<ProblemRecord>,
    told: Option<(Vec<ProblemRecord>, Measured)>,
    tell: Tell,
    notices: Notices,
    costs: Costs,
}

impl Watching {
    /// Waits until the next look, and follows changes of the file. A change is no reason for an early look: two looks in
    /// a row would record what the change itself causes for a moment. Returns false if the run has ended.
    fn pause(&mut self, changes: &Receiver<Settings>) -> bool {
        let next = Instant::now() + PAUSE;
        loop {
            match changes.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(settings) => self.costs.follow(&settings),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Looks at a state. Returns false if the run has ended.
    fn look(&mut self, status: &Status, events: &Sender<Event>) -> bool {
        let present = status.present();
        let costs = self.costs.add(now(), status);
        let telling: Vec<ProblemRecord> = present.iter().filter(|problem| problem.kind.is_told()).cloned().collect();
        if costs.is_some() || self.told.as_ref().is_none_or(|(told, _)| *told != telling) {
            let telling = (telling, self.costs.measured());
            if self.told.as_ref() != Some(&telling) {
                self.tell.write(&telling.0, &telling.1);
                self.told = Some(telling);
            }
        }
        for news in self.log.add(now(), present) {
            announce(&news);
            self.notices.tell(&news);
        }
        let is_new = self.log.records() != self.last;
        if is_new {
            self.last = self.log.records().to_vec();
            write(&self.path, &self.last);
        }
        let problems = is_new.then(|| Event::Problems(self.last.clone()));
        let costs = costs.map(|costs| Event::Costs(Box::new(costs)));
        problems.into_iter().chain(costs).all(|event| events.send(event).is_ok())
    }
}

/// The file with what this run tells others over DNS.
#[derive(Debug, Clone)]
pub(super) struct Tell {
    /// The file.
    pub(super) path: PathBuf,
    /// A text that tells this run from every other.
    pub(super) run: String,
}

#[derive(Serialize)]
struct Told<'t> {
    run: &'t str,
    problems: &'t [ProblemRecord],
    costs: &'t Measured,
}

impl Tell {
    /// The problems that fit into one response.
    const MOST: usize = 12;

    /// Writes the file. If it cannot be written, the other end learns nothing.
    pub(super) fn write(&self, problems: &[ProblemRecord], costs: &Measured) {
        let told = Told { run: &self.run, problems: problems.get(..Self::MOST).unwrap_or(problems), costs };
        if let Ok(text) = serde_json::to_vec(&told) {
            let _ = replaced_file::replace(&self.path, &text, 0o600);
        }
    }
}

/// Logs what happened, with fields by which the journal finds it.
fn announce(news: &News) {
    let (News::Began(problem) | News::Ended(problem)) = news;
    let ProblemRecord { kind, of, text, .. } = problem;
    let kind = kind.label();
    let fields = [("LONGHAUL_PROBLEM", kind), ("LONGHAUL_EVENT", event(news)), ("LONGHAUL_OF", of)];
    match news {
        News::Began(_) => say_with(Level::Error, &format!("problem ({kind}): {text}"), &fields),
        News::Ended(_) => {
            let duration = time(problem.duration_s(now()));
            say_with(Level::Info, &format!("over after {duration} ({kind}): {text}"), &fields);
        }
    }
}

/// Returns the record of an earlier run. A record that cannot be read is none.
fn read(path: &Path) -> Vec<ProblemRecord> {
    fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Writes the record. A full disk costs its last lines, and the journal has them.
fn write(path: &Path, records: &[ProblemRecord]) {
    if let Ok(text) = serde_json::to_vec_pretty(records) {
        let _ = replaced_file::replace(path, &text, 0o600);
    }
}
