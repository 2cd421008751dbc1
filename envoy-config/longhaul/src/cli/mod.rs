//! The command line: what may be typed, and what each command prints and returns.
//!
//! | exit | means |
//! |---|---|
//! | 0 | done; for `run`: told to stop and stopped |
//! | 1 | the machine would not: a port, a file, a process |
//! | 2 | the configuration or the command line was refused; nothing was started or changed |
//! | 3 | `status`: nothing runs (as service managers have it) |

mod bugreport;
mod cache;
mod check;
mod explain;
mod generate;
mod history;
mod host;
mod netcheck;
mod observe;
mod pair;
mod render;
mod rollback;
mod run;
mod since;

pub use check::describe;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use longhaul_config::{AccessLog, HostName, LoadError, Loaded, Report, Severity, load};
use longhaul_observe::report::{NoRun, RunReport};
use longhaul_render::Filter;

use crate::run::{BOUND_COMMAND, COMPANION_COMMAND};
use crate::terminal::stderr_has_colours;

const DONE: u8 = 0;
const FAILED: u8 = 1;
const REFUSED: u8 = 2;
const NOT_RUNNING: u8 = 3;

/// The commit this program was built from, and the versions of what it starts as they are pinned in this repository.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("LONGHAUL_BUILT_COMMIT"),
    ")\nEnvoy ",
    env!("LONGHAUL_ENVOY_VERSION"),
    "\nCoreDNS ",
    env!("LONGHAUL_COREDNS_VERSION")
);

#[derive(Parser)]
#[command(
    name = "longhaul",
    version,
    long_version = LONG_VERSION,
    about = "A performance enhancing proxy for slow, far-away links",
    propagate_version = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Validate FILE and say what the box will do, and why
    Check(check::Arguments),
    /// Write the Envoy and CoreDNS configuration of FILE into a folder
    Render(render::Arguments),
    /// Render FILE, start Envoy and CoreDNS, and apply changes until stopped
    Run(run::Arguments),
    /// Show the state of the running proxy: configuration, counts and problems
    Status(observe::Status),
    /// Show if the URLs of a page move, or if a name is steered, and the reason
    Explain(explain::Arguments),
    /// Say the access log in words: each request, why it was slow, why URLs stayed
    Log(observe::Log),
    /// Measure the link from the connections that cross it, and propose the `link:` line
    Measure(observe::Measure),
    /// Try ports, firewalls, names, clock and the link, and say for each what to type
    Netcheck(netcheck::Arguments),
    /// Write one archive for a bug report, without keys, names and addresses of others
    Bugreport(bugreport::Arguments),
    /// List, purge or verify the responses that longhaul-objects has stored
    Cache(cache::Arguments),
    /// List the configurations that this box had, print one, or compare two
    History(history::Arguments),
    /// Put an earlier configuration back in place of the file; a running box takes it over at once
    Rollback(rollback::Arguments),
    /// Print, apply or undo the packet rules, routes and kernel settings that FILE needs
    Host(host::Arguments),
    /// Make the certificates and both configuration files of a pair
    Pair(pair::Arguments),
    /// Write man pages or completions of this command into a folder
    #[command(hide = true)]
    Generate(generate::Arguments),
    /// List the wasm filters, a name a line
    #[command(hide = true)]
    Filters,
    /// Becomes a child of `run`
    #[command(name = BOUND_COMMAND, hide = true)]
    Bound(run::BoundArguments),
    /// Ends a child of `run` with it
    #[command(name = COMPANION_COMMAND, hide = true)]
    Companion(run::CompanionArguments),
}

/// The result of a command; its message has been printed by then.
type Outcome = Result<(), u8>;

/// The whole command.
pub fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Check(arguments) => check::command(&arguments),
        Command::Render(arguments) => render::command(&arguments),
        Command::Run(arguments) => run::command(&arguments),
        Command::Status(arguments) => observe::status(&arguments),
        Command::Explain(arguments) => explain::command(&arguments),
        Command::Log(arguments) => observe::log(&arguments),
        Command::Measure(arguments) => observe::measure(&arguments),
        Command::Netcheck(arguments) => netcheck::command(&arguments),
        Command::Bugreport(arguments) => bugreport::command(&arguments),
        Command::Cache(arguments) => cache::command(&arguments),
        Command::History(arguments) => history::command(&arguments),
        Command::Rollback(arguments) => rollback::command(&arguments),
        Command::Host(arguments) => host::command(&arguments),
        Command::Pair(arguments) => pair::command(&arguments),
        Command::Generate(arguments) => generate::command(&arguments),
        Command::Filters => {
            let modules = Filter::ALL.iter().filter(|filter| !filter.is_native_only);
            print(&modules.flat_map(|filter| [filter.name, "\n"]).collect::<String>())
        }
        Command::Bound(arguments) => run::bound_command(&arguments),
        Command::Companion(arguments) => run::companion_command(&arguments),
    };
    ExitCode::from(outcome.err().unwrap_or(DONE))
}

/// The argument every command has.
#[derive(clap::Args)]
struct ConfigFile {
    /// The configuration file, longhaul.yaml
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Loads the file; problems go to stderr, and warnings too.
fn load_or_refuse(file: &Path) -> Result<Loaded, u8> {
    accepted(load(file))
}

/// Returns what was loaded; problems go to stderr, and warnings too.
fn accepted(loaded: Result<Loaded, LoadError>) -> Result<Loaded, u8> {
    match loaded {
        Ok(loaded) => {
            eprint_report(&loaded.report.render(stderr_has_colours()));
            Ok(loaded)
        }
        Err(LoadError::Refused(report)) => {
            eprint_report(&report.render(stderr_has_colours()));
            eprintln!("{}", refused_line(&report));
            Err(REFUSED)
        }
        Err(error @ LoadError::Unreadable { .. }) => {
            eprintln!("{error}");
            Err(REFUSED)
        }
    }
}

/// Returns the file, or that of the only box that runs.
fn file_or_running(file: Option<&Path>, state: Option<&Path>, command: &str) -> Result<PathBuf, u8> {
    if let Some(file) = file {
        return Ok(file.to_owned());
    }
    match RunReport::find(None, state) {
        Ok(report) => Ok(report.file),
        Err(error @ NoRun::Nothing(_)) => {
            eprintln!("error: {error}. `longhaul {command} FILE` needs no running box");
            Err(NOT_RUNNING)
        }
        Err(error) => fail(&error.to_string()),
    }
}

/// The target of `--access-log`. Without the option, `log.access` of the file decides.
fn access_log(argument: Option<&Path>) -> Option<AccessLog> {
    argument.map(|path| match path.as_os_str() {
        dash if dash == "-" => AccessLog::Stderr,
        _ => AccessLog::File(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())),
    })
}

fn eprint_report(text: &str) {
    // A closed stderr is no reason to stop.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The last line under a report.
fn refused_line(report: &Report) -> String {
    let errors = report.problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let problems = if errors == 1 { "1 problem".to_owned() } else { format!("{errors} problems") };
    format!("{}: refused, {problems}; nothing was started or changed", report.path.display())
}

/// Prints to stdout; a reader that has gone away (`| head`) ends the command quietly.
fn print(text: &str) -> Outcome {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => fail(&format!("cannot write to stdout: {error}")),
    }
}

fn fail<T>(message: &str) -> Result<T, u8> {
    eprintln!("error: {message}");
    Err(FAILED)
}

/// Reads a name of a command line.
fn host_name(text: &str) -> Result<HostName, String> {
    HostName::parse(text).map_err(|error| format!("expected a name such as www.example.org; this is {error}"))
}

/// Removes control characters: names of processes and chains, and URLs of clients, may hold any.
fn printable(text: impl AsRef<str>) -> String {
    text.as_ref().chars().filter(|character| !character.is_control()).collect()
}
