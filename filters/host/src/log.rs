//! Lines in the proxy's log.

use crate::ffi;

/// How much a line matters; the host drops what is below its own level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Level {
    /// For developers.
    Debug = 1,
    /// Once a start or a change.
    Info = 2,
    /// Something was wrong and was coped with.
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

/// Makes a panic say where and why in the proxy's log before the VM dies; without this it dies mute.
pub fn report_panics(filter: &'static str) {
    std::panic::set_hook(Box::new(move |panic| write(Level::Critical, &format!("{filter}: {panic}"))));
}
