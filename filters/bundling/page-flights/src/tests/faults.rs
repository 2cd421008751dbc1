//! Regression tests of faults that others found. Each test has the name of its fault, and failed before the fix.

use super::*;
use shared_board::Board;
use std::cell::RefCell;

impl World {
    /// Runs one visit: a client opens the page, requests all its objects and `more` on its behalf. Then the report
    /// arrives.
    fn whole_visit(&mut self, client: &str, more: &[(&str, &str)]) {
        self.fetched.clear();
        self.requests.clear();
        self.visit(0, client);
        self.read_all(client);
        for (host, path) in more {
            self.ask(0, client, path, &[(":authority", host), ("referer", "http://www.test/")]);
        }
        self.now_ms += 20_000;
        self.turn();
    }

    fn has(&mut self, path: &'static str, fields: &[(&str, &str)], body: &str) {
        self.origin.insert(path, (list(fields), body.as_bytes().to_vec()));
    }

    fn requested(&self, authority: &str) -> usize {
        let to = |fields: &&Pairs| fields.iter().any(|(name, value)| name == ":authority" && value == authority);
        self.requests.iter().filter(to).count()
    }

    fn fields_of(&self, path: &str) -> Vec<&str> {
        let of = |fields: &&Pairs| fields.iter().any(|(name, value)| name == ":path" && value == path);
        self.requests.iter().find(of).unwrap().iter().map(|(name, _)| &**name).collect()
    }
}

const BEACONS: [(&str, &str); 4] =
    [("evil.test", "/1.gif"), ("evil.test", "/2.gif"), ("evil.test", "/3.gif"), ("evil.test", "/4.gif")];
const GIF: &[(&str, &str)] = &[(":status", "200"), ("content-type", "image/gif")];

#[test]
fn one_client_plants_a_beacon_in_anybodys_page() {
    let mut world = World::new();
    for path in ["/1.gif", "/2.gif", "/3.gif", "/4.gif"] {
        world.has(path, GIF, "junk");
    }
    for _ in 0..6 {
        world.whole_visit("attacker", &BEACONS);
    }
    let mut planted_beacons = 0;
    for visitor in ["a", "b", "c"] {
        world.whole_visit(visitor, &[]);
        planted_beacons += world.requested("evil.test");
    }
    println!("planted_beacons {planted_beacons}");
    assert_eq!(planted_beacons, 0);
}

#[test]
fn many_clients_of_an_attacker_plant_a_beacon_on_a_host_that_the_page_does_not_name() {
    let mut world = World::new();
    for path in ["/1.gif", "/2.gif", "/3.gif", "/4.gif"] {
        world.has(path, GIF, "junk");
    }
    for client in 0..12 {
        world.whole_visit(&format!("10.0.0.{client}"), &BEACONS);
    }
    world.whole_visit("visitor", &[]);
    assert_eq!(world.requested("evil.test"), 0);
}

#[test]
fn one_client_has_objects_of_the_pages_own_site_sent_to_everybody() {
    let mut world = World::new();
    world.has("/huge.bin", &[(":status", "200"), ("content-type", "image/gif")], "huge");
    for _ in 0..6 {
        world.whole_visit("attacker", &[("www.test", "/huge.bin")]);
    }
    world.whole_visit("visitor", &[]);
    assert!(!world.fetched.contains(&"/huge.bin".to_owned()), "{:?}", world.fetched);
    world.whole_visit("attacker", &[]);
    assert!(world.fetched.contains(&"/huge.bin".to_owned()), "its own visits may have it");
}

#[test]
fn junk_that_was_planted_is_never_unlearnt_as_its_own_share_protects_it() {
    let mut world = World::new();
    let junk = ["/j0", "/j1", "/j2", "/j3", "/j4", "/j5", "/j6", "/j7", "/j8", "/j9"];
    for path in junk {
        world.has(path, GIF, "junk");
    }
    let asked: Vec<(&str, &str)> = junk.iter().map(|path| ("www.test", *path)).collect();
    for client in ["x", "y", "z"] {
        world.whole_visit(client, &asked);
    }
    world.whole_visit("a", &[]);
    assert_eq!(world.fetched.len(), 4 + junk.len(), "three clients agree");
    // Each visitor uses four of fourteen objects.
    world.whole_visit("b", &[]);
    world.whole_visit("c", &[]);
    assert_eq!(world.fetched.len(), 4, "{:?}", world.fetched);
}

#[test]
fn a_learnt_object_is_fetched_with_another_visitors_own_headers() {
    let mut world = World::new();
    world.page_fields = list(&[("accept-language", "de"), ("dnt", "1")]);
    world.has("/late.png", GIF, "late");
    for client in ["a", "b", "c", "d"] {
        world.whole_visit(client, &[("www.test", "/late.png")]);
    }
    let learnt = world.fields_of("/late.png");
    assert!(!learnt.contains(&"accept-language") && !learnt.contains(&"dnt"), "{learnt:?}");
    let fields = world.requests.iter().find(|fields| fields.iter().any(|(_, value)| value == "/late.png")).unwrap();
    assert!(!fields.contains(&("user-agent".to_owned(), "b".to_owned())));
    assert!(world.fields_of("/1.png").contains(&"accept-language"));
}

#[test]
fn one_client_stops_the_bundling_of_an_object_for_everybody() {
    let mut world = World::new();
    for _ in 0..4 {
        world.visit(0, "attacker");
        for path in ["/a.css", "/1.png", "/3.png"] {
            assert!(body(&world.ask(0, "attacker", path, &[]).1).is_some());
        }
        world.now_ms += 20_000;
        world.turn();
    }
    world.whole_visit("visitor", &[]);
    assert!(world.fetched.contains(&"/2.png".to_owned()), "{:?}", world.fetched);
}

#[test]
fn a_request_that_says_more_than_is_understood_gets_what_was_fetched_without() {
    let mut world = World::new();
    world.visit(0, "client");
    for field in [
        ("x-api-key", "k"),
        ("x-auth-token", "t"),
        ("x-requested-with", "XMLHttpRequest"),
        ("x-forwarded-host", "h"),
        ("cache-control", "max-stale"),
    ] {
        assert_eq!(world.ask(0, "client", "/1.png", &[field]).1, remote::Verdict::Pass, "{field:?}");
    }
    assert!(body(&world.ask(0, "client", "/1.png", &[("accept-language", "de")]).1).is_some());
}

#[test]
fn a_navigation_or_a_frame_is_answered_from_a_flight() {
    let mut world = World::new();
    world.visit(0, "client");
    for destination in ["document", "iframe", "frame", "embed", "object", "worker", "serviceworker"] {
        let verdict = world.ask(0, "client", "/1.png", &[("sec-fetch-dest", destination)]).1;
        assert_eq!(verdict, remote::Verdict::Pass, "{destination}");
    }
    assert!(body(&world.ask(0, "client", "/1.png", &[("sec-fetch-dest", "image")]).1).is_some());
}

#[test]
fn an_object_that_may_not_be_kept_is_given_to_a_browser_20_s_later() {
    for (directive, is_there) in [("no-cache", false), ("max-age=0", false), ("max-age=5", false), ("max-age=60", true)]
    {
        for (wait_ms, is_there) in [(0, true), (20_000, is_there)] {
            let mut world = World::new();
            let fields = [(":status", "200"), ("content-type", "image/png"), ("cache-control", directive)];
            world.has("/1.png", &fields, "one");
            world.visit(0, "client");
            world.now_ms += wait_ms;
            let verdict = world.ask(0, "client", "/1.png", &[]).1;
            assert_eq!(body(&verdict).is_some(), is_there, "{directive} {wait_ms}");
        }
    }
}

#[test]
fn an_object_is_given_to_a_client_that_has_written_to_its_host_since() {
    let mut world = World::new();
    world.visit(0, "client");
    world.visit(0, "another");
    assert_eq!(world.ask(1, "client", "/like", &[(":method", "POST")]).1, remote::Verdict::Pass);
    assert_eq!(world.ask(0, "client", "/1.png", &[]).1, remote::Verdict::Pass);
    assert!(body(&world.ask(0, "another", "/1.png", &[]).1).is_some());
    world.visit(0, "client");
    assert!(body(&world.ask(0, "client", "/1.png", &[]).1).is_some(), "what was fetched afterwards is good");
}

#[test]
fn an_object_fetched_with_one_pages_referer_serves_the_clients_next_page() {
    let mut world = World::new();
    world.visit(0, "client");
    let ask = |world: &mut World, referer| world.ask(0, "client", "/1.png", &[("referer", referer)]).1;
    assert_eq!(ask(&mut world, "http://other.test/page"), remote::Verdict::Pass);
    assert!(body(&ask(&mut world, "http://www.test/page")).is_some());
}

#[test]
fn an_objects_request_names_the_sheet_that_it_is_in() {
    let mut world = World::new();
    world.visit(0, "client");
    let referer = |path: &str| {
        let of = |fields: &&Pairs| fields.contains(&(":path".to_owned(), path.to_owned()));
        let fields = world.requests.iter().find(of).unwrap();
        fields.iter().find(|(name, _)| name == "referer").unwrap().1.clone()
    };
    assert_eq!((referer("/1.png"), referer("/3.png")), ("http://www.test/".into(), "http://www.test/a.css".into()));
}

#[test]
fn one_failed_fetch_stops_the_bundling_of_an_object_for_ever() {
    for status in ["", "500", "502", "503", "504", "429", "408"] {
        let mut world = World::new();
        let good = world.origin.remove("/1.png").unwrap();
        if !status.is_empty() {
            world.origin.insert("/1.png", (list(&[(":status", status)]), Vec::new()));
        }
        world.whole_visit("a", &[]);
        world.origin.insert("/1.png", good);
        world.whole_visit("b", &[]);
        assert!(world.fetched.contains(&"/1.png".to_owned()), "{status}");
    }
}

#[test]
fn one_visitor_without_gzip_stops_the_bundling_of_an_object_for_everybody() {
    let mut world = World::new();
    world.origin.get_mut("/1.png").unwrap().0.push(("content-encoding".into(), "gzip".into()));
    world.page_fields = list(&[("accept-encoding", "identity")]);
    world.whole_visit("a", &[]);
    world.page_fields.clear();
    world.visit(0, "b");
    assert!(body(&world.ask(0, "b", "/1.png", &[]).1).is_some());
}

#[test]
fn an_object_that_was_unfit_once_is_unfit_for_ever() {
    let mut world = World::new();
    let good = world.origin.insert("/1.png", (list(&[(":status", "404")]), Vec::new())).unwrap();
    world.whole_visit("a", &[]);
    world.origin.insert("/1.png", good);
    // Visitors request the page all the time.
    for visitor in 0..200 {
        world.whole_visit(&format!("v{visitor}"), &[]);
    }
    assert!(world.fetched.contains(&"/1.png".to_owned()), "{} s later", world.now_ms / 1000);
}

#[test]
fn an_origins_x_longhaul_field_reaches_the_browser_through_a_flight() {
    let mut world = World::new();
    for name in ["x-longhaul-headers", "x-longhaul-flight", "x-longhaul-anything"] {
        world.origin.get_mut("/1.png").unwrap().0.push((name.into(), "-".into()));
    }
    world.visit(0, "client");
    let remote::Verdict::Answer(reply) = world.ask(0, "client", "/1.png", &[]).1 else { panic!() };
    let ours = reply.fields.iter().filter(|(name, _)| name.starts_with(b"x-longhaul"));
    assert_eq!(ours.count(), 0);
}

#[test]
fn the_page_is_fetched_again_for_an_empty_reference_and_travels_as_an_object() {
    let mut world = World::new();
    let page = (":status", "200");
    world.has("/", &[page, ("content-type", "text/html")], "<p>");
    world.has("/frame.html", &[page, ("content-type", "text/html")], "<p>");
    world.page = "<img src=''><img src='#'><img src=' '><script src=''></script><img src='/#x'><img src=/frame.html>\
        <style>p{background:url()}q{background:url(#x)}</style><img src=/1.png>"
        .to_owned();
    world.whole_visit("a", &[]);
    let page_fetched_again = world.fetched.iter().filter(|path| *path == "/").count();
    assert_eq!(page_fetched_again, 0);
    assert_eq!(world.fetched, ["/frame.html", "/1.png"]);
    assert_eq!(world.count(Count::Objects), 1);
}

#[test]
fn a_visitor_who_saves_data_is_sent_objects_unasked() {
    let mut world = World::new();
    let fields = [("accept", "text/html"), ("save-data", "on")];
    assert_eq!(world.ask(0, "client", "/", &fields).1, remote::Verdict::Pass);
}

#[test]
fn a_browser_that_knows_webp_is_sent_what_one_gets_that_does_not() {
    for (accept, newer) in [("text/html,image/avif,image/webp,*/*;q=0.8", true), ("text/html,*/*;q=0.8", false)] {
        let mut world = World::new();
        let (_, verdict) = world.ask(0, "client", "/", &[("accept", "text/html")]);
        let remote::Verdict::Open(field) = verdict else { panic!("{verdict:?}") };
        let opening = [(":method", "GET"), (":authority", "www.test"), (":path", "/"), ("accept", accept)];
        let fields = [&opening[..], &[("dnt", "1"), ("sec-gpc", "1"), (FLIGHT_FIELD, &field)]].concat();
        world.ground.request(&world.board, 999, &borrowed(&list(&fields)), world.now_ms);
        world.answer_page(999);
        let of = |fields: &&Pairs| fields.contains(&(":path".to_owned(), "/1.png".to_owned()));
        let fields = world.requests.iter().find(of).unwrap();
        let value = |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| &**value);
        assert_eq!(value("accept").unwrap().contains("image/webp"), newer);
        assert_eq!((value("dnt"), value("sec-gpc")), (Some("1"), Some("1")));
    }
}

/// A board that counts the bytes read from it.
struct Counting<'m>(&'m Memory, RefCell<usize>);

impl Board for Counting<'_> {
    fn get(&self, name: &str) -> (Vec<u8>, u32) {
        let found = self.0.get(name);
        *self.1.borrow_mut() += found.0.len();
        found
    }

    fn set(&self, name: &str, value: &[u8], version: u32) -> bool {
        self.0.set(name, value, version)
    }
}

#[test]
fn a_held_request_costs_a_copy_of_the_board_each_tick() {
    let mut world = World::new();
    let stream = world.hold_for_what_never_comes();
    let board = Counting(&world.board, RefCell::new(0));
    // The first tick reads the current state.
    world.workers[1].tick(&board, world.now_ms + 5);
    *board.1.borrow_mut() = 0;
    for tick in 2..100 {
        world.workers[1].tick(&board, world.now_ms + 5 * tick);
    }
    assert_eq!(*board.1.borrow(), 0, "bytes read while nothing has changed");
    assert_eq!(world.workers[1].take_releases(), []);
    world.workers[1].tick(&board, world.now_ms + 10_000);
    assert_eq!(world.workers[1].take_releases(), [(stream, Release::GoOn)]);
}

#[test]
fn every_picture_of_a_sheet_is_bundled_whatever_the_page_has() {
    let mut world = World::new();
    for path in ["/own.png", "/late.png", "/other.png", "/hover.png"] {
        world.has(path, &[(":status", "200"), ("content-type", "image/png")], path);
    }
    let sheet = ".own{background:url(/own.png)}#late b{background:url(/late.png)}\
        .other,.own.x{background:url(/other.png)}.own:hover{background:url(/hover.png)}";
    world.has("/a.css", &[(":status", "200"), ("content-type", "text/css")], sheet);
    let page = world.begin_visit(0, "client");
    assert!(world.ground.response(
        &world.board,
        page,
        &borrowed(&list(&[(":status", "200"), ("content-type", "text/html")]))
    ));
    let mut markup = b"<link rel=stylesheet href=/a.css><p class='own y'>".to_vec();
    world.ground.body(page, &markup, false, world.now_ms);
    for _ in 0..5 {
        world.turn();
    }
    assert_eq!(world.fetched, ["/a.css", "/own.png"], "as far as the page has passed");
    markup = b"<div id=late>".to_vec();
    world.ground.body(page, &markup, true, world.now_ms);
    for _ in 0..5 {
        world.turn();
    }
    assert_eq!(world.fetched, ["/a.css", "/own.png", "/late.png"]);
}

#[test]
fn modules_are_never_bundled() {
    let mut world = World::new();
    world.page = "<script type=module src=/m.js></script><link rel=modulepreload href=/n.js>".to_owned();
    world.whole_visit("a", &[]);
    assert_eq!(world.fetched, ["/m.js", "/n.js"]);
}

#[test]
fn every_format_of_a_font_is_bundled() {
    let mut world = World::new();
    world.page = "<style>@font-face{font-family:F;src:url(/f.eot);src:url(/f.eot?#iefix)format('embedded-opentype'),\
        url(/f.woff2)format('woff2'),url(/f.woff)format('woff'),url(/f.ttf)format('truetype')}</style>"
        .to_owned();
    world.whole_visit("a", &[]);
    assert_eq!(world.fetched, ["/f.woff2"]);
}
