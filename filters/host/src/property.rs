//! What the proxy knows of a stream (Envoy's attributes), and what it is told for its access log.

use crate::error::HostError;
use crate::ffi;

/// The value of a property such as `["source", "address"]`. None where the stream has none in this phase.
pub fn get(path: &[&str]) -> Result<Option<Vec<u8>>, HostError> {
    match ffi::get_property(path.join("\0").as_bytes()) {
        Ok(value) => Ok(Some(value)),
        Err(HostError::NotFound | HostError::Empty) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Leaves `value` with the stream. Envoy keeps it as filter state under `wasm.NAME`, which access logs can show.
pub fn set(name: &str, value: &[u8]) -> Result<(), HostError> {
    ffi::set_property(name.as_bytes(), value)
}
