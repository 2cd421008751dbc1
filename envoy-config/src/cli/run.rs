//! `longhaul run FILE`: serve until told to stop.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::filters::FilterOptions;
use super::{ConfigFile, FAILED, Outcome, access_log, fail, load_or_refuse};
use crate::run::{Options, Overridden, RunError, exec_bound_to_parent, run};
use crate::status::StatusPage;

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
    #[command(flatten)]
    filters: FilterOptions,
    #[arg(long, value_name = "FILE", help = "Log requests, one JSON object a line, to this file; - for stderr")]
    access_log: Option<PathBuf>,
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let loaded = load_or_refuse(&arguments.config.file)?;
    let options = Options {
        file: arguments.config.file.clone(),
        state: arguments.state.clone(),
        overridden: Overridden {
            envoy: arguments.envoy.clone(),
            coredns: arguments.coredns.clone(),
            filters: arguments.filters.0.clone(),
        },
        access_log: access_log(arguments.access_log.as_deref()),
        pages: Arc::new(StatusPage::default()),
    };
    match run(&options, loaded) {
        Ok(()) => Ok(()),
        Err(RunError::Interrupted) => Err(INTERRUPTED),
        Err(error) => fail(&error.to_string()),
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
    eprintln!("longhaul: cannot start {}: {error}", arguments.program.display());
    Err(FAILED)
}
