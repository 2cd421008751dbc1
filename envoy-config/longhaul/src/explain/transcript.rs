//! Reads a page as `curl -i` prints it: a status line and headers for each response, then the body of the last one.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use url::Url;

/// The most header lines of one response.
const MOST_HEADERS: usize = 512;
/// The most bytes of a page after decompression.
pub(super) const MOST_BYTES: u64 = 64 << 20;
/// The bytes of a body that show whether it is text.
const LOOKED_AT: usize = 512;

/// A response with its headers and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    /// The status code.
    pub status: u16,
    /// The headers in order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: Vec<u8>,
}

/// The output of `curl -i`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transcript {
    /// The values of Location in the redirects before the last response, in order.
    pub redirects: Vec<String>,
    /// The last response.
    pub last: Response,
}

/// The reason why a response cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// A header line is not `NAME: VALUE`, or there are too many.
    #[error("line {line} is not a response header ({reason}); expected the output of `curl -si URL`")]
    Header {
        /// The number of the line after which the headers begin, from 1.
        line: usize,
        /// The parser's reason.
        reason: httparse::Error,
    },
    /// No empty line ends the headers.
    #[error("no empty line ends the response headers; expected the whole output of `curl -si URL`")]
    Truncated,
    /// A content encoding that this command does not decompress.
    #[error(
        "the page is compressed with {0}; a box requests gzip from origins, so type \
         `curl -si -H 'Accept-Encoding: gzip' URL`"
    )]
    Encoding(String),
    /// A gzip body that ends early or is damaged.
    #[error("the page is not valid gzip ({0}); type `curl -si URL` without an Accept-Encoding header")]
    Damaged(String),
    /// The page is too large.
    #[error("the page has more than {} MiB after decompression", MOST_BYTES >> 20)]
    TooLarge,
}

impl Transcript {
    /// Reads the output of `curl -i`. Returns None for a text that does not begin with a status line, which is a page
    /// alone.
    ///
    /// curl prints a block of headers for each redirect that it follows, for an interim response (RFC 9110, 15.2), and
    /// for a tunnel through a proxy. The last block belongs to the body.
    ///
    /// # Errors
    /// The headers cannot be read.
    pub(crate) fn read(text: &[u8]) -> Option<Result<Self, Unreadable>> {
        status_line(text).map(|_| Self::blocks(text))
    }

    fn blocks(text: &[u8]) -> Result<Self, Unreadable> {
        let mut redirects = Vec::new();
        let mut rest = text;
        let mut last = Response { status: 0, headers: Vec::new(), body: Vec::new() };
        while let Some((status, after)) = status_line(rest) {
            let begins = text.len() - after.len();
            if (300..400).contains(&last.status) {
                redirects.extend(last.header("location").map(ToOwned::to_owned));
            }
            let (headers, body) = headers(after, || lines(text.get(..begins).unwrap_or_default()))?;
            last = Response { status, headers, body: Vec::new() };
            rest = body;
        }
        last.body = rest.to_vec();
        Ok(Self { redirects, last })
    }

    /// Returns the URL of the last response to a request for `first`. A Location that is no URL changes nothing.
    pub(crate) fn url(&self, first: &str) -> String {
        let Ok(first_url) = Url::parse(first) else { return first.to_owned() };
        let follow = |url: Url, location: &String| url.join(location).unwrap_or(url);
        if self.redirects.is_empty() {
            return first.to_owned();
        }
        self.redirects.iter().fold(first_url, follow).into()
    }
}

impl Response {
    /// Returns the first value of `name`, which is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Decompresses the body and removes Content-Encoding. A body of text stays as it is, because `curl --compressed`
    /// keeps the header of a body that it has decompressed.
    ///
    /// # Errors
    /// The content encoding is not gzip, or the body is damaged or too large.
    pub(crate) fn decompressed(mut self) -> Result<Self, Unreadable> {
        let encodings: Vec<String> = self
            .headers
            .iter()
            .filter(|(name, value)| name == "content-encoding" && !value.eq_ignore_ascii_case("identity"))
            .map(|(_, value)| value.to_ascii_lowercase())
            .collect();
        self.headers.retain(|(name, _)| name != "content-encoding");
        if encodings.is_empty() || is_text(&self.body) {
            return Ok(self);
        }
        match encodings.join(", ").as_str() {
            "gzip" | "x-gzip" => Ok(Self { body: gunzip(&self.body)?, ..self }),
            other => Err(Unreadable::Encoding(other.to_owned())),
        }
    }
}

/// Reads a status line such as `HTTP/1.1 200 OK` or `HTTP/2 200`. Returns the status and the bytes after the line.
fn status_line(text: &[u8]) -> Option<(u16, &[u8])> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(text.get(..end)?).ok()?;
    let mut words = line.split_ascii_whitespace();
    let version = words.next()?.strip_prefix("HTTP/")?;
    let status = words.next().filter(|word| word.len() == 3)?.parse().ok()?;
    let known = matches!(version, "0.9" | "1.0" | "1.1" | "2" | "2.0" | "3" | "3.0");
    (known && (100..600).contains(&status)).then_some((status, text.get(end + 1..)?))
}

/// Header fields, with names in lower case.
type Headers = Vec<(String, String)>;

/// Reads headers up to the empty line. Returns them with the bytes after it. `line` counts the lines before them.
fn headers(text: &[u8], line: impl Fn() -> usize) -> Result<(Headers, &[u8]), Unreadable> {
    let mut fields = vec![httparse::EMPTY_HEADER; MOST_HEADERS];
    match httparse::parse_headers(text, &mut fields) {
        Ok(httparse::Status::Complete((used, fields))) => {
            let owned = |field: &httparse::Header<'_>| {
                (field.name.to_ascii_lowercase(), String::from_utf8_lossy(field.value).trim().to_owned())
            };
            Ok((fields.iter().map(owned).collect(), text.get(used..).unwrap_or_default()))
        }
        Ok(httparse::Status::Partial) => Err(Unreadable::Truncated),
        Err(reason) => Err(Unreadable::Header { line: line() + 1, reason }),
    }
}

fn lines(text: &[u8]) -> usize {
    text.split(|byte| *byte == b'\n').count().saturating_sub(1)
}

/// Returns true for bytes without control characters, which every compressed format begins with.
fn is_text(body: &[u8]) -> bool {
    body.iter().take(LOOKED_AT).all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace())
        && !body.starts_with(&[0x1f, 0x8b])
}

fn gunzip(body: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let mut page = Vec::new();
    let read = MultiGzDecoder::new(body).take(MOST_BYTES + 1).read_to_end(&mut page);
    match read {
        Ok(bytes) if bytes as u64 > MOST_BYTES => Err(Unreadable::TooLarge),
        Ok(_) => Ok(page),
        Err(error) => Err(Unreadable::Damaged(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Transcript {
        Transcript::read(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_page_alone_has_no_status_line() {
        for page in ["", "<p>HTTP/1.1 200 OK", "HTTP/1.1 is a protocol\n", "HTTP/1.1 99 No\n\n", "HTTP/1.1 200 OK"] {
            assert_eq!(Transcript::read(page.as_bytes()), None, "{page}");
        }
    }

    #[test]
    fn status_headers_and_body_are_separated() {
        for (line, end) in [("HTTP/1.1 404 Not Found", "\r\n"), ("HTTP/2 404 ", "\r\n"), ("HTTP/3 404", "\n")] {
            let read = read(&format!("{line}{end}Content-Type: text/html{end}X:  a {end}{end}<p>\r\n\r\nHTTP/1.1"));
            assert_eq!((read.last.status, read.last.header("content-type")), (404, Some("text/html")), "{line}");
            assert_eq!((read.last.header("x"), read.last.header("y")), (Some("a"), None));
            assert_eq!(read.last.body, b"<p>\r\n\r\nHTTP/1.1");
            assert_eq!(read.url("http://www.example.org"), "http://www.example.org");
        }
    }

    #[test]
    fn the_last_block_of_headers_counts_and_redirects_change_the_url() {
        let read = read(
            "HTTP/1.1 200 Connection established\n\nHTTP/1.1 301 Moved\nLocation: https://www.example.org/a/b\n\n\
             HTTP/2 103 \nlink: </x>\n\nHTTP/2 302\nlocation: c\n\nHTTP/2 200\nserver: x\n\n<p>",
        );
        assert_eq!((read.last.status, read.last.header("server")), (200, Some("x")));
        assert_eq!(read.last.body, b"<p>");
        assert_eq!(read.url("http://example.org/"), "https://www.example.org/a/c");
    }

    #[test]
    fn headers_that_cannot_be_read_are_refused() {
        let refused = |text: &str| Transcript::read(text.as_bytes()).unwrap().unwrap_err().to_string();
        assert!(refused("HTTP/1.1 200 OK\r\na: b\r\n").contains("no empty line"));
        let second = refused("HTTP/1.1 302 Found\r\nlocation: /\r\n\r\nHTTP/1.1 200 OK\r\n<p>\r\n\r\n");
        assert!(second.starts_with("line 5 is not a response header"), "{second}");
    }

    fn gzip(page: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(page).unwrap();
        encoder.finish().unwrap()
    }

    fn with(encoding: &str, body: &[u8]) -> Result<Response, Unreadable> {
        let headers = vec![("content-encoding".to_owned(), encoding.to_owned())];
        Response { status: 200, headers, body: body.to_vec() }.decompressed()
    }

    #[test]
    fn gzip_is_decompressed_and_other_encodings_name_the_option_for_curl() {
        let packed = gzip(b"<p>");
        for (encoding, body) in [("gzip", &packed[..]), ("X-GZIP", &packed), ("br", b"<p>"), ("identity", b"<p>")] {
            let response = with(encoding, body).unwrap();
            assert_eq!((response.body.as_slice(), response.headers.len()), (&b"<p>"[..], 0), "{encoding}");
        }
        assert!(matches!(with("gzip", &packed[..12]), Err(Unreadable::Damaged(_))));
        let refused = with("br", b"\x0b\x01\x80<p>\x03").unwrap_err().to_string();
        assert!(refused.contains("compressed with br") && refused.contains("-H 'Accept-Encoding: gzip'"), "{refused}");
        assert_eq!(with("gzip, gzip", &packed), Err(Unreadable::Encoding("gzip, gzip".to_owned())));
    }

    #[test]
    fn a_decompression_bomb_is_refused() {
        let bomb = gzip(&vec![b'a'; usize::try_from(MOST_BYTES).unwrap() + 1]);
        assert_eq!(with("gzip", &bomb), Err(Unreadable::TooLarge));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, text in "(HTTP/(1.1|2) [1-5][0-9]{2}\n([a-z]: [a-z]\n)?\n?){0,3}") {
            let text = [text.as_bytes(), &bytes].concat();
            if let Some(Ok(read)) = Transcript::read(&text) {
                let _ = read.url("http://www.example.org/");
                let _ = read.last.decompressed();
            }
        }
    }
}
