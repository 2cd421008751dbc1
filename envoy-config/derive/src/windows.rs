//! Flow-control windows of streams and connections, within Envoy's bounds.

use longhaul_config::Bytes;

/// Envoy's bounds for HTTP/2 windows, in bytes. The upper one is from RFC 9113 section 6.9.1, the lower one is Envoy's
/// own.
const HTTP2_WINDOW_BYTES: std::ops::RangeInclusive<u64> = 65_535..=2_147_483_647;
/// The largest stream window of Envoy's QUIC, in bytes.
pub(super) const QUIC_STREAM_WINDOW_BYTES: u64 = 16 << 20;
/// The largest connection window of Envoy's QUIC, in bytes.
pub(super) const QUIC_CONNECTION_WINDOW_BYTES: u64 = 24 << 20;

/// Returns the window nearest to `bytes` that Envoy accepts for HTTP/2.
pub(super) fn http2_window(bytes: u64) -> u64 {
    bytes.clamp(*HTTP2_WINDOW_BYTES.start(), *HTTP2_WINDOW_BYTES.end())
}

/// Returns the window of a connection that belongs to one client: four of its streams at full speed.
pub(super) fn client_connection_window(stream: Bytes) -> Bytes {
    Bytes(stream.0.saturating_mul(4).clamp(64 << 10, 64 << 20))
}
