//! Laws that hold for every input: one function for each target. A function panics if a law is broken.

use std::rc::Rc;

use header_codec::{Answering, Block, Dictionary, FieldList, Ground, Pending, Remote, limits};
use header_compression_config::Config;

use fuzz_driver::Target;

use crate::history::{History, block, dictionary, request};
use crate::seeds;

/// Every target.
pub const TARGETS: &[Target] = &[
    ("conversation", conversation, seeds::conversations),
    ("request", packed_request, seeds::compressed_requests),
    ("response", packed_response, seeds::compressed_responses),
    ("dictionary", dictionary_file, seeds::dictionaries),
    ("config", configuration, seeds::configurations),
];

fn within_limits(block: &Block) {
    assert!(block.bytes() <= limits::BLOCK_BYTES, "more bytes than the limits allow");
    assert!(block.to_fields().len() <= limits::FIELDS, "more fields than the limits allow");
}

/// Field lists: every compressed list arrives unchanged, in bytes that any proxy passes on, after any number of
/// exchanges.
pub fn conversation(data: &[u8]) {
    let mut remote = Remote::new(dictionary(), 7, 2);
    let mut ground = Ground::new(dictionary(), 2);
    let mut fields = FieldList::new();
    let mut under_way: Option<(Pending, Answering)> = None;
    for line in data.split(|byte| *byte == b'\n') {
        match line {
            b"!" | b"?" => {}
            _ => {
                let colon = line.windows(2).skip(1).position(|pair| pair == b": ").map(|at| at + 1);
                let (name, value) = colon.map_or((line, &b""[..]), |at| (&line[..at], &line[at + 2..]));
                fields.push((name.to_vec(), value.to_vec()));
                continue;
            }
        }
        let given = std::mem::take(&mut fields);
        let Ok(block) = Block::from_fields(given.iter().map(|(name, value)| (&**name, &**value))) else { continue };
        if line == b"!" {
            let client: &[u8] = if given.len() % 3 == 0 { b"192.0.2.1" } else { b"192.0.2.2" };
            let Ok((packed, pending)) = remote.pack(client, Some(b"pipe"), Rc::new(block)) else { continue };
            passes_everywhere(&packed);
            let answering = ground.unpack(b"pipe", &packed).expect("a compressed message decompresses");
            assert!(answering.request().to_fields() == given, "the request changed on its way to the ground");
            under_way = Some((pending, answering));
        } else if let Some((pending, answering)) = under_way.take() {
            let Ok(packed) = ground.pack(answering, block) else { continue };
            passes_everywhere(&packed);
            let response = remote.unpack(pending, b"pipe", &packed).expect("a compressed message decompresses");
            assert!(response.to_fields() == given, "the response changed on its way to the remote");
        }
    }
}

fn passes_everywhere(packed: &[u8]) {
    assert!(packed.iter().all(|byte| matches!(byte, 0x21..=0x7e | 0x80..=0xff)), "a byte that no proxy passes on");
    assert!(packed.len() <= limits::MESSAGE_BYTES);
}

/// A message of a hostile remote: the ground refuses it or stays within the limits, and decompresses the next valid
/// message.
pub fn packed_request(data: &[u8]) {
    let mut history = History::new();
    if let Ok(answering) = history.ground.unpack(b"pipe", data) {
        within_limits(answering.request());
    }
    let (packed, _) = history.pack("/after");
    match history.ground.unpack(b"pipe", &packed) {
        Ok(answering) => assert!(answering.request().to_fields() == request("/after")),
        // A message with a valid check may have made the ground begin again, as a restarted remote does.
        Err(error) => assert!(error.cured_without_references(), "{error}"),
    }
}

/// A message of a hostile ground.
pub fn packed_response(data: &[u8]) {
    let mut history = History::new();
    let (_, pending) = history.pack("/next");
    if let Ok(response) = history.remote.unpack(pending, b"pipe", data) {
        within_limits(&response);
    }
    let (packed, pending) = history.pack("/after");
    let Ok(answering) = history.ground.unpack(b"pipe", &packed) else { return };
    let answer = history.ground.pack(answering, block(&request("/as-good-as-any"))).expect("it is within the limits");
    assert!(history.remote.unpack(pending, b"pipe", &answer).is_ok(), "the next response is lost");
}

/// A file that may be a dictionary: if it reads as one, the codec works with it.
pub fn dictionary_file(data: &[u8]) {
    let Some(dictionary) = Dictionary::from_bytes(data).map(Rc::new) else { return };
    let mut remote = Remote::new(Rc::clone(&dictionary), 7, 2);
    let mut ground = Ground::new(dictionary, 2);
    let Ok((packed, _)) = remote.pack(b"192.0.2.1", None, Rc::new(block(&request("/")))) else { return };
    let answering = ground.unpack(b"pipe", &packed).expect("a compressed message decompresses");
    assert!(answering.request().to_fields() == request("/"));
}

/// The filter's configuration.
pub fn configuration(data: &[u8]) {
    if let Ok(config) = Config::from_json(data) {
        assert!(config.clients > 0);
    }
}
