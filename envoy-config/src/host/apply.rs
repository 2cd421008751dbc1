//! Doing a plan, and undoing exactly what was done.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::nft::TABLE;
use super::plan::{Action, Plan, sysctl_path};

/// Where the record is by default. Nothing that is applied outlives a reboot, and neither does this.
pub const RECORD: &str = "/run/longhaul/host.json";
/// Where `longhaul-host@.service` keeps its records.
const UNIT_RECORDS: &str = "/run/longhaul-host";

/// Why a plan could not be done or undone.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The record of what is applied would be lost, and with it the way back.
    #[error("{} records that rules are applied already; undo them first: {}", .0.display(), undo_command(.0))]
    Applied(PathBuf),
    /// Our packet rules are loaded, and by another record than this one's: they would be replaced.
    #[error(
        "another `longhaul host --apply` has loaded the packet rules `{TABLE}`, which serve one configuration per host; undo them first: {command}"
    )]
    Taken {
        /// The command that takes them back.
        command: String,
    },
    /// Nothing to undo.
    #[error("nothing is applied: there is no record at {}", .0.display())]
    NotApplied(PathBuf),
    /// The record cannot be read or written.
    #[error("cannot use the record {}: {error}", path.display())]
    Record {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A step failed.
    #[error("{step}: {why}")]
    Step {
        /// The step that was tried.
        step: String,
        /// The reason of its failure.
        why: String,
    },
}

/// A plan that was not done.
#[derive(Debug)]
pub struct NotDone {
    /// Why.
    pub why: HostError,
    /// Steps before it that could not be taken back; empty: nothing is changed. The record holds them for `undo`.
    pub left: Vec<HostError>,
}

/// The command that undoes the steps of `record`.
pub fn undo_command(record: &Path) -> String {
    format!("longhaul host --undo --record {}", record.display())
}

/// How one step is taken back, as it stands in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum WayBack {
    Sysctl { name: String, value: String },
    Command(Vec<String>),
}

impl WayBack {
    fn of(action: &Action) -> Self {
        match action {
            Action::Sysctl { name, before, .. } => Self::Sysctl { name: name.clone(), value: before.clone() },
            Action::Command { undo, .. } => Self::Command(undo.clone()),
            Action::Rules(_) => Self::Command(
                ["nft", "delete", "table"].into_iter().chain(TABLE.split(' ')).map(str::to_owned).collect(),
            ),
        }
    }

    fn go(&self) -> Result<(), HostError> {
        match self {
            Self::Sysctl { name, value } => set(name, value),
            Self::Command(command) => run(command, ""),
        }
    }
}

/// Does the plan and writes the record. Where a step fails, the ones before it are taken back.
pub fn apply(plan: &Plan, record: &Path) -> Result<(), NotDone> {
    let refused = |why| Err(NotDone { why, left: Vec::new() });
    if record.exists() {
        return refused(HostError::Applied(record.to_owned()));
    }
    if plan.steps.iter().any(|step| matches!(step.action, Action::Rules(_))) && rules_are_loaded() {
        return refused(HostError::Taken { command: way_to_free_the_rules() });
    }
    let mut done: Vec<WayBack> = Vec::new();
    for step in &plan.steps {
        // Recorded before it is done: whatever ends this process, `undo` knows what there may be to take back.
        done.push(WayBack::of(&step.action));
        let outcome = write_record(record, &done).and_then(|()| match &step.action {
            Action::Sysctl { name, value, .. } => set(name, value),
            Action::Command { command, .. } => run(command, ""),
            Action::Rules(rules) => run(&["nft".to_owned(), "-f".to_owned(), "-".to_owned()], rules),
        });
        if let Err(why) = outcome {
            // Each step is done as a whole or not at all; this one was not.
            done.pop();
            return Err(NotDone { why, left: take_back(record, done) });
        }
    }
    Ok(())
}

/// Takes back what the record says, latest first. A step that fails is returned and stays in the record, so that it can
/// be tried again.
pub fn undo(record: &Path) -> Result<Vec<HostError>, HostError> {
    let failed = |error: io::Error| HostError::Record { path: record.to_owned(), error };
    let text = match fs::read_to_string(record) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(HostError::NotApplied(record.to_owned())),
        Err(error) => return Err(failed(error)),
    };
    let done: Vec<WayBack> = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
    Ok(take_back(record, done))
}

/// Takes steps back, latest first, and leaves in the record what could not be taken back.
fn take_back(record: &Path, done: Vec<WayBack>) -> Vec<HostError> {
    let mut errors = Vec::new();
    let mut left = Vec::new();
    for step in done.into_iter().rev() {
        if let Err(error) = step.go() {
            errors.push(error);
            left.push(step);
        }
    }
    left.reverse();
    let recorded = if left.is_empty() { remove_record(record) } else { write_record(record, &left) };
    errors.extend(recorded.err());
    errors
}

/// Returns whether Longhaul's rules are loaded, by this record or another. A host without `nft` has none.
fn rules_are_loaded() -> bool {
    let list: Vec<String> = ["nft", "list", "table"].into_iter().chain(TABLE.split(' ')).map(str::to_owned).collect();
    run(&list, "").is_ok()
}

/// The command that undoes what loaded the rules: by its record, where that stands in one of the usual places.
fn way_to_free_the_rules() -> String {
    let of_units = fs::read_dir(UNIT_RECORDS).into_iter().flatten().flatten().map(|entry| entry.path());
    let record = [PathBuf::from(RECORD)].into_iter().chain(of_units).find(|record| record.is_file());
    record.map_or_else(|| format!("nft delete table {TABLE}"), |record| undo_command(&record))
}

/// In place at once or not at all: a record that is cut off has no way back in it.
fn write_record(record: &Path, done: &[WayBack]) -> Result<(), HostError> {
    let failed = |error: io::Error| HostError::Record { path: record.to_owned(), error };
    let folder = record.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::Builder::new().prefix(".host-").tempfile_in(folder).map_err(failed)?;
    serde_json::to_writer_pretty(&mut file, done).map_err(|error| failed(error.into()))?;
    file.persist(record).map_err(|error| failed(error.error))?;
    Ok(())
}

fn remove_record(record: &Path) -> Result<(), HostError> {
    match fs::remove_file(record) {
        Err(error) if record.exists() => Err(HostError::Record { path: record.to_owned(), error }),
        _ => Ok(()),
    }
}

fn set(name: &str, value: &str) -> Result<(), HostError> {
    fs::write(sysctl_path(name), value)
        .map_err(|error| HostError::Step { step: format!("sysctl {name}={value}"), why: error.to_string() })
}

fn run(command: &[String], input: &str) -> Result<(), HostError> {
    let failed = |why: String| HostError::Step { step: command.join(" "), why };
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot run {program}: {error}")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not want its input says so by its status.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}
