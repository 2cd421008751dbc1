//! The shares of a link among its clients, as a filter of Envoy: pieces wait in Envoy until `link_share` says that they are next.
//!
//! It is no filter of [`crate::filters`]. Those have a copy in each worker, and a link has one order for all of them.

mod queue;
#[cfg(test)]
mod tests;
mod unsent;

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use link_share::{Config, Direction, Introduction, Subscriber, Verdict};

use self::queue::{Place, Queue};
use crate::abi::{self, Body, Map, Number, Stream};
use crate::worker::{Event, Then};

/// The address of the client, which the box itself has written.
const CLIENT: &[u8] = b"x-longhaul-client";
/// The names in the certificate of the other end, which the box itself has written.
const REMOTE: &[u8] = b"x-longhaul-remote";
/// A field of the other end's requests for connections that pass unread: their first bytes name the client.
const NAMES: &[u8] = b"x-longhaul-names";

/// The counters of payload, by verdict.
const COUNTERS: [&str; 2] =
    ["longhaul_link_share_bytes_total_reason_at_once", "longhaul_link_share_bytes_total_reason_waited"];

/// The counter of connections whose congestion control has started again.
const RENEWALS: &str = "longhaul_link_share_renewals_total";

/// A congestion control that every kernel has and allows. A connection has it between the end and the start of its own.
const BETWEEN: &[u8] = b"reno";

/// One configuration, the same for all workers.
#[derive(Debug)]
pub(crate) struct Share {
    config: Config,
    envoy: abi::Config,
    /// Envoy's numbers of the counters of bytes: those that passed at once, and those that waited.
    bytes: [Option<usize>; COUNTERS.len()],
    renewals: Option<usize>,
}

impl Share {
    /// Loads a configuration. A link that runs already has its new rate and weights from now on, for running streams, too.
    ///
    /// # Errors
    /// The reason for a refusal, in one line.
    pub(crate) fn load(envoy: abi::Config, json: &[u8]) -> Result<Self, String> {
        let config = Config::from_json(json).map_err(|error| error.to_string())?;
        Queue::configure(&config);
        let counter = |name| envoy.define_counter(name).ok();
        Ok(Self { config, envoy, bytes: COUNTERS.map(counter), renewals: counter(RENEWALS) })
    }

    fn count(&self, counter: Option<usize>, amount: u64) {
        if let Some(id) = counter {
            let _ = self.envoy.add_to_counter(id, amount);
        }
    }
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Shared {
    share: Arc<Share>,
    /// The stream's place in the order. None: nothing limits it, or its headers have not come.
    place: OnceCell<Place>,
    /// The first bytes of a connection whose client they name, and the order of its link.
    introduction: RefCell<Option<(Introduction, Arc<Queue>)>>,
    /// True while Envoy holds pieces.
    holds: Cell<bool>,
    /// How many buffers between the filter and the link are full, at a ground.
    full: Cell<u32>,
    /// True if the buffer of pieces that Envoy holds is full. Envoy tells of it in the same words as of those behind the filter.
    is_own_full: Cell<bool>,
    /// The bytes of the request that have passed while Envoy kept a copy. None: it keeps no copy any more.
    kept: Cell<Option<u64>>,
}

impl Shared {
    pub(crate) fn new(share: Arc<Share>) -> Self {
        Self {
            share,
            place: OnceCell::new(),
            introduction: RefCell::default(),
            holds: Cell::default(),
            full: Cell::default(),
            is_own_full: Cell::default(),
            kept: Cell::new(Some(0)),
        }
    }

    /// Handles a hook that filters have, too.
    pub(crate) fn hear(&self, stream: Stream, event: &Event) -> Then {
        match event {
            Event::RequestHeaders(_) => self.arrive(stream),
            Event::ResponseBody(_) => return self.piece(stream, Direction::Response),
            Event::ResponseTrailers => return self.end(Direction::Response),
            // Envoy repeats no request that has a response. A tunnel has one as soon as it is open.
            Event::ResponseHeaders(_) => self.kept.set(None),
            Event::CallEnded(_) => {}
        }
        Then::PassOn
    }

    /// Takes the place of a request's client in the order of its link.
    fn arrive(&self, stream: Stream) {
        let names = stream.header(Map::Request, REMOTE).unwrap_or_default();
        let names = String::from_utf8_lossy(&names);
        let Some((name, link)) = self.share.config.link(&names) else { return };
        let queue = Queue::of(name, link);
        let client = stream.header(Map::Request, CLIENT);
        if client.is_none() && stream.header(Map::Request, NAMES).is_some() {
            self.introduction.replace(Some((Introduction::default(), queue)));
        } else {
            self.take_place(stream, &queue, Subscriber::of(&client.unwrap_or_default()));
        }
    }

    /// Takes the place of a client in the order of a link.
    fn take_place(&self, stream: Stream, queue: &Arc<Queue>, client: Subscriber) {
        let connection = self.share.config.renewed.as_ref().and_then(|_| stream.number(Number::ConnectionId));
        let place = self.place.get_or_init(|| queue.open(client, connection));
        if self.full.get() > 0 {
            place.hold_up();
        }
    }

    /// Reads a piece of the client's bytes, whose first ones may name it.
    fn be_introduced(&self, stream: Stream) {
        let mut pending = self.introduction.borrow_mut();
        let Some((introduction, queue)) = pending.as_mut() else { return };
        let mut bytes = Vec::new();
        stream.read_body(Body::RequestReceived, &mut bytes);
        if let Some(client) = introduction.hear(&bytes) {
            self.take_place(stream, queue, client);
            *pending = None;
        }
    }

    /// A buffer on the way of the response is full.
    pub(crate) fn hold_up(&self, stream: Stream) {
        if self.share.config.direction != Direction::Response {
            return;
        }
        // The first such call with more than the limit is about what the filter itself holds.
        if held(stream) > stream.buffer_limit() && !self.is_own_full.replace(true) {
            return;
        }
        self.full.set(self.full.get().saturating_add(1));
        if let Some(place) = self.place.get() {
            place.hold_up();
        }
    }

    /// A buffer on the way of the response has room again: half of its limit.
    pub(crate) fn release(&self, stream: Stream) {
        if held(stream) <= stream.buffer_limit() / 2 && self.is_own_full.replace(false) {
            return;
        }
        let full = self.full.get();
        self.full.set(full.saturating_sub(1));
        if full == 1
            && let Some(place) = self.place.get()
        {
            place.release();
        }
    }

    /// A piece of one half of the stream has arrived. One that waits is in Envoy's buffer, and Envoy reads no more from the
    /// sender once that is full.
    pub(crate) fn piece(&self, stream: Stream, half: Direction) -> Then {
        if half == Direction::Request {
            self.be_introduced(stream);
        }
        let (Some(place), true) = (self.place.get(), half == self.share.config.direction) else {
            return Then::PassOn;
        };
        self.renew(stream, place);
        let body = match half {
            Direction::Request => Body::RequestReceived,
            Direction::Response => Body::Received,
        };
        let bytes = stream.body_size(body);
        let verdict = if half == Direction::Request && self.is_kept_for_a_retry(stream, bytes) {
            place.pass(bytes);
            Verdict::Pass
        } else {
            place.offer(bytes, || stream.bell())
        };
        let held = self.holds.replace(verdict == Verdict::Wait);
        if self.holds.get() && !held && half == Direction::Request {
            stream.drain_body(Body::RequestHeld, stream.body_size(Body::RequestHeld));
        }
        // A turn sends all that is held, and Envoy reads no more from the sender once its buffer is full.
        if self.holds.get()
            && let Some(most) = place.most_held()
            && most < stream.buffer_limit()
        {
            stream.set_buffer_limit(most);
        }
        let [at_once, waited] = self.share.bytes;
        let (counter, then) = match verdict {
            Verdict::Pass => (at_once, Then::PassOn),
            Verdict::Wait => (waited, Then::Wait),
        };
        self.share.count(counter, u64::try_from(bytes).unwrap_or_default());
        then
    }

    /// Starts the congestion control of a connection again, if that is due. The kernel does nothing if a connection gets the one that
    /// it has, so it has another one in between. The first call leaves a connection alone whose own one it may not have again.
    fn renew(&self, stream: Stream, place: &Place) {
        if let Some(name) = self.share.config.renewed.as_deref().map(str::as_bytes)
            && place.is_renewal_due()
            && [name, BETWEEN, name].into_iter().all(|next| stream.set_congestion_control(next))
        {
            self.share.count(self.share.renewals, 1);
        }
    }

    /// Returns true for the first pieces of a request, which may not wait.
    ///
    /// Envoy sends them and keeps a copy for a retry, in the buffer of a piece that waits: it would send both. With the piece that
    /// exceeds the buffer's limit it gives up the retry, and the copy is of no use.
    fn is_kept_for_a_retry(&self, stream: Stream, bytes: usize) -> bool {
        let Some(kept) = self.kept.get() else { return false };
        let more = kept.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.kept.set(Some(more).filter(|more| *more <= stream.buffer_limit()));
        true
    }

    /// The last bytes of one half are trailers. They must not overtake a piece.
    pub(crate) fn end(&self, half: Direction) -> Then {
        if half == self.share.config.direction && self.holds.get() { Then::Wait } else { Then::PassOn }
    }

    /// It is the stream's turn. The stream may be gone afterwards.
    pub(crate) fn turn(&self, stream: Stream) {
        // A later piece may have passed with those that were held.
        if self.holds.replace(false) {
            match self.share.config.direction {
                Direction::Request => stream.resume_request(),
                Direction::Response => stream.resume_response(),
            }
        }
    }
}

/// Returns the bytes of a response that Envoy holds.
fn held(stream: Stream) -> u64 {
    u64::try_from(stream.body_size(Body::Held)).unwrap_or(u64::MAX)
}
