//! Files with one name a line: their faults, with their places in the file.

use std::path::Path;

use crate::allowlist::{ListError, ListSummary};
use crate::diagnostic::Problem;
use crate::reader::{Reader, Setting};
use crate::top_level_domain::instead_of_domain;

/// Reports the faults of a list that a setting names. Returns true if the list can be used.
pub(super) fn is_usable(
    reader: &mut Reader,
    setting: &Setting<'_>,
    path: &Path,
    checked: Result<ListSummary, Vec<ListError>>,
) -> bool {
    match checked {
        Ok(summary) if summary.names == 0 && !summary.may_be_empty => {
            let problem = Problem::error(
                format!("`{}` names a list without a name", setting.name),
                setting.place(),
                "no name in it",
            );
            reader.problems.push(
                problem
                    .in_file(path.to_owned(), 1, 1)
                    .help("add a name, or the line `# allow-empty` if the list may be empty"),
            );
            false
        }
        Ok(summary) => {
            if let Some((line, domain)) = summary.whole_domain {
                let title = format!("`{}`: `{domain}` is a whole top-level domain", setting.name);
                let problem = Problem::warning(title, setting.place(), "it stands for every name below it");
                let help = instead_of_domain(&domain);
                reader.problems.push(problem.in_file(path.to_owned(), line, 1).help(help));
            }
            true
        }
        Err(errors) => {
            for error in errors {
                reader.problems.push(
                    Problem::error(
                        format!("`{}`: bad line in {}:{}:{}", setting.name, path.display(), error.line, error.column),
                        setting.place(),
                        format!("found `{}` there: {}", error.entry, error.error),
                    )
                    .in_file(path.to_owned(), error.line, error.column)
                    .help("one name a line: example.org (and below), =example.org (only itself), *.example.org (only below); # starts a comment"),
                );
            }
            false
        }
    }
}
