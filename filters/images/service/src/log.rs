//! Lines for the program's supervisor.

/// The program's name in them.
pub(crate) const PROGRAM: &str = "longhaul-images";

/// Writes a line to the standard error.
pub(crate) fn line(text: &str) {
    side_program::line(PROGRAM, text);
}
