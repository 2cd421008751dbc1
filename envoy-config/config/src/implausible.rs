//! Warns of values that are valid and most likely a slip: a wrong unit, a range of everything, a folder that does not last.
//!
//! Earlier releases accept these files, so every finding is a warning. Each names the place and what to type.

mod addresses;
mod folders;
mod link;
mod names;

use std::path::Path;

use super::contradictions::Places;
use super::diagnostic::Problem;
use super::settings::Draft;
use super::yaml::Node;

/// Checks all groups of the draft of `file`. Skips a group that has a problem of its own.
pub(super) fn check(root: &Node, draft: &Draft, file: &Path, problems: &mut Vec<Problem>) {
    let places = Places { root };
    problems.extend(link::check(&places, draft));
    problems.extend(addresses::check(&places, draft));
    problems.extend(folders::check(&places, draft, file));
    problems.extend(names::check(&places, draft));
}
