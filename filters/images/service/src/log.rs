//! Lines for the program's supervisor.

use std::io::Write;

/// Writes a line to the standard error. If nobody reads it any more, the program serves on.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "longhaul-images: {text}");
}
