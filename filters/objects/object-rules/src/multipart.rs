//! Bodies of the type `multipart/byteranges` (RFC 9110 section 14.6).

use std::ops::Range;

use crate::ranges::content_range;

/// The frame of one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multipart {
    boundary: String,
    content_type: Option<Vec<u8>>,
}

impl Multipart {
    /// Makes a frame. `chance` is a random number: a boundary that a body could foresee would let it forge parts.
    /// `content_type` is that of the stored response. A part omits it if it has a control byte.
    pub fn new(chance: u128, content_type: Option<&[u8]>) -> Self {
        let is_plain = |value: &&[u8]| !value.iter().any(u8::is_ascii_control);
        Self { boundary: format!("{chance:032x}"), content_type: content_type.filter(is_plain).map(<[u8]>::to_vec) }
    }

    /// Returns the `Content-Type` of the response.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// Returns what stands before the bytes of a part. `range` is not empty.
    pub fn head(&self, range: &Range<u64>, total: u64) -> Vec<u8> {
        let mut head = format!("\r\n--{}\r\n", self.boundary).into_bytes();
        if let Some(content_type) = &self.content_type {
            head.extend_from_slice(&[b"content-type: ", &content_type[..], b"\r\n"].concat());
        }
        let place = content_range(range.start, range.end.saturating_sub(1), total);
        head.extend_from_slice(format!("content-range: {place}\r\n\r\n").as_bytes());
        head
    }

    /// Returns what stands after the last part.
    pub fn end(&self) -> Vec<u8> {
        format!("\r\n--{}--\r\n", self.boundary).into_bytes()
    }

    /// Returns the `Content-Length` of the response.
    pub fn length(&self, ranges: &[Range<u64>], total: u64) -> u64 {
        let part = |range: &Range<u64>| {
            (self.head(range, total).len() as u64).saturating_add(range.end.saturating_sub(range.start))
        };
        ranges.iter().map(part).fold(self.end().len() as u64, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(frame: &Multipart, whole: &[u8], ranges: &[Range<u64>]) -> Vec<u8> {
        let mut body = Vec::new();
        for range in ranges {
            body.extend_from_slice(&frame.head(range, whole.len() as u64));
            let place = |at: u64| usize::try_from(at).unwrap();
            body.extend_from_slice(&whole[place(range.start)..place(range.end)]);
        }
        body.extend_from_slice(&frame.end());
        body
    }

    #[test]
    fn a_body_has_the_form_of_the_rfc_and_the_length_that_is_stated() {
        let frame = Multipart::new(0xab, Some(b"text/plain"));
        let ranges = [8..10, 0..1];
        let found = body(&frame, b"0123456789", &ranges);
        let line = "000000000000000000000000000000ab";
        let expected = format!(
            "\r\n--{line}\r\ncontent-type: text/plain\r\ncontent-range: bytes 8-9/10\r\n\r\n89\
             \r\n--{line}\r\ncontent-type: text/plain\r\ncontent-range: bytes 0-0/10\r\n\r\n0\
             \r\n--{line}--\r\n"
        );
        assert_eq!(String::from_utf8(found).unwrap(), expected);
        assert_eq!(frame.length(&ranges, 10), expected.len() as u64);
        assert_eq!(frame.content_type(), format!("multipart/byteranges; boundary={line}"));
    }

    #[test]
    fn a_content_type_with_a_line_break_is_omitted() {
        for (value, expected) in [(&b"text/plain"[..], true), (b"text/plain\r\nset-cookie: a", false), (b"a\0", false)]
        {
            let head = Multipart::new(1, Some(value)).head(&(0..1), 2);
            assert_eq!(head.windows(12).any(|window| window == b"content-type"), expected);
        }
        let none = Multipart::new(1, None).head(&(0..1), 2);
        assert!(!none.windows(12).any(|window| window == b"content-type"));
    }
}
