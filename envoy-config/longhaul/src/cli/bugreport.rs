//! `longhaul bugreport [FILE]`: one archive for developers.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul_config::{LoadError, Settings, load};
use longhaul_derive::{HostFacts, derive};
use longhaul_observe::report::RunReport;

use super::{LONG_VERSION, Outcome, describe, fail, file_or_running, print};
use crate::bugreport::{Given, write};

/// The columns of the output of `check --all`.
const WIDTH: usize = 140;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The configuration file; optional if only one box runs
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The archive; it must not exist [default: longhaul-bugreport-TIME.tar.gz in this folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The state folder of the run, if it was started with --state
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let file = file_or_running(arguments.file.as_deref(), arguments.state.as_deref(), "bugreport")?;
    let (settings, check) = checked(&file);
    let run = match &arguments.state {
        Some(state) => RunReport::find(None, Some(state)),
        None => RunReport::find(Some(&file), None),
    };
    let given = Given { file: &file, settings: settings.as_ref(), run: run.ok(), version: LONG_VERSION, check };
    let out = arguments.out.clone().unwrap_or_else(default_out);
    match write(&given, &out) {
        Ok(parts) => print(&format!(
            "{}: {} files, names and addresses masked. Look through it before you send it: tar -xzf {}\n",
            out.display(),
            parts.len(),
            out.display()
        )),
        Err(error) => fail(&format!("cannot write {}: {error}", out.display())),
    }
}

/// Returns the settings, and the output of `longhaul check --all`.
fn checked(file: &Path) -> (Option<Settings>, String) {
    match load(file) {
        Ok(loaded) => {
            let derived = derive(&loaded.settings, &HostFacts::of_this_machine());
            let text = describe(&file.display().to_string(), &loaded.settings, &derived, WIDTH);
            (Some(loaded.settings), loaded.report.render(false) + &text)
        }
        Err(LoadError::Refused(report)) => (None, report.render(false)),
        Err(error) => (None, error.to_string()),
    }
}

fn default_out() -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    PathBuf::from(format!("longhaul-bugreport-{now}.tar.gz"))
}
