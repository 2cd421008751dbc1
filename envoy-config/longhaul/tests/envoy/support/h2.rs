//! A minimal HTTP/2 client: one GET with prior knowledge and any pseudo-headers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::envoy::PATIENCE;

/// The end of a stream, and the bytes of its header block and body.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The response's header block as it came, compressed by HPACK (RFC 7541).
    pub(crate) headers: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) end: End,
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    Reset,
    /// The connection ended, and with it all other streams on it.
    GoneAway,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

impl Stream {
    /// Returns true if the block begins with this status, in one of the forms that an encoder has for it.
    pub(crate) fn has_status(&self, status: u16) -> bool {
        let digits = status.to_string();
        let literal = |first: u8| {
            let mut bytes = vec![first, u8::try_from(digits.len()).unwrap_or(0)];
            bytes.extend(digits.bytes());
            bytes
        };
        // Digits 0, 1 and 2 have five bits in HPACK's Huffman code, the others six: no shorter in three bytes.
        let static_entry = match status {
            200 => Some(0x88),
            404 => Some(0x8d),
            500 => Some(0x8e),
            _ => None,
        };
        let starts = |prefix: &[u8]| self.headers.starts_with(prefix);
        static_entry.is_some_and(|entry| starts(&[entry]))
            || [0x08, 0x18, 0x48].iter().any(|first| starts(&literal(*first)) || starts(&huffman(*first, &digits)))
    }
}

/// `:status` with its digits in HPACK's Huffman code (RFC 7541 appendix B).
fn huffman(first: u8, digits: &str) -> Vec<u8> {
    let (mut bits, mut count) = (0_u64, 0_u32);
    for digit in digits.bytes().map(|digit| u64::from(digit - b'0')) {
        let (code, length) = if digit < 3 { (digit, 5) } else { (0x19 + digit - 3, 6) };
        bits = (bits << length) | code;
        count += length;
    }
    let padding = (8 - count % 8) % 8;
    bits = (bits << padding) | ((1 << padding) - 1);
    let size = (count + padding) / 8;
    let mut out = vec![first, 0x80 | u8::try_from(size).unwrap_or(0)];
    out.extend((0..size).rev().map(|byte| u8::try_from((bits >> (byte * 8)) & 0xff).unwrap_or(0)));
    out
}

/// Sends GET `path` of `authority` with this `:scheme` and reads until the stream or the connection ends.
pub(crate) fn get(to: SocketAddr, scheme: &str, authority: &str, path: &str) -> io::Result<Stream> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut block = Vec::new();
    for (name, value) in [(":method", "GET"), (":scheme", scheme), (":authority", authority), (":path", path)] {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).map_err(io::Error::other)?);
            block.extend(text.bytes());
        }
    }
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
    write_frame(&mut stream, SETTINGS, 0, 0, &[])?;
    write_frame(&mut stream, HEADERS, END_STREAM | END_HEADERS, 1, &block)?;
    let mut answer = Stream { headers: Vec::new(), body: Vec::new(), end: End::GoneAway };
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).is_err() {
            return Ok(answer);
        }
        let size = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; size];
        stream.read_exact(&mut payload)?;
        match head[3] {
            HEADERS => answer.headers.extend(payload),
            DATA => answer.body.extend(payload),
            RST_STREAM => return Ok(Stream { end: End::Reset, ..answer }),
            GOAWAY => return Ok(answer),
            SETTINGS if head[4] & ACK == 0 => write_frame(&mut stream, SETTINGS, ACK, 0, &[])?,
            _ => {}
        }
        if matches!(head[3], HEADERS | DATA) && head[4] & END_STREAM != 0 {
            return Ok(Stream { end: End::Whole, ..answer });
        }
    }
}

fn write_frame(to: &mut impl Write, kind: u8, flags: u8, stream: u8, payload: &[u8]) -> io::Result<()> {
    let size = u8::try_from(payload.len()).map_err(io::Error::other)?;
    to.write_all(&[0, 0, size, kind, flags, 0, 0, 0, stream])?;
    to.write_all(payload)?;
    to.flush()
}
