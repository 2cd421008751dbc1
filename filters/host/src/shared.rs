//! Values that all workers of the process see, by name. They outlive a VM that is reloaded.
//!
//! A name lives as long as the process and costs memory even when its value is empty: names must come from a set that is
//! bounded beforehand.

use crate::error::HostError;
use crate::ffi;

/// A value and the version it has, for [`set`]; 0 where there is none yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versioned {
    /// The value; empty where there is none.
    pub value: Vec<u8>,
    /// Changes with every [`set`].
    pub version: u32,
}

/// The value of `name`.
pub fn get(name: &str) -> Result<Versioned, HostError> {
    match ffi::get_shared_data(name) {
        Ok((value, version)) => Ok(Versioned { value, version }),
        Err(HostError::NotFound) => Ok(Versioned::default()),
        Err(error) => Err(error),
    }
}

/// Sets `name` to `value` if its version is still `version`; false if another worker was faster. Version 0 always sets, and
/// where there is none yet every version does.
pub fn set(name: &str, value: &[u8], version: u32) -> Result<bool, HostError> {
    match ffi::set_shared_data(name, value, version) {
        Ok(()) => Ok(true),
        Err(HostError::CasMismatch) => Ok(false),
        Err(error) => Err(error),
    }
}
