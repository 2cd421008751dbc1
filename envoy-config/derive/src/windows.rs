//! Flow-control windows of streams and connections, within Envoy's bounds.

use longhaul_config::Bytes;

use super::links::MultipathUse;

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

/// Returns the bytes of one stream that may be on the way to this end, and their formula. `on_the_way` are those of the
/// link, whose name is `name`.
pub(super) fn stream_window(name: &str, on_the_way: Bytes, multipath: MultipathUse) -> (u64, String) {
    // A ground knows one link. A larger window would let more of an upload wait in front of other requests.
    let (links, why) = match multipath {
        MultipathUse::Accepts(_) => (2, ": a remote may use two like links together"),
        MultipathUse::Opens(_) | MultipathUse::Off(_) => (1, ""),
    };
    let (times, least) = (2 * links, Bytes(links * (64 << 10)));
    let bytes = on_the_way.0.saturating_mul(times).clamp(least.0, 16 << 20);
    (bytes, format!("{times} x {name} {on_the_way}, from {least} to 16mib{why}"))
}

/// Returns the window of a connection that belongs to one client: four of its streams at full speed.
pub(super) fn client_connection_window(stream: Bytes) -> Bytes {
    Bytes(stream.0.saturating_mul(4).clamp(64 << 10, 64 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ground_of_several_links_takes_an_upload_over_two_of_them() {
        let window = |bytes, multipath| stream_window("bdp_up", Bytes(bytes), multipath).0;
        let (one, several) = (MultipathUse::Off("a test"), MultipathUse::Accepts("a test"));
        assert_eq!((window(375_000, one), window(375_000, several)), (750_000, 1_500_000));
        assert_eq!((window(20_000, one), window(20_000, several)), (64 << 10, 128 << 10));
        assert_eq!(window(20_000, MultipathUse::Opens("a test")), 64 << 10, "a remote knows its links");
        assert_eq!(window(1 << 40, several), 16 << 20);
    }
}
