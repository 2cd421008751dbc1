//! The bytes of a piece on the link.

/// The payload of a full packet: 1500 bytes less the headers of IP and TCP with time stamps.
const PACKET_PAYLOAD: u64 = 1448;
/// The headers of IP and TCP with time stamps in a packet.
const PACKET_HEADERS: u64 = 52;
/// The header of a frame of HTTP/2 (9 bytes), and the header and tag of a TLS record (22 bytes).
const FRAME_HEADERS: u64 = 31;

/// Returns the bytes that a piece with this payload takes on the link, if its packets carry nothing else.
#[must_use]
pub fn on_link(payload: u64) -> u64 {
    if payload == 0 {
        return 0;
    }
    let sent = payload.saturating_add(FRAME_HEADERS);
    sent.saturating_add(sent.div_ceil(PACKET_PAYLOAD).saturating_mul(PACKET_HEADERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_a_twentieth_of_a_large_piece_and_most_of_a_small_one() {
        assert_eq!(on_link(0), 0);
        assert_eq!(on_link(1), 84);
        assert_eq!(on_link(1417), 1500);
        assert_eq!(on_link(65_536), 67_959);
        assert_eq!(on_link(u64::MAX), u64::MAX);
    }
}
