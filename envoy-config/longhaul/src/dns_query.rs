//! Looks up the addresses of a name at given resolvers, never at those of the host.
//!
//! The host's own resolver may be the DNS that steers clients to this proxy. The order is the one of the running box:
//! UDP first, TCP for a truncated response (RFC 7766, section 5), the next resolver on SERVFAIL and REFUSED. IPv6
//! addresses count for a name without an IPv4 address.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use simple_dns::rdata::{OPT, OPTCode, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};
use ureq::config::Config;

/// The time for one response, as in Envoy's resolver.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The queries over UDP to one resolver.
const TRIES: usize = 2;
/// The largest response over UDP that a query with EDNS takes. It passes nearly every path unfragmented.
const EDNS_BYTES: u16 = 1232;
/// The option of EDNS for extended errors (RFC 8914).
const EXTENDED_ERROR: u16 = 15;
/// The option that requests the outcome from the DNS of this machine (`coredns-plugin/internal/explain`). In a response, it is
/// the source of the records.
const EXPLAIN: u16 = 65_053;

/// The reason why a name has no address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    /// The name cannot be sent in a query.
    #[error("`{0}` is not a name that DNS knows")]
    NotAName(String),
    /// The name does not exist (NXDOMAIN).
    #[error("{name} does not exist, says the resolver {resolver}")]
    NoSuchName {
        /// The name.
        name: String,
        /// The resolver that responded.
        resolver: SocketAddr,
    },
    /// The name exists and has no address.
    #[error("{name} has no address, says the resolver {resolver}")]
    NoAddress {
        /// The name.
        name: String,
        /// The resolver that responded.
        resolver: SocketAddr,
    },
    /// The file names no resolver, as at a remote, whose ground resolves names.
    #[error("this box has no `upstream.resolvers` to look up {name}; run the command at the ground")]
    NoneSet {
        /// The name.
        name: String,
    },
    /// No resolver gave a usable response.
    #[error("no resolver of upstream.resolvers knows {name}: {}", failures(.causes))]
    NoResolver {
        /// The name.
        name: String,
        /// The resolvers in order, each with its failure.
        causes: Vec<(SocketAddr, Failure)>,
    },
}

/// The reason why one resolver is of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// No response in time.
    #[error("timed out")]
    TimedOut,
    /// The system's reason.
    #[error("{0}")]
    System(io::Error),
    /// A response code other than NOERROR and NXDOMAIN, such as SERVFAIL.
    #[error("responded {0}")]
    Code(String),
    /// A response that is no DNS message.
    #[error("sent a response that cannot be read")]
    Malformed,
}

fn failures(causes: &[(SocketAddr, Failure)]) -> String {
    let each = causes.iter().map(|(resolver, failure)| format!("{resolver} {failure}"));
    each.collect::<Vec<_>>().join(", ")
}

/// The content of a response.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    Addresses(Vec<IpAddr>),
    /// The text of the first TXT record.
    Text(Vec<u8>),
    NoSuchName,
    Truncated,
    Code(String),
}

/// Returns the addresses of `name`, at least one: of IPv4, or of IPv6 if there are none.
///
/// # Errors
/// The name has no address, or no resolver says so.
pub(crate) fn lookup(resolvers: &[SocketAddr], name: &str) -> Result<Vec<IpAddr>, LookupError> {
    if resolvers.is_empty() {
        return Err(LookupError::NoneSet { name: name.to_owned() });
    }
    let mut causes = Vec::new();
    for resolver in resolvers {
        match lookup_at(*resolver, name) {
            Ok(found) => return found,
            Err(failure) => causes.push((*resolver, failure)),
        }
    }
    Err(LookupError::NoResolver { name: name.to_owned(), causes })
}

/// The type of the addresses to query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A records.
    Ipv4,
    /// AAAA records.
    Ipv6,
}

/// The transport of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// Two datagrams at most, because they may be lost.
    Udp,
    /// One connection.
    Tcp,
    /// A call of gRPC, as CoreDNS serves it, sent over HTTP/1.1 to an Envoy that makes it a stream of HTTP/2.
    Stream,
}

/// Returns the addresses of `name` in one response of `resolver`. Empty for a truncated one, and if the name has none or
/// does not exist: the resolver works.
///
/// # Errors
/// There is no response, or it says that the resolver failed.
pub(crate) fn try_resolver(resolver: SocketAddr, name: &str, kind: Kind, over: Over) -> Result<Vec<IpAddr>, Failure> {
    let kind = if kind == Kind::Ipv4 { TYPE::A } else { TYPE::AAAA };
    let query = query(identifier()?, name, kind).ok_or(Failure::Malformed)?;
    let content = match send(over, resolver, &query, TIMEOUT) {
        Err(Failure::TimedOut) if over == Over::Udp => send(over, resolver, &query, TIMEOUT),
        content => content,
    };
    match content? {
        Content::Addresses(addresses) => Ok(addresses),
        Content::NoSuchName | Content::Truncated | Content::Text(_) => Ok(Vec::new()),
        Content::Code(code) => Err(Failure::Code(code)),
    }
}

/// Returns the text of the TXT record of `name`, as `resolver` responds within `timeout`. None if there is none.
///
/// # Errors
/// There is no response, or it says that the resolver failed.
pub(crate) fn text(
    resolver: SocketAddr,
    name: &str,
    over: Over,
    timeout: Duration,
) -> Result<Option<Vec<u8>>, Failure> {
    let query = query(identifier()?, name, TYPE::TXT).ok_or(Failure::Malformed)?;
    match send(over, resolver, &query, timeout)? {
        Content::Text(text) => Ok(Some(text)),
        Content::Addresses(_) | Content::NoSuchName | Content::Truncated => Ok(None),
        Content::Code(code) => Err(Failure::Code(code)),
    }
}

/// A response of the box's own DNS, with the outcome of steering.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Explained {
    /// The addresses. Empty if the name has none or does not exist.
    pub addresses: Vec<IpAddr>,
    /// The text of the extended error (RFC 8914). None if the name is not listed.
    pub outcome: Option<String>,
    /// The source of the records, in the words of the DNS of a remote. None at a box that keeps none for days.
    pub source: Option<String>,
}

/// Queries the DNS of this machine for the IPv4 addresses of `name`. It says the outcome to loopback addresses alone.
///
/// # Errors
/// There is no response, or one that cannot be read.
pub(crate) fn explained(own: SocketAddr, name: &str) -> Result<Explained, Failure> {
    ask_why(own, name, PacketFlag::RECURSION_DESIRED)
}

/// Returns the source of the response that the DNS of this machine remembers for `name`. None: there is no response to
/// this question, for which nothing crosses the link.
pub(crate) fn remembered(own: SocketAddr, name: &str) -> Option<String> {
    ask_why(own, name, PacketFlag::empty()).ok()?.source
}

fn ask_why(own: SocketAddr, name: &str, flags: PacketFlag) -> Result<Explained, Failure> {
    let mut packet = new_query(identifier()?, name, TYPE::A).ok_or(Failure::Malformed)?;
    packet.remove_flags(PacketFlag::RECURSION_DESIRED);
    packet.set_flags(flags);
    let asks = OPTCode { code: EXPLAIN, data: Cow::Borrowed(&[]) };
    *packet.opt_mut() = Some(OPT { opt_codes: vec![asks], udp_packet_size: EDNS_BYTES, version: 0 });
    let query = packet.build_bytes_vec().map_err(|_| Failure::Malformed)?;
    let loopback: IpAddr = if own.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    let ask = || {
        udp_response(loopback, own, &query, TIMEOUT, |response| {
            accepted(&query, response).map(|packet| packet.map(|packet| explanation(&packet)))
        })
    };
    ask().or_else(|_| ask())
}

fn explanation(packet: &Packet<'_>) -> Explained {
    let options = packet.opt().map(|opt| opt.opt_codes.as_slice()).unwrap_or_default();
    let error = options.iter().find(|option| option.code == EXTENDED_ERROR);
    // Two bytes of a code precede the text.
    let text = error.and_then(|error| error.data.get(2..)).map(|text| String::from_utf8_lossy(text).into_owned());
    let source = options.iter().find(|option| option.code == EXPLAIN);
    let source = source.map(|source| String::from_utf8_lossy(&source.data).into_owned());
    Explained { addresses: addresses(packet), outcome: text, source }
}

/// The outer error means that the next resolver may know more.
fn lookup_at(resolver: SocketAddr, name: &str) -> Result<Result<Vec<IpAddr>, LookupError>, Failure> {
    for kind in [TYPE::A, TYPE::AAAA] {
        let Some(query) = query(identifier()?, name, kind) else {
            return Ok(Err(LookupError::NotAName(name.to_owned())));
        };
        match ask(resolver, &query)? {
            Content::Addresses(addresses) if addresses.is_empty() => {}
            Content::Addresses(addresses) => return Ok(Ok(addresses)),
            Content::NoSuchName => return Ok(Err(LookupError::NoSuchName { name: name.to_owned(), resolver })),
            Content::Truncated | Content::Text(_) => return Err(Failure::Malformed),
            Content::Code(code) => return Err(Failure::Code(code)),
        }
    }
    Ok(Err(LookupError::NoAddress { name: name.to_owned(), resolver }))
}

/// Returns a random identifier. A sender that does not see the query cannot forge a response to it (RFC 5452).
fn identifier() -> Result<u16, Failure> {
    let mut bytes = [0; 2];
    ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| Failure::System(io::Error::other("the system has no random numbers")))?;
    Ok(u16::from_be_bytes(bytes))
}

fn query(identifier: u16, name: &str, kind: TYPE) -> Option<Vec<u8>> {
    new_query(identifier, name, kind)?.build_bytes_vec().ok()
}

fn new_query(identifier: u16, name: &str, kind: TYPE) -> Option<Packet<'_>> {
    let mut packet = Packet::new_query(identifier);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).ok()?;
    packet.questions.push(Question::new(name, QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN), false));
    Some(packet)
}

/// Returns `response` as a packet. None if it is no response to `query`.
fn accepted<'a>(query: &[u8], response: &'a [u8]) -> Option<Result<Packet<'a>, Failure>> {
    let same_identifier = query.get(..2).is_some_and(|identifier| response.starts_with(identifier));
    let asked = Packet::parse(query).ok()?;
    let Ok(packet) = Packet::parse(response) else { return same_identifier.then_some(Err(Failure::Malformed)) };
    // A server that cannot read the query may leave the question out.
    let same_question = packet.questions.is_empty()
        || packet.questions.iter().zip(&asked.questions).all(|(one, other)| {
            one.qtype == other.qtype && one.qname.to_string().eq_ignore_ascii_case(&other.qname.to_string())
        });
    if !same_identifier || !same_question || !packet.has_flags(PacketFlag::RESPONSE) {
        return None;
    }
    Some(Ok(packet))
}

/// Returns the content of `response`. None if it is no response to `query`.
fn content(query: &[u8], response: &[u8]) -> Option<Result<Content, Failure>> {
    let packet = match accepted(query, response)? {
        Ok(packet) => packet,
        Err(failure) => return Some(Err(failure)),
    };
    if packet.has_flags(PacketFlag::TRUNCATION) {
        return Some(Ok(Content::Truncated));
    }
    Some(Ok(match packet.rcode() {
        RCODE::NoError => match packet.answers.iter().find_map(|record| txt(&record.rdata)) {
            Some(text) => Content::Text(text),
            None => Content::Addresses(addresses(&packet)),
        },
        RCODE::NameError => Content::NoSuchName,
        RCODE::ServerFailure => Content::Code("SERVFAIL".to_owned()),
        RCODE::Refused => Content::Code("REFUSED".to_owned()),
        other => Content::Code(format!("{other:?}")),
    }))
}

fn addresses(packet: &Packet<'_>) -> Vec<IpAddr> {
    packet.answers.iter().filter_map(|record| address(&record.rdata)).collect()
}

fn address(data: &RData<'_>) -> Option<IpAddr> {
    match data {
        RData::A(a) => Some(Ipv4Addr::from(a.address).into()),
        RData::AAAA(aaaa) => Some(Ipv6Addr::from(aaaa.address).into()),
        _ => None,
    }
}

/// Returns the strings of a TXT record as one text.
fn txt(data: &RData<'_>) -> Option<Vec<u8>> {
    let RData::TXT(txt) = data else { return None };
    String::try_from(txt.clone()).ok().map(String::into_bytes)
}

fn ask(resolver: SocketAddr, query: &[u8]) -> Result<Content, Failure> {
    let mut last = Failure::TimedOut;
    for _ in 0..TRIES {
        match over_udp(resolver, query, TIMEOUT) {
            Ok(Content::Truncated) => return over_tcp(resolver, query, TIMEOUT),
            Ok(content) => return Ok(content),
            Err(failure) => last = failure,
        }
    }
    Err(last)
}

fn send(over: Over, resolver: SocketAddr, query: &[u8], timeout: Duration) -> Result<Content, Failure> {
    match over {
        Over::Udp => over_udp(resolver, query, timeout),
        Over::Tcp => over_tcp(resolver, query, timeout),
        Over::Stream => over_stream(resolver, query, timeout),
    }
}

fn over_udp(resolver: SocketAddr, query: &[u8], timeout: Duration) -> Result<Content, Failure> {
    let any: IpAddr = if resolver.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    udp_response(any, resolver, query, timeout, |response| content(query, response))
}

/// Sends a query from an address and returns the first response that `read` takes.
fn udp_response<T>(
    from: IpAddr,
    resolver: SocketAddr,
    query: &[u8],
    timeout: Duration,
    read: impl Fn(&[u8]) -> Option<Result<T, Failure>>,
) -> Result<T, Failure> {
    let socket = UdpSocket::bind((from, 0)).map_err(system)?;
    socket.connect(resolver).map_err(system)?;
    socket.send(query).map_err(system)?;
    let end = Instant::now() + timeout;
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::TimedOut);
        }
        socket.set_read_timeout(Some(left)).map_err(system)?;
        let length = socket.recv(&mut buffer).map_err(system)?;
        if let Some(response) = read(buffer.get(..length).unwrap_or_default()) {
            return response;
        }
    }
}

/// Two bytes of length precede each message (RFC 1035, section 4.2.2).
fn over_tcp(resolver: SocketAddr, query: &[u8], timeout: Duration) -> Result<Content, Failure> {
    let mut stream = TcpStream::connect_timeout(&resolver, timeout).map_err(system)?;
    stream.set_read_timeout(Some(timeout)).map_err(system)?;
    let length = u16::try_from(query.len()).map_err(|_| Failure::Malformed)?;
    stream.write_all(&[&length.to_be_bytes(), query].concat()).map_err(system)?;
    let mut length = [0; 2];
    stream.read_exact(&mut length).map_err(system)?;
    let mut response = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut response).map_err(system)?;
    content(query, &response).unwrap_or(Err(Failure::Malformed))
}

/// The trailers, with the status of the call, are not read: a call that failed has no message.
fn over_stream(resolver: SocketAddr, query: &[u8], timeout: Duration) -> Result<Content, Failure> {
    let agent: ureq::Agent = Config::builder().timeout_global(Some(timeout)).proxy(None).build().into();
    let call = agent.post(format!("http://{resolver}/coredns.dns.DnsService/Query"));
    let call = call.header("content-type", "application/grpc").header("te", "trailers");
    let mut response = call.send(grpc_message(query).ok_or(Failure::Malformed)?).map_err(of_http)?;
    let body = response.body_mut().with_config().limit(2 * u64::from(u16::MAX)).read_to_vec().map_err(of_http)?;
    let packet = of_grpc_message(&body).ok_or(Failure::Malformed)?;
    content(query, packet).unwrap_or(Err(Failure::Malformed))
}

fn of_http(error: ureq::Error) -> Failure {
    match error {
        ureq::Error::Timeout(_) => Failure::TimedOut,
        ureq::Error::Io(error) => system(error),
        _ => Failure::Malformed,
    }
}

/// The tag of field 1, with a length, of a message of Protocol Buffers: `DnsPacket` has that field alone.
const MSG: u8 = 0x0a;

/// Returns the body of a call with one `DnsPacket`: a byte for "not compressed", a length of 4 bytes, the message.
fn grpc_message(packet: &[u8]) -> Option<Vec<u8>> {
    // A query is shorter than 16 KiB, so the length is a varint of two bytes at most.
    let length = u16::try_from(packet.len()).ok().filter(|length| *length < 1 << 14)?;
    let [high, low] = (length >> 7 << 8 | length & 0x7f).to_be_bytes();
    let field = if high == 0 { vec![MSG, low] } else { vec![MSG, low | 0x80, high] };
    let size = u32::try_from(field.len() + packet.len()).ok()?;
    Some([&[0], &size.to_be_bytes()[..], &field, packet].concat())
}

/// Returns the packet in the first message of a body.
fn of_grpc_message(body: &[u8]) -> Option<&[u8]> {
    let (head, rest) = body.split_at_checked(5)?;
    let [0, size @ ..] = head else { return None };
    let message = rest.get(..usize::try_from(u32::from_be_bytes(size.try_into().ok()?)).ok()?)?;
    let (&tag, mut rest) = message.split_first()?;
    let mut length = 0;
    for shift in [0, 7, 14] {
        let (&byte, behind) = rest.split_first()?;
        (length, rest) = (length | usize::from(byte & 0x7f) << shift, behind);
        if byte < 0x80 {
            return rest.get(..length).filter(|_| tag == MSG);
        }
    }
    None
}

fn system(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::TimedOut,
        _ => Failure::System(error),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use simple_dns::ResourceRecord;
    use simple_dns::rdata::A;

    use super::*;

    fn response(query: &[u8], change: impl FnOnce(&mut Packet<'_>)) -> Vec<u8> {
        let mut packet = Packet::parse(query).unwrap().into_reply();
        change(&mut packet);
        packet.build_bytes_vec().unwrap()
    }

    fn with_address(packet: &mut Packet<'_>) {
        let name = Name::new("www.example.org").unwrap().into_owned();
        let data = RData::A(A { address: u32::from(Ipv4Addr::new(192, 0, 2, 1)) });
        packet.answers.push(ResourceRecord::new(name, CLASS::IN, 60, data));
    }

    #[test]
    fn a_box_without_resolvers_says_where_to_run_the_command() {
        let error = lookup(&[], "www.example.org").unwrap_err().to_string();
        assert!(error.contains("no `upstream.resolvers`") && error.contains("at the ground"), "{error}");
    }

    #[test]
    fn a_call_carries_one_packet_of_any_length_that_a_query_has() {
        assert_eq!(grpc_message(b"abc").unwrap(), b"\0\0\0\0\x05\x0a\x03abc");
        assert_eq!(grpc_message(&[7; 300]).unwrap()[..8], *b"\0\0\0\x01\x2f\x0a\xac\x02");
        for length in [0, 1, 127, 128, 300, 16_383] {
            let packet = vec![7; length];
            let body = grpc_message(&packet).unwrap();
            assert_eq!(of_grpc_message(&body), Some(packet.as_slice()), "{length}");
            assert!((0..body.len()).all(|cut| of_grpc_message(&body[..cut]).is_none()), "{length}");
        }
        assert_eq!(grpc_message(&[7; 16_384]), None);
        for wrong in [&b"\x01\0\0\0\x02\x0a\0"[..], b"\0\0\0\0\x02\x12\0", b"\0\0\0\0\x05\x0a\x80\x80\x80\0"] {
            assert_eq!(of_grpc_message(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn only_a_response_to_the_query_counts() {
        let asked = query(7, "www.example.org", TYPE::A).unwrap();
        let other = query(8, "www.example.org", TYPE::A).unwrap();
        let right = response(&asked, with_address);
        let found = Content::Addresses(vec![Ipv4Addr::new(192, 0, 2, 1).into()]);
        assert_eq!(content(&asked, &right).unwrap().unwrap(), found);
        assert!(content(&other, &right).is_none(), "another identifier");
        assert!(content(&query(7, "www.example.net", TYPE::A).unwrap(), &right).is_none(), "another question");
        assert!(content(&asked, &asked).is_none(), "a query is no response");
        assert!(matches!(content(&asked, &right[..20]), Some(Err(Failure::Malformed))));
        let code = |code| content(&asked, &response(&asked, |packet| *packet.rcode_mut() = code)).unwrap().unwrap();
        assert_eq!(code(RCODE::NameError), Content::NoSuchName);
        assert_eq!(code(RCODE::ServerFailure), Content::Code("SERVFAIL".to_owned()));
        assert_eq!(query(7, &"a".repeat(64), TYPE::A), None);
    }

    /// Serves as many queries as there are functions, each by one of them.
    fn resolver(answers: Vec<fn(&mut Packet<'_>)>) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        thread::spawn(move || {
            for answer in answers {
                let mut buffer = [0; 512];
                let (length, from) = socket.recv_from(&mut buffer).unwrap();
                socket.send_to(&response(&buffer[..length], answer), from).unwrap();
            }
        });
        address
    }

    #[test]
    fn the_next_resolver_is_tried_on_servfail_and_not_on_nxdomain() {
        fn servfail(packet: &mut Packet<'_>) {
            *packet.rcode_mut() = RCODE::ServerFailure;
        }
        fn nxdomain(packet: &mut Packet<'_>) {
            *packet.rcode_mut() = RCODE::NameError;
        }
        let found = lookup(&[resolver(vec![servfail]), resolver(vec![with_address])], "www.example.org");
        assert_eq!(found.unwrap(), [IpAddr::from([192, 0, 2, 1])]);
        let none = lookup(&[resolver(vec![nxdomain]), resolver(vec![with_address])], "www.example.org").unwrap_err();
        assert!(none.to_string().starts_with("www.example.org does not exist"), "{none}");
        let none = lookup(&[resolver(vec![|_| (), |_| ()])], "www.example.org").unwrap_err();
        assert!(none.to_string().starts_with("www.example.org has no address"), "{none}");
        let none = lookup(&[resolver(vec![servfail])], "www.example.org").unwrap_err();
        assert!(none.to_string().ends_with("responded SERVFAIL"), "{none}");
    }
}
