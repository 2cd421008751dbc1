//! The remote's end: opens flights, keeps the objects that arrive and serves them to browsers.
//!
//! All workers see on the board what one worker receives. A held request is held by the worker of the browser's
//! connection. A request is held only for an object that is on its way, and not for long. In doubt, a request crosses
//! the link as without bundling.

mod replies;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::Read;
use std::net::IpAddr;
use std::time::Duration;

use flate2::read::GzDecoder;
use http_semantics::{Edit, Fields, Reply, authority};
use pipe_encoding::{TAKES, TAKES_FIELD, decode};

use crate::config::Config;
use crate::counts::{Count, Counts};
use crate::digest::{FlightId, key};
use crate::fields::borrowed;
use crate::frames::{self, Frame};
use crate::limits;
use crate::link::{self, Link};
use crate::log::{self, Entry, Expected, State};
use crate::object;
use crate::report;
use crate::request::{self, Asked};
use crate::shelf;
use crate::{Answer, CACHES_FIELD, Call, Callee, End, FLIGHT_FIELD, HELD_FIELD, Release, SLOT_AUTHORITY};
use shared_board::Board;

/// The decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request goes on unchanged.
    Pass,
    /// The request goes on without [`FLIGHT_FIELD`], which no client may send.
    PassWithout,
    /// The request opens a flight. It goes on with this value of [`FLIGHT_FIELD`].
    Open(String),
    /// The request gets this response.
    Answer(Reply),
    /// The request waits for a [`Release`].
    Hold,
    /// The request goes on with this value of [`VALID_FIELD`], for the cache of this remote.
    Valid(String),
}

/// The time from the last object of a page to the report on its used objects, in milliseconds.
const REPORT_MS: u64 = 15_000;
/// The time for which no flight is opened after a sign that the ground does not bundle, in milliseconds.
const SILENCE_MS: u64 = 60_000;

/// The number of slots that leave together. The first ones bring the manifest. All at once, they would keep the
/// ground's worker from the page that they are for.
const BATCH: usize = 4;

/// The state of one worker of the remote.
#[derive(Debug)]
pub struct RemoteEnd {
    pub(crate) counts: Counts,
    has_flights: bool,
    /// The field by which each request says that this end has a cache.
    caches: Option<Edit>,
    link: Link,
    room: u64,
    /// The name of this store for the ground, which remembers the objects that it has sent here.
    store: [u8; 8],
    random: Random,
    opened: BTreeMap<FlightId, Opened>,
    calls: HashMap<u64, CallKind>,
    last_call: u64,
    outbox: Vec<Call>,
    /// Flights with slots still to send, once for each slot. A tick sends [`BATCH`] of them at most.
    spare: VecDeque<FlightId>,
    held: Vec<Held>,
    releases: Vec<(u32, Release)>,
    silent_since_ms: Option<u64>,
    /// The time of the last look for objects of held requests.
    looked_ms: u64,
}

/// A flight that this worker opened.
#[derive(Debug)]
struct Opened {
    client: u64,
    started_ms: u64,
    /// The time when a parcel of the flight last arrived.
    last_ms: u64,
    /// True if the ground has nothing more to send.
    ended: bool,
    reported: bool,
}

impl Opened {
    /// Returns true if the flight has lasted too long. No clock of a proxy steps back. If one does anyway, the flight
    /// is over.
    fn is_over(&self, now_ms: u64) -> bool {
        now_ms.checked_sub(self.started_ms).is_none_or(|age| age >= limits::FLIGHT_MS)
    }

    /// Returns true if the flight's visitor has had the time to request everything.
    fn is_quiet(&self, now_ms: u64) -> bool {
        self.ended && now_ms.saturating_sub(self.last_ms) >= REPORT_MS
    }
}

#[derive(Debug, Clone, Copy)]
enum CallKind {
    /// With the time when the slot was sent.
    Slot(FlightId, u64),
    Report,
}

#[derive(Debug)]
struct Held {
    stream: u32,
    client: u64,
    asked: Asked,
    since_ms: u64,
    /// [`log::turn`] at the last look for the object.
    turn: u32,
}

/// The outcome of the search for a request's object in the client's flights.
enum Match {
    /// The flight has the object.
    Reply(Reply),
    /// The cache of this remote has the object, and it is valid.
    Valid(String),
    /// The object is on its way.
    Wait,
    /// The flight has nothing for the request.
    None,
    /// No flight has announced the object.
    Unknown,
}

impl RemoteEnd {
    /// Returns an end without flights. `seed` must be random and never used twice. `store` must be the same for all
    /// workers of the process.
    pub fn new(config: &Config, seed: [u8; 32], store: [u8; 8]) -> Self {
        Self {
            counts: Counts::default(),
            has_flights: config.flights,
            caches: (config.flights && config.caches).then(|| {
                let name = config.cache_name.clone().unwrap_or_else(|| hex::encode(store));
                Edit::Set(CACHES_FIELD, name.into())
            }),
            link: Link::new(config),
            room: config.store_bytes,
            store,
            random: Random { seed, drawn: 0 },
            opened: BTreeMap::new(),
            calls: HashMap::new(),
            last_call: 0,
            outbox: Vec::new(),
            spare: VecDeque::new(),
            held: Vec::new(),
            releases: Vec::new(),
            silent_since_ms: None,
            looked_ms: 0,
        }
    }

    /// Returns the field by which each request says that this end has a cache, if it has one.
    pub fn caches(&self) -> &[Edit] {
        self.caches.as_slice()
    }

    /// Decides how the request of `client` (its address) on `stream` goes on.
    pub fn request(
        &mut self,
        board: &dyn Board,
        stream: u32,
        client: &[u8],
        headers: &[(&[u8], &[u8])],
        now_ms: u64,
    ) -> Verdict {
        let fields = Fields::from(headers);
        if fields.text(":authority").is_some_and(|name| name.eq_ignore_ascii_case(SLOT_AUTHORITY)) {
            return Verdict::Answer(Reply::empty(404));
        }
        if !self.has_flights {
            return if fields.has(FLIGHT_FIELD) { Verdict::PassWithout } else { Verdict::Pass };
        }
        let address = client;
        let client = log::client_key(address);
        if let Some(url) = request::page(&fields) {
            if let Some(field) = self.open(board, client, &url, now_ms) {
                return Verdict::Open(format!("{field};{}", hex::encode(self.pseudonym(address))));
            }
        } else if let Some(url) = request::written(&fields) {
            log::written(board, client, &url, now_ms);
        } else if let Some(asked) = request::asked(&fields) {
            let turn = log::turn(board, client);
            match self.matching(board, client, &asked, now_ms, now_ms) {
                Match::Reply(reply) => {
                    self.counts.add(Count::Ready, 1);
                    return Verdict::Answer(reply);
                }
                Match::Valid(lines) => {
                    self.counts.add(Count::Valid, 1);
                    return Verdict::Valid(lines);
                }
                Match::Wait if self.held.len() < limits::HELD => {
                    self.held.push(Held { stream, client, asked, since_ms: now_ms, turn });
                    return Verdict::Hold;
                }
                Match::Unknown => {
                    if let Some(referrer) = asked.teaches() {
                        log::note(board, client, referrer, &asked.url, now_ms);
                    }
                }
                Match::Wait | Match::None => {}
            }
        }
        if fields.has(FLIGHT_FIELD) { Verdict::PassWithout } else { Verdict::Pass }
    }
}

impl End for RemoteEnd {
    fn gone(&mut self, stream: u32) {
        self.held.retain(|held| held.stream != stream);
    }

    fn answered(&mut self, board: &dyn Board, call: u64, answer: &Answer<'_>, now_ms: u64) {
        let Some(CallKind::Slot(id, sent_ms)) = self.calls.remove(&call) else { return };
        match answer {
            Answer::Came(headers, body) => match Fields::from(*headers).status() {
                200 => self.parcel(board, &id, sent_ms, &Fields::from(*headers), body, now_ms),
                204 | 410 => self.end(&id),
                404 => {
                    self.silent_since_ms = Some(now_ms);
                    self.abandon(board, &id, now_ms);
                }
                // Other statuses come from a proxy whose link has broken. The link may work again for the next page.
                _ => self.abandon(board, &id, now_ms),
            },
            Answer::Failed => self.abandon(board, &id, now_ms),
        }
    }

    fn tick(&mut self, board: &dyn Board, now_ms: u64) {
        self.look_again(board, now_ms);
        while self.outbox.len() < BATCH
            && let Some(id) = self.spare.pop_front()
        {
            if self.opened.get(&id).is_some_and(|opened| !opened.ended) {
                self.slot(&id, now_ms);
            }
        }
        let due = |opened: &Opened| opened.is_over(now_ms) || (opened.is_quiet(now_ms) && !opened.reported);
        let due: Vec<FlightId> = self.opened.iter().filter(|(_, opened)| due(opened)).map(|(id, _)| *id).collect();
        for id in due {
            let Some(opened) = self.opened.get_mut(&id) else { continue };
            let (client, is_over) = (opened.client, opened.is_over(now_ms));
            if !std::mem::replace(&mut opened.reported, true) {
                let report = log::flight(board, client, &id).and_then(|flight| report::write(&flight));
                if let Some(path) = report {
                    self.call(CallKind::Report, path);
                }
            }
            if is_over {
                self.opened.remove(&id);
                log::close(board, client, &id);
            }
        }
    }

    fn take_calls(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.outbox)
    }

    fn take_releases(&mut self) -> Vec<(u32, Release)> {
        std::mem::take(&mut self.releases)
    }

    fn next_tick(&self) -> Option<Duration> {
        if !self.outbox.is_empty() {
            Some(link::NEXT_TICK)
        } else if !self.spare.is_empty() || !self.held.is_empty() {
            Some(link::BUSY_TICK)
        } else if !self.opened.is_empty() {
            Some(link::IDLE_TICK)
        } else {
            None
        }
    }

    fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }
}

impl RemoteEnd {
    fn open(&mut self, board: &dyn Board, client: u64, url: &str, now_ms: u64) -> Option<String> {
        let is_silent =
            self.silent_since_ms.and_then(|since| now_ms.checked_sub(since)).is_some_and(|age| age < SILENCE_MS);
        if is_silent || self.opened.len() >= limits::OPENED {
            return None;
        }
        let id = self.random.draw();
        if !log::open(board, id, client, url, now_ms) {
            return None;
        }
        let opened = Opened { client, started_ms: now_ms, last_ms: now_ms, ended: false, reported: false };
        self.opened.insert(id, opened);
        let slots = self.link.slots();
        for _ in 0..slots.min(BATCH) {
            self.slot(&id, now_ms);
        }
        self.spare.extend((BATCH..slots).map(|_| id));
        self.counts.add(Count::Flights, 1);
        Some(format!("{};{}", hex::encode(id), hex::encode(self.store)))
    }

    /// Returns a pseudonym of the client. The ground distinguishes this store's clients by it when they teach. An IPv6
    /// network counts as one client, because it has countless addresses.
    fn pseudonym(&self, address: &[u8]) -> [u8; 4] {
        let network = match std::str::from_utf8(address).ok().and_then(authority::address) {
            Some(IpAddr::V6(address)) => address.octets().first_chunk::<8>().copied(),
            _ => None,
        };
        let name = network.as_ref().map_or(address, |network| &network[..]);
        let key = key(&[&self.store[..], name].concat()).to_le_bytes();
        key.first_chunk().copied().unwrap_or_default()
    }

    fn slot(&mut self, id: &FlightId, now_ms: u64) {
        self.call(CallKind::Slot(*id, now_ms), report::slot(id));
    }

    fn call(&mut self, kind: CallKind, path: String) {
        self.last_call += 1;
        self.calls.insert(self.last_call, kind);
        let fields = vec![
            (":method", "GET".to_owned()),
            (":scheme", "http".to_owned()),
            (":authority", SLOT_AUTHORITY.to_owned()),
            (":path", path),
            ("accept-encoding", "gzip".to_owned()),
            (TAKES_FIELD, TAKES.to_owned()),
        ];
        self.outbox.push(Call { id: self.last_call, to: Callee::Own, fields, timeout_ms: self.link.slot_timeout_ms() });
    }

    fn parcel(
        &mut self,
        board: &dyn Board,
        id: &FlightId,
        sent_ms: u64,
        fields: &Fields<'_>,
        body: &[u8],
        now_ms: u64,
    ) {
        let unpacked = match fields.get("content-encoding") {
            None => body.to_vec(),
            Some(b"br") => decode(body, limits::PARCEL_BYTES).unwrap_or_default(),
            Some(_) => unpack(body),
        };
        let mut received: Vec<Frame<'_>> = Vec::new();
        for frame in frames::read(&unpacked) {
            match frame {
                Ok(frame) => received.push(frame),
                Err(_) => self.counts.add(Count::Malformed, 1),
            }
        }
        // Objects come first, so that a reader of the log finds the objects that it names. They are kept even if the
        // flight is over, as after an outage: the ground believes that they are here.
        let mut lost = 0;
        let kept: Vec<bool> = received
            .iter()
            .map(|frame| match frame {
                Frame::Object { ident, head, body, .. } => shelf::put(board, self.room, ident, head, body),
                Frame::Reference { ident, .. } => shelf::touch(board, ident),
                _ => true,
            })
            .inspect(|kept| lost += u64::from(!kept))
            .collect();
        self.counts.add(Count::Lost, lost);
        let Some(opened) = self.opened.get_mut(id) else { return };
        let client = opened.client;
        opened.ended |= received.contains(&Frame::End);
        opened.last_ms = now_ms;
        let open = !opened.ended;
        let fetched_ms = now_ms.saturating_sub(self.link.late_ms(now_ms.saturating_sub(sent_ms), held_ms(fields)));
        log::change(board, client, id, |flight| {
            for (frame, kept) in received.iter().zip(&kept) {
                record(flight, frame, *kept, fetched_ms);
            }
        });
        if open {
            self.slot(id, now_ms);
        }
        self.look_again(board, now_ms);
    }

    fn end(&mut self, id: &FlightId) {
        if let Some(opened) = self.opened.get_mut(id) {
            opened.ended = true;
        }
    }

    /// Gives up the objects of a flight. Requests that wait for them go on.
    fn abandon(&mut self, board: &dyn Board, id: &FlightId, now_ms: u64) {
        let Some(opened) = self.opened.get_mut(id) else { return };
        opened.ended = true;
        // Other slots may still bring objects. It is certain that none come only when no slot is left.
        if self.calls.values().any(|kind| matches!(kind, CallKind::Slot(other, _) if other == id)) {
            return;
        }
        log::change(board, opened.client, id, |flight| {
            for entry in flight.entries.iter_mut().filter(|entry| entry.state == State::Coming) {
                entry.state = State::Withdrawn;
            }
        });
        self.look_again(board, now_ms);
    }

    /// Releases held requests that can be served now, or will not be served.
    fn look_again(&mut self, board: &dyn Board, now_ms: u64) {
        let mut turns = HashMap::new();
        // A clock that steps back releases all requests: it no longer says how long they have waited.
        let has_stepped_back = now_ms < std::mem::replace(&mut self.looked_ms, now_ms);
        for mut held in std::mem::take(&mut self.held) {
            let waited_ms = now_ms.checked_sub(held.since_ms).filter(|_| !has_stepped_back);
            let is_late = waited_ms.is_none_or(|waited_ms| waited_ms >= self.link.hold_ms());
            let turn = *turns.entry(held.client).or_insert_with(|| log::turn(board, held.client));
            if std::mem::replace(&mut held.turn, turn) == turn && !is_late {
                self.held.push(held);
                continue;
            }
            let (count, release) = match self.matching(board, held.client, &held.asked, held.since_ms, now_ms) {
                Match::Reply(reply) => (Count::Awaited, Release::Answer(reply)),
                Match::Valid(lines) => (Count::Valid, Release::Valid(lines)),
                Match::None | Match::Unknown => (Count::LetGoWithdrawn, Release::GoOn),
                Match::Wait if is_late => (Count::LetGoLate, Release::GoOn),
                Match::Wait => {
                    self.held.push(held);
                    continue;
                }
            };
            self.counts.add(count, 1);
            self.releases.push((held.stream, release));
        }
    }

    fn is_too_old(&self, reply: &Reply, age_ms: u64) -> bool {
        let list = borrowed(&reply.fields);
        let lasts = object::lasts(&Fields::from(&list[..])).and_then(|lasts| u64::try_from(lasts.as_millis()).ok());
        lasts.is_some_and(|lasts_ms| age_ms >= lasts_ms.max(self.link.moment_ms()))
    }

    /// Looks for the object of a request that began at `asked_ms`. An object that was fetched since then is as fresh as the
    /// response to the request itself.
    fn matching(&mut self, board: &dyn Board, client: u64, asked: &Asked, asked_ms: u64, now_ms: u64) -> Match {
        let Some(Expected { flight, index, state }) =
            log::expected(board, client, asked.referrer.as_deref(), &asked.url, now_ms)
        else {
            return Match::Unknown;
        };
        match state {
            State::Coming => Match::Wait,
            State::Unknown | State::Withdrawn | State::Used | State::Lost => Match::None,
            State::Valid { since_ms, lines } => {
                set_state(board, client, &flight, index, &State::Used);
                // Later, the cache validates the object itself.
                let is_recent = asked_ms.saturating_sub(since_ms) < self.link.moment_ms();
                if is_recent { Match::Valid(hex::encode(lines)) } else { Match::None }
            }
            State::Here { ident, since_ms, moment } => {
                let Some(reply) = shelf::get(board, &ident).and_then(|kept| replies::of(&kept, &moment)) else {
                    self.counts.add(Count::Lost, 1);
                    set_state(board, client, &flight, index, &State::Lost);
                    return Match::None;
                };
                let Some(reply) = replies::for_request(asked, reply) else {
                    return Match::None;
                };
                // The browser wants the object even if it is too old, so the page's next visitors should get it.
                set_state(board, client, &flight, index, &State::Used);
                let age_ms = asked_ms.saturating_sub(since_ms);
                if self.is_too_old(&reply, age_ms) {
                    self.counts.add(Count::Stale, 1);
                    return Match::None;
                }
                Match::Reply(replies::varying(reply))
            }
        }
    }
}

/// Returns the value of [`HELD_FIELD`]. None if the ground is of an earlier version.
fn held_ms(fields: &Fields<'_>) -> Option<i64> {
    fields.text(HELD_FIELD)?.parse().ok()
}

fn record(flight: &mut log::Flight, frame: &Frame<'_>, kept: bool, fetched_ms: u64) {
    let arrived = |ident: &_, moment: &[u8]| {
        if kept { State::Here { ident: *ident, since_ms: fetched_ms, moment: moment.to_vec() } } else { State::Lost }
    };
    let (index, state) = match frame {
        Frame::Announced { first, marks } => {
            for (offset, mark) in marks.iter().enumerate() {
                if let Some(entry) = flight.entry(first + offset) {
                    entry.mark = *mark;
                    if entry.state == State::Unknown {
                        entry.state = State::Coming;
                    }
                }
            }
            return;
        }
        Frame::Object { index, ident, moment, .. } | Frame::Reference { index, ident, moment } => {
            (*index, arrived(ident, moment))
        }
        Frame::Withdrawn { index } => (*index, State::Withdrawn),
        Frame::Valid { index, lines } => (*index, State::Valid { since_ms: fetched_ms, lines: lines.to_vec() }),
        Frame::End => return,
    };
    if let Some(Entry { state: old, .. }) = flight.entry(index) {
        *old = state;
    }
}

fn set_state(board: &dyn Board, client: u64, flight: &FlightId, index: usize, state: &State) {
    log::change(board, client, flight, |flight| {
        if let Some(entry) = flight.entry(index) {
            entry.state = state.clone();
        }
    });
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let limit = u64::try_from(limits::PARCEL_BYTES).unwrap_or(u64::MAX);
    // A truncated body gives the bytes before its end. The frames decide if they suffice.
    let _ = GzDecoder::new(packed).take(limit).read_to_end(&mut unpacked);
    unpacked
}

/// Draws names of flights: hashes of a secret and a counter.
struct Random {
    seed: [u8; 32],
    drawn: u64,
}

impl std::fmt::Debug for Random {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Random")
    }
}

impl Random {
    fn draw(&mut self) -> FlightId {
        self.drawn += 1;
        let name = crate::digest::ident(&self.seed, &self.drawn.to_le_bytes());
        name.first_chunk().copied().unwrap_or_default()
    }
}
