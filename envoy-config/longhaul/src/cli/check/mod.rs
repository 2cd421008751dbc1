//! `longhaul check FILE`: is it right, does it fit this machine, and what follows from it.

mod all;
mod json;
mod lines;
mod summary;

pub use all::describe;
use summary::summary;

use std::path::PathBuf;

use longhaul_config::{EngineWish, LoadError, Loaded, Problem, Report, Settings, Severity, load_as};
use longhaul_derive::{Derived, HostFacts, derive};
use longhaul_observe::rows;

use super::{ConfigFile, FAILED, Outcome, REFUSED, accepted, eprint_report, print};
use crate::run::{Fact, Weight, engine_here, facts};
use crate::terminal::{stderr_has_colours, width};

#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "options of a command")]
pub(super) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,
    /// Print every derived value with its formula
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// Refuse what does not fit this machine: addresses, ports in use, kernel, programs
    #[arg(long)]
    here: bool,
    /// Print everything as JSON, also for a refused file
    #[arg(long)]
    json: bool,
    /// Print nothing about a right file but its warnings
    #[arg(long, conflicts_with_all = ["all", "json"])]
    quiet: bool,
    /// Check FILE as the content that this path will have: relative paths start there
    #[arg(long = "as", value_name = "PATH")]
    place: Option<PathBuf>,
    #[arg(long, value_name = "DIR", help = "The state folder that `run` would get")]
    state: Option<PathBuf>,
}

impl Arguments {
    fn load(&self) -> Result<Loaded, LoadError> {
        let file = &self.config.file;
        load_as(file, self.place.as_ref().unwrap_or(file))
    }
}

/// The facts of this machine as problems of the file.
struct Findings {
    /// Those with a place in the file.
    placed: Report,
    /// Those about a key that the file does not set, or about none.
    unplaced: Vec<(Severity, String)>,
}

impl Findings {
    /// Judges `facts`. With `here`, a fact that contradicts the file is an error.
    fn of(report: &Report, facts: &[Fact], here: bool) -> Self {
        let (mut problems, mut unplaced): (Vec<Problem>, Vec<_>) = (Vec::new(), Vec::new());
        for fact in facts {
            let severity = if here && fact.weight == Weight::Contradicts { Severity::Error } else { Severity::Warning };
            match fact.key.and_then(|key| report.problem_of(severity, key, &fact.text)) {
                Some(problem) => problems.push(problem),
                None => unplaced.push((severity, fact.text.clone())),
            }
        }
        Self { placed: Report { problems, ..report.clone() }, unplaced }
    }

    fn errors(&self) -> usize {
        let placed = self.placed.problems.iter().map(|problem| problem.severity);
        placed.chain(self.unplaced.iter().map(|(severity, _)| *severity)).filter(|it| *it == Severity::Error).count()
    }

    fn render(&self, styled: bool) -> String {
        let unplaced = self.unplaced.iter().map(|(severity, text)| format!("{}: {text}\n\n", severity.as_str()));
        self.placed.render(styled) + &unplaced.collect::<String>()
    }
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    if arguments.json {
        return in_json(arguments);
    }
    let loaded = accepted(arguments.load())?;
    let (derived, findings) = judge(arguments, &loaded);
    eprint_report(&findings.render(stderr_has_colours()));
    let file = arguments.config.file.display().to_string();
    let errors = findings.errors();
    if errors > 0 {
        let problems = if errors == 1 { "1 problem".to_owned() } else { format!("{errors} problems") };
        eprintln!("{file}: does not fit this machine, {problems}; nothing was started or changed");
        return Err(FAILED);
    }
    if arguments.quiet {
        return Ok(());
    }
    if arguments.all {
        return print(&describe(&file, &loaded.settings, &derived, width()));
    }
    print(&format!(
        "{file}: ok, role {}\n{}",
        loaded.settings.role.as_str(),
        rows(&here_too(&loaded.settings, summary(&loaded.settings, &derived)), width())
    ))
}

/// Adds the row that depends on this machine's programs: the engine, if it is not the usual one.
fn here_too(settings: &Settings, mut rows: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    if settings.engine == EngineWish::Wasm {
        return rows;
    }
    let text = match engine_here(settings) {
        Ok(engine) if engine.native.is_some() && settings.engine == EngineWish::Auto => return rows,
        Ok(engine) => format!("{}: {}", engine.name(), engine.why),
        Err(error) => error.to_string(),
    };
    rows.insert(rows.len().saturating_sub(1), ("engine", text));
    rows
}

fn judge(arguments: &Arguments, loaded: &Loaded) -> (Derived, Findings) {
    let derived = derive(&loaded.settings, &HostFacts::of_this_machine());
    let facts = facts(arguments.state.as_deref(), loaded, &derived);
    let findings = Findings::of(&loaded.report, &facts, arguments.here);
    (derived, findings)
}

fn in_json(arguments: &Arguments) -> Outcome {
    match arguments.load() {
        Ok(loaded) => {
            let (derived, findings) = judge(arguments, &loaded);
            print(&json::accepted(&loaded, &derived, &findings))?;
            if findings.errors() > 0 { Err(FAILED) } else { Ok(()) }
        }
        Err(error) => {
            print(&match &error {
                LoadError::Refused(report) => json::refused(report),
                LoadError::Unreadable { path, .. } => json::unreadable(path, &error.to_string()),
            })?;
            Err(REFUSED)
        }
    }
}
