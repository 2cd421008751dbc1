//! The program that hears of problems.

use std::path::PathBuf;

/// A program with its arguments. No shell reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}
