//! `longhaul bugreport`: one archive with everything that a developer needs, without names, addresses and keys.
//!
//! | module | job |
//! |---|---|
//! | `collect` | the texts: files, states, settings of the kernel |
//! | `mask` | the policy: every name and address gets a pseudonym, and secrets go |
//! | `archive` | writes the archive, for its owner alone |
//!
//! Each text passes through one [`Mask`], so a name has one pseudonym in all files. Private keys are never read.

mod archive;
mod collect;
mod mask;

use std::io;
use std::path::Path;

pub(crate) use collect::Given;
use mask::Mask;

const ABOUT: &str =
    "Longhaul's bug report. Names, addresses and paths of URLs are masked: the same pseudonym is the same name in all
files. No key, certificate, list of names, access log or cached object is in here. Please look through it anyway.
";

/// Writes the report to `out`, a new file that only its owner may read. Returns the names of its parts.
///
/// # Errors
/// The file exists or cannot be written.
pub(crate) fn write(given: &Given<'_>, out: &Path) -> io::Result<Vec<String>> {
    let mut mask = Mask::new(&collect::known_names(given), &collect::configured(given));
    let parts = collect::parts(given);
    let mut masked = vec![("README".to_owned(), ABOUT.to_owned())];
    masked.extend(parts.into_iter().map(|part| (mask.text(&part.name), mask.text(&part.text))));
    archive::write(out, &masked)?;
    Ok(masked.into_iter().map(|(name, _)| name).collect())
}
