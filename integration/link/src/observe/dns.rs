//! DNS over UDP seen on the link: every query with its name and type, and when and how it was answered.

use std::collections::HashMap;
use std::net::SocketAddr;

use serde::Serialize;
use simple_dns::{Packet, PacketFlag};

use super::MOST_RECORDS;
use crate::Way;
use crate::time::Moment;

const PORT: u16 = 53;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asked {
    client: SocketAddr,
    server: SocketAddr,
    id: u16,
}

#[derive(Clone, Debug)]
struct Query {
    asked: Moment,
    way: Way,
    client: SocketAddr,
    server: SocketAddr,
    name: String,
    kind: String,
    answer: Option<Answer>,
}

#[derive(Clone, Debug)]
struct Answer {
    at: Moment,
    code: String,
    records: usize,
}

/// All queries since counting began.
#[derive(Clone, Debug, Default)]
pub struct Queries {
    open: HashMap<Asked, usize>,
    records: Vec<Query>,
    asked: u64,
    answered: u64,
    unread: u64,
}

impl Queries {
    /// Looks at the payload of one UDP datagram; ignores those that are not from or to port 53.
    pub fn see(&mut self, now: Moment, way: Way, source: SocketAddr, destination: SocketAddr, payload: &[u8]) {
        if source.port() != PORT && destination.port() != PORT {
            return;
        }
        let Ok(message) = Packet::parse(payload) else {
            self.unread += 1;
            return;
        };
        if message.has_flags(PacketFlag::RESPONSE) {
            self.see_answer(now, source, destination, &message);
        } else {
            self.see_query(now, way, source, destination, &message);
        }
    }

    fn see_query(&mut self, now: Moment, way: Way, client: SocketAddr, server: SocketAddr, message: &Packet<'_>) {
        self.asked += 1;
        if self.records.len() >= MOST_RECORDS {
            return;
        }
        let question = message.questions.first();
        self.open.insert(Asked { client, server, id: message.id() }, self.records.len());
        self.records.push(Query {
            asked: now,
            way,
            client,
            server,
            name: question.map(|question| question.qname.to_string()).unwrap_or_default(),
            kind: question.map(|question| kind_name(question.qtype.into())).unwrap_or_default(),
            answer: None,
        });
    }

    fn see_answer(&mut self, now: Moment, server: SocketAddr, client: SocketAddr, message: &Packet<'_>) {
        self.answered += 1;
        let Some(index) = self.open.remove(&Asked { client, server, id: message.id() }) else { return };
        if let Some(query) = self.records.get_mut(index) {
            let code = format!("{:?}", message.rcode());
            query.answer = Some(Answer { at: now, code, records: message.answers.len() });
        }
    }

    /// The report, with times relative to `since`.
    pub fn report(&self, since: Moment) -> Report {
        let millis = |moment: Moment| moment.since(since).as_secs_f64() * 1e3;
        Report {
            queries: self.asked,
            answers: self.answered,
            unread: self.unread,
            list: self
                .records
                .iter()
                .map(|query| QueryReport {
                    at_ms: millis(query.asked),
                    way: query.way,
                    client: query.client,
                    server: query.server,
                    name: query.name.clone(),
                    kind: query.kind.clone(),
                    answered_ms: query.answer.as_ref().map(|answer| millis(answer.at)),
                    code: query.answer.as_ref().map(|answer| answer.code.clone()),
                    answer_records: query.answer.as_ref().map(|answer| answer.records),
                })
                .collect(),
        }
    }
}

/// The usual name of a record type (RFC 3597 form `TYPE123` for those without one here).
fn kind_name(number: u16) -> String {
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

/// DNS over UDP on the link.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Query packets, repeated ones included.
    pub queries: u64,
    /// Answer packets.
    pub answers: u64,
    /// Packets on port 53 that are not DNS.
    pub unread: u64,
    /// The first [`MOST_RECORDS`] queries in order.
    pub list: Vec<QueryReport>,
}

/// One query.
#[derive(Clone, Debug, Serialize)]
pub struct QueryReport {
    /// When it was offered to the link.
    pub at_ms: f64,
    /// In which direction.
    pub way: Way,
    /// Who asked.
    pub client: SocketAddr,
    /// Whom.
    pub server: SocketAddr,
    /// The name, without a final dot.
    pub name: String,
    /// The record type's name.
    #[serde(rename = "type")]
    pub kind: String,
    /// When its answer was offered to the link.
    pub answered_ms: Option<f64>,
    /// The answer's response code.
    pub code: Option<String>,
    /// Records in the answer section.
    pub answer_records: Option<usize>,
}
