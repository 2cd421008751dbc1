//! A plain HTTP/1.1 client that shows the headers as they arrived, and the chunks of the body when they arrive.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::envoy::PATIENCE;

/// A response as it arrived.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// True if the body ended before its announced end.
    pub(crate) cut: bool,
}

impl Answer {
    /// The value of a header. A comma joins its lines.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A request; `Host` and `Connection: close` are added where missing.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection")) {
        text += "connection: close\r\n";
    }
    text + "\r\n"
}

/// Sends GET `path` of `host` to the proxy at `to`.
pub(crate) fn get(to: SocketAddr, host: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let all: Vec<_> = [("host", host)].into_iter().chain(headers.iter().copied()).collect();
    send(to, &request("GET", path, &all)).expect("an answer")
}

/// As [`get`], but calls `piece_came` for each chunk of the body when it arrives.
pub(crate) fn get_in_pieces(
    to: SocketAddr,
    host: &str,
    headers: &[(&str, &str)],
    piece_came: &mut dyn FnMut(),
) -> Answer {
    let all: Vec<_> = [("host", host)].into_iter().chain(headers.iter().copied()).collect();
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE * 2)).expect("a timeout");
    stream.write_all(request("GET", "/", &all).as_bytes()).expect("the request is sent");
    read_in_pieces(&mut BufReader::new(stream), false, piece_came).expect("an answer")
}

/// Sends these bytes on a new connection and reads one response.
pub(crate) fn send(to: SocketAddr, request: &str) -> io::Result<Answer> {
    let stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    exchange(stream, request)
}

/// A connection to `to` from the client at `from`.
pub(crate) fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &SocketAddr::new(from, 0))?;
    rustix::net::connect(&socket, &to)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// As [`send`], on an open connection.
pub(crate) fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<Answer> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    read_answer(&mut BufReader::new(stream), request.starts_with("HEAD "))
}

/// Reads one response.
pub(crate) fn read_answer(reader: &mut impl BufRead, head: bool) -> io::Result<Answer> {
    read_in_pieces(reader, head, &mut || {})
}

fn read_in_pieces(reader: &mut impl BufRead, head: bool, piece_came: &mut dyn FnMut()) -> io::Result<Answer> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(|| invalid(&line))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, headers, body: Vec::new(), cut: false };
    if head || matches!(status, 100..=199 | 204 | 304) {
        return Ok(answer);
    }
    if answer.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                answer.cut = true;
                break;
            }
            let size = usize::from_str_radix(line.trim(), 16).map_err(|_| invalid(&line))?;
            let mut chunk = vec![0; size];
            if reader.read_exact(&mut chunk).is_err() {
                answer.cut = true;
                break;
            }
            answer.body.extend(chunk);
            piece_came();
            line.clear();
            reader.read_line(&mut line)?;
            if size == 0 {
                break;
            }
        }
    } else {
        let length = answer.header("content-length").and_then(|n| n.parse::<u64>().ok());
        match reader.take(length.unwrap_or(u64::MAX)).read_to_end(&mut answer.body) {
            // The end of a TLS connection that was not announced; what had come is there.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            other => drop(other?),
        }
        answer.cut = length.is_some_and(|length| length != answer.body.len() as u64);
    }
    Ok(answer)
}
