//! Tests of both ends together. They play the proxies between two workers of the remote on one board, one worker of the
//! ground, and an origin.

mod encodings;
mod faults;
mod lifetimes;
mod names;

use crate::ground::{self, GroundEnd};
use crate::limits;
use crate::remote::{self, RemoteEnd};
use crate::{Answer, CACHES_FIELD, Config, Count, End, FLIGHT_FIELD, Release, Role, SLOT_AUTHORITY};
use http_semantics::{Edit, Reply};
use shared_board::Memory;
use std::collections::HashMap;

type Pairs = Vec<(String, String)>;

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
        caches: false,
        cache_name: None,
        names: None,
    }
}

fn list(fields: &[(&str, &str)]) -> Pairs {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn borrowed(fields: &Pairs) -> Vec<(&[u8], &[u8])> {
    fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
}

/// The objects of an origin: headers and body by path.
type Origin = HashMap<&'static str, (Pairs, Vec<u8>)>;

struct World {
    board: Memory,
    workers: [RemoteEnd; 2],
    ground: GroundEnd,
    origin: Origin,
    /// Slots under way: stream at the ground, worker and call at the remote.
    slots: HashMap<u32, (usize, u64)>,
    next_stream: u32,
    now_ms: u64,
    /// Paths of the requests for objects that reached the origin.
    fetched: Vec<String>,
    /// The fields of these requests.
    requests: Vec<Pairs>,
    /// The markup of the page.
    page: String,
    /// Additional fields of requests for the page.
    page_fields: Pairs,
    /// Releases of held requests, by stream.
    released: HashMap<u32, Release>,
    ground_is_up: bool,
    parcels: usize,
}

const PAGE: &str = "<link rel=stylesheet href=/a.css><img src=/1.png><img src=/2.png>";

impl World {
    fn new() -> Self {
        let object = |kind: &str, body: &str| {
            let fields = [(":status", "200"), ("content-type", kind), ("cache-control", "max-age=60"), ("date", "d")];
            (list(&fields), body.as_bytes().to_vec())
        };
        let origin = HashMap::from([
            ("/a.css", object("text/css", "p{background:url(/3.png)}")),
            ("/1.png", object("image/png", "one")),
            ("/2.png", object("image/png", "two")),
            ("/3.png", object("image/png", "three")),
        ]);
        let worker = |seed| RemoteEnd::new(&config(Role::Remote), [seed; 32], [7; 8]);
        Self {
            board: Memory::default(),
            workers: [worker(1), worker(2)],
            ground: GroundEnd::new(&config(Role::Ground)),
            origin,
            slots: HashMap::new(),
            next_stream: 0,
            now_ms: 1_000_000,
            fetched: Vec::new(),
            requests: Vec::new(),
            page: PAGE.to_owned(),
            page_fields: Pairs::new(),
            released: HashMap::new(),
            ground_is_up: true,
            parcels: 0,
        }
    }

    fn stream(&mut self) -> u32 {
        self.next_stream += 1;
        self.next_stream
    }

    /// Sends a client's request to one of the workers.
    fn ask(&mut self, worker: usize, client: &str, path: &str, more: &[(&str, &str)]) -> (u32, remote::Verdict) {
        let stream = self.stream();
        let mut fields = list(&[(":method", "GET"), (":authority", "www.test"), (":path", path)]);
        fields.extend(list(&[("accept", "*/*"), ("accept-encoding", "gzip, deflate")]));
        fields.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        fields.extend(list(more));
        let verdict =
            self.workers[worker].request(&self.board, stream, client.as_bytes(), &borrowed(&fields), self.now_ms);
        (stream, verdict)
    }

    /// Opens the page for a client: its request and response cross the link, and all objects follow.
    fn visit(&mut self, worker: usize, client: &str) {
        let page = self.begin_visit(worker, client);
        self.answer_page(page);
    }

    fn begin_visit(&mut self, worker: usize, client: &str) -> u32 {
        let (_, verdict) = self.ask(worker, client, "/", &[("accept", "text/html")]);
        let remote::Verdict::Open(field) = verdict else { panic!("{verdict:?}") };
        let stream = self.stream();
        let mut fields = list(&[
            (":method", "GET"),
            (":authority", "www.test"),
            (":path", "/"),
            ("accept", "text/html"),
            ("user-agent", "b"),
            (FLIGHT_FIELD, &field),
        ]);
        fields.extend(self.page_fields.clone());
        for edit in self.workers[worker].caches() {
            let Edit::Set(name, value) = edit else { panic!("{edit:?}") };
            fields.extend(list(&[(name, std::str::from_utf8(value).unwrap())]));
        }
        if !fields.iter().any(|(name, _)| name == "accept-encoding") {
            fields.extend(list(&[("accept-encoding", "gzip, deflate")]));
        }
        assert_eq!(self.ground.request(&self.board, stream, &borrowed(&fields), self.now_ms), ground::Verdict::Read);
        self.turn();
        stream
    }

    fn answer_page(&mut self, page: u32) {
        let fields = list(&[(":status", "200"), ("content-type", "text/html")]);
        assert!(self.ground.response(&self.board, page, &borrowed(&fields)));
        let waits = self.ground.body(page, self.page.clone().as_bytes(), true, self.now_ms);
        self.turn();
        assert_eq!(self.released.remove(&page), waits.then_some(Release::GoOnDown));
        self.ground.gone(page);
        for _ in 0..10 {
            self.turn();
        }
    }

    /// Requests all objects as a client's browser. Returns the number of those that the remote serves.
    fn read_all(&mut self, client: &str) -> usize {
        let paths = ["/a.css", "/1.png", "/2.png", "/3.png"];
        paths.into_iter().filter(|path| body(&self.ask(0, client, path, &[]).1).is_some()).count()
    }

    /// Runs a tick at every worker, and delivers everything that they send.
    fn turn(&mut self) {
        self.now_ms += 5;
        for worker in 0..2 {
            self.workers[worker].tick(&self.board, self.now_ms);
            for call in self.workers[worker].take_calls() {
                let fields: Pairs =
                    call.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
                assert!(fields.contains(&(":authority".to_owned(), SLOT_AUTHORITY.to_owned())));
                if !self.ground_is_up {
                    self.workers[worker].answered(&self.board, call.id, &Answer::Failed, self.now_ms);
                    continue;
                }
                let stream = self.stream();
                match self.ground.request(&self.board, stream, &borrowed(&fields), self.now_ms) {
                    ground::Verdict::Hold => drop(self.slots.insert(stream, (worker, call.id))),
                    ground::Verdict::Answer(reply) => self.deliver(worker, call.id, &reply),
                    other => panic!("{other:?}"),
                }
            }
        }
        self.ground.tick(&self.board, self.now_ms);
        for call in self.ground.take_calls() {
            let path = call.fields.iter().find(|(name, _)| *name == ":path").unwrap().1.clone();
            assert!(!call.fields.iter().any(|(name, _)| *name == "cookie"));
            self.fetched.push(path.clone());
            self.requests.push(call.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect());
            let found = self.origin.get(path.as_str()).cloned();
            let answer = found.as_ref().map(|(fields, body)| (borrowed(fields), &**body));
            let answer = answer.as_ref().map_or(Answer::Failed, |(fields, body)| Answer::Came(fields, body));
            self.ground.answered(&self.board, call.id, &answer, self.now_ms);
        }
        for (stream, release) in self.ground.take_releases() {
            match (self.slots.remove(&stream), release) {
                (Some((worker, call)), Release::Answer(reply)) => self.deliver(worker, call, &reply),
                (_, release) => drop(self.released.insert(stream, release)),
            }
        }
        for worker in 0..2 {
            for (stream, release) in self.workers[worker].take_releases() {
                self.released.insert(stream, release);
            }
        }
    }

    fn deliver(&mut self, worker: usize, call: u64, reply: &Reply) {
        self.parcels += usize::from(reply.status == 200);
        let status = reply.status.to_string();
        let mut fields: Vec<(&[u8], &[u8])> = vec![(b":status", status.as_bytes())];
        fields.extend(crate::fields::borrowed(&reply.fields));
        self.workers[worker].answered(&self.board, call, &Answer::Came(&fields, &reply.body), self.now_ms);
    }

    /// Announces the page, but no object arrives. Another worker holds a request for one of the objects.
    fn hold_for_what_never_comes(&mut self) -> u32 {
        let page = self.begin_visit(0, "client");
        let fields = list(&[(":status", "200"), ("content-type", "text/html")]);
        assert!(self.ground.response(&self.board, page, &borrowed(&fields)));
        self.ground.body(page, PAGE.as_bytes(), false, self.now_ms);
        self.origin.clear();
        self.ground.tick(&self.board, self.now_ms);
        for (stream, release) in self.ground.take_releases() {
            if let (Some((worker, call)), Release::Answer(reply)) = (self.slots.remove(&stream), release) {
                self.deliver(worker, call, &reply);
            }
        }
        let (stream, verdict) = self.ask(1, "client", "/2.png", &[]);
        assert_eq!(verdict, remote::Verdict::Hold);
        stream
    }

    fn count(&self, count: Count) -> u64 {
        self.ground.counts.get(count) + self.workers.iter().map(|worker| worker.counts.get(count)).sum::<u64>()
    }
}

fn body(verdict: &remote::Verdict) -> Option<&[u8]> {
    match verdict {
        remote::Verdict::Answer(reply) => Some(&reply.body),
        _ => None,
    }
}

#[test]
fn a_pages_objects_and_style_sheets_are_ready_at_every_worker() {
    let mut world = World::new();
    world.visit(0, "client");
    assert_eq!(world.fetched, ["/a.css", "/1.png", "/2.png", "/3.png"]);
    for (worker, path, expected) in
        [(1, "/a.css", "p{background:url(/3.png)}"), (0, "/1.png", "one"), (1, "/2.png", "two"), (0, "/3.png", "three")]
    {
        let (_, verdict) = world.ask(worker, "client", path, &[]);
        assert_eq!(body(&verdict), Some(expected.as_bytes()), "{path}: {verdict:?}");
    }
    assert_eq!(world.ask(0, "client", "/1.png", &[]).1, remote::Verdict::Pass, "once for each visit");
    assert_eq!(world.ask(0, "client", "/4.png", &[]).1, remote::Verdict::Pass);
    assert!(world.slots.is_empty(), "no slot is left waiting");
}

#[test]
fn a_request_for_what_is_on_its_way_waits_for_it() {
    let mut world = World::new();
    let page = world.begin_visit(0, "client");
    let fields = list(&[(":status", "200"), ("content-type", "text/html")]);
    assert!(world.ground.response(&world.board, page, &borrowed(&fields)));
    world.ground.body(page, PAGE.as_bytes(), false, world.now_ms);
    // The first tick announces the objects and requests them. They arrive with the next.
    world.turn();
    let (stream, verdict) = world.ask(1, "client", "/2.png", &[]);
    if verdict == remote::Verdict::Hold {
        world.turn();
        world.turn();
        assert!(matches!(world.released.get(&stream), Some(Release::Answer(reply)) if reply.body == b"two"));
        assert_eq!(world.count(Count::Awaited), 1);
    } else {
        assert_eq!(body(&verdict), Some(&b"two"[..]));
    }
}

#[test]
fn a_request_for_an_object_that_will_not_come_is_released() {
    let mut world = World::new();
    world.origin.insert("/1.png", (list(&[(":status", "404")]), Vec::new()));
    world.origin.get_mut("/2.png").unwrap().0.push(("set-cookie".into(), "a=b".into()));
    world.visit(0, "client");
    for path in ["/1.png", "/2.png"] {
        assert_eq!(world.ask(0, "client", path, &[]).1, remote::Verdict::Pass, "{path}");
    }
    assert_eq!((world.count(Count::UnfitStatus), world.count(Count::UnfitPrivate)), (1, 1));
    assert!(body(&world.ask(0, "client", "/3.png", &[]).1).is_some());
    // The next visitor's page announces neither of the two.
    world.fetched.clear();
    world.visit(0, "another");
    assert_eq!(world.fetched, ["/a.css", "/3.png"]);
}

#[test]
fn an_object_is_for_who_opened_the_page_and_for_requests_that_say_nothing_else() {
    let mut world = World::new();
    world.visit(0, "client");
    for (client, more) in [
        ("another", &[][..]),
        ("client", &[("cookie", "a=b")]),
        ("client", &[("range", "bytes=0-")]),
        ("client", &[("if-none-match", "\"x\"")]),
        ("client", &[("origin", "http://www.test")]),
        ("client", &[("cache-control", "no-cache")]),
        ("client", &[("authorization", "x")]),
    ] {
        let (_, verdict) = world.ask(0, client, "/1.png", more);
        assert_eq!(verdict, remote::Verdict::Pass, "{client} {more:?}");
    }
    assert!(body(&world.ask(0, "client", "/1.png", &[]).1).is_some());
    for fields in [("cache-control", "public, max-age=9"), ("access-control-allow-origin", "*")] {
        let headers = &mut world.origin.get_mut("/2.png").unwrap().0;
        headers.retain(|(name, _)| name != fields.0);
        headers.push((fields.0.into(), fields.1.into()));
    }
    world.visit(0, "third");
    let (_, verdict) = world.ask(0, "third", "/2.png", &[("cookie", "a=b"), ("origin", "http://x.test")]);
    assert!(body(&verdict).is_some(), "it says that it is for everybody: {verdict:?}");
}

#[test]
fn the_same_bytes_cross_once_and_a_lost_memory_heals() {
    let mut world = World::new();
    world.visit(0, "client");
    assert_eq!((world.count(Count::Objects), world.count(Count::References)), (4, 0));
    assert_eq!(world.read_all("client"), 4);
    world.visit(1, "another");
    assert_eq!((world.count(Count::Objects), world.count(Count::References)), (4, 4));
    assert_eq!(world.read_all("another"), 4);
    // The remote forgets everything. References then name objects that are not there, and the browser's requests go on.
    world.board.retain(|name| !name.starts_with("object/") && name != "shelf");
    world.visit(0, "third");
    assert_eq!(world.read_all("third"), 0);
    // The report names the lost objects. From then on, they are sent again.
    world.now_ms += 20_000;
    world.turn();
    world.visit(0, "fourth");
    assert_eq!(world.count(Count::Objects), 8);
    assert_eq!(world.read_all("fourth"), 4);
}

#[test]
fn an_object_that_no_visitor_requests_is_not_sent_to_the_third() {
    let mut world = World::new();
    for client in ["one", "two"] {
        world.visit(0, client);
        for path in ["/a.css", "/1.png", "/3.png"] {
            assert!(body(&world.ask(0, client, path, &[]).1).is_some());
        }
        world.now_ms += 20_000;
        world.turn();
    }
    world.fetched.clear();
    world.visit(0, "three");
    assert_eq!(world.fetched, ["/a.css", "/1.png", "/3.png"]);
    assert_eq!(world.count(Count::Skipped), 1);
    assert!(world.count(Count::UsedBytes) > 0 && world.count(Count::UnusedBytes) > 0);
}

#[test]
fn objects_that_a_returning_browser_does_not_request_are_still_sent_to_others() {
    let mut world = World::new();
    for _ in 0..3 {
        world.visit(0, "client");
        assert!(body(&world.ask(0, "client", "/a.css", &[]).1).is_some());
        world.now_ms += 20_000;
        world.turn();
    }
    world.fetched.clear();
    world.visit(0, "another");
    assert_eq!(world.fetched.len(), 4);
    assert_eq!(world.count(Count::Objects), 4, "the near end has them");
}

#[test]
fn objects_that_scripts_load_at_every_visit_are_sent_until_scripts_stop_loading_them() {
    let mut world = World::new();
    let image = (list(&[(":status", "200"), ("content-type", "image/png")]), b"late".to_vec());
    world.origin.insert("/late.png?a=1&b=2", image);
    let late = [("referer", "http://www.test/")];
    let mut visit = |client: &str, path: &str, more: &[(&str, &str)]| {
        world.fetched.clear();
        world.visit(0, client);
        assert_eq!(world.read_all(client), 4);
        let found = body(&world.ask(1, client, path, more).1).map(<[u8]>::to_vec);
        world.now_ms += 20_000;
        world.turn();
        (found, world.fetched.len(), world.count(Count::LearntAdded), world.count(Count::LearntDropped))
    };
    // A client with a cookie teaches nothing. Nor do requests on behalf of another page or of none.
    for (client, more) in
        [("a", &[late[0], ("cookie", "me")][..]), ("b", &[("referer", "http://other.test/")]), ("c", &[])]
    {
        assert_eq!(visit(client, "/late.png?a=1&b=2", more), (None, 4, 0, 0));
    }
    for (client, learnt) in [("d", 0), ("e", 0), ("f", 1)] {
        assert_eq!(visit(client, "/late.png?a=1&b=2", &late), (None, 4, learnt, 0), "{client}");
    }
    assert_eq!(visit("g", "/late.png?a=1&b=2", &late), (Some(b"late".to_vec()), 5, 1, 0));
    assert_eq!(visit("h", "/4.png", &late), (None, 5, 1, 0));
    assert_eq!(visit("i", "/5.png", &late), (None, 5, 1, 1));
    assert_eq!(visit("j", "/6.png", &late), (None, 4, 1, 1));
}

#[test]
fn the_workers_of_a_ground_share_their_lessons() {
    let mut world = World::new();
    let image = (list(&[(":status", "200"), ("content-type", "image/png")]), b"late".to_vec());
    world.origin.insert("/late.png", image);
    let late = [("referer", "http://www.test/")];
    for client in ["a", "b", "c"] {
        // Another worker of the ground serves each visit.
        world.ground = GroundEnd::new(&config(Role::Ground));
        world.visit(0, client);
        for path in ["/a.css", "/1.png", "/3.png"] {
            assert!(body(&world.ask(0, client, path, &[]).1).is_some());
        }
        assert!(body(&world.ask(1, client, "/late.png", &late).1).is_none());
        world.now_ms += 20_000;
        world.turn();
    }
    world.ground = GroundEnd::new(&config(Role::Ground));
    world.fetched.clear();
    world.visit(0, "d");
    world.fetched.sort();
    assert_eq!(world.fetched, ["/1.png", "/3.png", "/a.css", "/late.png"], "one more, and one less");
    assert!(body(&world.ask(1, "d", "/late.png", &late).1).is_some());
}

#[test]
fn more_objects_than_slots_share_parcels_and_all_come_without_another_round_trip() {
    let mut world = World::new();
    let paths: Vec<String> = (0..100).map(|number| format!("/{number}.gif")).collect();
    let page = format!("<img src={}>", paths.join("><img src="));
    for path in &paths {
        let fields = list(&[(":status", "200"), ("content-type", "image/gif")]);
        world.origin.insert(path.clone().leak(), (fields, vec![b'x'; 400]));
    }
    let stream = world.begin_visit(0, "client");
    let fields = list(&[(":status", "200"), ("content-type", "text/html")]);
    assert!(world.ground.response(&world.board, stream, &borrowed(&fields)));
    world.ground.body(stream, page.as_bytes(), true, world.now_ms);
    for _ in 0..40 {
        world.turn();
    }
    assert!(world.parcels <= 32, "{} parcels: more than the flight began with slots", world.parcels);
    let here = paths.iter().filter(|path| body(&world.ask(1, "client", path, &[]).1).is_some());
    assert_eq!(here.count(), 100);
}

#[test]
fn a_page_that_is_faster_than_its_first_slot_waits_for_it_a_moment_and_no_longer() {
    let fields = list(&[(":status", "200"), ("content-type", "text/html")]);
    for (slot_comes, waited_ms) in [(true, 5), (false, 20)] {
        let mut world = World::new();
        let (_, verdict) = world.ask(0, "client", "/", &[("accept", "text/html")]);
        let remote::Verdict::Open(field) = verdict else { panic!("{verdict:?}") };
        let page = list(&[
            (":method", "GET"),
            (":authority", "www.test"),
            (":path", "/"),
            ("accept", "text/html"),
            (FLIGHT_FIELD, &field),
        ]);
        world.ground.request(&world.board, 99, &borrowed(&page), world.now_ms);
        assert!(world.ground.response(&world.board, 99, &borrowed(&fields)));
        assert!(world.ground.body(99, PAGE.as_bytes(), true, world.now_ms), "its bytes wait");
        let began_ms = world.now_ms;
        world.ground.tick(&world.board, world.now_ms);
        assert_eq!(world.ground.take_releases(), [], "no slot is there");
        if !slot_comes {
            world.workers[0].take_calls();
            world.workers = [0, 1].map(|seed| RemoteEnd::new(&config(Role::Remote), [seed; 32], [7; 8]));
        }
        while !world.released.contains_key(&99) {
            world.turn();
        }
        assert_eq!((world.now_ms - began_ms, world.parcels > 0), (waited_ms, slot_comes));
    }
}

#[test]
fn of_a_page_no_more_waits_than_the_proxy_lets_wait_with_what_comes_next() {
    let fields = list(&[(":status", "200"), ("content-type", "text/html")]);
    let most = config(Role::Ground).buffer_bytes;
    for (bytes, end, waits) in [
        (most - limits::CHUNK_BYTES, false, true),
        (most - limits::CHUNK_BYTES + 1, false, false),
        (most, true, true),
        (most + 1, true, false),
    ] {
        let mut world = World::new();
        let stream = world.begin_visit(0, "client");
        assert!(world.ground.response(&world.board, stream, &borrowed(&fields)));
        let mut page = PAGE.as_bytes().to_vec();
        page.resize(bytes, b' ');
        assert_eq!(world.ground.body(stream, &page, end, world.now_ms), waits, "{bytes} {end}");
        world.ground.tick(&world.board, world.now_ms);
        let releases = world.ground.take_releases();
        assert_eq!(releases.contains(&(stream, Release::GoOnDown)), waits, "it goes on if it waits");
        let announced = |release: &Release| matches!(release, Release::Answer(reply) if reply.status == 200);
        assert!(releases.iter().any(|(_, release)| announced(release)), "what it names is announced either way");
    }
    let mut world = World::new();
    let stream = world.begin_visit(0, "client");
    assert!(world.ground.response(&world.board, stream, &borrowed(&fields)));
    assert!(world.ground.body(stream, PAGE.as_bytes(), false, world.now_ms), "a little waits");
    assert_eq!(world.ground.held_bytes(stream), PAGE.len());
    let rest = vec![b' '; most - PAGE.len()];
    assert!(!world.ground.body(stream, &rest, false, world.now_ms), "until more comes");
    assert_eq!(world.ground.held_bytes(stream), 0);
    let mut world = World::new();
    let stream = world.begin_visit(0, "client");
    assert!(world.ground.response(&world.board, stream, &borrowed(&fields)));
    assert!(world.ground.body(stream, PAGE.as_bytes(), false, world.now_ms));
    world.ground.now_holds(stream, 9);
    assert_eq!(world.ground.held_bytes(stream), 9, "the driver has encoded them");
    assert!(world.ground.body(stream, b" ", true, world.now_ms));
    assert_eq!(world.ground.held_bytes(stream), 10);
    world.ground.cannot_hold(stream);
    assert_eq!(world.ground.held_bytes(stream), 0, "they have passed");
    world.ground.tick(&world.board, world.now_ms);
    assert!(!world.ground.take_releases().contains(&(stream, Release::GoOnDown)));
}

#[test]
fn a_ground_that_does_not_respond_costs_no_client_more_than_the_deadline() {
    let mut world = World::new();
    let stream = world.hold_for_what_never_comes();
    // Every slot is lost with the connection.
    world.ground_is_up = false;
    for (_, (worker, call)) in std::mem::take(&mut world.slots) {
        world.workers[worker].answered(&world.board, call, &Answer::Failed, world.now_ms);
    }
    for _ in 0..10 {
        world.turn();
    }
    assert_eq!(world.released.get(&stream), Some(&Release::GoOn));
    // Without even that sign, the deadline releases the request.
    let mut world = World::new();
    let stream = world.hold_for_what_never_comes();
    world.workers[1].tick(&world.board, world.now_ms + 1000);
    assert_eq!(world.workers[1].take_releases(), []);
    world.workers[1].tick(&world.board, world.now_ms + 10_000);
    assert_eq!(world.workers[1].take_releases(), [(stream, Release::GoOn)]);
}

#[test]
fn a_ground_without_flights_is_not_asked_again_for_a_while() {
    let mut world = World::new();
    let (_, verdict) = world.ask(0, "client", "/", &[("accept", "text/html")]);
    assert!(matches!(verdict, remote::Verdict::Open(_)));
    let call = world.workers[0].take_calls().swap_remove(0);
    world.workers[0].answered(&world.board, call.id, &Answer::Came(&[(b":status", b"404")], b""), world.now_ms);
    assert_eq!(world.ask(0, "client", "/", &[("accept", "text/html")]).1, remote::Verdict::Pass);
    world.now_ms += 61_000;
    assert!(matches!(world.ask(0, "client", "/", &[("accept", "text/html")]).1, remote::Verdict::Open(_)));
}

#[test]
fn a_broken_link_does_not_mean_that_the_ground_has_no_flights() {
    let mut world = World::new();
    let (_, verdict) = world.ask(0, "client", "/", &[("accept", "text/html")]);
    assert!(matches!(verdict, remote::Verdict::Open(_)));
    for call in world.workers[0].take_calls() {
        world.workers[0].answered(
            &world.board,
            call.id,
            &Answer::Came(&[(b":status", b"503")], b"reset"),
            world.now_ms,
        );
    }
    assert!(matches!(world.ask(0, "client", "/", &[("accept", "text/html")]).1, remote::Verdict::Open(_)));
}

#[test]
fn an_object_that_arrives_after_its_flight_is_there_for_the_next_visitor() {
    let mut world = World::new();
    let page = world.begin_visit(0, "client");
    world.ground.response(&world.board, page, &borrowed(&list(&[(":status", "200"), ("content-type", "text/html")])));
    world.ground.body(page, PAGE.as_bytes(), true, world.now_ms);
    // The link is away: parcels leave the ground and arrive after the report.
    let mut late = Vec::new();
    for _ in 0..10 {
        world.now_ms += 50;
        world.ground.tick(&world.board, world.now_ms);
        for call in world.ground.take_calls() {
            let path = call.fields.iter().find(|(name, _)| *name == ":path").unwrap().1.clone();
            let (fields, body) = world.origin.get(path.as_str()).unwrap().clone();
            let answer = Answer::Came(&borrowed(&fields), &body);
            world.ground.answered(&world.board, call.id, &answer, world.now_ms);
        }
        late.extend(world.ground.take_releases());
    }
    world.now_ms += 20_000;
    world.workers[0].tick(&world.board, world.now_ms);
    for (stream, release) in late {
        if let (Some((worker, call)), Release::Answer(reply)) = (world.slots.remove(&stream), release) {
            world.deliver(worker, call, &reply);
        }
    }
    world.visit(0, "another");
    assert_eq!((world.count(Count::References), world.count(Count::Lost)), (4, 0));
    assert_eq!(world.read_all("another"), 4);
}

/// Seed 23 of the simulation: the age of an object counted from its arrival, so an outage made it younger.
#[test]
fn the_time_that_a_parcel_was_on_the_link_counts_in_the_age_of_its_objects() {
    for (outage_ms, served) in [(0, 3), (20_000, 2)] {
        let mut world = World::new();
        world.origin.get_mut("/1.png").unwrap().0.retain(|(name, _)| name != "cache-control");
        world.origin.get_mut("/1.png").unwrap().0.push(("cache-control".to_owned(), "max-age=5".to_owned()));
        let page = world.begin_visit(0, "client");
        world.ground.response(
            &world.board,
            page,
            &borrowed(&list(&[(":status", "200"), ("content-type", "text/html")])),
        );
        world.ground.body(page, PAGE.as_bytes(), true, world.now_ms);
        let mut late = Vec::new();
        for _ in 0..10 {
            world.now_ms += 50;
            world.ground.tick(&world.board, world.now_ms);
            for call in world.ground.take_calls() {
                let path = call.fields.iter().find(|(name, _)| *name == ":path").unwrap().1.clone();
                let (fields, body) = world.origin.get(path.as_str()).unwrap().clone();
                let answer = Answer::Came(&borrowed(&fields), &body);
                world.ground.answered(&world.board, call.id, &answer, world.now_ms);
            }
            late.extend(world.ground.take_releases());
        }
        world.now_ms += outage_ms;
        for (stream, release) in late {
            if let (Some((worker, call)), Release::Answer(reply)) = (world.slots.remove(&stream), release) {
                world.deliver(worker, call, &reply);
            }
        }
        let paths = ["/a.css", "/1.png", "/2.png"];
        let got = paths.into_iter().filter(|path| body(&world.ask(0, "client", path, &[]).1).is_some()).count();
        assert_eq!(got, served, "after {outage_ms} ms");
    }
}

#[test]
fn internal_names_mean_nothing_from_a_client() {
    let mut world = World::new();
    let claimed = world.ask(0, "client", "/1.png", &[(FLIGHT_FIELD, "00;00")]).1;
    assert_eq!(claimed, remote::Verdict::PassWithout);
    let fields = list(&[(":method", "GET"), (":authority", "Bundle.Pair.Invalid"), (":path", "/")]);
    let verdict = world.workers[0].request(&world.board, 1, b"c", &borrowed(&fields), 0);
    assert_eq!(verdict, remote::Verdict::Answer(Reply::empty(404)));
}

#[test]
fn a_remote_of_a_later_version_opens_flights_at_this_ground() {
    let mut world = World::new();
    let (_, verdict) = world.ask(0, "client", "/", &[("accept", "text/html")]);
    let remote::Verdict::Open(field) = verdict else { panic!("{verdict:?}") };
    for (stream, later, opens) in [(200, format!("{field};2;br"), true), (201, format!("{field}2"), false)] {
        let fields = list(&[
            (":method", "GET"),
            (":authority", "www.test"),
            (":path", "/"),
            ("accept", "text/html"),
            (FLIGHT_FIELD, &later),
        ]);
        assert_eq!(world.ground.request(&world.board, stream, &borrowed(&fields), 0), ground::Verdict::Read);
        let answer = list(&[(":status", "200"), ("content-type", "text/html")]);
        assert_eq!(world.ground.response(&world.board, stream, &borrowed(&answer)), opens, "{later}");
    }
}

#[test]
fn hostile_openings_slots_and_parcels_change_nothing() {
    let mut world = World::new();
    for (number, value) in ["", ";", "zz;00", "00;00;x", "0;1"].into_iter().enumerate() {
        let stream = u32::try_from(number).unwrap() + 100;
        let fields = list(&[
            (":method", "GET"),
            (":authority", "a"),
            (":path", "/"),
            ("accept", "text/html"),
            (FLIGHT_FIELD, value),
        ]);
        assert_eq!(world.ground.request(&world.board, stream, &borrowed(&fields), 0), ground::Verdict::Read);
        assert!(!world.ground.response(
            &world.board,
            stream,
            &borrowed(&list(&[(":status", "200"), ("content-type", "text/html")])),
        ));
    }
    for (path, status) in [
        ("/x", 400),
        ("/", 400),
        ("/?used=&lost=", 400),
        (&*format!("/{}", "0".repeat(32)), 410),
        (&*format!("/{}?used=zz&lost=", "0".repeat(32)), 204),
    ] {
        let fields = list(&[(":method", "GET"), (":authority", SLOT_AUTHORITY), (":path", path)]);
        assert_eq!(
            world.ground.request(&world.board, 1, &borrowed(&fields), 0),
            ground::Verdict::Answer(Reply::empty(status)),
            "{path}"
        );
    }
    let (_, verdict) = world.ask(0, "client", "/", &[("accept", "text/html")]);
    assert!(matches!(verdict, remote::Verdict::Open(_)));
    let calls = world.workers[0].take_calls();
    for (call, (coding, body)) in
        calls.iter().zip([("", &b"\x01\x02"[..]), ("gzip", b"\x1f\x8b\x08junk"), ("", b""), ("", b"\x07")])
    {
        let fields = list(&[(":status", "200"), ("content-encoding", coding)]);
        let fields: Vec<_> = borrowed(&fields).into_iter().filter(|(_, value)| !value.is_empty()).collect();
        world.workers[0].answered(&world.board, call.id, &Answer::Came(&fields, body), world.now_ms);
    }
    assert!(world.count(Count::Malformed) >= 3);
    assert_eq!(world.ask(0, "client", "/1.png", &[]).1, remote::Verdict::Pass);
}

const CACHED: [(&str, &str); 4] =
    [(":status", "200"), ("content-type", "image/png"), ("cache-control", "max-age=60"), ("etag", "\"x\"")];
/// The lines that a 304 would have for it.
const LINES: &str = "cache-control:max-age=60\netag:\"x\"\n";

/// Lets the remote cache an object that a browser requests itself.
fn let_cache(world: &mut World, path: &str, more: &[(&str, &str)]) {
    let stream = world.stream();
    let mut request = list(&[(":method", "GET"), (":authority", "www.test"), (":path", path)]);
    request.extend(list(&[(CACHES_FIELD, &hex::encode([7; 8]))]));
    request.extend(list(more));
    let verdict = world.ground.request(&world.board, stream, &borrowed(&request), world.now_ms);
    assert_eq!(verdict, ground::Verdict::Read);
    assert!(!world.ground.response(&world.board, stream, &borrowed(&list(&CACHED))), "its body is not read");
    world.ground.gone(stream);
}

#[test]
fn an_object_in_the_cache_of_the_remote_is_validated_instead_of_sent() {
    for (more, tag, expected) in
        [(&[][..], "\"x\"", true), (&[("cookie", "a=b")], "\"x\"", false), (&[], "\"y\"", false)]
    {
        let mut world = World::new();
        let_cache(&mut world, "/1.png", more);
        let now = CACHED.map(|(name, value)| (name, if name == "etag" { tag } else { value }));
        world.origin.insert("/1.png", (list(&now), b"one".to_vec()));
        world.visit(0, "client");
        let (_, verdict) = world.ask(0, "client", "/1.png", &[]);
        assert_eq!(verdict == remote::Verdict::Valid(hex::encode(LINES)), expected, "{more:?} {tag}: {verdict:?}");
        assert_eq!(world.count(Count::Cached), u64::from(expected));
        assert_eq!(world.read_all("client"), 3, "the others were sent");
    }
}

#[test]
fn the_ground_remembers_the_cache_of_a_remote_that_starts_again() {
    let named = |name: &str| Config { caches: true, cache_name: Some(name.to_owned()), ..config(Role::Remote) };
    // `let_cache` uses the name of the first one.
    for (name, expected) in [("0707070707070707", 1), ("0808080808080808", 0)] {
        let mut world = World::new();
        let_cache(&mut world, "/1.png", &[]);
        world.origin.insert("/1.png", (list(&CACHED), b"one".to_vec()));
        world.workers[0] = RemoteEnd::new(&named(name), [3; 32], [9; 8]);
        world.visit(0, "client");
        assert_eq!(world.count(Count::Cached), expected, "{name}");
    }
}

#[test]
fn a_request_that_waits_for_an_object_in_the_cache_goes_on_with_its_validation() {
    let mut world = World::new();
    let_cache(&mut world, "/2.png", &[]);
    let stream = world.hold_for_what_never_comes();
    world.origin.insert("/2.png", (list(&CACHED), b"two".to_vec()));
    for _ in 0..10 {
        world.turn();
    }
    assert_eq!(world.released.get(&stream), Some(&Release::Valid(hex::encode(LINES))));
}

#[test]
fn a_validation_is_no_longer_used_after_a_few_round_trips() {
    let mut world = World::new();
    let_cache(&mut world, "/1.png", &[]);
    world.origin.insert("/1.png", (list(&CACHED), b"one".to_vec()));
    world.visit(0, "client");
    world.now_ms += 3000;
    assert_eq!(world.ask(0, "client", "/1.png", &[]).1, remote::Verdict::Pass);
}

#[test]
fn objects_that_the_remote_has_cost_nothing_of_what_a_flight_may_send() {
    let slow = Config { down: 10_000, ..config(Role::Ground) };
    // Three of them are a little more than a flight may send.
    let image = |first: u8| [vec![first], vec![b'x'; 14_700]].concat();
    let mut world = World::new();
    world.ground = GroundEnd::new(&slow);
    for (path, first) in [("/1.png", b'1'), ("/2.png", b'2'), ("/3.png", b'3')] {
        world.origin.get_mut(path).unwrap().1 = image(first);
    }
    for (client, expected) in [("first", 3), ("second", 4)] {
        world.visit(0, client);
        for _ in 0..2000 {
            world.turn();
        }
        assert_eq!(world.read_all(client), expected, "{client}");
    }
}

#[test]
fn a_remote_says_that_it_has_a_cache() {
    let of = |caches| RemoteEnd::new(&Config { caches, ..config(Role::Remote) }, [1; 32], [7; 8]).caches().to_vec();
    assert_eq!(of(true), [Edit::Set(CACHES_FIELD, b"0707070707070707".to_vec())]);
    assert_eq!(of(false), []);
}
