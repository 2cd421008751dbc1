//! What the proxy knows of a stream (Envoy's attributes).

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
