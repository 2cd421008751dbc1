//! `longhaul generate`: man pages and completions, for packages.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Subcommand};
use clap_complete::Shell;
use longhaul_config::man_page;

use super::{Outcome, fail};

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Write a man page for each command, and one for the keys of longhaul.yaml
    Man(Out),
    /// Write completions for bash, zsh and fish
    Completions(Out),
}

#[derive(clap::Args)]
struct Out {
    /// The folder to write into; created if it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let (written, out) = match &arguments.what {
        What::Man(Out { out }) => (man(out), out),
        What::Completions(Out { out }) => (completions(out), out),
    };
    written.or_else(|error| fail(&format!("cannot write into {}: {error}", out.display())))
}

fn man(out: &Path) -> io::Result<()> {
    fs::create_dir_all(out)?;
    clap_mangen::generate_to(super::Arguments::command(), out)?;
    fs::write(out.join("longhaul.yaml.5"), man_page())
}

fn completions(out: &Path) -> io::Result<()> {
    fs::create_dir_all(out)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut super::Arguments::command(), "longhaul", out)?;
    }
    Ok(())
}
