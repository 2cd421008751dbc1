//! Budgets of heap memory. Each has its figure, the date of the measurement and its reason. A budget is a quarter above the
//! figure, so that a change which costs memory is a decision.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use header_codec::{Dictionary, GroundStream, RemoteRequest, RemoteStream, Treatment};
use page_flights::{Answer, Config, Count, End, FLIGHT_FIELD, GroundEnd, Release, RemoteEnd, Role, ground, remote};
use peak_alloc::PeakAlloc;
use shared_board::Memory;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Tests share the heap, so one measures at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The bytes that `make` leaves on the heap in what it returns.
fn bytes_of<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = HEAP.current_usage();
    let built = make();
    (built, HEAP.current_usage().saturating_sub(before))
}

/// Asserts that `bytes` are at most a quarter above `figure`, and at least half of it: else the figure is out of date.
#[track_caller]
fn assert_budget(bytes: usize, figure: usize, of: &str) {
    println!("{of}: {bytes} bytes");
    assert!(bytes <= figure + figure / 4, "{of}: {bytes} bytes, the figure is {figure}");
    assert!(bytes >= figure / 2, "{of}: {bytes} bytes, so the figure {figure} is out of date");
}

/// 2026-11-26: 56,300 bytes of URLs to fetch, marks and entries. 256 flights of a worker are 14 MB.
const PAGE: usize = 56_300;
/// 2026-11-26: 944,000 bytes. The shelf of 2048 objects is half of it, and past flights are most of the rest.
const OBJECTS: usize = 944_000;
/// 2026-11-26: 487,000 bytes, in views of 64 KiB at either end and exchanges that wait for one. 512 clients are 249 MB.
const CLIENT: usize = 487_000;
/// 2026-11-26: 7,500 bytes of one exchange at either end, and the state around it.
const PIPE: usize = 7_500;

fn config(role: Role) -> Config {
    Config {
        role,
        cluster: "pair".to_owned(),
        rtt_ms: 600,
        down: 2_500_000,
        up: 625_000,
        store_bytes: 1 << 20,
        buffer_bytes: 750_000,
        flights: true,
        deltas: false,
        caches: false,
        cache_name: None,
        names: None,
    }
}

/// One worker at each end, and an origin with any number of objects.
struct Flights {
    near: RemoteEnd,
    far: GroundEnd,
    near_values: Memory,
    far_values: Memory,
    now_ms: u64,
    last_stream: u32,
    /// The remote's call for each slot that the ground holds.
    slots: HashMap<u32, u64>,
}

type Fields<'a> = Vec<(&'a [u8], &'a [u8])>;

impl Flights {
    fn new() -> Self {
        Self {
            near: RemoteEnd::new(&config(Role::Remote), [1; 32], [2; 8]),
            far: GroundEnd::new(&config(Role::Ground)),
            near_values: Memory::default(),
            far_values: Memory::default(),
            now_ms: 1_000_000,
            last_stream: 0,
            slots: HashMap::new(),
        }
    }

    fn stream(&mut self) -> u32 {
        self.last_stream += 1;
        self.last_stream
    }

    /// A client opens a page that names `objects`. Returns the page's stream at the ground.
    fn open(&mut self, client: &str, path: &str, objects: std::ops::Range<u32>) -> u32 {
        let mut fields: Fields<'_> =
            vec![(b":method", b"GET"), (b":authority", b"www.test"), (b":path", path.as_bytes())];
        fields.extend([(&b"accept"[..], &b"text/html"[..]), (b"accept-encoding", b"gzip"), (b"user-agent", b"b")]);
        let stream = self.stream();
        let verdict = self.near.request(&self.near_values, stream, client.as_bytes(), &fields, self.now_ms);
        let remote::Verdict::Open(opening) = verdict else { panic!("{verdict:?}") };
        fields.push((FLIGHT_FIELD.as_bytes(), opening.as_bytes()));
        assert_eq!(self.far.request(&self.far_values, stream, &fields, self.now_ms), ground::Verdict::Read);
        assert!(self.far.response(&self.far_values, stream, &[(b":status", b"200"), (b"content-type", b"text/html")]));
        let page = objects.map(|number| format!("<img src=/{number}.png>")).collect::<Vec<_>>().concat();
        self.far.body(stream, page.as_bytes(), true, self.now_ms);
        stream
    }

    /// Runs a tick at both ends, and delivers everything that they send.
    fn turn(&mut self) {
        self.now_ms += 5;
        self.near.tick(&self.near_values, self.now_ms);
        for call in self.near.take_calls() {
            let fields: Fields<'_> =
                call.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            let stream = self.last_stream + 1;
            self.last_stream = stream;
            match self.far.request(&self.far_values, stream, &fields, self.now_ms) {
                ground::Verdict::Hold => drop(self.slots.insert(stream, call.id)),
                ground::Verdict::Answer(reply) => self.deliver(call.id, reply.status, &reply.body),
                other => panic!("{other:?}"),
            }
        }
        self.far.tick(&self.far_values, self.now_ms);
        for call in self.far.take_calls() {
            let path = call.fields.iter().find(|(name, _)| *name == ":path").map(|(_, path)| path.clone()).unwrap();
            let fields: [(&[u8], &[u8]); 3] =
                [(b":status", b"200"), (b"content-type", b"image/png"), (b"cache-control", b"max-age=60")];
            let body = path.repeat(20);
            self.far.answered(&self.far_values, call.id, &Answer::Came(&fields, body.as_bytes()), self.now_ms);
        }
        for (stream, release) in self.far.take_releases() {
            if let (Some(call), Release::Answer(reply)) = (self.slots.remove(&stream), release) {
                self.deliver(call, reply.status, &reply.body);
            }
        }
    }

    fn deliver(&mut self, call: u64, status: u16, body: &[u8]) {
        let status = status.to_string();
        let fields: [(&[u8], &[u8]); 1] = [(b":status", status.as_bytes())];
        self.near.answered(&self.near_values, call, &Answer::Came(&fields, body), self.now_ms);
    }
}

/// A page with the most objects of a flight (`limits::ENTRIES`), while they are on their way.
#[test]
fn a_page() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut flights = Flights::new();
    let ((), bytes) = bytes_of(|| {
        for page in 0..20 {
            flights.open("10.0.0.1", &format!("/{page}"), 0..192);
        }
    });
    assert_budget(bytes / 20, PAGE, "a page with 192 objects");
}

/// 100,000 objects cross, in pages of 100 each. The shelf of the remote has 1 MiB, and the ground remembers 4096 of them.
#[test]
fn a_hundred_thousand_objects() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut flights = Flights::new();
    let ((), bytes) = bytes_of(|| {
        for page in 0..1000 {
            let client = format!("10.0.{}.1", page % 16);
            let stream = flights.open(&client, &format!("/{page}"), page * 100..(page + 1) * 100);
            // Most pages need twenty turns.
            for _ in 0..60 {
                flights.turn();
                if flights.far.counts().get(Count::Objects) == u64::from(page + 1) * 100 {
                    break;
                }
            }
            flights.far.gone(stream);
            flights.now_ms += 61_000;
            flights.turn();
        }
    });
    let sent = flights.far.counts().get(Count::Objects);
    assert!(sent > 99_000, "{sent} objects crossed");
    assert_budget(bytes, OBJECTS, "100,000 objects");
}

/// Both ends of header compression.
struct Headers {
    near: header_codec::RemoteEnd,
    far: header_codec::GroundEnd,
}

impl Headers {
    fn new() -> Self {
        let dictionary = Rc::new(Dictionary::first().unwrap());
        let near = header_codec::RemoteEnd::new(Rc::clone(&dictionary), 7, 512);
        Self { near, far: header_codec::GroundEnd::new(dictionary, 512) }
    }

    /// One request of a client, on a connection, and its response.
    fn exchange(&mut self, client: &str, pipe: &str, number: u32) {
        let path = format!("/articles/{number}?session={}", "x".repeat(300));
        let fields: Fields<'_> = vec![
            (b":method", b"GET"),
            (b":scheme", b"http"),
            (b":authority", b"www.example.org"),
            (b":path", path.as_bytes()),
            (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
            (b"accept", b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ];
        let request = RemoteRequest {
            client: client.as_bytes(),
            pipe: Some(pipe.as_bytes()),
            headers: &fields,
            body: false,
            now: Duration::from_secs(u64::from(number)),
        };
        let (sent, stream): (Treatment, RemoteStream) = self.near.request(&request);
        let Treatment::Replace(sent) = sent else { panic!("{sent:?}") };

        let borrowed: Fields<'_> = sent.iter().map(|(name, value)| (&**name, &**value)).collect();
        let (_, answering): (Treatment, GroundStream) = self.far.request(pipe.as_bytes(), &borrowed);
        let response: Fields<'_> = vec![(b":status", b"200"), (b"server", b"nginx"), (b"etag", path.as_bytes())];
        let Treatment::Replace(packed) = self.far.response(answering, &response) else { panic!("not compressed") };
        let borrowed: Fields<'_> = packed.iter().map(|(name, value)| (&**name, &**value)).collect();
        self.near.response(stream, pipe.as_bytes(), &borrowed, Duration::from_secs(u64::from(number)));
    }
}

/// A client whose past is full, at both ends. Its views hold 64 KiB of headers (`limits::VIEW_BYTES`), and share exchanges.
#[test]
fn a_client() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut headers = Headers::new();
    headers.exchange("10.0.0.9", "pipe", 0);
    let ((), bytes) = bytes_of(|| {
        for number in 0..500 {
            headers.exchange("10.0.0.1", "pipe", number);
        }
    });
    assert_budget(bytes, CLIENT, "a client with a full past");
}

/// A connection of the pipe with one client and one exchange, at both ends.
#[test]
fn a_pipe() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut headers = Headers::new();
    headers.exchange("10.0.0.9", "pipe", 0);
    let ((), bytes) = bytes_of(|| {
        for pipe in 0..100 {
            headers.exchange(&format!("10.0.1.{pipe}"), &format!("10.9.0.1:{pipe}"), 1);
        }
    });
    assert_budget(bytes / 100, PIPE, "a connection with one client");
}
