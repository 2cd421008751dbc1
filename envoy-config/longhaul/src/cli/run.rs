//! `longhaul run FILE`: serve until told to stop.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use longhaul_config::{LoadError, Loaded, load};

use super::history::{Place, found};
use super::rollback::Former;
use super::{ConfigFile, FAILED, Outcome, REFUSED, access_log, fail, load_or_refuse, refused_line};
use crate::run::{Form, Level, Options, Overridden, RunError, end_with, exec_bound_to_parent, flush, run, say, start};

/// The status that shells report for a process ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,
    #[arg(
        long,
        value_name = "DIR",
        help = "The folder for rendered files and state [default: a folder for each FILE, below $XDG_RUNTIME_DIR or /run/longhaul]"
    )]
    state: Option<PathBuf>,
    #[arg(long, value_name = "PATH", help = "Envoy [default: $LONGHAUL_ENVOY, or beside this program]")]
    envoy: Option<PathBuf>,
    #[arg(
        long,
        value_name = "PATH",
        help = "CoreDNS with the longhaul plugin [default: $LONGHAUL_COREDNS, or beside this program]"
    )]
    coredns: Option<PathBuf>,
    #[arg(
        long,
        value_name = "PATH",
        help = "The program that recodes images [default: $LONGHAUL_IMAGES, or longhaul-images beside this program]"
    )]
    images: Option<PathBuf>,
    #[arg(
        long,
        value_name = "PATH",
        help = "The program that caches objects [default: $LONGHAUL_OBJECTS, or longhaul-objects beside this program]"
    )]
    objects: Option<PathBuf>,
    #[arg(
        long,
        help = "First put the configuration before the present one back in place of FILE, as `longhaul rollback` does"
    )]
    previous: bool,
    #[arg(long, value_enum, default_value_t = LogFormat::Auto, help = "The form of the log on stderr")]
    log_format: LogFormat,
    #[arg(long, value_name = "FILE", help = "Log requests, one JSON object a line, to this file; - for stderr")]
    access_log: Option<PathBuf>,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    /// `journal` for a service of systemd, `text` otherwise
    Auto,
    /// TIME LEVEL part: message
    Text,
    /// <PRIORITY>part: message, for the journal of systemd
    Journal,
    /// One JSON object a line: time, level, part, message
    Json,
}

impl LogFormat {
    fn form(self) -> Form {
        match self {
            Self::Auto => Form::of_stderr(),
            Self::Text => Form::Text,
            Self::Journal => Form::Journal,
            Self::Json => Form::Json,
        }
    }
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let form = arguments.log_format.form();
    start(form).or_else(|error| fail(&format!("cannot set up: {error}")))?;
    let outcome = run_in(form, arguments);
    flush();
    match outcome {
        // People read what stands alone; programs read the log.
        Err(Failure { code, message: Some(message) }) if form == Form::Text => fail(&message).or(Err(code)),
        Err(Failure { code, message }) => {
            if let Some(message) = message {
                say(Level::Error, &message);
                flush();
            }
            Err(code)
        }
        Ok(()) => Ok(()),
    }
}

/// The end of a run that failed. Without a message, it has been printed.
struct Failure {
    code: u8,
    message: Option<String>,
}

fn run_in(form: Form, arguments: &Arguments) -> Result<(), Failure> {
    if arguments.previous {
        put_previous_back(arguments).map_err(|code| Failure { code, message: None })?;
    }
    let loaded = load_in(form, &arguments.config.file)?;
    let options = Options {
        file: arguments.config.file.clone(),
        state: arguments.state.clone(),
        overridden: Overridden {
            envoy: arguments.envoy.clone(),
            coredns: arguments.coredns.clone(),
            images: arguments.images.clone(),
            objects: arguments.objects.clone(),
        },
        access_log: access_log(arguments.access_log.as_deref()),
        log_form: form,
    };
    match run(&options, loaded) {
        Ok(()) => Ok(()),
        Err(RunError::Interrupted) => Err(Failure { code: INTERRUPTED, message: None }),
        Err(error) => Err(Failure { code: FAILED, message: Some(error.to_string()) }),
    }
}

/// Puts the configuration before the present one back in place of the file.
fn put_previous_back(arguments: &Arguments) -> Result<(), u8> {
    let found = found(&Place { config: Some(arguments.config.file.clone()), state: arguments.state.clone() })?;
    let former = Former::of(&found, None)?;
    former.put_back()?;
    say(Level::Info, &former.words());
    Ok(())
}

/// Loads the file. Problems stand alone in the form for people, and are messages of the log in the others.
fn load_in(form: Form, file: &Path) -> Result<Loaded, Failure> {
    if form == Form::Text {
        return load_or_refuse(file).map_err(|code| Failure { code, message: None });
    }
    let refused = |message| Failure { code: REFUSED, message: Some(message) };
    match load(file) {
        Ok(loaded) => {
            if !loaded.report.problems.is_empty() {
                say(Level::Warning, loaded.report.render(false).trim_end());
            }
            Ok(loaded)
        }
        Err(LoadError::Refused(report)) => {
            Err(refused(format!("{}\n{}", report.render(false).trim_end(), refused_line(&report))))
        }
        Err(error @ LoadError::Unreadable { .. }) => Err(refused(error.to_string())),
    }
}

/// See [`exec_bound_to_parent`].
#[derive(clap::Args)]
pub(super) struct BoundArguments {
    parent: i32,
    program: PathBuf,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(super) fn bound_command(arguments: &BoundArguments) -> Outcome {
    let error = exec_bound_to_parent(arguments.parent, &arguments.program, &arguments.arguments);
    eprintln!("cannot start {}: {error}", arguments.program.display());
    Err(FAILED)
}

/// See [`end_with`].
#[derive(clap::Args)]
pub(super) struct CompanionArguments {
    parent: i32,
    child: i32,
}

pub(super) fn companion_command(arguments: &CompanionArguments) -> Outcome {
    end_with(arguments.parent, arguments.child).map_err(|_| FAILED)
}
