//! Every message that format 1 with dictionary 1 ever wrote remains readable.
//!
//! The files in `vectors/v1` date from the day when the format was frozen and are never written again. They bind only
//! the decoder; an encoder may find shorter messages. The test that wrote them stays, so that the next format gets
//! vectors of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // clippy.toml does not recognise test helpers

mod pair;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use header_codec::{Answering, Block, FieldList, Ground, Pending, Refusal, Remote, hello, is_hello};
use pair::{borrowed, dictionary, fields};

/// One message of a conversation, as headers and as a compressed field.
struct Message {
    request: bool,
    exchange: usize,
    fields: FieldList,
    packed: Vec<u8>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/v1")
}

fn block(fields: &FieldList) -> Block {
    Block::from_fields(borrowed(fields)).unwrap()
}

// ------------------------------------------------------------------------------------------------------------- files

/// Escapes bytes: printable ones stay, and all others and the backslash become `\xNN`.
fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        match byte {
            0x20..=0x7e if *byte != b'\\' => text.push(char::from(*byte)),
            other => write!(text, "\\x{other:02x}").unwrap(),
        }
        text
    })
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\\x") {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        bytes.push(u8::from_str_radix(&rest[at + 2..at + 4], 16).unwrap());
        rest = &rest[at + 4..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

fn write_file(messages: &[Message]) -> String {
    let mut text = "# Format 1, dictionary 1. Frozen: read by tests/vectors.rs, never written again.\n".to_owned();
    for message in messages {
        let way = if message.request { "request" } else { "response" };
        writeln!(text, "\n{way} {}", message.exchange).unwrap();
        for (name, value) in &message.fields {
            writeln!(text, "  {}: {}|", escaped(name), escaped(value)).unwrap();
        }
        writeln!(text, "= {}", hex::encode(&message.packed)).unwrap();
    }
    text
}

fn read_file(text: &str) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(field) = line.strip_prefix("  ") {
            // A name may begin with a colon. A bar ends the value, so that no editor trims it.
            let at = field[1..].find(": ").unwrap() + 1;
            let value = field[at + 2..].strip_suffix('|').unwrap();
            messages.last_mut().unwrap().fields.push((unescaped(&field[..at]), unescaped(value)));
        } else if let Some(packed) = line.strip_prefix("= ") {
            messages.last_mut().unwrap().packed = hex::decode(packed).unwrap();
        } else {
            let (way, exchange) = line.split_once(' ').unwrap();
            let exchange = exchange.parse().unwrap();
            messages.push(Message { request: way == "request", exchange, fields: Vec::new(), packed: Vec::new() });
        }
    }
    messages
}

// ----------------------------------------------------------------------------------------------------------- reading

#[test]
fn every_message_ever_frozen_is_read_as_it_was_meant() {
    let mut seen = (0, 0);
    let mut files: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in &files {
        let mut ground = Ground::new(dictionary(), 16);
        let mut under_way: BTreeMap<usize, Answering> = BTreeMap::new();
        for message in read_file(&fs::read_to_string(file).unwrap()) {
            let place = format!("{}, exchange {}", file.display(), message.exchange);
            if message.request {
                let answering =
                    ground.unpack(b"pipe", &message.packed).unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!(answering.request().to_fields(), message.fields, "{place}");
                under_way.insert(message.exchange, answering);
                seen.0 += 1;
            } else {
                let answering = under_way.remove(&message.exchange).unwrap();
                let response = answering.read_answer(&dictionary(), &message.packed);
                let response = response.unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!(response.to_fields(), message.fields, "{place}");
                ground.pack(answering, block(&message.fields)).unwrap();
                seen.1 += 1;
            }
        }
    }
    assert!(files.len() >= 2 && seen.0 >= 60 && seen.1 >= 60, "{} files, {seen:?} messages", files.len());
}

#[test]
fn the_messages_without_headers_are_what_they_were() {
    assert_eq!(hello(), b"-");
    assert!(is_hello(b"-") && is_hello(b"-anything") && !is_hello(b"5") && !is_hello(b","));
    for (refusal, field) in [(Refusal::Format, b",!"), (Refusal::History, b",\""), (Refusal::Message, b",#")] {
        assert_eq!(refusal.field(), field);
        assert_eq!(Refusal::read(field), Some(refusal));
    }
    assert_eq!(Refusal::read(b",~"), Some(Refusal::Message), "a reason that is not known yet");
}

#[test]
fn dictionary_1_is_the_one_that_was_frozen() {
    let file = include_bytes!("../dictionaries/v1.bin");
    let sum = file
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    assert_eq!((file.len(), sum), (FROZEN_BYTES, FROZEN_SUM), "train the next dictionary under the next id");
}

const FROZEN_BYTES: usize = 166_062;
/// The 64-bit FNV-1a hash.
const FROZEN_SUM: u64 = 0xd56c_7b5e_0e18_edc9;

// ----------------------------------------------------------------------------------------------------------- writing

/// Records a conversation.
struct Recorder {
    remote: Remote,
    ground: Ground,
    messages: Vec<Message>,
    under_way: BTreeMap<usize, (Pending, Answering)>,
}

impl Recorder {
    fn new() -> Self {
        Self {
            remote: Remote::new(dictionary(), 0x0a0b_0c0d, 2),
            ground: Ground::new(dictionary(), 16),
            messages: Vec::new(),
            under_way: BTreeMap::new(),
        }
    }

    fn request(&mut self, client: &str, exchange: usize, fields: &FieldList) {
        let (packed, pending) = self.remote.pack(client.as_bytes(), Some(b"pipe"), Rc::new(block(fields))).unwrap();
        let answering = self.ground.unpack(b"pipe", &packed).unwrap();
        self.under_way.insert(exchange, (pending, answering));
        self.messages.push(Message { request: true, exchange, fields: fields.clone(), packed });
    }

    fn response(&mut self, exchange: usize, fields: &FieldList) {
        let (pending, answering) = self.under_way.remove(&exchange).unwrap();
        let packed = self.ground.pack(answering, block(fields)).unwrap();
        self.remote.unpack(pending, b"pipe", &packed).unwrap();
        self.messages.push(Message { request: false, exchange, fields: fields.clone(), packed });
    }
}

/// Returns the first blocks of each sample in a folder.
fn samples(name: &str, of_each: usize) -> Vec<FieldList> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        for lines in text.split("\n\n").filter(|lines| !lines.trim().is_empty()).take(of_each) {
            let split = |line: &str| {
                let at = line[1..].find(": ").unwrap() + 1;
                (line.as_bytes()[..at].to_vec(), line.as_bytes()[at + 2..].to_vec())
            };
            all.push(lines.lines().filter(|line| !line.is_empty()).map(split).collect());
        }
    }
    all
}

/// Records browsers of many makes, one after the other, with servers of many makes. Two clients and later three share
/// two slots.
fn browsing() -> Vec<Message> {
    let mut recorder = Recorder::new();
    let (requests, responses) = (samples("requests", 6), samples("responses", 12));
    for (exchange, (request, response)) in requests.iter().zip(responses.iter().cycle()).enumerate() {
        let client = match exchange {
            0..30 => ["192.0.2.1", "192.0.2.2"][exchange % 2],
            _ => ["192.0.2.1", "192.0.2.2", "192.0.2.3"][exchange / 5 % 3],
        };
        recorder.request(client, exchange, request);
        recorder.response(exchange, response);
    }
    recorder.messages
}

/// Records rare cases: each form of value, long values, and overlapping exchanges.
fn corners() -> Vec<Message> {
    let request = |path: &str, more: &[(&str, &[u8])]| {
        let mut all = pair::get("www.example.org", path);
        all.extend(more.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())));
        all
    };
    let response = |status: &str, more: &[(&str, &[u8])]| {
        let mut all = fields(&[(":status", status), ("date", "Sat, 14 Nov 2026 09:12:41 GMT")]);
        all.extend(more.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())));
        all
    };
    let policy = "default-src 'self'; img-src a.example b.example; ".repeat(30);
    let url = format!("/{}?q={}", "segment/".repeat(40), "0123456789abcdef".repeat(40));
    let exchanges: Vec<(FieldList, FieldList)> = vec![
        (
            request("/", &[("cookie", b"a=1; b=2;c=3; ; d="), ("x-one", b"1"), ("cookie", b"e=5"), ("x-one", b"1")]),
            response("200", &[("set-cookie", b"sid=31d4d96e407aad42; Path=/; HttpOnly"), ("etag", b"\"5e1f-abc\"")]),
        ),
        (
            request("/a/b?c=d", &[("cookie", b"sid=31d4d96e407aad42; a=1"), ("if-none-match", b"\"5e1f-abc\"")]),
            response("304", &[("last-modified", b"Sun, 06 Nov 1994 08:49:37 GMT"), ("cache-control", b"max-age=60")]),
        ),
        (
            request("/a/b?c=e", &[("if-modified-since", b"Sun, 06 Nov 1994 08:49:37 GMT"), ("x-empty", b"")]),
            response(
                "200",
                &[("cache-control", b"max-age=3600"), ("expires", b"Sat, 14 Nov 2026 10:12:41 GMT"), ("age", b"007")],
            ),
        ),
        (
            request("/a/c", &[("referer", b"http://www.example.org/a/b?c=e"), ("X-Mixed", b"caf\xe9 \x80\xff\t~!")]),
            response(
                "200",
                &[("content-length", b"274877906943"), ("age", b"86401"), ("x-none", b"0"), ("vary", b"*")],
            ),
        ),
        (
            request("/a/c", &[("x-policy", policy.as_bytes())]),
            response("200", &[("content-security-policy", policy.as_bytes())]),
        ),
        (request(&url, &[]), response("302", &[("location", url.as_bytes())])),
        (
            request(
                "*",
                &[("authorization", b"Bearer q7Zk2VnB8sXw.abc/def"), ("date", b"Fri, 31 Dec 9999 23:59:59 GMT")],
            ),
            response("999", &[("expires", b"0"), ("date", b"yesterday"), ("set-cookie", b"=; =")]),
        ),
        (
            request(
                "/a/d",
                &[("authorization", b"Bearer q7Zk2VnB8sXw.abc/def"), ("content-length", b"99999999999999")],
            ),
            response(
                "200",
                &[("set-cookie", b"sid=; expires=Thu, 01 Jan 1970 00:00:00 GMT"), ("x-never!heard", b"name")],
            ),
        ),
    ];
    let mut recorder = Recorder::new();
    for round in 0..3 {
        for (at, (request, response)) in exchanges.iter().enumerate() {
            recorder.request("192.0.2.1", round * 100 + at, request);
            recorder.response(round * 100 + at, response);
        }
    }
    // Many requests at once, with responses in another order.
    for round in 3..6 {
        for (at, (request, _)) in exchanges.iter().enumerate() {
            recorder.request("192.0.2.1", round * 100 + at, request);
        }
        for at in [3, 0, 7, 1, 2, 6, 5, 4] {
            recorder.response(round * 100 + at, &exchanges[at].1);
        }
    }
    recorder.messages
}

#[test]
#[ignore = "writes the vectors of a format; run it once, when the format is frozen"]
fn write_the_vectors_that_are_not_there() {
    fs::create_dir_all(folder()).unwrap();
    for (name, messages) in [("browsing.txt", browsing()), ("corners.txt", corners())] {
        let file = folder().join(name);
        assert!(!file.exists(), "{} is frozen", file.display());
        fs::write(file, write_file(&messages)).unwrap();
    }
}
