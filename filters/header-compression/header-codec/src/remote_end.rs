//! What the remote does with each request and response: which travel packed, and what is retried. `peer` decides whether
//! the ground speaks this.
//!
//! | the request | travels |
//! |---|---|
//! | upgrade or CONNECT | plain |
//! | has a body that the proxy might not keep for a retry | plain: a packed request can always be taken back |
//! | the ground does not speak this, or nothing is known of it | as `peer` says |
//! | the connection it will take is not known yet, or nothing is remembered on it | packed, without references |
//! | all others | packed |
//! | comes again because the ground lacked history | packed, without references |
//! | comes again because the ground does not speak this | plain |
//!
//! | the response to a packed request | the request |
//! |---|---|
//! | refuses it in our field: nobody behind the ground has seen it | goes again, whatever its method |
//! | has no field of ours | goes again plain if its method is safe; else its response passes |
//!
//! The proxy's router does the sending again: the filter runs once an attempt, and finds in the headers what it put
//! there the time before. Longhaul's fields in responses come from the ground, which removes those of origins.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use crate::block::Block;
use crate::counts::{Count, Counts};
use crate::dictionary::Dictionary;
use crate::edit::{AUTHORITY, Edit, FIELD, Fields, RETRY, find, is_http, is_ours, keep_others, without_ours};
use crate::error::DecodeError;
use crate::message::{self, Refusal};
use crate::peer::{Peer, Turn, Way};
use crate::policy::is_hop_by_hop;
use crate::remote::{Pending, Remote};

/// A request with a body larger than this goes plain: the proxy might not keep the body for a retry.
pub const KEPT_BODY_BYTES: u64 = 16 * 1024;

/// Requests under way that are remembered in case they come again.
const ATTEMPTS: usize = 2048;

/// The remote's end of the pipe.
#[derive(Debug)]
pub struct RemoteEnd {
    remote: Remote,
    peer: Peer,
    attempts: Attempts,
    /// What has happened.
    pub counts: Counts,
}

/// A request as the glue sees it.
#[derive(Debug, Clone, Copy)]
pub struct RemoteRequest<'a> {
    /// Whose request it is: the client's address, or its connection.
    pub client: &'a [u8],
    /// The connection of the pipe it will take, if that is known yet.
    pub pipe: Option<&'a [u8]>,
    /// Its headers.
    pub headers: &'a [(&'a [u8], &'a [u8])],
    /// Whether a body follows.
    pub body: bool,
    /// The time, from any beginning.
    pub now: Duration,
}

/// A stream between its request and its response.
#[derive(Debug, Default)]
pub enum RemoteStream {
    /// Its request went plain.
    #[default]
    Plain,
    /// Its request went plain, with an offer.
    Offered(Turn),
    /// Its request went packed.
    Packed {
        /// When it left.
        turn: Turn,
        /// Whether it may go again although an origin may have seen it.
        repeatable: bool,
        /// What unpacks its response.
        pending: Pending,
        /// The field it went as.
        field: Vec<u8>,
    },
}

impl RemoteEnd {
    /// A remote that remembers at most `clients` of them. `session` is a random number, another one for every start.
    pub fn new(dictionary: Rc<Dictionary>, session: u32, clients: usize) -> Self {
        let remote = Remote::new(dictionary, session, clients);
        Self { remote, peer: Peer::default(), attempts: Attempts::default(), counts: Counts::default() }
    }

    /// Decides on a request.
    pub fn request(&mut self, request: &RemoteRequest<'_>) -> (Edit, RemoteStream) {
        let ours = find(request.headers, FIELD.as_bytes());
        if let Some(attempt) = ours.and_then(|field| self.attempts.take_from(field, request.client)) {
            let repeatable = is_repeatable(request, attempt.block.get(b":method").unwrap_or_default());
            if attempt.then == Then::Packed
                && let Way::Packed(turn) = self.peer.way(repeatable, request.now)
            {
                return self.pack(request, attempt.block, None, turn);
            }
            self.counts.add(Count::PlainPeer, 1);
            return (Edit::Replace(attempt.block.to_fields()), RemoteStream::Plain);
        }
        let method = find(request.headers, b":method").unwrap_or_default();
        if method == b"CONNECT" || find(request.headers, b"upgrade").is_some() {
            self.counts.add(Count::PlainUpgrade, 1);
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
                return (Edit::Replace(fields), RemoteStream::Offered(turn));
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
    ) -> (Edit, RemoteStream) {
        let Ok((field, pending)) = self.remote.pack(request.client, pipe, Rc::clone(&block)) else {
            self.counts.add(Count::PlainBlock, 1);
            return (Edit::Replace(block.to_fields()), RemoteStream::Plain);
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
        (Edit::Replace(fields), RemoteStream::Packed { turn, repeatable, pending, field })
    }

    /// Decides on a response that came in on the connection `pipe`.
    pub fn response(&mut self, stream: RemoteStream, pipe: &[u8], headers: &[(&[u8], &[u8])], now: Duration) -> Edit {
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
                Edit::Replace(fields)
            }
            Err(error) => {
                // A response refers only to what this stream holds: its ground is broken, or not ours.
                self.counts.add(Count::Undecodable, 1);
                let body = format!("longhaul: the response headers cannot be unpacked: {error}\n");
                Edit::Reply { status: 502, fields: Vec::new(), body }
            }
        }
    }

    /// The response to a packed request is that of a proxy that does not know what it got, or did not get it. Whether an
    /// origin has seen the request is not known.
    fn unanswered(&mut self, repeatable: bool, field: &[u8], headers: &[(&[u8], &[u8])], now: Duration) -> Edit {
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
    ) -> Edit {
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

    /// Asks the proxy to send the request again, and notes how.
    fn again(&mut self, field: &[u8], then: Then, headers: &[(&[u8], &[u8])]) -> Edit {
        self.counts.add(if then == Then::Packed { Count::RetriedHistory } else { Count::RetriedPlain }, 1);
        self.attempts.change(field, then);
        let mut fields: Fields = without_ours(headers);
        fields.push((RETRY.as_bytes().to_vec(), b"1".to_vec()));
        Edit::Replace(fields)
    }
}

/// Whether a request is one of a client. The box's own have names under `pair.invalid`, no client and no address of one:
/// Envoy 1.40 crashes when it is asked for it.
pub fn is_of_a_client(headers: &[(&[u8], &[u8])]) -> bool {
    let own = |name: &[u8]| name.ends_with(b".pair.invalid") && find(headers, b":method") != Some(b"CONNECT");
    !find(headers, b":authority").is_some_and(own)
}

/// Whether a request does no harm if it reaches an origin twice.
fn is_repeatable(request: &RemoteRequest<'_>, method: &[u8]) -> bool {
    !request.body && is_safe(method)
}

/// Methods that do no harm when they reach an origin that was not meant (RFC 9110, 9.2.1).
fn is_safe(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE")
}

/// Whether the proxy surely keeps the whole body for a retry.
fn keeps_body(headers: &[(&[u8], &[u8])]) -> bool {
    let length = find(headers, b"content-length").and_then(|value| std::str::from_utf8(value).ok());
    length.and_then(|value| value.parse::<u64>().ok()).is_some_and(|length| length <= KEPT_BODY_BYTES)
}

/// A request under way, by the field it went as.
#[derive(Debug)]
struct Attempt {
    client: Vec<u8>,
    block: Rc<Block>,
    then: Then,
}

/// How a request goes if it comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Packed,
    Plain,
}

/// Requests under way; the oldest are given up.
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
        // Those taken in the meantime are still in the queue; twice as many fields bound it all the same.
        while self.by_field.len() > ATTEMPTS || self.order.len() > 2 * ATTEMPTS {
            let Some(oldest) = self.order.pop_front() else { return };
            self.by_field.remove(&oldest);
        }
    }

    /// The attempt of this client that went as `field`; a client that guesses another one's gets nothing.
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
