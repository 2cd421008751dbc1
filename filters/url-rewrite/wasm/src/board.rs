//! What all workers remember of visitors, and how one is recognised.

use std::time::{SystemTime, UNIX_EPOCH};

use filter_host::shared::ProxyBoard;
use filter_host::{property, random};

/// What marks of this process are salted with: drawn by the first worker that asks.
pub(crate) fn salt() -> [u8; 8] {
    shared_board::settled(&ProxyBoard, "salt", random::bytes())
}

/// Hours since 1970, the same for all workers.
pub(crate) fn now_h() -> u32 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(elapsed.as_secs() / 3600).unwrap_or(u32::MAX)
}

/// Who is at the other end of the stream's connection; nothing where the proxy does not say.
pub(crate) fn client_address() -> Vec<u8> {
    property::get(&["source", "address"]).ok().flatten().unwrap_or_default()
}
