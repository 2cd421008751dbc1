//! Windows of streams and connections, within the bounds of Envoy.

use crate::derive::Derived;

/// Envoy's bounds for HTTP/2 windows (RFC 9113 section 6.9.1 above, Envoy's own below).
const HTTP2_WINDOW_BYTES: std::ops::RangeInclusive<u64> = 65_535..=2_147_483_647;
/// The largest window of a stream in Envoy's QUIC.
pub(super) const QUIC_STREAM_WINDOW_BYTES: u64 = 16 << 20;
/// The largest window of a connection in Envoy's QUIC.
pub(super) const QUIC_CONNECTION_WINDOW_BYTES: u64 = 24 << 20;

/// The window nearest to `bytes` that HTTP/2 allows.
pub(super) fn http2_window(bytes: u64) -> u64 {
    bytes.clamp(*HTTP2_WINDOW_BYTES.start(), *HTTP2_WINDOW_BYTES.end())
}

/// The bytes that one stream of either protocol buffers.
pub(super) fn stream_window_bytes(derived: &Derived) -> u64 {
    http2_window(derived.stream_window.value.0).min(QUIC_STREAM_WINDOW_BYTES)
}
