//! The ground's decisions about each request and response. It compresses only responses to compressed requests, so a
//! remote without the filter never sees a compressed field.

use std::rc::Rc;

use http_semantics::Reply;

use crate::block::Block;
use crate::counts::{Count, Counts};
use crate::dictionary::Dictionary;
use crate::error::DecodeError;
use crate::ground::{Answering, Ground};
use crate::message::{self, Refusal};
use crate::policy::is_hop_by_hop;
use crate::treatment::{DATE, FIELD, Treatment, find, is_http, is_ours, keep_others, without_ours};

/// The status of a refusal: the request reached a server that cannot produce a response for it (RFC 9110, 15.5.20).
const REFUSED: u16 = 421;

/// The ground's end of the pipe.
#[derive(Debug)]
pub struct GroundEnd {
    ground: Ground,
    /// The counters of this end.
    pub counts: Counts,
}

/// A stream between its request and its response.
#[derive(Debug, Default)]
pub enum GroundStream {
    /// Its request came plain.
    #[default]
    Plain,
    /// Its request came plain, with an offer.
    Greeted,
    /// Its request came compressed.
    Packed(Answering),
    /// Its request could not be decompressed.
    Refused,
}

impl GroundEnd {
    /// Returns a ground that remembers at most `clients` clients, over all its connections.
    pub fn new(dictionary: Rc<Dictionary>, clients: usize) -> Self {
        Self { ground: Ground::new(dictionary, clients), counts: Counts::default() }
    }

    /// Decides on a request that came in on the connection `pipe`.
    pub fn request(&mut self, pipe: &[u8], headers: &[(&[u8], &[u8])]) -> (Treatment, GroundStream) {
        let Some(field) = find(headers, FIELD.as_bytes()) else {
            return (Treatment::Keep, GroundStream::Plain);
        };
        if message::is_hello(field) {
            return (keep_others(headers), GroundStream::Greeted);
        }
        match self.ground.unpack(pipe, field) {
            Ok(answering) => {
                let mut fields = answering.request().to_fields();
                fields.retain(|(name, _)| !is_ours(name));
                if !is_http(&fields, &[b":method", b":scheme", b":authority", b":path"]) {
                    return (self.refuse(DecodeError::Malformed("not a request")), GroundStream::Refused);
                }
                self.counts.add(Count::Unpacked, 1);
                (Treatment::Replace(fields), GroundStream::Packed(answering))
            }
            Err(error) => (self.refuse(error), GroundStream::Refused),
        }
    }

    fn refuse(&mut self, error: DecodeError) -> Treatment {
        let refusal = Refusal::from(error);
        let count = match refusal {
            Refusal::Format => Count::RefusedFormat,
            Refusal::History => Count::RefusedHistory,
            Refusal::Message => Count::RefusedMessage,
        };
        self.counts.add(count, 1);
        let fields = vec![(FIELD.as_bytes().to_vec(), refusal.field())];
        // For an engineer who reads the traffic on the pipe.
        let body = format!("longhaul: the request headers cannot be decompressed: {error}\n");
        Treatment::Reply(Reply { status: REFUSED, fields, body: body.into_bytes() })
    }

    /// Decides on a response.
    pub fn response(&mut self, stream: GroundStream, headers: &[(&[u8], &[u8])]) -> Treatment {
        let answering = match stream {
            GroundStream::Plain => return keep_others(headers),
            GroundStream::Refused => return Treatment::Keep,
            GroundStream::Greeted => return greet(headers),
            GroundStream::Packed(answering) => answering,
        };
        let status = find(headers, b":status").unwrap_or_default().to_vec();
        let others = headers.iter().filter(|(name, _)| !is_ours(name) && !is_hop_by_hop(name));
        let block = Block::from_fields(others.copied());
        let packed = block.and_then(|block| {
            let bytes = block.bytes();
            self.ground.pack(answering, block).map(|field| (bytes, field))
        });
        let Ok((bytes, field)) = packed else {
            self.counts.add(Count::PlainBlock, 1);
            return greet(headers);
        };
        self.counts.add(Count::Packed, 1);
        self.counts.add(Count::PlainBytes, bytes);
        self.counts.add(Count::PackedBytes, field.len());
        Treatment::Replace(vec![
            (b":status".to_vec(), status),
            (b"date".to_vec(), DATE.to_vec()),
            (FIELD.as_bytes().to_vec(), field),
        ])
    }
}

/// Returns the treatment of a plain response that carries the ground's consent.
fn greet(headers: &[(&[u8], &[u8])]) -> Treatment {
    let mut fields = without_ours(headers);
    fields.push((FIELD.as_bytes().to_vec(), message::hello()));
    Treatment::Replace(fields)
}
