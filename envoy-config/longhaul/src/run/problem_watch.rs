//! Looks for problems while a run serves, as `longhaul status` does, and records when each began and ended.
//!
//! The journal has a line for each beginning and each end. The record outlives restarts: it is a file in the state folder.
//! Another file has those that the other end of a pair should know, for its DNS queries (`coredns-plugin/tell`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use longhaul_observe::report::ProblemRecord;
use longhaul_observe::status::{gather, time};
use serde::Serialize;

use super::events::Event;
use super::log::{Level, say_with};
use super::notices::{Notices, event};
use super::problem_log::{News, ProblemLog};
use super::publisher::{LastReport, now};
use crate::replaced_file;

/// The pause between two looks. A problem is recorded at its second one.
const PAUSE: Duration = Duration::from_secs(2);
/// The name of the record in the folder that outlives restarts.
const RECORD: &str = "problems.json";

/// The thread that looks. It ends when this is dropped.
pub(super) struct ProblemWatch {
    _ends: Sender<()>,
}

impl ProblemWatch {
    /// Starts the thread. It reports to `events` when the record changes, which is in the folder `kept`. `tell` is for the
    /// other end, and `notices` for the operator's program.
    pub(super) fn start(
        report: LastReport,
        kept: &Path,
        tell: Tell,
        notices: Notices,
        events: Sender<Event>,
    ) -> io::Result<Self> {
        let (sender, ends) = mpsc::channel::<()>();
        let path = kept.join(RECORD);
        thread::Builder::new().name("problems".to_owned()).spawn(move || {
            let mut log = ProblemLog::of(read(&path));
            let (mut last, mut told) = (Vec::new(), None);
            loop {
                let state = report.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(status) = state.map(gather) {
                    let present = status.present();
                    let telling: Vec<ProblemRecord> =
                        present.iter().filter(|problem| problem.kind.is_told()).cloned().collect();
                    if told.as_ref() != Some(&telling) {
                        tell.write(&telling);
                        told = Some(telling);
                    }
                    for news in log.add(now(), present) {
                        announce(&news);
                        notices.tell(&news);
                    }
                }
                if log.records() != last {
                    last = log.records().to_vec();
                    write(&path, &last);
                    if events.send(Event::Problems(last.clone())).is_err() {
                        break;
                    }
                }
                if ends.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
        })?;
        Ok(Self { _ends: sender })
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
}

impl Tell {
    /// The problems that fit into one response.
    const MOST: usize = 12;

    /// Writes the file. If it cannot be written, the other end learns nothing.
    pub(super) fn write(&self, problems: &[ProblemRecord]) {
        let told = Told { run: &self.run, problems: problems.get(..Self::MOST).unwrap_or(problems) };
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
