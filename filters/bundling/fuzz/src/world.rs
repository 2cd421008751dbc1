//! A pair with an origin behind it. The test plays the proxies at both ends.

use std::collections::HashMap;

use http_semantics::{FieldList, Reply};
use page_flights::{
    Answer, Config, End, FLIGHT_FIELD, GroundEnd, Release, RemoteEnd, Role, SLOT_AUTHORITY, ground,
    remote,
};
use shared_board::Memory;

/// Headers of a request or a response.
pub(crate) type Fields<'a> = Vec<(&'a [u8], &'a [u8])>;

/// More bytes than one flight may leave on a board: its objects, and the lists that name them.
const MOST_BYTES: usize = 2 << 20;

/// Asserts that a board holds no more than one flight may leave on it.
pub(crate) fn is_bounded(values: &Memory) {
    let bytes: usize = values.sizes().iter().map(|(_, bytes)| bytes).sum();
    assert!(bytes <= MOST_BYTES, "{bytes} bytes are kept");
}

fn config(role: Role) -> Config {
    Config {
        role,
        cluster: "c".into(),
        rtt_ms: 600,
        down: 2_500_000,
        up: 625_000,
        store_bytes: 1 << 20,
        buffer_bytes: 750_000,
        flights: true,
        deltas: false,
        caches: true,
        cache_name: None,
        names: Some("n".into()),
    }
}

/// One worker at each end, and one flight.
pub(crate) struct World {
    pub(crate) near_values: Memory,
    pub(crate) far_values: Memory,
    pub(crate) near: RemoteEnd,
    pub(crate) far: GroundEnd,
    pub(crate) now_ms: u64,
    /// The remote's call for each slot that the ground holds.
    slots: HashMap<u32, u64>,
    last_stream: u32,
}

/// The stream of the page at either end.
pub(crate) const PAGE_STREAM: u32 = 1;

impl World {
    pub(crate) fn new() -> Self {
        Self {
            near_values: Memory::default(),
            far_values: Memory::default(),
            near: RemoteEnd::new(&config(Role::Remote), [1; 32], [2; 8]),
            far: GroundEnd::new(&config(Role::Ground)),
            now_ms: 1_000_000,
            slots: HashMap::new(),
            last_stream: PAGE_STREAM,
        }
    }

    /// Sends a request of the only client, for a path on the page's host.
    pub(crate) fn ask(&mut self, path: &[u8], accept: &[u8]) -> (u32, remote::Verdict) {
        self.last_stream += 1;
        let fields: Fields<'_> = vec![
            (b":method", b"GET"),
            (b":authority", b"www.test"),
            (b":path", path),
            (b"accept", accept),
            (b"accept-encoding", b"gzip"),
            (b"referer", b"http://www.test/"),
        ];
        (self.last_stream, self.near.request(&self.near_values, self.last_stream, b"client", &fields, self.now_ms))
    }

    /// Opens the flight. Returns the value of its header.
    pub(crate) fn open(&mut self) -> String {
        let (_, verdict) = self.ask(b"/", b"text/html,*/*");
        let remote::Verdict::Open(field) = verdict else { panic!("a page opens a flight: {verdict:?}") };
        field
    }

    /// Passes the page's request with this header to the ground, then the head of a good response. Returns true if the
    /// ground reads the page.
    pub(crate) fn begin(&mut self, opening: &[u8]) -> bool {
        let fields: Fields<'_> = vec![
            (b":method", b"GET"),
            (b":authority", b"www.test"),
            (b":path", b"/"),
            (b"accept", b"text/html"),
            (b"accept-encoding", b"gzip"),
            (FLIGHT_FIELD.as_bytes(), opening),
        ];
        let verdict = self.far.request(&self.far_values, PAGE_STREAM, &fields, self.now_ms);
        assert_eq!(verdict, ground::Verdict::Read, "the header is taken off");
        self.far.response(&self.far_values, PAGE_STREAM, &[(b":status", b"200"), (b"content-type", b"text/html")])
    }

    /// Sends a request of the remote to the ground, by its path.
    pub(crate) fn say(&mut self, path: &[u8]) -> (u32, ground::Verdict) {
        self.last_stream += 1;
        let fields: Fields<'_> =
            vec![(b":method", b"GET"), (b":authority", SLOT_AUTHORITY.as_bytes()), (b":path", path)];
        (self.last_stream, self.far.request(&self.far_values, self.last_stream, &fields, self.now_ms))
    }

    /// Runs a tick at both ends, and delivers everything that they send. `origin` gives the response to each of the
    /// ground's requests, or `None` for a failure.
    pub(crate) fn turn(&mut self, mut origin: impl FnMut(&str) -> Option<(FieldList, Vec<u8>)>) {
        self.now_ms += 50;
        self.near.tick(&self.near_values, self.now_ms);
        for call in self.near.take_calls() {
            let path = call.fields.iter().find(|(name, _)| *name == ":path").map(|(_, value)| value.clone());
            match self.say(path.unwrap_or_default().as_bytes()) {
                (stream, ground::Verdict::Hold) => drop(self.slots.insert(stream, call.id)),
                (_, ground::Verdict::Answer(reply)) => self.deliver(call.id, &reply),
                (_, other) => panic!("a slot is held or answered: {other:?}"),
            }
        }
        self.far.tick(&self.far_values, self.now_ms);
        for call in self.far.take_calls() {
            let of = |wanted| call.fields.iter().find(|(name, _)| *name == wanted).map_or("", |(_, value)| value);
            assert_eq!(of(":scheme"), "http");
            assert!(!of(":authority").is_empty() && of(":path").starts_with('/'), "{call:?}");
            let plain = |text: &str| text.bytes().all(|byte| matches!(byte, 0x21..=0x7e));
            assert!(plain(of(":authority")) && plain(of(":path")), "{call:?}");
            let found = origin(of(":path"));
            let fields: Fields<'_> =
                found.iter().flat_map(|(fields, _)| fields.iter().map(|(name, value)| (&**name, &**value))).collect();
            let answer = found.as_ref().map_or(Answer::Failed, |(_, body)| Answer::Came(&fields, body));
            self.far.answered(&self.far_values, call.id, &answer, self.now_ms);
        }
        for (stream, release) in self.far.take_releases() {
            if let (Some(call), Release::Answer(reply)) = (self.slots.remove(&stream), release) {
                self.deliver(call, &reply);
            }
        }
    }

    fn deliver(&mut self, call: u64, reply: &Reply) {
        let status = reply.status.to_string();
        let mut fields: Fields<'_> = vec![(b":status", status.as_bytes())];
        fields.extend(reply.fields.iter().map(|(name, value)| (&**name, &**value)));
        self.near.answered(&self.near_values, call, &Answer::Came(&fields, &reply.body), self.now_ms);
    }

    /// Requests an object as a browser. Returns the response if the remote has the object.
    pub(crate) fn object(&mut self, path: &str) -> Option<Reply> {
        match self.ask(path.as_bytes(), b"*/*").1 {
            remote::Verdict::Answer(reply) => Some(reply),
            _ => None,
        }
    }
}
