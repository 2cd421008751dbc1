//! Applies a plan, and undoes exactly the steps that were applied.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use longhaul_render::host::{Action, Plan, TABLE, sibling_tables};
use serde::{Deserialize, Serialize};

use super::this_machine::sysctl_path;
use crate::replaced_file;

/// The default path of the record. A reboot removes it together with everything that was applied.
pub(crate) const RECORD: &str = "/run/longhaul/host.json";
/// The folder in which `longhaul-host@.service` keeps its records.
const UNIT_RECORDS: &str = "/run/longhaul-host";

/// The reason why a plan could not be applied or undone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    /// A record of applied steps exists. Another plan would overwrite it, and nothing could undo those steps.
    #[error("{} records that rules are applied already; undo them first: {}", .0.display(), undo_command(.0))]
    Applied(PathBuf),
    /// Longhaul's packet rules are loaded, but not by this record. Applying this plan would replace them.
    #[error(
        "another `longhaul host --apply` has loaded the packet rules `{TABLE}`, which serve one configuration per host; undo them first: {command}"
    )]
    Taken {
        /// The command that removes them.
        command: String,
    },
    /// There is nothing to undo.
    #[error("nothing is applied: there is no record at {}", .0.display())]
    NotApplied(PathBuf),
    /// The record cannot be read or written.
    #[error("cannot use the record {}: {error}", path.display())]
    Record {
        /// The path of the record.
        path: PathBuf,
        /// The error of the operating system, or of the parser.
        error: io::Error,
    },
    /// A step failed.
    #[error("{step}: {why}")]
    Step {
        /// The step.
        step: String,
        /// The reason of its failure.
        why: String,
    },
}

/// The words of nft and ip about what does not exist: a table or a rule, and a route.
const GONE: [&str; 2] = ["No such file or directory", "No such process"];

/// The words of tc about a queue that does not exist: the device has another one, or is gone with its queue.
const QUEUE_GONE: [&str; 2] = ["Invalid handle", "Cannot find device"];

impl HostError {
    /// Returns true if nft, ip or tc found nothing to delete. A program that is missing says nothing about that.
    fn says_that_it_is_gone(&self) -> bool {
        let Self::Step { step, why } = self else { return false };
        let words: &[&str] = if step.starts_with("tc ") { &QUEUE_GONE } else { &GONE };
        !why.starts_with(CANNOT_RUN) && words.iter().any(|words| why.contains(words))
    }
}

/// A plan that failed or was refused.
#[derive(Debug)]
pub(crate) struct NotDone {
    /// The reason.
    pub why: HostError,
    /// The errors of undoing the steps before it. Empty if all of them were undone. The record keeps the steps that
    /// were not undone for `undo`.
    pub left: Vec<HostError>,
}

/// Returns the command that undoes the steps of `record`.
pub(crate) fn undo_command(record: &Path) -> String {
    format!("longhaul host --undo --record {}", record.display())
}

/// The reversal of one step, as the record stores it.
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
            Action::Command { undo, .. } | Action::Queue { undo, .. } => Self::Command(undo.clone()),
            Action::Rules { table, .. } => Self::Command(on_table("delete", table)),
        }
    }

    /// Undoes the step. A table, rule or route that is gone needs no undoing: another firewall may have flushed all rules.
    fn go(&self) -> Result<(), HostError> {
        let undone = match self {
            Self::Sysctl { name, value } => set(name, value),
            Self::Command(command) => run(command, ""),
        };
        undone.or_else(|error| if error.says_that_it_is_gone() { Ok(()) } else { Err(error) })
    }
}

/// Applies the plan and writes the record. If a step fails, the steps before it are undone. A queue that fails ends nothing:
/// its error is returned.
pub(crate) fn apply(plan: &Plan, record: &Path) -> Result<Vec<HostError>, NotDone> {
    let refused = |why| Err(NotDone { why, left: Vec::new() });
    if record.exists() {
        return refused(HostError::Applied(record.to_owned()));
    }
    if plan.steps.iter().any(|step| matches!(step.action, Action::Rules { .. })) && is_loaded(TABLE) {
        return refused(HostError::Taken { command: way_to_free_the_rules() });
    }
    let mut done: Vec<WayBack> = Vec::new();
    let mut failed = Vec::new();
    for step in &plan.steps {
        // Record the step before doing it. If this process ends at any moment, `undo` knows every step that may have
        // happened.
        done.push(WayBack::of(&step.action));
        let Err(why) = write_record(record, &done).and_then(|()| happen(&step.action)) else { continue };
        if matches!(step.action, Action::Queue { .. }) && part_taken_back(record, &mut done) {
            failed.push(why);
            continue;
        }
        // A step happens as a whole or not at all. This one did not happen.
        done.pop();
        return Err(NotDone { why, left: take_back(record, done) });
    }
    Ok(failed)
}

fn happen(action: &Action) -> Result<(), HostError> {
    match action {
        Action::Sysctl { name, value, .. } => set(name, value),
        Action::Command { command, .. } => run(command, ""),
        Action::Rules { rules, .. } => run(&["nft".to_owned(), "-f".to_owned(), "-".to_owned()], rules),
        Action::Queue { commands, .. } => commands.iter().try_for_each(|command| run(command, "")),
    }
}

/// Takes back the last step, of which a part may have happened, and records that. Returns false if that fails.
fn part_taken_back(record: &Path, done: &mut Vec<WayBack>) -> bool {
    let Some(last) = done.last() else { return true };
    if last.go().is_err() {
        // `undo` tries again.
        return true;
    }
    done.pop();
    write_record(record, done).is_ok()
}

/// Undoes the steps in the record, latest first. Returns the errors of the steps that failed. These steps stay in the
/// record for another try.
pub(crate) fn undo(record: &Path) -> Result<Vec<HostError>, HostError> {
    let failed = |error: io::Error| HostError::Record { path: record.to_owned(), error };
    let text = match fs::read_to_string(record) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(HostError::NotApplied(record.to_owned())),
        Err(error) => return Err(failed(error)),
    };
    let done: Vec<WayBack> = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
    Ok(take_back(record, done))
}

/// Undoes `done`, latest first, and leaves the steps that could not be undone in the record. Returns the errors.
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

/// Returns true if this table of Longhaul is loaded, by this record or another. Returns false on a host without `nft`.
fn is_loaded(table: &str) -> bool {
    run(&on_table("list", table), "").is_ok()
}

/// Returns the command of nft on a table.
fn on_table(verb: &str, table: &str) -> Vec<String> {
    ["nft", verb, "table"].into_iter().chain(table.split(' ')).map(str::to_owned).collect()
}

/// Returns the command that removes the loaded rules. It uses the record, if one is in the usual places.
fn way_to_free_the_rules() -> String {
    let of_units = fs::read_dir(UNIT_RECORDS).into_iter().flatten().flatten().map(|entry| entry.path());
    let record = [PathBuf::from(RECORD)].into_iter().chain(of_units).find(|record| record.is_file());
    record.map_or_else(
        || {
            let tables = [TABLE.to_owned()].into_iter().chain(sibling_tables());
            let loaded = tables.filter(|table| is_loaded(table));
            loaded.map(|table| on_table("delete", &table).join(" ")).collect::<Vec<_>>().join(" && ")
        },
        |record| undo_command(&record),
    )
}

/// Writes the record atomically. A truncated record could not undo anything.
fn write_record(record: &Path, done: &[WayBack]) -> Result<(), HostError> {
    let failed = |error: io::Error| HostError::Record { path: record.to_owned(), error };
    let folder = record.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    let text = serde_json::to_vec_pretty(done).map_err(|error| failed(error.into()))?;
    replaced_file::replace(record, &text, 0o600).map_err(failed)
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

/// The beginning of the message about a program that does not start.
const CANNOT_RUN: &str = "cannot run";

fn run(command: &[String], input: &str) -> Result<(), HostError> {
    let failed = |why: String| HostError::Step { step: command.join(" "), why };
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("{CANNOT_RUN} {program}: {error}")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // Ignore the error: a program that does not read its input reports the reason by its status.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}
