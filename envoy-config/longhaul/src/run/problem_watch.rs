//! Looks for problems while a run serves, as `longhaul status` does, and records when each began and ended.
//!
//! The journal has a line for each beginning and each end. The record outlives restarts: it is a file in the state folder.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use longhaul_observe::report::ProblemRecord;
use longhaul_observe::status::{gather, time};

use super::events::Event;
use super::log::Level;
use super::problem_log::{News, ProblemLog};
use super::publisher::{LastReport, now};
use super::say;
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
    /// Starts the thread. It reports to `events` when the record changes, which is in the folder `kept`.
    pub(super) fn start(report: LastReport, kept: &Path, events: Sender<Event>) -> io::Result<Self> {
        let (sender, ends) = mpsc::channel::<()>();
        let path = kept.join(RECORD);
        thread::Builder::new().name("problems".to_owned()).spawn(move || {
            let mut log = ProblemLog::of(read(&path));
            let mut last = Vec::new();
            loop {
                let state = report.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(status) = state.map(gather) {
                    log.add(now(), status.present()).iter().for_each(announce);
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

fn announce(news: &News) {
    match news {
        News::Began(problem) => say(Level::Error, &format!("problem ({}): {}", problem.kind.label(), problem.text)),
        News::Ended(problem) => say(
            Level::Info,
            &format!("over after {} ({}): {}", time(problem.duration_s(now())), problem.kind.label(), problem.text),
        ),
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
