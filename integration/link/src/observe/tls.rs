//! The server's name in the first message of a TLS connection (RFC 6066 section 3). The message may span several
//! segments, because a modern `ClientHello` no longer fits into one.

use tls_parser::{
    SNIType, TlsExtension, TlsMessage, TlsMessageHandshake, parse_tls_client_hello_extensions, parse_tls_plaintext,
};

/// Bytes of the longest `ClientHello` that is collected: one TLS record (RFC 8446 section 5.1) with its header.
const MOST_BYTES: usize = 16_384 + RECORD_HEADER_BYTES;
const RECORD_HEADER_BYTES: usize = 5;
/// Content type of a handshake record.
const HANDSHAKE: u8 = 22;

/// Collects the beginning of a client's stream until it is known to be TLS or not, and which server it names.
#[derive(Clone, Debug)]
pub enum ClientHello {
    /// The bytes so far; more are needed.
    Collecting(Vec<u8>),
    /// The decision: the name, if there is one.
    Decided(Option<String>),
}

impl Default for ClientHello {
    fn default() -> Self {
        Self::Collecting(Vec::new())
    }
}

impl ClientHello {
    /// Adds the client's bytes at `offset` in its stream. Bytes after a gap are ignored, and count only if the client
    /// sends them again.
    pub fn see(&mut self, offset: u32, payload: &[u8]) {
        let Self::Collecting(bytes) = self else { return };
        let Some(new) = usize::try_from(offset)
            .ok()
            .and_then(|offset| bytes.len().checked_sub(offset))
            .and_then(|known| payload.get(known..))
        else {
            return;
        };
        bytes.extend_from_slice(new);
        if let Some(decision) = decide(bytes) {
            *self = decision;
        }
    }

    /// Returns the name, once it is known.
    pub fn server_name(&self) -> Option<&str> {
        match self {
            Self::Collecting(_) => None,
            Self::Decided(name) => name.as_deref(),
        }
    }
}

/// Returns the decision, or `None` as long as more bytes could change it.
fn decide(bytes: &[u8]) -> Option<ClientHello> {
    let kind = *bytes.first()?;
    if kind != HANDSHAKE || bytes.len() > MOST_BYTES {
        return Some(ClientHello::Decided(None));
    }
    let length = u16::from_be_bytes([*bytes.get(3)?, *bytes.get(4)?]);
    let record = bytes.get(..RECORD_HEADER_BYTES + usize::from(length))?;
    Some(ClientHello::Decided(name_in(record)))
}

fn name_in(record: &[u8]) -> Option<String> {
    let (_, plaintext) = parse_tls_plaintext(record).ok()?;
    let extensions = plaintext.msg.iter().find_map(|message| match message {
        TlsMessage::Handshake(TlsMessageHandshake::ClientHello(hello)) => hello.ext,
        _ => None,
    })?;
    let (_, extensions) = parse_tls_client_hello_extensions(extensions).ok()?;
    extensions.iter().find_map(|extension| match extension {
        TlsExtension::SNI(names) => names
            .iter()
            .find(|(kind, _)| *kind == SNIType::HostName)
            .map(|(_, name)| String::from_utf8_lossy(name).into_owned()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a `ClientHello` with padding before the name, so that it can exceed a segment.
    fn hello(name: &str, padding: usize) -> Vec<u8> {
        let sized = |bytes: Vec<u8>| [u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec(), bytes].concat();
        let padding_extension = [vec![0, 21], sized(vec![0; padding])].concat();
        let entry = [vec![0], sized(name.as_bytes().to_vec())].concat();
        let name_extension = [vec![0, 0], sized(sized(entry))].concat();
        let extensions = sized([padding_extension, name_extension].concat());
        let body = [vec![3, 3], vec![7; 32], vec![0], sized(vec![0x13, 0x01]), vec![1, 0], extensions].concat();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let message = [vec![1], length[1..].to_vec(), body].concat();
        [vec![HANDSHAKE, 3, 1], sized(message)].concat()
    }

    #[test]
    fn the_name_is_found_however_the_message_is_cut() {
        let bytes = hello("www.example.org", 1700);
        for cut in [1, 4, 6, 100, 1448, bytes.len() - 1, bytes.len()] {
            let mut seen = ClientHello::default();
            seen.see(0, &bytes[..cut]);
            assert_eq!(seen.server_name().is_some(), cut == bytes.len(), "decided after {cut} bytes");
            seen.see(u32::try_from(cut).unwrap(), &bytes[cut..]);
            assert_eq!(seen.server_name(), Some("www.example.org"), "cut at {cut}");
        }
    }

    #[test]
    fn a_repeated_segment_changes_nothing_and_a_gap_is_waited_out() {
        let bytes = hello("www.example.org", 1700);
        let mut seen = ClientHello::default();
        seen.see(1448, &bytes[1448..]);
        assert_eq!(seen.server_name(), None);
        seen.see(0, &bytes[..1448]);
        seen.see(0, &bytes[..1448]);
        seen.see(1000, &bytes[1000..]);
        assert_eq!(seen.server_name(), Some("www.example.org"));
    }

    #[test]
    fn bytes_that_are_not_tls_have_no_name_and_are_not_stored() {
        let mut seen = ClientHello::default();
        seen.see(0, b"GET / HTTP/1.1\r\n");
        assert!(matches!(seen, ClientHello::Decided(None)));
        let mut seen = ClientHello::default();
        seen.see(0, &[HANDSHAKE, 3, 1, 0, 4, 1, 2, 3, 4]);
        assert!(matches!(seen, ClientHello::Decided(None)), "a record that is no ClientHello");
    }
}
