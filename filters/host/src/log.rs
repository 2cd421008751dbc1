//! Lines in the proxy's log.

use crate::ffi;

/// Severity of a line. The host drops lines below its own level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Level {
    /// For developers.
    Debug = 1,
    /// Once for each start or change.
    Info = 2,
    /// A fault that the filter handled.
    Warn = 3,
    /// An operator must act.
    Error = 4,
    /// The module is about to die.
    Critical = 5,
}

/// Writes one line.
pub fn write(level: Level, line: &str) {
    ffi::log(level as u32, line);
}

/// Makes a panic write its reason and place to the proxy's log before the VM dies. Without this hook nothing is logged.
pub fn report_panics(filter: &'static str) {
    std::panic::set_hook(Box::new(move |panic| write(Level::Critical, &format!("{filter}: {panic}"))));
}
