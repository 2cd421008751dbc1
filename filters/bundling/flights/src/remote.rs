//! The near end: opens flights, keeps what comes, answers browsers with it.
//!
//! What one worker receives, all see on the board; what is held is held by the worker that the browser's connection is on.
//! A request is held only for what is on its way, and not for long: whatever is in doubt crosses the link as ever.

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::time::Duration;

use flate2::read::GzDecoder;

use crate::board::Board;
use crate::config::Config;
use crate::counts::{Count, Counts};
use crate::digest::{FlightId, hex};
use crate::fields::{Fields, takes};
use crate::frames::{self, Frame};
use crate::limits;
use crate::link::{self, Link};
use crate::log::{self, Entry, Expected, State};
use crate::object;
use crate::report;
use crate::request::{self, Asked};
use crate::shelf;
use crate::{Answer, Call, End, FLIGHT_FIELD, Release, Reply, SLOT_AUTHORITY};

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it is.
    Pass,
    /// It goes on without [`FLIGHT_FIELD`], which no client may send.
    PassWithout,
    /// It opens a flight: it goes on with this value of [`FLIGHT_FIELD`].
    Open(String),
    /// It is answered here.
    Answer(Reply),
    /// It waits for a [`Release`].
    Hold,
}

/// How long after a page was asked for the far end is told which of its objects were used.
const REPORT_MS: u64 = 15_000;
/// After a sign that the far end does not know flights, it is not asked to carry any for so long.
const SILENCE_MS: u64 = 60_000;

/// Slots that leave together. The first of them bring the manifest; all at once they would keep the far end's worker from
/// the page that they are for.
const BATCH: usize = 4;

/// One worker of the near end.
#[derive(Debug)]
pub struct RemoteEnd {
    pub(crate) counts: Counts,
    link: Link,
    room: u64,
    /// Names this store to the far end, which remembers what it has sent here.
    store: [u8; 8],
    random: Random,
    opened: HashMap<FlightId, Opened>,
    calls: HashMap<u64, CallKind>,
    last_call: u64,
    outbox: Vec<Call>,
    /// Flights of whom a slot is to leave when nothing else does.
    spare: VecDeque<FlightId>,
    held: Vec<Held>,
    releases: Vec<(u32, Release)>,
    silent_until_ms: u64,
}

/// A flight that this worker opened.
#[derive(Debug)]
struct Opened {
    client: u64,
    started_ms: u64,
    /// The far end has said that nothing more comes.
    ended: bool,
}

#[derive(Debug, Clone, Copy)]
enum CallKind {
    Slot(FlightId),
    Report,
}

#[derive(Debug)]
struct Held {
    stream: u32,
    client: u64,
    asked: Asked,
    deadline_ms: u64,
}

/// What an object that a request is for can do for it now.
enum Match {
    Reply(Reply),
    /// It is on its way.
    Wait,
    /// Nothing.
    None,
    /// Nobody has said that it would come.
    Unknown,
}

impl RemoteEnd {
    /// `seed` is random and never used twice; `store` the same for all workers of the process.
    pub fn new(config: &Config, seed: [u8; 32], store: [u8; 8]) -> Self {
        Self {
            counts: Counts::default(),
            link: Link::new(config),
            room: config.store_bytes,
            store,
            random: Random { seed, drawn: 0 },
            opened: HashMap::new(),
            calls: HashMap::new(),
            last_call: 0,
            outbox: Vec::new(),
            spare: VecDeque::new(),
            held: Vec::new(),
            releases: Vec::new(),
            silent_until_ms: 0,
        }
    }

    /// Decides on the request of `client` (its address) on `stream`.
    pub fn request(
        &mut self,
        board: &dyn Board,
        stream: u32,
        client: &[u8],
        headers: &[(&[u8], &[u8])],
        now_ms: u64,
    ) -> Verdict {
        let fields = Fields(headers);
        if fields.text(":authority").is_some_and(|name| name.eq_ignore_ascii_case(SLOT_AUTHORITY)) {
            return Verdict::Answer(Reply::empty(404));
        }
        let client = log::client_key(client);
        if let Some(url) = request::page(fields) {
            if let Some(field) = self.open(board, client, &url, now_ms) {
                return Verdict::Open(field);
            }
        } else if let Some(asked) = request::asked(fields) {
            match self.matching(board, client, &asked, now_ms) {
                Match::Reply(reply) => {
                    self.counts.add(Count::Ready, 1);
                    return Verdict::Answer(reply);
                }
                Match::Wait if self.held.len() < limits::HELD => {
                    let deadline_ms = now_ms.saturating_add(self.link.hold_ms());
                    self.held.push(Held { stream, client, asked, deadline_ms });
                    return Verdict::Hold;
                }
                Match::Unknown => {
                    if let Some(referrer) = &asked.referrer {
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
        let Some(CallKind::Slot(id)) = self.calls.remove(&call) else { return };
        match answer {
            Answer::Came(headers, body) => match Fields(headers).status() {
                200 => self.parcel(board, &id, Fields(headers), body, now_ms),
                204 | 410 => self.end(&id),
                404 => {
                    self.silent_until_ms = now_ms.saturating_add(SILENCE_MS);
                    self.abandon(board, &id, now_ms);
                }
                // A proxy's own word for a link that broke: the next page may find it whole.
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
                self.slot(&id);
            }
        }
        let due: Vec<FlightId> = self
            .opened
            .iter()
            .filter(|(_, opened)| now_ms.saturating_sub(opened.started_ms) >= REPORT_MS)
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            let Some(opened) = self.opened.remove(&id) else { continue };
            let report = log::flight(board, opened.client, &id).and_then(|flight| report::write(&flight));
            if let Some(path) = report {
                self.call(CallKind::Report, path);
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
        if now_ms < self.silent_until_ms || self.opened.len() >= limits::FLIGHTS {
            return None;
        }
        let id = self.random.draw();
        if !log::open(board, id, client, url, now_ms) {
            return None;
        }
        self.opened.insert(id, Opened { client, started_ms: now_ms, ended: false });
        let slots = self.link.slots();
        for _ in 0..slots.min(BATCH) {
            self.slot(&id);
        }
        self.spare.extend((BATCH..slots).map(|_| id));
        self.counts.add(Count::Flights, 1);
        Some(format!("{};{}", hex(&id), hex(&self.store)))
    }

    fn slot(&mut self, id: &FlightId) {
        self.call(CallKind::Slot(*id), report::slot(id));
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
        ];
        self.outbox.push(Call { id: self.last_call, fields, timeout_ms: self.link.slot_timeout_ms() });
    }

    fn parcel(&mut self, board: &dyn Board, id: &FlightId, fields: Fields<'_>, body: &[u8], now_ms: u64) {
        let unpacked = match fields.get("content-encoding") {
            None => body.to_vec(),
            Some(_) => unpack(body),
        };
        let mut received: Vec<Frame<'_>> = Vec::new();
        for frame in frames::read(&unpacked) {
            match frame {
                Ok(frame) => received.push(frame),
                Err(_) => self.counts.add(Count::Malformed, 1),
            }
        }
        // Objects first: whoever sees the record finds what it names. They are kept even if the flight is over, as after an
        // outage: the far end takes them for held here.
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
        let open = !opened.ended;
        log::change(board, client, id, |flight| {
            for (frame, kept) in received.iter().zip(&kept) {
                record(flight, frame, *kept);
            }
        });
        if open {
            self.slot(id);
        }
        self.look_again(board, now_ms);
    }

    fn end(&mut self, id: &FlightId) {
        if let Some(opened) = self.opened.get_mut(id) {
            opened.ended = true;
        }
    }

    /// Nothing is known of the flight's objects any more: whoever waits for one goes on.
    fn abandon(&mut self, board: &dyn Board, id: &FlightId, now_ms: u64) {
        let Some(opened) = self.opened.get_mut(id) else { return };
        opened.ended = true;
        // Other slots may still bring something: only when none is left is it sure that nothing comes.
        if self.calls.values().any(|kind| matches!(kind, CallKind::Slot(other) if other == id)) {
            return;
        }
        log::change(board, opened.client, id, |flight| {
            for entry in flight.entries.iter_mut().filter(|entry| entry.state == State::Coming) {
                entry.state = State::Withdrawn;
            }
        });
        self.look_again(board, now_ms);
    }

    /// Releases what can be answered by now, or will not be.
    fn look_again(&mut self, board: &dyn Board, now_ms: u64) {
        for held in std::mem::take(&mut self.held) {
            let (count, release) = match self.matching(board, held.client, &held.asked, now_ms) {
                Match::Reply(reply) => (Count::Awaited, Release::Answer(reply)),
                Match::None | Match::Unknown => (Count::LetGoWithdrawn, Release::GoOn),
                Match::Wait if now_ms >= held.deadline_ms => (Count::LetGoLate, Release::GoOn),
                Match::Wait => {
                    self.held.push(held);
                    continue;
                }
            };
            self.counts.add(count, 1);
            self.releases.push((held.stream, release));
        }
    }

    fn matching(&mut self, board: &dyn Board, client: u64, asked: &Asked, now_ms: u64) -> Match {
        let Some(Expected { flight, index, state }) = log::expected(board, client, &asked.url, now_ms) else {
            return Match::Unknown;
        };
        match state {
            State::Coming => Match::Wait,
            State::Unknown | State::Withdrawn | State::Used | State::Lost => Match::None,
            State::Here { ident, moment } => {
                let reply = shelf::get(board, &ident).map(|kept| reply(&kept, &moment));
                let became = if matches!(reply, Some(Some(_))) { State::Used } else { State::Lost };
                let Some(Some(reply)) = reply else {
                    self.counts.add(Count::Lost, 1);
                    set_state(board, client, &flight, index, &became);
                    return Match::None;
                };
                if !fits(asked, &reply) {
                    return Match::None;
                }
                set_state(board, client, &flight, index, &became);
                Match::Reply(reply)
            }
        }
    }
}

fn record(flight: &mut log::Flight, frame: &Frame<'_>, kept: bool) {
    let arrived = |ident: &_, moment: &[u8]| {
        if kept { State::Here { ident: *ident, moment: moment.to_vec() } } else { State::Lost }
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

fn reply(kept: &shelf::Kept, moment: &[u8]) -> Option<Reply> {
    let fields = object::fields_of(&kept.head, moment).ok()?;
    Some(Reply { status: 200, fields, body: kept.body.clone() })
}

/// Whether the object answers this very request.
fn fits(asked: &Asked, reply: &Reply) -> bool {
    let list: Vec<(&[u8], &[u8])> = reply.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    let fields = Fields(&list);
    let coding = fields.get("content-encoding").is_none_or(|coding| takes(&asked.accepted, coding));
    let cookie = !asked.with_cookie || fields.lists("cache-control", "public");
    let origin = !asked.with_origin || fields.get("access-control-allow-origin") == Some(b"*");
    coding && cookie && origin
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let limit = u64::try_from(limits::PARCEL_BYTES).unwrap_or(u64::MAX);
    // What breaks off gives what came before; the frames say whether that is enough.
    let _ = GzDecoder::new(packed).take(limit).read_to_end(&mut unpacked);
    unpacked
}

/// Names of flights: hashes of a secret and a counter.
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
