//! An option for each filter of the table: `--name-budget FILE`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use longhaul_render::FILTERS;

use crate::run::FilterPaths;

/// Filters named on the command line. Others are found by environment, or beside this program.
pub(super) struct FilterOptions(pub(super) FilterPaths);

impl Args for FilterOptions {
    fn augment_args(command: Command) -> Command {
        FILTERS.iter().fold(command, |command, filter| {
            let help = format!(
                "The filter that {} [default: ${}, or {} beside this program]",
                filter.purpose,
                filter.variable(),
                filter.file()
            );
            command.arg(
                Arg::new(filter.name)
                    .long(filter.name)
                    .value_name("FILE")
                    .value_parser(value_parser!(PathBuf))
                    .help(help),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FilterOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut options = Self(FilterPaths::new());
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for filter in FILTERS {
            if let Some(path) = matches.get_one::<PathBuf>(filter.name) {
                self.0.insert(filter.name, path.clone());
            }
        }
        Ok(())
    }
}
