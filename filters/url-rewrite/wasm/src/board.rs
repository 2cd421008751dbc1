//! State that all workers share about visitors, and the values that identify a visitor.

use std::time::{SystemTime, UNIX_EPOCH};

use filter_host::shared::ProxyBoard;
use filter_host::{property, random};

/// Returns the secret under which this process marks visitors. The first worker that calls this draws it.
pub(crate) fn secret() -> [u8; 16] {
    shared_board::settled(&ProxyBoard, "salt", random::bytes())
}

/// Returns the hours since 1970, which are the same for all workers.
pub(crate) fn now_h() -> u32 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(elapsed.as_secs() / 3600).unwrap_or(u32::MAX)
}

/// Returns the client address of the stream's connection, or nothing if the proxy does not report it.
pub(crate) fn client_address() -> Vec<u8> {
    property::get(&["source", "address"]).ok().flatten().unwrap_or_default()
}
