//! DNS over UDP on the link: every query with its name and type, and the time and code of its response.

use std::collections::HashMap;
use std::net::SocketAddr;

use serde::Serialize;

use super::{MOST_RECORDS, millis};
use crate::Way;
use crate::time::Moment;

/// The port of DNS (RFC 1035 section 4.2).
pub const PORT: u16 = 53;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asked {
    client: SocketAddr,
    server: SocketAddr,
    id: u16,
}

#[derive(Clone, Debug)]
struct Query {
    at: Moment,
    way: Way,
    client: SocketAddr,
    server: SocketAddr,
    name: String,
    kind: u16,
    answer: Option<Answer>,
}

#[derive(Clone, Debug)]
struct Answer {
    at: Moment,
    code: u8,
    records: u16,
}

/// All queries since counting began.
#[derive(Clone, Debug, Default)]
pub struct Queries {
    unanswered: HashMap<Asked, usize>,
    records: Vec<Query>,
    asked: u64,
    answered: u64,
    unread: u64,
}

impl Queries {
    /// Records the payload of one UDP datagram from or to [`PORT`].
    pub fn see(&mut self, now: Moment, way: Way, source: SocketAddr, destination: SocketAddr, payload: &[u8]) {
        match read(payload) {
            Some(Message::Query { id, name, kind }) => {
                self.asked += 1;
                if self.records.len() >= MOST_RECORDS {
                    return;
                }
                let (client, server) = (source, destination);
                self.unanswered.insert(Asked { client, server, id }, self.records.len());
                self.records.push(Query { at: now, way, client, server, name, kind, answer: None });
            }
            Some(Message::Answer { id, code, records }) => {
                self.answered += 1;
                let asked = self.unanswered.remove(&Asked { client: destination, server: source, id });
                if let Some(query) = asked.and_then(|index| self.records.get_mut(index)) {
                    query.answer = Some(Answer { at: now, code, records });
                }
            }
            None => self.unread += 1,
        }
    }

    /// Returns the report, with times relative to `since`.
    pub fn report(&self, since: Moment) -> Report {
        let list = self
            .records
            .iter()
            .map(|query| QueryReport {
                at_ms: millis(query.at, since),
                way: query.way,
                client: query.client,
                server: query.server,
                name: query.name.clone(),
                kind: type_name(query.kind),
                answered_ms: query.answer.as_ref().map(|answer| millis(answer.at, since)),
                code: query.answer.as_ref().map(|answer| code_name(answer.code)),
                answer_records: query.answer.as_ref().map(|answer| answer.records),
            })
            .collect();
        Report { queries: self.asked, answers: self.answered, unread: self.unread, list }
    }
}

/// The relevant parts of a DNS message.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    Query { id: u16, name: String, kind: u16 },
    Answer { id: u16, code: u8, records: u16 },
}

/// Reads the header and, of a query, its one question (RFC 1035 section 4.1). The header of a response is enough,
/// because a response with unreadable records is still a response.
///
/// The code is our own. The available libraries refuse a whole message if its type is unknown to them, and a query of
/// any type takes time on the link.
fn read(payload: &[u8]) -> Option<Message> {
    let field = |at: usize| Some(u16::from_be_bytes([*payload.get(at)?, *payload.get(at + 1)?]));
    let (id, flags, questions, records) = (field(0)?, field(2)?, field(4)?, field(6)?);
    let is_answer = flags & 0x8000 != 0;
    if is_answer {
        // The low four bits of the code, which suffice for most responses. The others would be in an OPT record.
        let code = (flags & 0x000f) as u8;
        return Some(Message::Answer { id, code, records });
    }
    if questions != 1 {
        return None;
    }
    let (name, end) = read_name(payload, HEADER_BYTES)?;
    Some(Message::Query { id, name, kind: field(end)? })
}

const HEADER_BYTES: usize = 12;
/// Bytes of the longest label (RFC 1035 section 2.3.4). A larger length byte is a compression pointer, and no name
/// precedes the first one.
const MOST_LABEL_BYTES: u8 = 63;

/// Reads an uncompressed name. Returns its text, in lower case and without the final dot, and its end.
fn read_name(payload: &[u8], start: usize) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut at = start;
    loop {
        let length = *payload.get(at)?;
        at += 1;
        if length == 0 {
            return Some((name, at));
        }
        if length > MOST_LABEL_BYTES {
            return None;
        }
        let end = at + usize::from(length);
        if !name.is_empty() {
            name.push('.');
        }
        name.extend(payload.get(at..end)?.to_ascii_lowercase().escape_ascii().map(char::from));
        at = end;
    }
}

/// Returns the usual name of a record type, or the form `TYPE123` of RFC 3597 for others.
fn type_name(number: u16) -> String {
    let name = match number {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        64 => "SVCB",
        65 => "HTTPS",
        255 => "ANY",
        other => return format!("TYPE{other}"),
    };
    name.to_owned()
}

/// Returns the usual name of a response code (RFC 1035 section 4.1.1).
fn code_name(number: u8) -> String {
    let name = match number {
        0 => "NOERROR",
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        other => return format!("RCODE{other}"),
    };
    name.to_owned()
}

/// The report on DNS over UDP.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Query packets, including repeated ones.
    pub queries: u64,
    /// Response packets.
    pub answers: u64,
    /// Packets on port 53 that are neither.
    pub unread: u64,
    /// The first [`MOST_RECORDS`] queries, in order.
    pub list: Vec<QueryReport>,
}

/// One query. Times are those at which the packet was offered to the link.
#[derive(Clone, Debug, Serialize)]
pub struct QueryReport {
    /// Time of the query.
    pub at_ms: f64,
    /// Its direction.
    pub way: Way,
    /// The sender of the query.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// The name of the question, in lower case and without a final dot.
    pub name: String,
    /// The record type's name.
    #[serde(rename = "type")]
    pub kind: String,
    /// Time of the response.
    pub answered_ms: Option<f64>,
    /// Its response code.
    pub code: Option<String>,
    /// Records in the answer section of the response.
    pub answer_records: Option<u16>,
}

#[cfg(test)]
mod tests {
    use simple_dns::{CLASS, Name, Packet, QCLASS, QTYPE, Question, TYPE};

    use super::*;

    const SINCE: Moment = Moment::START;

    fn client() -> SocketAddr {
        "192.0.2.1:40000".parse().unwrap()
    }

    fn server() -> SocketAddr {
        "198.51.100.53:53".parse().unwrap()
    }

    fn query(id: u16, name: &str, kind: QTYPE) -> Vec<u8> {
        let mut message = Packet::new_query(id);
        message.questions.push(Question::new(Name::new(name).unwrap(), kind, QCLASS::CLASS(CLASS::IN), false));
        message.build_bytes_vec().unwrap()
    }

    #[test]
    fn a_query_is_listed_by_name_and_type_and_joined_with_its_answer() {
        let mut queries = Queries::default();
        let asked = query(7, "WWW.Example.org", QTYPE::TYPE(TYPE::A));
        queries.see(Moment::from_nanos(1_000_000), Way::Up, client(), server(), &asked);
        let mut answer = asked;
        answer[2] |= 0x80;
        answer[3] |= 3;
        queries.see(Moment::from_nanos(3_000_000), Way::Down, server(), client(), &answer);
        let report = queries.report(SINCE);
        assert_eq!((report.queries, report.answers, report.unread), (1, 1, 0));
        let first = &report.list[0];
        assert_eq!((first.name.as_str(), first.kind.as_str()), ("www.example.org", "A"));
        assert_eq!((first.at_ms, first.answered_ms), (1.0, Some(3.0)));
        assert_eq!(first.code.as_deref(), Some("NXDOMAIN"));
    }

    #[test]
    fn the_types_a_browser_asks_for_have_their_names() {
        let mut queries = Queries::default();
        for (id, kind) in
            [QTYPE::TYPE(TYPE::AAAA), QTYPE::TYPE(TYPE::HTTPS), QTYPE::TYPE(TYPE::Unknown(999))].into_iter().enumerate()
        {
            let id = u16::try_from(id).unwrap();
            queries.see(SINCE, Way::Up, client(), server(), &query(id, "example.org", kind));
        }
        let kinds: Vec<_> = queries.report(SINCE).list.into_iter().map(|query| query.kind).collect();
        assert_eq!(kinds, ["AAAA", "HTTPS", "TYPE999"]);
    }

    #[test]
    fn a_repeated_query_counts_again_and_an_answer_belongs_to_the_last() {
        let mut queries = Queries::default();
        let asked = query(7, "example.org", QTYPE::TYPE(TYPE::A));
        queries.see(SINCE, Way::Up, client(), server(), &asked);
        queries.see(SINCE, Way::Up, client(), server(), &asked);
        let mut answer = asked;
        answer[2] |= 0x80;
        queries.see(SINCE, Way::Down, server(), client(), &answer);
        let answered: Vec<_> = queries.report(SINCE).list.iter().map(|query| query.answered_ms.is_some()).collect();
        assert_eq!(answered, [false, true]);
    }

    #[test]
    fn junk_is_counted_as_unread_and_not_as_a_query() {
        let mut queries = Queries::default();
        let whole = query(7, "www.example.org", QTYPE::TYPE(TYPE::A));
        let pointer = [&[0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &[0xc0, 0x0c, 0, 1, 0, 1]].concat();
        for junk in [&b""[..], b"GET /", &[0; 12], &[0x7f; 40], &whole[..20], &pointer] {
            queries.see(SINCE, Way::Up, client(), server(), junk);
        }
        let report = queries.report(SINCE);
        assert_eq!((report.queries, report.answers, report.unread), (0, 0, 6));
    }
}
