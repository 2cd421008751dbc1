//! Resolvers, the clock of an origin, and QUIC.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::dns_query::{Kind, Over, try_resolver};

/// The time for a connection or a response. Origins and resolvers may be beyond the slow link.
const TIMEOUT: Duration = Duration::from_secs(3);
/// QUIC's first packets fill this, and a server ignores smaller ones (RFC 9000 section 14.1).
const QUIC_PACKET: usize = 1200;
/// Packets that are sent, because one may be lost.
const QUIC_TRIES: u32 = 2;
/// The longest response header that is read, in bytes.
const HEADER_BYTES: u64 = 16 << 10;
/// The fields of a response that are read.
const FIELDS: usize = 64;

/// The responses of one resolver. An error is in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolverFact {
    pub resolver: SocketAddr,
    /// Addresses of IPv4 and of IPv6, over UDP.
    pub ipv4: Result<Vec<IpAddr>, String>,
    pub ipv6: Result<Vec<IpAddr>, String>,
    /// Addresses of IPv4 over TCP.
    pub tcp: Result<Vec<IpAddr>, String>,
}

/// Queries each resolver for `name`, all at once.
pub(crate) fn resolvers(resolvers: &[SocketAddr], name: &str) -> Vec<ResolverFact> {
    let ask = |resolver, kind, over| try_resolver(resolver, name, kind, over).map_err(|failure| failure.to_string());
    let failed = |_| Err("the query ended without a result".to_owned());
    thread::scope(|scope| {
        let asked: Vec<_> = resolvers
            .iter()
            .map(|resolver| {
                let query = |kind, over| scope.spawn(move || ask(*resolver, kind, over));
                let [ipv4, ipv6, tcp] = [(Kind::Ipv4, Over::Udp), (Kind::Ipv6, Over::Udp), (Kind::Ipv4, Over::Tcp)]
                    .map(|(kind, over)| query(kind, over));
                (*resolver, ipv4, ipv6, tcp)
            })
            .collect();
        let join = |(resolver, ipv4, ipv6, tcp): (
            _,
            thread::ScopedJoinHandle<'_, _>,
            thread::ScopedJoinHandle<'_, _>,
            thread::ScopedJoinHandle<'_, _>,
        )| ResolverFact {
            resolver,
            ipv4: ipv4.join().unwrap_or_else(failed),
            ipv6: ipv6.join().unwrap_or_else(failed),
            tcp: tcp.join().unwrap_or_else(failed),
        };
        asked.into_iter().map(join).collect()
    })
}

/// The clock of an origin, seen from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockFact {
    /// The time that this machine's clock is ahead, in milliseconds. Negative: it is behind.
    pub ahead_ms: i64,
    /// The bound of the error, in milliseconds.
    pub within_ms: i64,
}

/// Reads the field `Date` of a response of the web server at `address`.
///
/// # Errors
/// The reason in words.
pub(crate) fn clock(address: IpAddr, name: &str) -> Result<ClockFact, String> {
    let text = |error: io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&(address, 80).into(), TIMEOUT).map_err(text)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(text)?;
    let (sent, began) = (SystemTime::now(), Instant::now());
    let request = format!("HEAD / HTTP/1.1\r\nHost: {name}\r\nUser-Agent: longhaul\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(text)?;
    let mut response = Vec::new();
    // The connection may end by a reset after a whole header.
    let _ = stream.take(HEADER_BYTES).read_to_end(&mut response);
    let date = date(&response).ok_or("it sends no date")?;
    Ok(difference(date, sent, began.elapsed()))
}

fn date(response: &[u8]) -> Option<SystemTime> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    parsed.parse(response).ok()?;
    let date = parsed.headers.iter().find(|field| field.name.eq_ignore_ascii_case("date"))?;
    httpdate::parse_http_date(std::str::from_utf8(date.value).ok()?).ok()
}

/// Compares an origin's date, in whole seconds, with this machine's clock at the middle of the round trip.
fn difference(theirs: SystemTime, sent: SystemTime, took: Duration) -> ClockFact {
    let half = took / 2;
    // A date was right for a second.
    let theirs = theirs + Duration::from_millis(500);
    let ours = sent + half;
    let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let ahead_ms = match ours.duration_since(theirs) {
        Ok(ahead) => millis(ahead),
        Err(behind) => -millis(behind.duration()),
    };
    ClockFact { ahead_ms, within_ms: millis(half) + 500 }
}

/// The result of a QUIC packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuicFact {
    /// The server responded.
    Responded,
    /// Nothing came back.
    Silent,
    /// The port is closed.
    Refused,
    /// It could not be sent.
    NotSent(String),
}

/// Sends a packet of a version of QUIC that no server has. Each server responds with the versions that it has (RFC 9000
/// section 6.1), and keeps nothing.
pub(crate) fn quic(server: SocketAddr) -> QuicFact {
    for _ in 0..QUIC_TRIES {
        match quic_once(server) {
            Ok(true) => return QuicFact::Responded,
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return QuicFact::Refused,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return QuicFact::NotSent(error.to_string()),
        }
    }
    QuicFact::Silent
}

fn quic_once(server: SocketAddr) -> io::Result<bool> {
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(TIMEOUT / QUIC_TRIES))?;
    socket.send(&quic_packet())?;
    let mut response = [0; QUIC_PACKET];
    let length = socket.recv(&mut response)?;
    Ok(is_negotiation(response.get(..length).unwrap_or_default()))
}

/// A long header with a version that is reserved for this (RFC 9000 section 15), and two identifiers of eight bytes.
fn quic_packet() -> Vec<u8> {
    let mut packet = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a];
    for identifier in [*b"longhaul", *b"netcheck"] {
        packet.push(8);
        packet.extend(identifier);
    }
    packet.resize(QUIC_PACKET, 0);
    packet
}

/// Returns true for a packet of version negotiation: a long header with the version 0.
fn is_negotiation(packet: &[u8]) -> bool {
    matches!(packet, [first, 0, 0, 0, 0, ..] if first & 0x80 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_compared_at_the_middle_of_the_round_trip() {
        let response = b"HTTP/1.1 200 OK\r\nDate: Sun, 22 Nov 2026 10:00:10 GMT\r\n\r\n";
        let theirs = date(response).unwrap();
        let sent = theirs - Duration::from_secs(10);
        let fact = difference(theirs, sent, Duration::from_millis(600));
        assert_eq!(fact, ClockFact { ahead_ms: -10_200, within_ms: 800 });
        assert_eq!(date(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"), None);
    }

    #[test]
    fn a_server_of_quic_responds_and_a_closed_port_refuses() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let serving = thread::spawn(move || {
            let mut packet = [0; 2000];
            let (length, client) = server.recv_from(&mut packet).unwrap();
            assert_eq!(length, QUIC_PACKET);
            server.send_to(&[0xc0, 0, 0, 0, 0, 8], client).unwrap();
        });
        assert_eq!(quic(address), QuicFact::Responded);
        serving.join().unwrap();
        assert_eq!(quic(address), QuicFact::Refused);
        assert!(!is_negotiation(&quic_packet()));
    }
}
