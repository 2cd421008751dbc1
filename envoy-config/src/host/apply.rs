//! Doing a plan, and undoing exactly what was done.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::nft::TABLE;
use super::plan::{Action, Plan, sysctl_path};

/// Why a plan could not be done or undone.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Something is applied already: its record would be lost, and with it the way back.
    #[error("{} says that something is applied already; undo that first: longhaul host FILE --clients IF --undo", .0.display())]
    Applied(PathBuf),
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
    /// A step failed; the ones before it have been taken back.
    #[error("{step}: {why}")]
    Step {
        /// What was tried.
        step: String,
        /// What came of it.
        why: String,
    },
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
pub fn apply(plan: &Plan, record: &Path) -> Result<(), HostError> {
    if record.exists() {
        return Err(HostError::Applied(record.to_owned()));
    }
    let mut done: Vec<WayBack> = Vec::new();
    for step in &plan.steps {
        let outcome = match &step.action {
            Action::Sysctl { name, value, .. } => set(name, value),
            Action::Command { command, .. } => run(command, ""),
            Action::Rules(rules) => run(&["nft".to_owned(), "-f".to_owned(), "-".to_owned()], rules),
        };
        // Recorded before it is known to have worked: a step half done is taken back too.
        done.push(WayBack::of(&step.action));
        if let Err(error) = outcome.and_then(|()| write_record(record, &done)) {
            done.pop();
            for step in done.iter().rev() {
                let _ = step.go();
            }
            let _ = fs::remove_file(record);
            return Err(error);
        }
    }
    Ok(())
}

/// Takes back what the record says, latest first. A step that fails is reported and the rest goes on.
pub fn undo(record: &Path) -> Result<Vec<HostError>, HostError> {
    let failed = |error: io::Error| HostError::Record { path: record.to_owned(), error };
    let text = match fs::read_to_string(record) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(HostError::NotApplied(record.to_owned())),
        Err(error) => return Err(failed(error)),
    };
    let done: Vec<WayBack> = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
    let errors = done.iter().rev().filter_map(|step| step.go().err()).collect();
    fs::remove_file(record).map_err(failed)?;
    Ok(errors)
}

fn write_record(record: &Path, done: &[WayBack]) -> Result<(), HostError> {
    let failed = |error: io::Error| HostError::Record { path: record.to_owned(), error };
    if let Some(folder) = record.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let text = serde_json::to_string_pretty(done).map_err(|error| failed(error.into()))?;
    fs::write(record, text).map_err(failed)
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
