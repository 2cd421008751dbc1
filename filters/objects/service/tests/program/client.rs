//! A client on the program's socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::origin;

/// A response as it arrived.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Empty if the connection ended without a response.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// False if the body broke off.
    pub(crate) is_whole: bool,
}

impl Reply {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        origin::field(&self.head, name)
    }

    /// Returns the status. 0: no response.
    pub(crate) fn status(&self) -> u16 {
        self.head.get(9..12).map_or(0, |status| status.parse().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Only a stored response has an age here.
    pub(crate) fn is_stored(&self) -> bool {
        self.field("age").is_some()
    }
}

enum Framing {
    Length(usize),
    Chunked,
    Ended,
}

/// A request under way.
pub(crate) struct Client {
    stream: BufReader<UnixStream>,
    is_head: bool,
    framing: Framing,
    reply: Reply,
}

impl Client {
    /// Sends a request. `fields` are lines.
    pub(crate) fn send(socket: &Path, method: &str, path: &str, fields: &str) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let lines = origin::lines(fields);
        let host = if lines.contains("host: ") { "" } else { "host: www.test\r\n" };
        write!(stream, "{method} {path} HTTP/1.1\r\n{host}{lines}connection: close\r\n\r\n").unwrap();
        let reply = Reply { head: String::new(), body: Vec::new(), is_whole: false };
        Self { stream: BufReader::new(stream), is_head: method == "HEAD", framing: Framing::Ended, reply }
    }

    /// Reads the head.
    pub(crate) fn head(&mut self) -> &str {
        if self.reply.head.is_empty() {
            self.reply.head = origin::head(&mut self.stream);
            let length = self.reply.field("content-length").map(|length| length.parse().unwrap());
            let has_none = self.is_head || matches!(self.reply.status(), 0 | 204 | 304);
            self.framing = match length {
                _ if has_none => Framing::Ended,
                Some(length) => Framing::Length(length),
                None if self.reply.field("transfer-encoding") == Some("chunked") => Framing::Chunked,
                None => panic!("a body without framing: {}", self.reply.head),
            };
        }
        &self.reply.head
    }

    /// Reads so many bytes of the body, or more.
    pub(crate) fn read(&mut self, least: usize) -> &[u8] {
        self.head();
        while self.reply.body.len() < least {
            assert!(self.piece().unwrap(), "the body has {} bytes", self.reply.body.len());
        }
        &self.reply.body
    }

    /// Reads the rest.
    pub(crate) fn end(mut self) -> Reply {
        self.head();
        let end = loop {
            match self.piece() {
                Ok(true) => {}
                end => break end,
            }
        };
        self.reply.is_whole = end.is_ok() && !self.reply.head.is_empty();
        self.reply
    }

    /// Reads a piece. False at the end.
    fn piece(&mut self) -> io::Result<bool> {
        match &mut self.framing {
            Framing::Ended | Framing::Length(0) => Ok(false),
            Framing::Length(left) => {
                let mut piece = vec![0; (*left).min(1 << 16)];
                let count = self.stream.read(&mut piece)?;
                *left -= count;
                self.reply.body.extend(&piece[..count]);
                if count > 0 { Ok(true) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
            }
            Framing::Chunked => {
                let mut line = String::new();
                self.stream.read_line(&mut line)?;
                let length = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
                let mut chunk = vec![0; length + 2];
                self.stream.read_exact(&mut chunk)?;
                self.reply.body.extend(&chunk[..length]);
                if length == 0 {
                    self.framing = Framing::Ended;
                }
                Ok(length > 0)
            }
        }
    }
}
