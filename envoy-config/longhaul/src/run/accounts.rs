//! The accounts of groups on the disk: what a quota has counted survives restarts. And the files of `log.who`.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use longhaul_config::Settings;
use longhaul_observe::bill::{Billed, GroupReport, Ledger, WhoHour};
use longhaul_observe::why::CostReport;

use super::log::Level;
use super::publisher::now;
use super::say;
use crate::replaced_file;

/// The file of the accounts, in the folder that outlives restarts.
const ACCOUNTS: &str = "groups.json";
/// The folder of `log.who`, in the state folder.
const WHO: &str = "who";
/// The interval at which files and reports follow. A crash loses as much.
const SAVE: Duration = Duration::from_secs(5);

/// Counts what clients use.
#[derive(Debug)]
pub(super) struct Accounts {
    kept: PathBuf,
    who: PathBuf,
    ledger: Ledger,
    hour: Option<WhoHour>,
    /// True if something is not on the disk yet.
    changed: bool,
    saved_at: Option<Instant>,
    /// True after an error, so that it is said once.
    failed: bool,
    report: Vec<GroupReport>,
}

impl Accounts {
    /// Reads what earlier runs have counted. `kept` outlives restarts, and `state` is the state folder.
    pub(super) fn open(kept: &Path, state: &Path) -> Self {
        let kept = kept.join(ACCOUNTS);
        let ledger = fs::read(&kept).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let who = state.join(WHO);
        Self { kept, who, ledger, hour: None, changed: false, saved_at: None, failed: false, report: Vec::new() }
    }

    /// Counts lines of Envoy, and writes what is new from time to time. Returns the groups beyond their quota.
    pub(super) fn tend(&mut self, settings: &Settings, billed: Vec<Billed>) -> BTreeSet<String> {
        let groups = &settings.clients;
        if groups.is_empty() && !settings.log.who {
            self.report.clear();
            self.hour = None;
            return BTreeSet::new();
        }
        let at_s = now();
        self.ledger.tend(groups, at_s);
        for one in billed {
            if settings.log.who {
                self.begin_hour(at_s);
            }
            let hour = self.hour.as_mut().filter(|_| settings.log.who);
            self.ledger.count(one, groups, at_s, hour);
            self.changed = true;
        }
        if self.saved_at.is_none_or(|at| at.elapsed() >= SAVE) {
            self.saved_at = Some(Instant::now());
            self.report = if groups.is_empty() { Vec::new() } else { self.ledger.report(groups) };
            self.save(settings);
        }
        self.ledger.slow(groups)
    }

    /// Takes the use of the link since the start of the run.
    pub(super) fn cross(&mut self, costs: &CostReport) {
        // Without groups, nothing is counted.
        if !self.report.is_empty() {
            self.changed |= self.ledger.cross(costs, now());
        }
    }

    /// Returns the accounts for `longhaul status`, some seconds old.
    pub(super) fn report(&self) -> &[GroupReport] {
        &self.report
    }

    /// Returns the folder of `log.who`.
    pub(super) fn who_folder(&self, settings: &Settings) -> Option<PathBuf> {
        settings.log.who.then(|| self.who.clone())
    }

    /// Writes everything.
    pub(super) fn save(&mut self, settings: &Settings) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let outcome = self.write(settings);
        if let (Err(error), false) = (&outcome, self.failed) {
            say(
                Level::Warning,
                &format!("the bytes of clients cannot be written down: {error}; a restart forgets them"),
            );
        }
        self.failed = outcome.is_err();
    }

    fn write(&self, settings: &Settings) -> io::Result<()> {
        // Clients' habits: nobody but the service and root.
        replaced_file::replace(&self.kept, &serde_json::to_vec(&self.ledger)?, 0o600)?;
        let Some(hour) = self.hour.as_ref().filter(|_| settings.log.who) else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o750).create(&self.who)?;
        replaced_file::replace(&self.who.join(hour.name()), hour.text()?.as_bytes(), 0o640)?;
        self.forget(settings)
    }

    /// Begins the present hour, unless it has begun. The last one is written to its end.
    fn begin_hour(&mut self, at_s: u64) {
        let present = self.hour.take();
        if let Some(last) = present.as_ref().filter(|hour| !hour.has(at_s)) {
            let text = last.text().unwrap_or_default();
            let _ = replaced_file::replace(&self.who.join(last.name()), text.as_bytes(), 0o640);
        }
        let present = present.filter(|hour| hour.has(at_s));
        self.hour = Some(present.unwrap_or_else(|| {
            WhoHour::at(at_s, &fs::read_to_string(self.who.join(WhoHour::name_at(at_s))).unwrap_or_default())
        }));
    }

    /// Removes the files of hours before `log.keep`.
    fn forget(&self, settings: &Settings) -> io::Result<()> {
        let oldest = SystemTime::now().checked_sub(settings.log.keep).unwrap_or(SystemTime::UNIX_EPOCH);
        let oldest = oldest.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let oldest = WhoHour::name_at(oldest);
        for entry in fs::read_dir(&self.who)?.flatten() {
            let path = entry.path();
            let is_one = path.extension().is_some_and(|end| end == "jsonl");
            if is_one && path.file_name().is_some_and(|name| name < oldest.as_str()) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}
