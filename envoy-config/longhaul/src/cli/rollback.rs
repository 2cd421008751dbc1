//! `longhaul rollback`: puts an earlier configuration back in place of the file, and waits until the box has taken it over.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use longhaul_config::load_text;
use longhaul_observe::history::{Configuration, Found};
use longhaul_observe::report::RunReport;
use sha2::{Digest as _, Sha256};

use super::history::{Place, found, get, unified};
use super::{FAILED, Outcome, REFUSED, accepted, fail, print};
use crate::replaced_file;

/// The longest wait for a box that runs. It tries a change within a second, and asks its programs for up to 30 s.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The end of the name of the file that was replaced.
const REPLACED: &str = "replaced";

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The number of the configuration in `longhaul history` [default: the last one that differs from the file]
    #[arg(value_name = "N")]
    number: Option<u32>,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let found = found(&arguments.place)?;
    let former = Former::of(&found, arguments.number)?;
    if arguments.dry_run {
        return print(&former.difference());
    }
    let began = Instant::now();
    let before = run_of(&arguments.place, &former.file);
    former.put_back()?;
    print(&format!("{}\n", former.words()))?;
    let Some(before) = before else {
        return print("nothing runs: start the box, for example with `systemctl restart longhaul`\n");
    };
    await_run(&arguments.place, &former, &before, began)
}

/// A configuration that takes the place of the file.
pub(super) struct Former {
    file: PathBuf,
    /// The present content of the file. Empty if it is missing.
    present: String,
    configuration: Configuration,
}

impl Former {
    /// Returns the configuration `number`, or without one the last that differs from the file.
    pub(super) fn of(found: &Found, number: Option<u32>) -> Result<Self, u8> {
        let Some(file) = found.file.clone() else {
            return fail(&format!(
                "the record in {} belongs to another user: name the file that is to be written, with --config FILE",
                found.folder.display()
            ));
        };
        // Where a link leads: a deployment may have made it.
        let file = file.canonicalize().unwrap_or(file);
        let present = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return fail(&format!("cannot read {}: {error}", file.display())),
        };
        let configuration = match number {
            Some(number) => get(found, number)?.clone(),
            None => match found.history.before(&hex::encode(Sha256::digest(&present))) {
                Some(former) => former.clone(),
                None => return fail("there is no earlier configuration: `longhaul history` lists those that are kept"),
            },
        };
        // A configuration of another version may have keys that this one refuses.
        accepted(load_text(&file, configuration.text.clone()))?;
        Ok(Self { file, present, configuration })
    }

    fn difference(&self) -> String {
        let number = self.configuration.number.to_string();
        unified([&self.file.display().to_string(), &self.present], [&number, &self.configuration.text])
    }

    /// Puts it in place of the file. The present content goes to a file beside it.
    pub(super) fn put_back(&self) -> Outcome {
        let failed =
            |error: io::Error| fail(&format!("cannot write {}: {error}. It was not changed", self.file.display()));
        if !self.present.is_empty() {
            replaced_file::replace_like(&self.file, &self.replaced(), self.present.as_bytes()).or_else(failed)?;
        }
        replaced_file::replace_like(&self.file, &self.file, self.configuration.text.as_bytes()).or_else(failed)
    }

    /// Returns what was done.
    pub(super) fn words(&self) -> String {
        let file = self.file.display();
        let Configuration { number, .. } = self.configuration;
        let health = self.configuration.health();
        let kept = match self.present.as_str() {
            "" => String::new(),
            _ => format!("; the former file is {}", self.replaced().display()),
        };
        format!("{file} is configuration {number} again ({health}){kept}")
    }

    fn replaced(&self) -> PathBuf {
        let mut name = self.file.as_os_str().to_owned();
        name.push(".");
        name.push(REPLACED);
        name.into()
    }
}

fn run_of(place: &Place, file: &Path) -> Option<RunReport> {
    match &place.state {
        Some(state) => RunReport::find(None, Some(state)).ok(),
        None => RunReport::find(Some(file), None).ok(),
    }
}

/// Waits until the run has taken the configuration over or refused it.
fn await_run(place: &Place, former: &Former, before: &RunReport, began: Instant) -> Outcome {
    let wanted = &former.configuration.sha256;
    while began.elapsed() < PATIENCE {
        let Some(run) = run_of(place, &former.file) else {
            return fail("the box has ended meanwhile: `journalctl -u longhaul` has the reason");
        };
        let is_refused = run.refused.as_ref().is_some_and(|refused| refused.standing);
        if run.config_sha256 == *wanted && !is_refused {
            return print(&format!("in force after {:.1} s\n", began.elapsed().as_secs_f64()));
        }
        if let Some(refused) =
            run.refused.filter(|refused| refused.standing && Some(refused) != before.refused.as_ref())
        {
            eprintln!("error: the box refused it:\n{}", refused.why);
            return Err(REFUSED);
        }
        thread::sleep(LOOK_EVERY);
    }
    eprintln!("error: the box has not taken it over within {} s: `longhaul status` says why", PATIENCE.as_secs());
    Err(FAILED)
}
