//! The client that the first bytes of a connection name: a header of the PROXY protocol, version 2 (section 2.2).
//!
//! The other end of the pair writes it in front of the client's bytes. The client cannot write one, because its own bytes come
//! behind that header.

use ppp::PartialResult;
use ppp::v2::{Addresses, Header};

use crate::Subscriber;

/// The bytes of a header without further fields: 16, and the two IPv6 addresses and ports of the longest address.
const LONGEST: usize = 16 + 36;

/// The first bytes of a connection.
#[derive(Debug, Default)]
pub struct Introduction {
    bytes: Vec<u8>,
}

impl Introduction {
    /// Takes a piece of the connection's bytes. Returns the client as soon as the header is whole. Bytes that are no such header
    /// name the unknown client.
    pub fn hear(&mut self, piece: &[u8]) -> Option<Subscriber> {
        let room = LONGEST.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(piece.get(..room).unwrap_or(piece));
        let header = Header::try_from(self.bytes.as_slice());
        match header {
            Err(error) if error.is_incomplete() && self.bytes.len() < LONGEST => None,
            Ok(Header { addresses: Addresses::IPv4(client), .. }) => Some(Subscriber::at(client.source_address.into())),
            Ok(Header { addresses: Addresses::IPv6(client), .. }) => Some(Subscriber::at(client.source_address.into())),
            Ok(_) | Err(_) => Some(Subscriber::UNKNOWN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPV4: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xcb\0\x71\x01\x10\0\x01\xbb";

    fn ipv6() -> Vec<u8> {
        let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24".to_vec();
        header.extend(b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07");
        header.extend([0; 20]);
        header
    }

    #[test]
    fn the_first_bytes_name_the_client_however_they_are_cut() {
        for (header, client) in [(IPV4.to_vec(), "192.0.2.7"), (ipv6(), "2001:db8::7")] {
            let bytes = [header.as_slice(), b"\x16\x03\x01 and so on"].concat();
            for cut in 0..header.len() {
                let mut introduction = Introduction::default();
                let (first, rest) = bytes.split_at(cut);
                assert_eq!(introduction.hear(first), None, "{client} {cut}");
                assert_eq!(introduction.hear(rest), Some(Subscriber::of(client.as_bytes())), "{client} {cut}");
            }
        }
    }

    #[test]
    fn bytes_that_name_nobody_are_those_of_the_unknown_client() {
        let mut of_ship = IPV4.to_vec();
        of_ship[13] = 0x31;
        let local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0".to_vec();
        let long = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff".to_vec();
        for bytes in [of_ship, local, b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03 and so on".to_vec()] {
            assert_eq!(Introduction::default().hear(&bytes), Some(Subscriber::UNKNOWN), "{bytes:?}");
        }
        let mut endless = Introduction::default();
        assert_eq!(endless.hear(&long), None);
        assert_eq!(endless.hear(&[0; 100]), Some(Subscriber::UNKNOWN), "it waits for no more than an address takes");
    }
}
