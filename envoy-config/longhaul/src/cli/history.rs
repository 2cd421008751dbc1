//! `longhaul history`: the configurations that a box had, one of them, and how two differ.

use std::path::{Path, PathBuf};

use longhaul_observe::history::{Configuration, Found};
use similar::TextDiff;

use super::{NOT_RUNNING, Outcome, fail, print};
use crate::terminal::width;

/// The unchanged lines around a difference.
const CONTEXT: usize = 3;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    place: Place,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// The box that is meant.
#[derive(clap::Args)]
pub(super) struct Place {
    /// The configuration file, if there are histories of several
    #[arg(long, value_name = "FILE", global = true)]
    pub(super) config: Option<PathBuf>,
    /// The state folder of the run, if it was started with --state
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) state: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Print the configuration N
    Show {
        /// Its number in the list
        #[arg(value_name = "N")]
        number: u32,
    },
    /// Print how the configuration M differs from N, as `diff -u` does
    Diff {
        /// The number of the older one
        #[arg(value_name = "N")]
        number: u32,
        /// The number of the newer one [default: the file as it is now]
        #[arg(value_name = "M")]
        other: Option<u32>,
    },
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let found = found(&arguments.place)?;
    match arguments.action {
        None if arguments.json => print(&format!("{}\n", found.history.json())),
        None => print(&found.history.table(width())),
        Some(Action::Show { number }) => print(&get(&found, number)?.text),
        Some(Action::Diff { number, other }) => print(&diff(&found, number, other)?),
    }
}

/// Returns the history of the box.
pub(super) fn found(place: &Place) -> Result<Found, u8> {
    Found::find(place.config.as_deref(), place.state.as_deref()).map_err(|error| {
        eprintln!("error: {error}");
        NOT_RUNNING
    })
}

/// Returns the configuration `number`.
pub(super) fn get(found: &Found, number: u32) -> Result<&Configuration, u8> {
    found.history.get(number).map_or_else(
        || fail(&format!("there is no configuration {number}; `longhaul history` lists those that are kept")),
        Ok,
    )
}

fn diff(found: &Found, number: u32, other: Option<u32>) -> Result<String, u8> {
    let old = get(found, number)?;
    if let Some(other) = other {
        let new = get(found, other)?;
        return Ok(unified([&number.to_string(), &old.text], [&other.to_string(), &new.text]));
    }
    let file = found.file.as_deref().unwrap_or(&old.file);
    let text = read(file)?;
    Ok(unified([&number.to_string(), &old.text], [&file.display().to_string(), &text]))
}

/// Reads the configuration file as text.
fn read(file: &Path) -> Result<String, u8> {
    std::fs::read_to_string(file).or_else(|error| fail(&format!("cannot read {}: {error}", file.display())))
}

/// Returns the differences of two texts, each with its name. Empty if there are none.
pub(super) fn unified([old_name, old]: [&str; 2], [new_name, new]: [&str; 2]) -> String {
    TextDiff::from_lines(old, new).unified_diff().context_radius(CONTEXT).header(old_name, new_name).to_string()
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn two_texts_differ_by_their_lines_and_equal_ones_by_nothing() {
        let said = unified(["4", "a: 1\nb: 2\n"], ["5", "a: 1\nb: 3\n"]);
        assert_eq!(said, "--- 4\n+++ 5\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n");
        assert_eq!(unified(["4", "a: 1\n"], ["5", "a: 1\n"]), "");
    }
}
