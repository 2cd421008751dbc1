//! The ground's end: reads pages as they stream by, fetches their objects and sends them.
//!
//! A flight begins with the request for its page. Slots may arrive before or after the page's response. Anything to
//! send waits for a slot. Objects leave no faster than the link carries them. So neither a page's own bytes nor urgent
//! objects queue behind less urgent ones.
//!
//! Streams are released only in ticks and in responses to the ground's own requests. Envoy stops the stream whose
//! callback sends a response on another stream.

mod cached;
mod fetch;
mod flight;
mod known;
mod lessons;
mod visitor;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use hex::FromHex;
use http_semantics::{Fields, Reply};
use object_rules::validation;
use pipe_encoding::{decode, is_br};

use crate::config::Config;
use crate::counts::{Count, Counts};
use crate::digest::{FlightId, key};
use crate::fields::media_type;
use crate::finder::{Finder, Found};
use crate::limits;
use crate::link::{self, Link};
use crate::object::{self, Unfit};
use crate::report::{self, Path, Report};
use crate::request;
use crate::{Answer, CACHES_FIELD, Call, Callee, End, FLIGHT_FIELD, HOSTS_FIELD, Release, SLOT_AUTHORITY, read_store};
use cached::Passing;
use fetch::Fetch;
use flight::{Arrival, Flight, Slot, Stores};
use known::Known;
use lessons::{Change, Visit, Who};
use shared_board::Board;
use visitor::Visitor;

/// The authority of requests to the resolver, and their path there.
const NAMES_AUTHORITY: &str = "names.pair.invalid";
const NAMES_PATH: &str = "/page";

/// The decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request goes on unchanged. It has nothing to do with bundling.
    Pass,
    /// The request goes on without [`FLIGHT_FIELD`] and [`CACHES_FIELD`]. The driver must pass its response to
    /// [`GroundEnd::response`].
    Read,
    /// The request is a slot. It waits for a [`Release`].
    Hold,
    /// The request gets this response.
    Answer(Reply),
}

/// The state of one worker of the ground.
#[derive(Debug)]
pub struct GroundEnd {
    pub(crate) counts: Counts,
    has_flights: bool,
    /// True if the resolver learns which hosts pages name.
    tells_names: bool,
    link: Link,
    buffer_bytes: usize,
    flights: BTreeMap<FlightId, Flight>,
    /// The purpose of each stream. The order of releases is theirs, so that a simulation repeats itself.
    streams: BTreeMap<u32, Stream>,
    fetches: HashMap<u64, (FlightId, Fetch)>,
    /// Requests to the resolver.
    told: HashSet<u64>,
    last_call: u64,
    outbox: Vec<Call>,
    releases: Vec<(u32, Release)>,
    /// Past flights, kept for their reports.
    past: VecDeque<(FlightId, flight::Past)>,
    /// True if there is work that only a tick may do.
    due: bool,
    /// Bytes that may leave now. Below zero, they left too early.
    allowance: i64,
    last_ms: u64,
}

#[derive(Debug)]
enum Stream {
    Slot(FlightId),
    Page(Page),
    /// The response to it may go into the remote's cache.
    Passing(Passing),
}

/// A page on its way to the browser.
#[derive(Debug)]
struct Page {
    flight: FlightId,
    finder: Option<Box<Finder>>,
    /// Bytes that the finder has read and the proxy still holds, until the objects that they name are announced.
    held_bytes: usize,
    is_held: bool,
}

impl GroundEnd {
    /// Returns an end without flights.
    pub fn new(config: &Config) -> Self {
        let link = Link::new(config);
        Self {
            counts: Counts::default(),
            has_flights: config.flights,
            tells_names: config.names.is_some(),
            link,
            buffer_bytes: config.buffer_bytes,
            flights: BTreeMap::new(),
            streams: BTreeMap::new(),
            fetches: HashMap::new(),
            told: HashSet::new(),
            last_call: 0,
            outbox: Vec::new(),
            releases: Vec::new(),
            past: VecDeque::new(),
            due: false,
            allowance: link.burst(),
            last_ms: 0,
        }
    }

    /// Decides how a request goes on.
    pub fn request(&mut self, board: &dyn Board, stream: u32, headers: &[(&[u8], &[u8])], now_ms: u64) -> Verdict {
        let fields = Fields::from(headers);
        if self.has_flights && fields.text(":authority") == Some(SLOT_AUTHORITY) {
            return self.slot(board, stream, &fields, now_ms);
        }
        if !fields.has(FLIGHT_FIELD) && !fields.has(CACHES_FIELD) {
            return Verdict::Pass;
        }
        // Without flights, the route of slots responds that none are here.
        if self.has_flights {
            if let Some((url, opening)) = request::page(&fields).zip(fields.text(FLIGHT_FIELD).and_then(read_opening)) {
                self.open(board, stream, url, &opening, &fields, now_ms);
            } else if let Some(passing) = Passing::of(&fields) {
                self.streams.insert(stream, Stream::Passing(passing));
            }
        }
        Verdict::Read
    }

    fn open(
        &mut self,
        board: &dyn Board,
        stream: u32,
        url: String,
        &Opening { id, store, client }: &Opening,
        fields: &Fields<'_>,
        now_ms: u64,
    ) {
        if self.flights.len() >= limits::FLIGHTS || self.flights.contains_key(&id) {
            return;
        }
        let visitor = Visitor::new(url, Who { remote: key_of(store), client }, fields);
        let lessons = lessons::of(board, flight::page_key(&visitor.url), now_ms);
        let cache = fields.text(CACHES_FIELD).and_then(read_store).unwrap_or(store);
        let stores = Stores { memory: store, cache };
        self.flights.insert(id, Flight::new(visitor, lessons, stores, self.link.budget(), now_ms));
        self.streams.insert(stream, Stream::Page(Page { flight: id, finder: None, held_bytes: 0, is_held: false }));
    }

    /// Reads the response headers of a stream whose request was a [`Verdict::Read`]. Returns true if the driver must
    /// pass the body to [`GroundEnd::body`] as well.
    pub fn response(&mut self, board: &dyn Board, stream: u32, headers: &[(&[u8], &[u8])]) -> bool {
        let fields = Fields::from(headers);
        let page = match self.streams.get_mut(&stream) {
            Some(Stream::Page(page)) => page,
            Some(Stream::Passing(passing)) => {
                if let Some(name) = passing.name(&fields) {
                    Known { board }.add(passing.store, &name);
                }
                return false;
            }
            Some(Stream::Slot(_)) | None => return false,
        };
        let Some(flight) = self.flights.get_mut(&page.flight) else { return false };
        let is_page = fields.status() == 200 && media_type(&fields) == b"text/html";
        let reader = is_page.then(|| Finder::new(&flight.visitor.url, &fields)).flatten();
        if let Some(reader) = reader {
            flight.visitor.no_referer = fields.has("referrer-policy");
            page.finder = Some(Box::new(if self.tells_names { reader.with_hosts() } else { reader }));
            // These objects are announced together with those that the page's first bytes name.
            let learnt = flight.lessons.learnt(flight.visitor.who);
            let learnt = learnt.map(|url| Found { url: url.to_owned(), usage: None, wanted: None }).collect();
            let url = flight.visitor.url.clone();
            flight.add(&page.flight, &url, learnt, &mut self.counts);
            self.counts.add(Count::Pages, 1);
            return true;
        }
        flight.page_done = true;
        self.due = true;
        false
    }

    /// Returns the number of bytes of the page's body that the proxy holds and [`GroundEnd::body`] has seen. The proxy
    /// shows them again, in front of the next ones.
    pub fn held_bytes(&self, stream: u32) -> usize {
        match self.streams.get(&stream) {
            Some(Stream::Page(page)) => page.held_bytes,
            _ => 0,
        }
    }

    /// Corrects [`GroundEnd::held_bytes`] if the driver has replaced bytes that the proxy holds.
    pub fn now_holds(&mut self, stream: u32, bytes: usize) {
        if let Some(Stream::Page(page)) = self.streams.get_mut(&stream)
            && page.is_held
        {
            page.held_bytes = bytes;
        }
    }

    /// The proxy cannot hold the bytes that [`GroundEnd::body`] has seen, so they pass.
    pub fn cannot_hold(&mut self, stream: u32) {
        if let Some(Stream::Page(page)) = self.streams.get_mut(&stream) {
            page.is_held = false;
            page.held_bytes = 0;
        }
    }

    /// Reads the next bytes of the page's body. Returns true if the proxy must hold them, behind those that it holds
    /// already. The tick that announces the objects that they name releases them, so that the remote knows the objects
    /// before the browser requests them. They are also released when the time for the first slot is over.
    ///
    /// The proxy holds bytes for no other reason. It never holds them if they, with the next chunk, could exceed
    /// `buffer_bytes`.
    pub fn body(&mut self, stream: u32, bytes: &[u8], end: bool, now_ms: u64) -> bool {
        let next = if end { 0 } else { limits::CHUNK_BYTES };
        let all = self.held_bytes(stream).saturating_add(bytes.len());
        let has_room = all.saturating_add(next) <= self.buffer_bytes;
        let is_held = self.read(stream, bytes, end, now_ms);
        let Some(Stream::Page(page)) = self.streams.get_mut(&stream) else { return false };
        page.is_held = is_held && has_room;
        page.held_bytes = if page.is_held { all } else { 0 };
        page.is_held
    }

    /// Returns true if the bytes had better be held.
    fn read(&mut self, stream: u32, bytes: &[u8], end: bool, now_ms: u64) -> bool {
        let Some(Stream::Page(page)) = self.streams.get_mut(&stream) else { return false };
        let (Some(finder), Some(flight)) = (&mut page.finder, self.flights.get_mut(&page.flight)) else { return false };
        let mut found = finder.read(bytes);
        if end {
            found.extend(finder.finish());
            flight.page_done = true;
        }
        flight.vocabulary.read(finder.markup());
        let hosts = finder.hosts(end);
        finder.forget();
        let url = flight.visitor.url.clone();
        let mut announces = flight.add(&page.flight, &url, found, &mut self.counts);
        announces |= flight.look_again(&page.flight, &mut self.counts);
        self.due |= announces || end;
        let waits = page.is_held || (announces && flight.is_heard(now_ms));
        if let Some(hosts) = hosts {
            self.tell(hosts);
        }
        waits
    }

    /// Tells the resolver which hosts a page names. Nothing waits for its response.
    fn tell(&mut self, hosts: String) {
        self.last_call += 1;
        let fields = vec![
            (":method", "POST".to_owned()),
            (":scheme", "http".to_owned()),
            (":authority", NAMES_AUTHORITY.to_owned()),
            (":path", NAMES_PATH.to_owned()),
            (HOSTS_FIELD, hosts),
        ];
        self.told.insert(self.last_call);
        self.outbox.push(Call { id: self.last_call, to: Callee::Names, fields, timeout_ms: limits::TELL_MS });
    }
}

impl End for GroundEnd {
    fn gone(&mut self, stream: u32) {
        match self.streams.remove(&stream) {
            Some(Stream::Slot(id)) => {
                if let Some(flight) = self.flights.get_mut(&id) {
                    flight.slots.retain(|slot| slot.stream != stream);
                }
            }
            Some(Stream::Page(page)) => {
                if let Some(flight) = self.flights.get_mut(&page.flight) {
                    flight.page_done = true;
                    self.due = true;
                }
            }
            Some(Stream::Passing(_)) | None => {}
        }
    }

    fn answered(&mut self, board: &dyn Board, call: u64, answer: &Answer<'_>, now_ms: u64) {
        if self.told.remove(&call) {
            let is_taken = matches!(answer, Answer::Came(fields, _) if Fields::from(*fields).status() == 204);
            self.counts.add(if is_taken { Count::NamesTaken } else { Count::NamesFailed }, 1);
            return;
        }
        let Some((id, fetch)) = self.fetches.remove(&call) else { return };
        let Some(flight) = self.flights.get_mut(&id) else { return };
        flight.fetching = flight.fetching.saturating_sub(1);
        let judged = match answer {
            Answer::Came(headers, body) => {
                let fields = Fields::from(*headers);
                object::judge(&fields, body, &flight.visitor.accepted).map(|object| (object, fields, *body))
            }
            Answer::Failed => Err(Unfit::Failed),
        };
        match judged {
            Ok((object, fields, body)) => {
                let sheet =
                    if media_type(&fields) == b"text/css" { named(&fetch.url, &fields, body) } else { Vec::new() };
                let cached = cached::name(&fetch.url, &fields).map(|name| (name, validation::lines(&fields)));
                let arrival = flight.arrived(&fetch, object, cached, now_ms, Known { board });
                match arrival {
                    Arrival::Sent => {}
                    Arrival::Named => self.counts.add(Count::References, 1),
                    Arrival::Cached => self.counts.add(Count::Cached, 1),
                    Arrival::TooMuch => self.counts.add(Count::UnfitSize, 1),
                }
                if arrival != Arrival::TooMuch {
                    flight.add(&id, &fetch.url, sheet, &mut self.counts);
                }
            }
            Err(why) => {
                flight.withdraw(fetch.index);
                if why.is_lesson() {
                    // So the page's next flight does not announce the object.
                    let object = key(fetch.url.as_bytes());
                    lessons::learn(board, flight.page_key, now_ms, |page| page.unfit(object, now_ms));
                }
                self.counts.add(count_of(why), 1);
            }
        }
        self.pump(board, now_ms);
    }

    fn tick(&mut self, board: &dyn Board, now_ms: u64) {
        let is_late = |flight: &Flight| flight.is_over(now_ms);
        let late: Vec<FlightId> =
            self.flights.iter().filter(|(_, flight)| is_late(flight)).map(|(id, _)| *id).collect();
        for id in late {
            self.close(&id);
        }
        self.due = false;
        self.pump(board, now_ms);
        for (stream, held) in &mut self.streams {
            let Stream::Page(page) = held else { continue };
            let waits = self.flights.get(&page.flight).is_some_and(|flight| flight.awaits_slot(now_ms));
            if page.is_held && !waits {
                page.is_held = false;
                page.held_bytes = 0;
                self.releases.push((*stream, Release::GoOnDown));
            }
            self.due |= page.is_held;
        }
    }

    fn take_calls(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.outbox)
    }

    fn take_releases(&mut self) -> Vec<(u32, Release)> {
        std::mem::take(&mut self.releases)
    }

    fn next_tick(&self) -> Option<Duration> {
        if self.due || !self.outbox.is_empty() {
            Some(link::NEXT_TICK)
        } else if self.flights.values().any(|flight| flight.has_objects() && !flight.slots.is_empty()) {
            Some(link::BUSY_TICK)
        } else if !self.flights.is_empty() {
            Some(link::IDLE_TICK)
        } else {
            None
        }
    }

    fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }
}

impl GroundEnd {
    fn slot(&mut self, board: &dyn Board, stream: u32, fields: &Fields<'_>, now_ms: u64) -> Verdict {
        let id = match fields.text(":path").and_then(report::read) {
            Some(Path::Slot(id)) => id,
            Some(Path::Report(id, report)) => {
                self.report(board, &id, &report, now_ms);
                return Verdict::Answer(Reply::empty(204));
            }
            None => return Verdict::Answer(Reply::empty(400)),
        };
        let Some(flight) = self.flights.get_mut(&id) else { return Verdict::Answer(Reply::empty(410)) };
        flight.slots.push_back(Slot { stream, since_ms: now_ms });
        self.streams.insert(stream, Stream::Slot(id));
        self.due |= flight.has_something();
        Verdict::Hold
    }

    /// Learns from a report for the page's next visitors: the objects that were used, and the requests beside them.
    fn report(&mut self, board: &dyn Board, id: &FlightId, report: &Report, now_ms: u64) {
        // The remote expects nothing more.
        self.close(id);
        let Some(at) = self.past.iter().position(|(past, _)| past == id) else { return };
        let Some((_, past)) = self.past.remove(at) else { return };
        // A browser that requests little of what the page names has the rest from an earlier visit. Its misses say
        // nothing about the needs of others. Objects that the page does not name are not counted here: junk among them
        // would protect itself.
        let named = || past.entries.iter().enumerate().filter(|(_, entry)| entry.sent.is_some() && !entry.is_learnt);
        let asked_for = named().filter(|(index, _)| report.used(*index)).count();
        let is_new_here = 2 * asked_for >= named().count();
        let (mut uses, mut learnt) = (Vec::new(), Vec::new());
        for (index, entry) in past.entries.iter().enumerate() {
            let Some(sent) = &entry.sent else { continue };
            if report.lost(index) {
                Known { board }.forget(past.stores.memory, &sent.ident);
                Known { board }.forget(past.stores.cache, &sent.ident);
                continue;
            }
            let was_used = report.used(index);
            let count = if was_used { Count::UsedBytes } else { Count::UnusedBytes };
            self.counts.add(count, sent.bytes);
            let kind = if entry.is_learnt { &mut learnt } else { &mut uses };
            kind.push((entry.object_key, was_used));
        }
        let in_flight = |url: &&String| past.entries.iter().any(|entry| entry.object_key == key(url.as_bytes()));
        let asked = report.others.iter().filter(|url| !in_flight(url) && past.may_need(url));
        let asked: Vec<&str> = asked.map(String::as_str).collect();
        let visit = Visit { who: past.who, sent: &learnt, asked: &asked, is_new_here };
        let mut change = Change::default();
        lessons::learn(board, past.page_key, now_ms, |page| {
            // A visitor who had most of the page still shows which objects are used.
            for (object, was_used) in uses.iter().filter(|(_, was_used)| is_new_here || *was_used) {
                page.used(*object, *was_used, past.who, now_ms);
            }
            change = page.visited(&visit);
        });
        self.counts.add(Count::LearntAdded, change.added);
        self.counts.add(Count::LearntDropped, change.dropped);
    }

    /// Sends the requests and parcels that may be sent now.
    fn pump(&mut self, board: &dyn Board, now_ms: u64) {
        self.allowance =
            self.allowance.saturating_add(self.link.pace(now_ms.saturating_sub(self.last_ms))).min(self.link.burst());
        self.last_ms = now_ms;
        let mut over = Vec::new();
        for (id, flight) in &mut self.flights {
            while let Some(fetch) = flight.next_fetch() {
                self.last_call += 1;
                let fields = flight.visitor.request_for(&fetch);
                let timeout_ms = self.link.fetch_timeout_ms();
                self.outbox.push(Call { id: self.last_call, to: Callee::Own, fields, timeout_ms });
                self.fetches.insert(self.last_call, (*id, fetch));
            }
            while let Some((slot, reply)) = flight.parcel(self.allowance > 0, now_ms, Known { board }, &mut self.counts)
            {
                let bytes = i64::try_from(reply.body.len()).unwrap_or(i64::MAX);
                self.allowance = self.allowance.saturating_sub(bytes);
                self.streams.remove(&slot);
                self.releases.push((slot, Release::Answer(reply)));
            }
            if flight.ended {
                over.push(*id);
            }
        }
        for id in over {
            self.close(&id);
        }
    }

    /// Ends a flight. Its slots get an empty response.
    fn close(&mut self, id: &FlightId) {
        let Some(flight) = self.flights.remove(id) else { return };
        for slot in &flight.slots {
            self.streams.remove(&slot.stream);
            self.releases.push((slot.stream, Release::Answer(Reply::empty(204))));
        }
        if self.past.len() >= limits::FLIGHTS {
            self.past.pop_front();
        }
        self.past.push_back((*id, flight.past()));
    }
}

/// Returns the objects that a style sheet names. None are found in one that is too long or damaged.
fn named(url: &str, fields: &Fields<'_>, body: &[u8]) -> Vec<Found> {
    if body.len() > limits::SHEET_BYTES {
        return Vec::new();
    }
    let (body, fields): (Cow<'_, [u8]>, Fields<'_>) = if is_br(fields) {
        let Ok(plain) = decode(body, limits::SHEET_BYTES) else { return Vec::new() };
        (plain.into(), fields.iter().filter(|(name, _)| *name != b"content-encoding").collect())
    } else {
        (body.into(), fields.clone())
    };
    Finder::new(url, &fields).map(|mut sheet| sheet.read_whole(&body)).unwrap_or_default()
}

/// The value of [`FLIGHT_FIELD`], which opens a flight.
struct Opening {
    id: FlightId,
    store: u64,
    /// A client of the remote, as far as the remote distinguishes its clients.
    client: u32,
}

/// Reads `ID;STORE;CLIENT`. Ignores what follows: a remote of a later version states there what it reads beside format 1.
fn read_opening(value: &str) -> Option<Opening> {
    let mut parts = value.split(';');
    Some(Opening {
        id: FromHex::from_hex(parts.next()?).ok()?,
        store: read_store(parts.next()?)?,
        client: u32::from_le_bytes(FromHex::from_hex(parts.next()?).ok()?),
    })
}

/// Returns a short key for a remote. A collision costs only speed.
fn key_of(store: u64) -> u32 {
    u32::try_from(key(&store.to_le_bytes()) >> 32).unwrap_or_default()
}

fn count_of(why: Unfit) -> Count {
    match why {
        Unfit::Failed => Count::UnfitFailed,
        Unfit::Status => Count::UnfitStatus,
        Unfit::Type => Count::UnfitType,
        Unfit::Cookie | Unfit::Private => Count::UnfitPrivate,
        Unfit::Vary => Count::UnfitVary,
        Unfit::Encoding => Count::UnfitEncoding,
        Unfit::Size => Count::UnfitSize,
    }
}
