//! Envoy's attributes of a stream, and values that the filter leaves for the access log.

use crate::calls;
use crate::error::HostError;

/// Returns the value of a property such as `["source", "address"]`, or none if the stream lacks it in this phase.
pub fn get(path: &[&str]) -> Result<Option<Vec<u8>>, HostError> {
    match calls::get_property(path.join("\0").as_bytes()) {
        Ok(value) => Ok(Some(value)),
        Err(HostError::NotFound | HostError::Empty) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Stores `value` with the stream. Envoy keeps it as filter state under `wasm.NAME`, which access logs can show.
pub fn set(name: &str, value: &[u8]) -> Result<(), HostError> {
    calls::set_property(name.as_bytes(), value)
}
