//! Lines in the proxy's log.

use crate::calls;

pub use crate::kinds::Level;

/// Writes one line.
pub fn write(level: Level, line: &str) {
    calls::log(level, line);
}

/// Makes a panic write its reason and place to the proxy's log before the VM dies. Without this hook nothing is logged.
pub fn report_panics(filter: &'static str) {
    std::panic::set_hook(Box::new(move |panic| write(Level::Critical, &format!("{filter}: {panic}"))));
}
