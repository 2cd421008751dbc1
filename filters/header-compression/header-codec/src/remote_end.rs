//! The remote's decisions about each request and response: which are compressed and which are retried. `peer` tracks
//! whether the ground supports compressed headers.
//!
//! | the request | travels |
//! |---|---|
//! | upgrade or CONNECT | plain |
//! | is sent by bundling, because a base of the page was lost | plain: no router retries it if the ground refuses it |
//! | has a body that the proxy might not keep for a retry | plain: the remote must be able to retry a compressed request |
//! | the ground does not support compression, or nothing is known of it | as `peer` says |
//! | the connection it will take is not known yet, or nothing is remembered on it | compressed, without references |
//! | all others | compressed |
//! | is retried because the ground lacked history | compressed, without references |
//! | is retried because the ground does not support compression | plain |
//!
//! | the response to a compressed request | the request |
//! |---|---|
//! | refuses it in Longhaul's field: no server behind the ground has seen it | is retried, whatever its method |
//! | has no field of Longhaul | is retried plain if its method is safe; otherwise its response passes |
//!
//! The proxy's router retries. The filter runs once for each attempt, and finds in the headers the field that it wrote
//! in the attempt before. Longhaul's fields in responses come from the ground, which removes those of origins.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use http_semantics::Reply;

use crate::block::Block;
use crate::counts::{Count, Counts};
use crate::dictionary::Dictionary;
use crate::error::DecodeError;
use crate::message::{self, Refusal};
use crate::peer::{Peer, Turn, Way};
use crate::policy::is_hop_by_hop;
use crate::remote::{Pending, Remote};
use crate::treatment::{AUTHORITY, FIELD, RETRY, Treatment, find, is_http, is_ours, keep_others, without_ours};

/// A request with a body of more bytes than this travels plain, because the proxy might not keep the body for a retry.
pub const KEPT_BODY_BYTES: u64 = 16 * 1024;

/// Pending requests that the remote remembers for a retry.
const ATTEMPTS: usize = 2048;

/// The remote's end of the pipe.
#[derive(Debug)]
pub struct RemoteEnd {
    remote: Remote,
    peer: Peer,
    attempts: Attempts,
    /// The counters of this end.
    pub counts: Counts,
}

/// A request, as the caller passes it in.
#[derive(Debug, Clone, Copy)]
pub struct RemoteRequest<'a> {
    /// The client: its address or its connection.
    pub client: &'a [u8],
    /// The connection of the pipe that the request will take, if it is known yet.
    pub pipe: Option<&'a [u8]>,
    /// Its headers.
    pub headers: &'a [(&'a [u8], &'a [u8])],
    /// True if a body follows.
    pub body: bool,
    /// The time since any fixed point.
    pub now: Duration,
}

/// A stream between its request and its response.
#[derive(Debug, Default)]
pub enum RemoteStream {
    /// Its request travelled plain.
    #[default]
    Plain,
    /// Its request travelled plain, with an offer.
    Offered(Turn),
    /// Its request was compressed.
    Packed {
        /// When it left.
        turn: Turn,
        /// True if a retry is safe although an origin may have seen the request.
        repeatable: bool,
        /// The state that decompresses its response.
        pending: Pending,
        /// The compressed field.
        field: Vec<u8>,
    },
}

impl RemoteEnd {
    /// Returns a remote that remembers at most `clients` clients. `session` is a random number, different at every
    /// start.
    pub fn new(dictionary: Rc<Dictionary>, session: u32, clients: usize) -> Self {
        let remote = Remote::new(dictionary, session, clients);
        Self { remote, peer: Peer::default(), attempts: Attempts::default(), counts: Counts::default() }
    }

    /// Decides on a request.
    pub fn request(&mut self, request: &RemoteRequest<'_>) -> (Treatment, RemoteStream) {
        let ours = find(request.headers, FIELD.as_bytes());
        if let Some(attempt) = ours.and_then(|field| self.attempts.take_from(field, request.client)) {
            let repeatable = is_repeatable(request, attempt.block.get(b":method").unwrap_or_default());
            if attempt.then == Then::Packed
                && let Way::Packed(turn) = self.peer.way(repeatable, request.now)
            {
                return self.pack(request, attempt.block, None, turn);
            }
            self.counts.add(Count::PlainPeer, 1);
            return (Treatment::Replace(attempt.block.to_fields()), RemoteStream::Plain);
        }
        let method = find(request.headers, b":method").unwrap_or_default();
        if method == b"CONNECT" || find(request.headers, b"upgrade").is_some() {
            self.counts.add(Count::PlainUpgrade, 1);
            return (keep_others(request.headers), RemoteStream::Plain);
        }
        if is_sent_again(request.headers) {
            self.counts.add(Count::PlainBody, 1);
            return (keep_others(request.headers), RemoteStream::Plain);
        }
        let turn = match self.peer.way(is_repeatable(request, method), request.now) {
            Way::Plain => {
                self.counts.add(Count::PlainPeer, 1);
                return (keep_others(request.headers), RemoteStream::Plain);
            }
            Way::Offer(turn) => {
                self.counts.add(Count::PlainPeer, 1);
                let mut fields = without_ours(request.headers);
                fields.push((FIELD.as_bytes().to_vec(), message::hello()));
                return (Treatment::Replace(fields), RemoteStream::Offered(turn));
            }
            Way::Packed(turn) => turn,
        };
        if request.body && !keeps_body(request.headers) {
            self.counts.add(Count::PlainBody, 1);
            return (keep_others(request.headers), RemoteStream::Plain);
        }
        let others = request.headers.iter().filter(|(name, _)| !is_ours(name) && !is_hop_by_hop(name));
        let Ok(block) = Block::from_fields(others.copied()) else {
            self.counts.add(Count::PlainBlock, 1);
            return (keep_others(request.headers), RemoteStream::Plain);
        };
        self.pack(request, Rc::new(block), request.pipe, turn)
    }

    fn pack(
        &mut self,
        request: &RemoteRequest<'_>,
        block: Rc<Block>,
        pipe: Option<&[u8]>,
        turn: Turn,
    ) -> (Treatment, RemoteStream) {
        let Ok((field, pending)) = self.remote.pack(request.client, pipe, Rc::clone(&block)) else {
            self.counts.add(Count::PlainBlock, 1);
            return (Treatment::Replace(block.to_fields()), RemoteStream::Plain);
        };
        self.counts.add(Count::Packed, 1);
        self.counts.add(Count::Referring, usize::from(pending.refers()));
        self.counts.add(Count::PlainBytes, block.bytes());
        self.counts.add(Count::PackedBytes, field.len());
        let keep = |name: &[u8]| block.get(name).unwrap_or_default().to_vec();
        let fields = vec![
            (b":method".to_vec(), keep(b":method")),
            (b":scheme".to_vec(), keep(b":scheme")),
            (b":authority".to_vec(), AUTHORITY.to_vec()),
            (b":path".to_vec(), b"/".to_vec()),
            (FIELD.as_bytes().to_vec(), field.clone()),
        ];
        let repeatable = is_repeatable(request, &keep(b":method"));
        self.attempts.remember(&field, Attempt { client: request.client.to_vec(), block, then: Then::Packed });
        (Treatment::Replace(fields), RemoteStream::Packed { turn, repeatable, pending, field })
    }

    /// Decides on a response that came in on the connection `pipe`.
    pub fn response(
        &mut self,
        stream: RemoteStream,
        pipe: &[u8],
        headers: &[(&[u8], &[u8])],
        now: Duration,
    ) -> Treatment {
        let ours = find(headers, FIELD.as_bytes());
        let (turn, repeatable, pending, field) = match stream {
            RemoteStream::Plain => return keep_others(headers),
            RemoteStream::Offered(turn) => {
                if ours.is_some_and(message::is_hello) {
                    self.peer.consents(turn);
                }
                return keep_others(headers);
            }
            RemoteStream::Packed { turn, repeatable, pending, field } => (turn, repeatable, pending, field),
        };
        let Some(ours) = ours else {
            return self.unanswered(repeatable, &field, headers, now);
        };
        if let Some(refusal) = Refusal::read(ours) {
            return self.refused(refusal, turn, &pending, &field, headers, now);
        }
        self.peer.consents(turn);
        self.attempts.take(&field);
        if message::is_hello(ours) {
            return keep_others(headers);
        }
        let unpacked = self.remote.unpack(pending, pipe, ours).and_then(|block| {
            let mut fields = block.to_fields();
            fields.retain(|(name, _)| !is_ours(name));
            let response = is_http(&fields, &[b":status"]);
            if response { Ok(fields) } else { Err(DecodeError::Malformed("not a response")) }
        });
        match unpacked {
            Ok(fields) => {
                self.counts.add(Count::Unpacked, 1);
                Treatment::Replace(fields)
            }
            Err(error) => {
                // A response refers only to exchanges that this stream holds. So the ground is broken, or it is not
                // Longhaul's.
                self.counts.add(Count::Undecodable, 1);
                let body = format!("longhaul: the response headers cannot be decompressed: {error}\n");
                Treatment::Reply(Reply::new(502, &[], body))
            }
        }
    }

    /// Handles the response of a proxy that did not understand the compressed request or did not get it. An origin may
    /// have seen the request.
    fn unanswered(&mut self, repeatable: bool, field: &[u8], headers: &[(&[u8], &[u8])], now: Duration) -> Treatment {
        self.peer.refuses(now);
        if repeatable {
            return self.again(field, Then::Plain, headers);
        }
        self.attempts.take(field);
        keep_others(headers)
    }

    fn refused(
        &mut self,
        refusal: Refusal,
        turn: Turn,
        pending: &Pending,
        field: &[u8],
        headers: &[(&[u8], &[u8])],
        now: Duration,
    ) -> Treatment {
        match refusal {
            Refusal::History => {
                self.peer.consents(turn);
                self.remote.forget(pending);
                self.again(field, if pending.refers() { Then::Packed } else { Then::Plain }, headers)
            }
            Refusal::Format => {
                self.peer.refuses(now);
                self.again(field, Then::Plain, headers)
            }
            Refusal::Message => {
                self.peer.consents(turn);
                self.again(field, Then::Plain, headers)
            }
        }
    }

    /// Makes the proxy retry the request, and records in which form.
    fn again(&mut self, field: &[u8], then: Then, headers: &[(&[u8], &[u8])]) -> Treatment {
        self.counts.add(if then == Then::Packed { Count::RetriedHistory } else { Count::RetriedPlain }, 1);
        self.attempts.change(field, then);
        let mut fields = without_ours(headers);
        fields.push((RETRY.as_bytes().to_vec(), b"1".to_vec()));
        Treatment::Replace(fields)
    }
}

/// Returns true if the request comes from a client's connection. The box's own requests have authorities under
/// `pair.invalid`, or are sent again, and have no client address; Envoy 1.40 crashes when the filter reads that address.
pub fn is_of_a_client(headers: &[(&[u8], &[u8])]) -> bool {
    let own = |name: &[u8]| name.ends_with(b".pair.invalid") && find(headers, b":method") != Some(b"CONNECT");
    !find(headers, b":authority").is_some_and(own) && !is_sent_again(headers)
}

/// Returns true if bundling sends the request of a client once more, because a base of the page was lost. It says so in
/// this field, which the ground removes. No client can: Envoy removes the field from the requests of clients. The field is a
/// list, to which a later version may add.
fn is_sent_again(headers: &[(&[u8], &[u8])]) -> bool {
    find(headers, b"x-longhaul-base")
        .is_some_and(|list| list.split(|byte| *byte == b',').any(|item| item.trim_ascii() == b"none"))
}

/// Returns true if a request does no harm when it reaches an origin twice.
fn is_repeatable(request: &RemoteRequest<'_>, method: &[u8]) -> bool {
    !request.body && is_safe(method)
}

/// Returns true for safe methods (RFC 9110, 9.2.1), which do no harm when they reach the wrong origin.
fn is_safe(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE")
}

/// Returns true if the proxy certainly keeps the whole body for a retry.
fn keeps_body(headers: &[(&[u8], &[u8])]) -> bool {
    let length = find(headers, b"content-length").and_then(|value| std::str::from_utf8(value).ok());
    length.and_then(|value| value.parse::<u64>().ok()).is_some_and(|length| length <= KEPT_BODY_BYTES)
}

/// A pending request; its key is the compressed field.
#[derive(Debug)]
struct Attempt {
    client: Vec<u8>,
    block: Rc<Block>,
    then: Then,
}

/// The form of a request when it is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Packed,
    Plain,
}

/// Pending requests. The oldest ones are dropped.
#[derive(Debug, Default)]
struct Attempts {
    by_field: HashMap<Vec<u8>, Attempt>,
    order: VecDeque<Vec<u8>>,
}

impl Attempts {
    fn remember(&mut self, field: &[u8], attempt: Attempt) {
        if self.by_field.insert(field.to_vec(), attempt).is_none() {
            self.order.push_back(field.to_vec());
        }
        // Fields taken in the meantime are still in the queue, so the queue has a bound of its own: twice as many
        // fields.
        while self.by_field.len() > ATTEMPTS || self.order.len() > 2 * ATTEMPTS {
            let Some(oldest) = self.order.pop_front() else { return };
            self.by_field.remove(&oldest);
        }
    }

    /// Returns the attempt of this client that left as `field`. A client that guesses another client's field gets
    /// nothing.
    fn take_from(&mut self, field: &[u8], client: &[u8]) -> Option<Attempt> {
        let own = self.by_field.get(field).is_some_and(|attempt| attempt.client == client);
        if own { self.take(field) } else { None }
    }

    fn take(&mut self, field: &[u8]) -> Option<Attempt> {
        self.by_field.remove(field)
    }

    fn change(&mut self, field: &[u8], then: Then) {
        if let Some(attempt) = self.by_field.get_mut(field) {
            attempt.then = then;
        }
    }
}
