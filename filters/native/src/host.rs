//! The calls of filters, made to Envoy.
//!
//! A call means the stream whose hook runs, or the context that the filter named since. Calls that read or change
//! a stream are made at once. Calls that end or release one wait, because Envoy may call further hooks for them:
//! - for the stream whose hook runs, until its filter code has returned;
//! - for another stream, until its worker runs the event that a bell announces.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use filter_host::body::{Buffer, Change};
use filter_host::headers::{Map, Pairs};
use filter_host::log::Level;
use filter_host::{Half, Host, HostError, Slice};
use nix::time::{ClockId, clock_gettime};

use crate::abi::{self, Body, Number, Refused, StreamBell, Text};
use crate::board::SharedBoard;
use crate::outgoing::Outgoing;
use crate::timer::Ticks;
use crate::ways::Ways;

/// The largest piece of a body that a filter rewrites at once. Envoy reads as much from a socket. A chunk may be a MiB, which no
/// cache of a core holds.
const PIECE_BYTES: usize = 16 * 1024;
/// The context that no stream has.
pub(crate) const ROOT: u32 = 0;

/// The values that the filters of one configuration share, on all threads.
#[derive(Debug)]
pub(crate) struct Common {
    /// The configuration.
    pub(crate) config: abi::Config,
    /// The values that all workers see.
    pub(crate) board: SharedBoard,
    /// The counters by name, as Envoy numbers them.
    pub(crate) counters: Mutex<HashMap<String, u32>>,
    /// The workers of the requests that filters sent from the main thread, by the number of the request.
    pub(crate) calls: Mutex<HashMap<u64, u64>>,
    /// The timers of the workers.
    pub(crate) ticks: Ticks,
    /// The ways of such requests.
    pub(crate) ways: Ways,
}

/// The place from which a filter calls.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// The hook that creates the configuration: the only one in which counters can be defined.
    Configuring,
    /// Outside of streams, on the main thread.
    Root,
    /// A hook of a stream.
    Stream(u32, abi::Stream, Phase),
    /// Outside of any hook that may touch a stream.
    Nowhere,
}

/// A piece of the response's body, in its hook.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    /// The bytes that Envoy holds for this filter.
    pub(crate) held: usize,
    /// The bytes that arrived.
    pub(crate) received: usize,
    /// The bytes of earlier hooks.
    pub(crate) earlier: Earlier,
}

/// The bytes of earlier hooks for a body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Earlier {
    /// The filter holds none.
    Passed,
    /// The filter holds them.
    Held,
    /// The filter has released those that it held, and Envoy has not heard of it yet.
    Released,
}

impl Piece {
    /// Returns the bytes that the filter sees.
    pub(crate) fn total(self) -> usize {
        self.held.saturating_add(self.received)
    }

    /// Returns true if the filter may hold the piece. The filters of a stream share one buffer of Envoy. While a filter further on has
    /// bytes in it, a hold would mix both, and the release would send those bytes through the filters in between once more.
    pub(crate) fn may_be_held(self, stream: abi::Stream) -> bool {
        match self.earlier {
            Earlier::Held => true,
            Earlier::Released => false,
            Earlier::Passed => stream.body_size(Body::Held) == 0,
        }
    }

    /// Returns the piece whose bytes have become `bytes` that arrived.
    fn replaced(self, bytes: usize) -> Phase {
        Phase::Body(Self { held: 0, received: bytes, ..self })
    }
}

/// The hook of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Phase {
    /// A piece of the response's body.
    Body(Piece),
    /// Any other.
    Other,
}

/// An act on a stream, for when no filter code runs.
#[derive(Debug)]
pub(crate) enum Act {
    /// A local response.
    Reply(Box<LocalReply>),
    /// A response that passes the filters as a server's does.
    Respond(Box<Outgoing>),
    /// The release of a held half.
    Resume(Half),
    /// A reset.
    Reset,
}

/// A local response.
#[derive(Debug)]
pub(crate) struct LocalReply {
    pub(crate) status: u16,
    pub(crate) details: String,
    pub(crate) headers: Pairs,
    pub(crate) body: Vec<u8>,
}

fn is_release(act: &Act) -> bool {
    matches!(act, Act::Resume(Half::Response))
}

/// A stream that waits for another one, for a tick or for a request of a filter.
#[derive(Debug)]
struct Held {
    bell: StreamBell,
    mail: Vec<Act>,
    request: bool,
    response: bool,
}

/// The host of one worker's filter.
#[derive(Debug)]
pub(crate) struct EnvoyHost {
    common: Arc<Common>,
    worker: u64,
    /// The thread whose streams the filter serves.
    thread: usize,
    place: Cell<Place>,
    context: Cell<u32>,
    /// True if the hook changed the response.
    changed: Cell<bool>,
    /// Memory for a piece of a body.
    piece: RefCell<Vec<u8>>,
    acts: RefCell<Vec<Act>>,
    held: RefCell<HashMap<u32, Held>>,
    /// The response to a filter's request, in its hook.
    answer: RefCell<Option<(Pairs, Vec<u8>)>>,
}

impl EnvoyHost {
    pub(crate) fn new(common: Arc<Common>, worker: u64, thread: usize) -> Self {
        Self {
            common,
            worker,
            thread,
            place: Cell::new(Place::Nowhere),
            context: Cell::new(ROOT),
            changed: Cell::new(false),
            piece: RefCell::default(),
            acts: RefCell::default(),
            held: RefCell::default(),
            answer: RefCell::default(),
        }
    }

    /// Filter code is about to run at `place`.
    pub(crate) fn arrive(&self, place: Place, answer: Option<(Pairs, Vec<u8>)>) {
        self.place.set(place);
        self.context.set(if let Place::Stream(id, ..) = place { id } else { ROOT });
        self.changed.set(false);
        self.answer.replace(answer);
    }

    /// Filter code has returned. Returns what it left to do for the stream of the hook, and whether it changed the response.
    pub(crate) fn leave(&self) -> (Vec<Act>, bool) {
        self.place.set(Place::Nowhere);
        self.answer.take();
        (take(&mut *self.acts.borrow_mut()), self.changed.get())
    }

    /// Remembers that a half of a stream is held.
    pub(crate) fn hold(&self, id: u32, stream: abi::Stream, half: Half) {
        let mut held = self.held.borrow_mut();
        let held = held.entry(id).or_insert_with(|| Held {
            bell: stream.bell(),
            mail: Vec::new(),
            request: false,
            response: false,
        });
        match half {
            Half::Request => held.request = true,
            Half::Response => held.response = true,
        }
    }

    /// Takes what others left to do for a stream.
    pub(crate) fn mail(&self, id: u32) -> Vec<Act> {
        let mail = self.held.borrow_mut().get_mut(&id).map(|held| take(&mut held.mail)).unwrap_or_default();
        self.releases(id, mail)
    }

    /// Leaves out the releases of halves that are not held.
    pub(crate) fn releases(&self, id: u32, mut acts: Vec<Act>) -> Vec<Act> {
        let mut held = self.held.borrow_mut();
        let mut held = held.get_mut(&id);
        acts.retain(|act| match act {
            Act::Resume(Half::Request) => held.as_mut().is_some_and(|held| take(&mut held.request)),
            Act::Resume(Half::Response) => held.as_mut().is_some_and(|held| take(&mut held.response)),
            Act::Reply(_) | Act::Respond(_) | Act::Reset => true,
        });
        acts
    }

    /// Returns true if the release of a held response is on its way.
    pub(crate) fn is_released(&self, id: u32) -> bool {
        self.held.borrow().get(&id).is_some_and(|held| held.mail.iter().any(is_release))
    }

    /// A response that was held goes on. A release that is on its way must not reach it: it would release what another filter holds.
    pub(crate) fn goes_on(&self, id: u32) {
        if let Some(held) = self.held.borrow_mut().get_mut(&id) {
            held.response = false;
            held.mail.retain(|act| !is_release(act));
        }
    }

    /// Forgets a stream.
    pub(crate) fn forget(&self, id: u32) {
        self.held.borrow_mut().remove(&id);
    }

    /// Returns the stream of the hook, if calls mean it.
    fn here(&self) -> Result<(abi::Stream, Phase), HostError> {
        match self.place.get() {
            Place::Stream(id, stream, phase) if id == self.context.get() => Ok((stream, phase)),
            _ => Err(HostError::BadArgument),
        }
    }

    fn act(&self, act: Act) -> Result<(), HostError> {
        if self.here().is_ok() {
            self.acts.borrow_mut().push(act);
            return Ok(());
        }
        let mut held = self.held.borrow_mut();
        let held = held.get_mut(&self.context.get()).ok_or(HostError::BadArgument)?;
        held.mail.push(act);
        held.bell.ring();
        Ok(())
    }

    /// Makes a change to a header map of the stream.
    fn edit(&self, map: Map, change: impl FnOnce(abi::Stream, abi::Map) -> bool) -> Result<(), HostError> {
        let (stream, _) = self.here()?;
        let of_response = matches!(map, Map::Response | Map::ResponseTrailers);
        if change(stream, envoys(map)?) {
            self.changed.set(self.changed.get() || of_response);
            if map == Map::Request {
                // As a proxy-wasm host does: the route depends on what filters make of the request.
                stream.route_again();
            }
            Ok(())
        } else {
            Err(HostError::BadArgument)
        }
    }
}

fn envoys(map: Map) -> Result<abi::Map, HostError> {
    match map {
        Map::Request => Ok(abi::Map::Request),
        Map::RequestTrailers => Ok(abi::Map::RequestTrailers),
        Map::Response => Ok(abi::Map::Response),
        Map::ResponseTrailers => Ok(abi::Map::ResponseTrailers),
        Map::CalloutResponse => Err(HostError::BadArgument),
    }
}

/// Maps the outcome of a request that could not be sent.
fn not_sent(Refused(outcome): Refused) -> HostError {
    /// A missing pseudo-header, and an unknown cluster.
    const BAD: [u32; 2] = [1, 2];
    if BAD.contains(&outcome) { HostError::BadArgument } else { HostError::Internal(outcome) }
}

/// Reads the body that a filter sees.
fn whole(stream: abi::Stream, piece: Piece) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(piece.total());
    if piece.held > 0 {
        stream.read_body(Body::Held, &mut bytes);
    }
    stream.read_body(Body::Received, &mut bytes);
    bytes
}

fn part(bytes: &[u8], start: usize, max: usize) -> Vec<u8> {
    bytes.iter().skip(start).take(max).copied().collect()
}

impl Host for EnvoyHost {
    fn log(&self, level: Level, line: &str) {
        abi::log(level as u32, line);
    }

    fn buffer(&self, buffer: Buffer, start: usize, max: usize) -> Result<Vec<u8>, HostError> {
        match buffer {
            Buffer::CalloutResponseBody => {
                let answer = self.answer.borrow();
                answer.as_ref().map(|(_, body)| part(body, start, max)).ok_or(HostError::NotFound)
            }
            Buffer::ResponseBody => {
                let (stream, Phase::Body(piece)) = self.here()? else { return Err(HostError::NotFound) };
                let bytes = whole(stream, piece);
                Ok(if start == 0 && max >= bytes.len() { bytes } else { part(&bytes, start, max) })
            }
            Buffer::RequestBody | Buffer::PluginConfiguration => Err(HostError::NotFound),
        }
    }

    fn set_buffer(&self, buffer: Buffer, start: usize, size: usize, bytes: &[u8]) -> Result<(), HostError> {
        let (stream, Phase::Body(piece)) = self.here()? else { return Err(HostError::BadArgument) };
        if buffer != Buffer::ResponseBody {
            return Err(HostError::BadArgument);
        }
        let spliced;
        let bytes = if start == 0 && size >= piece.total() {
            bytes
        } else {
            let old = whole(stream, piece);
            let (before, rest) = old.split_at_checked(start).ok_or(HostError::BadArgument)?;
            spliced = [before, bytes, rest.get(size..).unwrap_or_default()].concat();
            &spliced
        };
        self.changed.set(true);
        let drained = (piece.held == 0 || stream.drain_body(Body::Held, piece.held))
            && (piece.received == 0 || stream.drain_body(Body::Received, piece.received));
        if !drained || (!bytes.is_empty() && !stream.append_body(Body::Received, bytes)) {
            return Err(HostError::BadArgument);
        }
        self.place.set(Place::Stream(self.context.get(), stream, piece.replaced(bytes.len())));
        Ok(())
    }

    fn rewrite_buffer(
        &self,
        buffer: Buffer,
        size: usize,
        out: &mut Vec<u8>,
        change: &mut Change<'_>,
    ) -> Result<(), HostError> {
        let (stream, Phase::Body(all)) = self.here()? else { return Err(HostError::BadArgument) };
        let total = all.total();
        if buffer != Buffer::ResponseBody || size != total {
            return Err(HostError::BadArgument);
        }
        if all.held > 0 {
            self.set_buffer(buffer, 0, total, &whole(stream, all))?;
        }
        // The output stands behind the input that is left.
        let (mut left, mut written) = (total, 0_usize);
        let mut piece = self.piece.take();
        let mut outcome = Ok(());
        loop {
            piece.clear();
            stream.read_front(Body::Received, left.min(PIECE_BYTES), &mut piece);
            let is_last = piece.len() >= left;
            out.clear();
            let changes = change(&piece, is_last, out);
            if is_last && left == total && !changes {
                break;
            }
            let output = if changes { &*out } else { &piece };
            let drained = piece.is_empty() || stream.drain_body(Body::Received, piece.len());
            if !drained || (!output.is_empty() && !stream.append_body(Body::Received, output)) {
                outcome = Err(HostError::BadArgument);
                break;
            }
            self.changed.set(true);
            (left, written) = (left.saturating_sub(piece.len()), written.saturating_add(output.len()));
            if is_last || piece.is_empty() {
                break;
            }
        }
        self.piece.replace(piece);
        self.place.set(Place::Stream(self.context.get(), stream, all.replaced(left.saturating_add(written))));
        outcome
    }

    fn may_hold_body(&self) -> Result<bool, HostError> {
        match self.here()? {
            (stream, Phase::Body(piece)) => Ok(piece.may_be_held(stream)),
            (_, Phase::Other) => Err(HostError::BadArgument),
        }
    }

    fn headers(&self, map: Map) -> Result<Pairs, HostError> {
        if map == Map::CalloutResponse {
            let answer = self.answer.borrow();
            return answer.as_ref().map(|(headers, _)| headers.clone()).ok_or(HostError::NotFound);
        }
        let (stream, _) = self.here()?;
        stream.headers(envoys(map)?).ok_or(HostError::BadArgument)
    }

    fn header(&self, map: Map, name: &str) -> Result<Vec<u8>, HostError> {
        if map == Map::CalloutResponse {
            return self.headers(map)?.first(name).map(<[u8]>::to_vec).ok_or(HostError::NotFound);
        }
        let (stream, _) = self.here()?;
        stream.header(envoys(map)?, name.as_bytes()).ok_or(HostError::NotFound)
    }

    fn set_headers(&self, map: Map, headers: &Pairs) -> Result<(), HostError> {
        let old = self.headers(map)?;
        self.edit(map, |stream, map| {
            old.iter().all(|(name, _)| stream.set_header(map, name, None))
                && headers.iter().all(|(name, value)| stream.add_header(map, name, value))
        })
    }

    fn add_header(&self, map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
        self.edit(map, |stream, map| stream.add_header(map, name.as_bytes(), value))
    }

    fn replace_header(&self, map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
        self.edit(map, |stream, map| stream.set_header(map, name.as_bytes(), Some(value)))
    }

    fn remove_header(&self, map: Map, name: &str) -> Result<(), HostError> {
        self.edit(map, |stream, map| stream.set_header(map, name.as_bytes(), None))
    }

    fn reply(&self, status: u16, details: &str, headers: &Pairs, body: &[u8]) -> Result<(), HostError> {
        let (details, headers, body) = (details.to_owned(), headers.clone(), body.to_vec());
        self.act(Act::Reply(Box::new(LocalReply { status, details, headers, body })))
    }

    fn respond(&self, fields: &Pairs, body: Vec<Slice>) -> Result<(), HostError> {
        // Only a hook for the request's headers can begin a response.
        self.here()?;
        self.act(Act::Respond(Box::new(Outgoing::new(fields.clone(), body))))
    }

    fn close(&self, _: Half) -> Result<(), HostError> {
        self.act(Act::Reset)
    }

    fn resume(&self, half: Half) -> Result<(), HostError> {
        self.act(Act::Resume(half))
    }

    fn set_tick_period(&self, period: Duration) -> Result<(), HostError> {
        self.common.ticks.set(self.worker, period);
        Ok(())
    }

    fn set_effective_context(&self, id: u32) -> Result<(), HostError> {
        let is_own = matches!(self.place.get(), Place::Stream(own, ..) if own == id);
        if id == ROOT || is_own || self.held.borrow().contains_key(&id) {
            self.context.set(id);
            Ok(())
        } else {
            Err(HostError::BadArgument)
        }
    }

    fn http_call(&self, cluster: &str, fields: &[(&str, &str)], timeout: Duration) -> Result<u32, HostError> {
        if let Ok((stream, _)) = self.here() {
            return stream.call(cluster, fields, timeout).map(token).map_err(not_sent);
        }
        if !matches!(self.place.get(), Place::Root) || self.context.get() != ROOT {
            return Err(HostError::BadArgument);
        }
        let Common { config, ways, .. } = &*self.common;
        let call = ways.call(*config, self.thread, cluster, fields, timeout).map_err(not_sent)?;
        self.common.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(call, self.worker);
        Ok(token(call))
    }

    fn shared(&self, key: &str) -> Result<(Vec<u8>, u32), HostError> {
        self.common.board.get(key)
    }

    fn set_shared(&self, key: &str, value: &[u8], version: u32) -> Result<(), HostError> {
        self.common.board.set(key, value, version)
    }

    fn define_counter(&self, name: &str) -> Result<u32, HostError> {
        let mut counters = self.common.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = counters.get(name) {
            return Ok(*id);
        }
        if !matches!(self.place.get(), Place::Configuring) {
            return Err(HostError::NotFound);
        }
        let id = self.common.config.define_counter(name).map_err(|Refused(outcome)| HostError::Internal(outcome))?;
        let id = u32::try_from(id).map_err(|_| HostError::Internal(0))?;
        counters.insert(name.to_owned(), id);
        Ok(id)
    }

    fn add_to_counter(&self, id: u32, amount: i64) -> Result<(), HostError> {
        let id = usize::try_from(id).unwrap_or(usize::MAX);
        let amount = u64::try_from(amount).map_err(|_| HostError::BadArgument)?;
        self.common.config.add_to_counter(id, amount).map_err(|Refused(outcome)| HostError::Internal(outcome))
    }

    fn property(&self, path: &[u8]) -> Result<Vec<u8>, HostError> {
        let (stream, _) = self.here()?;
        let value = match path {
            b"source\0address" => stream.text(Text::Source),
            b"destination\0address" => stream.text(Text::Destination),
            b"upstream\0local_address" => stream.text(Text::UpstreamLocal),
            // The bytes that a proxy-wasm host gives for a number.
            b"connection\0id" => stream.number(Number::ConnectionId).map(|id| id.to_le_bytes().to_vec()),
            _ => return Err(HostError::Unimplemented),
        };
        value.ok_or(HostError::NotFound)
    }

    /// The value stands under the key that a proxy-wasm host gives it, so that the access log has one format.
    fn set_property(&self, path: &[u8], value: &[u8]) -> Result<(), HostError> {
        let (stream, _) = self.here()?;
        let key = [b"wasm.", path].concat();
        if stream.set_state(&key, value) { Ok(()) } else { Err(HostError::BadArgument) }
    }

    fn monotonic(&self) -> Result<Duration, HostError> {
        clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).map_err(|_| HostError::Internal(0))
    }
}

/// Returns the number of a request as filters know it. Envoy counts them from 1 for each configuration and each stream, and a number that
/// comes again after four billion requests is long free.
pub(crate) fn token(call: u64) -> u32 {
    u32::try_from(call & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}
