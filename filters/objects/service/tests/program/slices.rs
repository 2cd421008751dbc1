//! Objects in blocks: ranges that clients share, and downloads that are resumed.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use crate::bed::{Bed, Sizes, at_once, bytes, wait};
use crate::client::Reply;
use crate::origin::{Answer, Gate, field};
use crate::parts::Ranged;

pub(crate) const MIB: usize = 1 << 20;
pub(crate) const FRESH: &str = "cache-control: max-age=60\ncontent-type: application/x-test";
pub(crate) const LARGE: Sizes = Sizes { disk: 256 << 20, hot: 4 << 20, object: 16 << 20 };

/// Returns a bed whose origin serves a body at `/`.
pub(crate) fn bed(fields: &str, length: usize) -> (Bed, Arc<Ranged>, Vec<u8>) {
    bed_with(Bed::with(LARGE, &[]), &["/"], fields, length)
}

/// Lets the origin of a bed serve a body at these paths.
pub(crate) fn bed_with(bed: Bed, paths: &[&str], fields: &str, length: usize) -> (Bed, Arc<Ranged>, Vec<u8>) {
    let body = bytes(length);
    let ranged = Ranged::new(fields, "\"1\"", body.clone());
    for path in paths {
        bed.origin.serves(path, &ranged);
    }
    (bed, ranged, body)
}

pub(crate) fn range(from: usize, to: usize) -> String {
    format!("range: bytes={from}-{}", to - 1)
}

/// Checks a reply to a range.
pub(crate) fn is_part(reply: &Reply, body: &[u8], from: usize, to: usize) {
    assert_eq!((reply.status(), reply.is_whole), (206, true), "{}", reply.head);
    assert!(reply.body == body[from..to], "{from} {to}");
    assert_eq!(reply.field("content-range").unwrap(), format!("bytes {from}-{}/{}", to - 1, body.len()));
    assert_eq!(reply.field("content-length").unwrap(), (to - from).to_string());
    assert_eq!((reply.field("etag"), reply.field("content-type")), (Some("\"1\""), Some("application/x-test")));
}

/// Returns the ranges of the requests to the origin.
pub(crate) fn ranges(bed: &Bed) -> Vec<String> {
    ranges_of(bed, "/")
}

/// Returns the ranges of the requests to the origin for a path.
pub(crate) fn ranges_of(bed: &Bed, path: &str) -> Vec<String> {
    let asked = bed.origin.asked(path);
    asked.iter().map(|head| field(head, "range").unwrap_or("whole").replace("bytes=", "")).collect()
}

pub(crate) fn outcome(reply: &Reply) -> &str {
    reply.field("x-longhaul-outcome").unwrap()
}

#[test]
fn twenty_clients_that_download_by_ranges_fetch_one_copy() {
    const BLOCKS: usize = 40;
    let (bed, ranged, body) = bed(FRESH, BLOCKS * MIB);
    let step = Barrier::new(20);
    let waits: Vec<Duration> = thread::scope(|scope| {
        let clients: Vec<_> = (0..20)
            .map(|_| {
                scope.spawn(|| {
                    let mut waits = Vec::new();
                    for block in 0..BLOCKS {
                        step.wait();
                        let (from, to) = (block * MIB, (block + 1) * MIB);
                        let start = Instant::now();
                        let mut client = bed.send("/", &range(from, to));
                        client.read(1);
                        waits.push(start.elapsed());
                        is_part(&client.end(), &body, from, to);
                    }
                    waits
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let mut waits = waits;
    waits.sort();
    println!("first byte: median {:?}, longest {:?}; origin {} bytes", waits[400], waits[799], ranged.sent());
    assert!(ranged.sent() <= body.len() * 105 / 100, "{}", ranged.sent());
    // The last block's name may follow its last byte.
    wait("all blocks are there", || outcome(&bed.get("/", "")) == "hit");
    let asked = bed.origin.count("/");
    let start = Instant::now();
    let mut client = bed.send("/", &range(MIB, 40 * MIB));
    client.read(1);
    assert!(start.elapsed() < Duration::from_secs(2));
    is_part(&client.end(), &body, MIB, 40 * MIB);
    assert_eq!((bed.origin.count("/"), bed.files().len()), (asked, 1));
}

/// A paused video must not load the link with all that follows.
#[test]
fn a_client_that_pauses_stops_its_download_and_continues_it() {
    for request in ["", "range: bytes=0-"] {
        let (bed, ranged, body) = bed(FRESH, 64 * MIB);
        let mut paused = bed.send("/", request);
        paused.read(1);
        wait("the download stops", || {
            let before = ranged.sent();
            thread::sleep(Duration::from_millis(100));
            before > 16 * MIB && ranged.sent() == before
        });
        assert!(ranged.sent() < 32 * MIB, "{request}: {}", ranged.sent());
        // Another client is served meanwhile, and does not wait for the first one.
        is_part(&bed.get("/", &range(40 * MIB, 41 * MIB)), &body, 40 * MIB, 41 * MIB);
        assert!(paused.end().body == body, "{request}");
        assert_eq!(outcome(&bed.get("/", &range(0, 64 * MIB))), "hit", "{request}");
    }
}

#[test]
fn the_first_range_is_asked_for_exactly_and_later_ones_in_blocks() {
    let (bed, _, body) = bed(FRESH, 5 * MIB + 1000);
    let (from, to) = (100, 2 * MIB + 100);
    is_part(&bed.get("/", &range(from, to)), &body, from, to);
    is_part(&bed.get("/", &range(from, to)), &body, from, to);
    is_part(&bed.get("/", &range(MIB + 5, 2 * MIB)), &body, MIB + 5, 2 * MIB);
    is_part(&bed.get("/", &range(4 * MIB + 5, 5 * MIB + 7)), &body, 4 * MIB + 5, 5 * MIB + 7);
    let expected = ["100-2097251", "0-1048575", "2097152-3145727", "4194304-5243879"];
    assert_eq!(ranges(&bed), expected);
    assert!(bed.origin.asked("/")[1..].iter().all(|asked| field(asked, "if-range") == Some("\"1\"")));
    assert!(bed.origin.asked("/").iter().all(|asked| !asked.contains("x-longhaul-fill")));
    let reply = bed.get("/", "range: bytes=-300000");
    is_part(&reply, &body, body.len() - 300_000, body.len());
    assert_eq!((ranges(&bed).len(), outcome(&reply)), (4, "hit"));
}

#[test]
fn open_and_last_ranges_are_stored_as_they_come() {
    for (field, from, blocks) in
        [("range: bytes=2097152-", 2 * MIB, 2), ("range: bytes=-1048600", 3 * MIB - 24, 3), ("range: bytes=5-", 5, 1)]
    {
        let (bed, _, body) = bed(FRESH, 4 * MIB);
        is_part(&bed.get("/", field), &body, from, 4 * MIB);
        let reply = bed.get("/", &range(blocks * MIB, 4 * MIB));
        is_part(&reply, &body, blocks * MIB, 4 * MIB);
        assert_eq!((outcome(&reply), ranges(&bed).len()), ("hit", 1), "{field}");
    }
}

#[test]
fn a_short_range_is_not_inflated() {
    let (bed, ranged, body) = bed(FRESH, 4 * MIB);
    for _ in 0..2 {
        is_part(&bed.get("/", &range(0, 100_000)), &body, 0, 100_000);
    }
    assert_eq!((ranges(&bed), bed.files().len()), (vec!["0-99999".to_owned(); 2], 0));
    is_part(&bed.get("/", &range(MIB, 2 * MIB)), &body, MIB, 2 * MIB);
    let before = ranged.sent();
    is_part(&bed.get("/", &range(3 * MIB, 3 * MIB + 100)), &body, 3 * MIB, 3 * MIB + 100);
    is_part(&bed.get("/", &range(2 * MIB - 50, 2 * MIB + 50)), &body, 2 * MIB - 50, 2 * MIB + 50);
    assert_eq!(ranged.sent(), before + 200);
    let reply = bed.get("/", &range(MIB + 7, MIB + 9));
    is_part(&reply, &body, MIB + 7, MIB + 9);
    assert_eq!((ranged.sent(), outcome(&reply)), (before + 200, "hit"));
}

#[test]
fn readers_of_a_block_get_its_bytes_as_they_arrive() {
    let (bed, ranged, body) = bed(FRESH, 4 * MIB);
    bed.get("/", &range(0, MIB));
    let gate = ranged.stops_at(MIB + MIB / 2);
    let mut first = bed.send("/", &range(MIB, 2 * MIB));
    first.read(MIB / 4);
    let mut second = bed.send("/", &range(MIB + 9, 3 * MIB));
    second.read(MIB / 4);
    let mut whole = bed.send("/", "");
    whole.read(MIB + MIB / 4);
    let mut short = bed.send("/", &range(MIB + 100, MIB + 200));
    short.read(100);
    assert_eq!(field(first.head(), "x-longhaul-outcome"), Some("stored"));
    assert_eq!(field(second.head(), "x-longhaul-outcome"), Some("joined"));
    is_part(&short.end(), &body, MIB + 100, MIB + 200);
    gate.open();
    is_part(&first.end(), &body, MIB, 2 * MIB);
    is_part(&second.end(), &body, MIB + 9, 3 * MIB);
    let whole = whole.end();
    assert!(whole.is_whole && whole.status() == 200 && whole.body == body);
    wait("one copy was sent", || ranged.sent() == 4 * MIB);
}

#[test]
fn clients_that_come_at_once_wait_for_the_first_response() {
    let (bed, ranged, body) = bed(FRESH, 4 * MIB);
    let gate = ranged.stops_at(10);
    let clients: Vec<_> = (0..3).map(|at| (at, bed.send("/", &range(at * MIB, (at + 1) * MIB)))).collect();
    bed.settle();
    gate.open();
    for (at, client) in clients {
        is_part(&client.end(), &body, at * MIB, (at + 1) * MIB);
    }
    assert_eq!(ranged.sent(), 3 * MIB);
}

#[test]
fn a_client_that_leaves_stops_no_other_and_the_last_one_ends_the_request() {
    let (bed, ranged, body) = bed(FRESH, 12 * MIB);
    let gate = ranged.stops_at(MIB + MIB / 2);
    let mut first = bed.send("/", "range: bytes=0-");
    first.read(MIB);
    let mut second = bed.send("/", &range(0, 2 * MIB));
    second.read(MIB);
    drop(first);
    bed.settle();
    gate.open();
    is_part(&second.end(), &body, 0, 2 * MIB);
    wait("the program leaves the response", || ranged.left() == 1);
    assert!(ranged.sent() < 6 * MIB, "{}", ranged.sent());
    let reply = bed.get("/", &range(0, 2 * MIB));
    is_part(&reply, &body, 0, 2 * MIB);
    assert_eq!((outcome(&reply), ranges(&bed).len()), ("hit", 1));
}

#[test]
fn a_whole_download_asks_for_what_is_missing_in_long_runs() {
    let (bed, ranged, body) = bed(FRESH, 40 * MIB);
    bed.get("/", &range(2 * MIB, 3 * MIB));
    let reply = bed.get("/", "");
    assert_eq!((reply.status(), reply.is_whole, reply.field("content-range")), (200, true, None));
    assert!(reply.body == body);
    assert_eq!(reply.field("content-length").unwrap(), body.len().to_string());
    let mib = |from: usize, to: usize| format!("{}-{}", from * MIB, to * MIB - 1);
    assert_eq!(ranges(&bed), [mib(2, 3), mib(0, 2), mib(3, 19), mib(19, 35), mib(35, 40)]);
    assert_eq!(ranged.sent(), body.len());
    assert_eq!(outcome(&bed.get("/", "")), "hit");
    let head = bed.head("/", "");
    assert_eq!((head.status(), head.field("content-length")), (200, Some("41943040")));
    assert_eq!(bed.get("/", "if-none-match: \"1\"").status(), 304);
}

#[test]
fn a_reader_far_ahead_does_not_wait_for_a_download() {
    let (bed, ranged, body) = bed(FRESH, 40 * MIB);
    let gate = ranged.stops_at(MIB + MIB / 2);
    let mut whole = bed.send("/", "");
    whole.read(MIB);
    let reply = bed.get("/", &range(22 * MIB, 30 * MIB));
    is_part(&reply, &body, 22 * MIB, 30 * MIB);
    assert_eq!(ranges(&bed), ["whole".to_owned(), format!("{}-{}", 22 * MIB, 30 * MIB - 1)]);
    gate.open();
    let whole = whole.end();
    assert!(whole.is_whole && whole.body == body);
    // The download ends where the other part begins, and goes on behind it. Some bytes were on the way.
    assert_eq!(ranges(&bed)[2..], [format!("{}-{}", 30 * MIB, 40 * MIB - 1)]);
    assert!(ranged.sent() < 42 * MIB, "{}", ranged.sent());
}

#[test]
fn the_next_run_is_requested_before_the_last_one_ends() {
    let (bed, ranged, body) = bed(FRESH, 20 * MIB);
    bed.get("/", &range(0, MIB));
    let gate = ranged.stops_at(16 * MIB + 9);
    let client = bed.send("/", "");
    let client = thread::spawn(|| client.end());
    bed.asks("/", 3);
    gate.open();
    let reply = client.join().unwrap();
    assert!(reply.is_whole && reply.body == body);
    let mib = |from: usize, to: usize| format!("{}-{}", from * MIB, to * MIB - 1);
    assert_eq!(ranges(&bed), [mib(0, 1), mib(1, 17), mib(17, 20)]);
}

#[test]
fn several_ranges_are_served_if_all_are_there() {
    let (bed, _, body) = bed(FRESH, 4 * MIB);
    bed.get("/", &range(0, 2 * MIB));
    let reply = bed.get("/", "range: bytes=0-9, 2097142-2097151");
    assert_eq!((reply.status(), outcome(&reply)), (206, "hit"));
    assert!(reply.body.windows(10).any(|part| *part == body[..10]));
    assert!(reply.body.windows(10).any(|part| *part == body[2 * MIB - 10..2 * MIB]));
    assert_eq!(bed.origin.count("/"), 1);
    // The origin of this test knows no such range, and ends the connection.
    assert_eq!(bed.get("/", "range: bytes=0-9, 3000000-3000009").head, "");
    assert_eq!(ranges(&bed)[1], "0-9, 3000000-3000009");
}

#[test]
fn a_range_beyond_the_end_is_the_origins() {
    let (bed, _, _) = bed(FRESH, 4 * MIB);
    bed.get("/", &range(0, MIB));
    let reply = bed.get("/", "range: bytes=4194304-");
    assert_eq!((reply.status(), reply.field("content-range")), (416, Some("bytes */4194304")));
    assert_eq!(ranges(&bed)[1], "4194304-");
    assert_eq!(outcome(&bed.get("/", &range(0, MIB))), "hit");
}

#[test]
fn conditions_of_a_client_that_continues_hold_or_are_the_origins() {
    let old = "Fri, 27 Nov 2020 10:00:00 GMT";
    let fields = format!("{FRESH}\nlast-modified: {old}");
    for condition in ["if-range: \"1\"", "if-match: \"1\"", &format!("if-unmodified-since: {old}")] {
        let (bed, ranged, body) = bed(&fields, 4 * MIB);
        for _ in 0..2 {
            is_part(&bed.get("/", &format!("{}\n{condition}", range(0, MIB))), &body, 0, MIB);
        }
        assert_eq!(ranged.sent(), MIB, "{condition}");
        assert!(!bed.origin.asked("/")[0].contains("if-"), "{condition}");
    }
    let (bed, _, body) = bed(&fields, 2 * MIB);
    for _ in 0..2 {
        let reply = bed.get("/", &format!("{}\nif-range: \"0\"", range(0, MIB)));
        assert!(reply.status() == 200 && reply.body == body);
        assert_eq!(outcome(&reply), "past");
    }
    assert_eq!(field(bed.origin.asked("/").last().unwrap(), "if-range"), Some("\"0\""));
}

#[test]
fn parts_are_shared_as_whole_responses_are() {
    let cookies = ("cookie: id=1", "cookie: id=2");
    for (fields, tag, (one, other), is_shared) in [
        (FRESH, "\"1\"", ("", ""), true),
        (FRESH, "W/\"1\"", ("", ""), false),
        ("cache-control: max-age=60, private", "\"1\"", ("", ""), false),
        ("cache-control: no-store", "\"1\"", ("", ""), false),
        ("cache-control: max-age=60, public\nset-cookie: id=1", "\"1\"", ("", ""), false),
        ("cache-control: max-age=60\nvary: *", "\"1\"", ("", ""), false),
        (FRESH, "\"1\"", cookies, false),
        ("cache-control: public, max-age=60", "\"1\"", cookies, true),
        (FRESH, "\"1\"", ("authorization: Basic YTpi", "authorization: Basic YTpj"), false),
        (FRESH, "\"1\"", ("cache-control: no-store", "cache-control: no-store"), false),
        (FRESH, "\"1\"", ("x-forwarded-host: evil.test", "x-forwarded-host: evil.test"), false),
        (
            "cache-control: max-age=60\nvary: accept-encoding",
            "\"1\"",
            ("accept-encoding: gzip", "accept-encoding: gzip, x"),
            true,
        ),
        ("cache-control: max-age=60\nvary: accept-encoding", "\"1\"", ("accept-encoding: gzip", ""), false),
    ] {
        let bed = Bed::with(LARGE, &[]);
        let body = bytes(2 * MIB);
        let ranged = Ranged::new(fields, tag, body.clone());
        bed.origin.serves("/", &ranged);
        for fields in [one, other] {
            let reply = bed.get("/", &format!("{}\n{fields}", range(0, MIB)));
            assert_eq!((reply.status(), reply.is_whole), (206, true), "{fields}");
            assert!(reply.body == body[..MIB]);
        }
        let copies = if is_shared { 1 } else { 2 };
        assert_eq!(ranged.sent(), copies * MIB, "{fields} {tag} {one} {other}");
    }
}

#[test]
fn ranges_that_cannot_be_shared_do_not_wait_for_one_another() {
    let bed = Bed::new();
    let body = bytes(MIB);
    let part = || {
        let fields = format!("{FRESH}\netag: W/\"1\"\ncontent-range: bytes 0-1048575/2097152");
        Answer::status("206 Partial Content", &fields, &body)
    };
    let gate = Gate::default();
    bed.origin.plays("/", [part(), Answer::after(&gate, part()), part()]);
    assert_eq!(bed.get("/", &range(0, MIB)).status(), 206);
    let slow = bed.send("/", &range(0, MIB));
    bed.asks("/", 2);
    assert!(at_once(|| bed.get("/", &range(0, MIB))).body == body);
    gate.open();
    assert!(slow.end().body == body);
}

#[test]
fn a_stored_object_is_for_clients_with_credentials_if_the_origin_says_so() {
    for (fields, is_shared) in [(FRESH, false), ("cache-control: public, max-age=60", true)] {
        let (bed, ranged, body) = bed(fields, 2 * MIB);
        bed.get("/", &range(0, MIB));
        for credentials in ["cookie: id=1", "authorization: Basic YTpi"] {
            let before = ranged.sent();
            let reply = bed.get("/", &format!("{}\n{credentials}", range(0, MIB)));
            assert!(reply.body == body[..MIB]);
            assert_eq!(ranged.sent() == before, is_shared, "{fields} {credentials}");
        }
    }
}

#[test]
fn a_stale_object_is_validated_with_the_range() {
    let (bed, ranged, body) = bed("cache-control: max-age=60\nage: 100\ncontent-type: application/x-test", 4 * MIB);
    is_part(&bed.get("/", &range(0, MIB)), &body, 0, MIB);
    ranged.says(FRESH);
    let reply = bed.get("/", &range(0, MIB));
    is_part(&reply, &body, 0, MIB);
    assert_eq!((outcome(&reply), ranged.sent()), ("revalidated", MIB));
    let asked = bed.origin.asked("/").remove(1);
    assert_eq!((field(&asked, "if-none-match"), field(&asked, "range")), (Some("\"1\""), Some("bytes=0-1048575")));
    assert_eq!(outcome(&bed.get("/", &range(0, MIB))), "hit");
}

#[test]
fn clients_share_an_object_that_the_origin_validates_at_each_use() {
    const ALWAYS: &str = "cache-control: no-cache\ncontent-type: application/x-test";
    let (bed, ranged, body) = bed(ALWAYS, 8 * MIB);
    let step = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for block in 0..8 {
                    step.wait();
                    let (from, to) = (block * MIB, (block + 1) * MIB);
                    is_part(&bed.get("/", &range(from, to)), &body, from, to);
                }
            });
        }
    });
    // On a busy machine, a client may come between the end of a fetch and the block's place in the store. It fetches the block
    // again, instead of validating it.
    let again = (ranged.sent() - body.len()) / MIB;
    assert!(again <= 1, "{again} blocks left the origin twice");
    // Each client's use of each block was validated, and the first one by the block itself.
    let asked = bed.origin.asked("/");
    let validated = asked.iter().filter(|asked| field(asked, "if-none-match") == Some("\"1\"")).count();
    assert_eq!((asked.len(), validated), (32, 24 - again));
}

#[test]
fn a_missing_range_of_a_stale_object_costs_one_request() {
    const STALE: &str = "cache-control: max-age=60\nage: 100\ncontent-type: application/x-test";
    let (bed, ranged, body) = bed(STALE, 8 * MIB);
    is_part(&bed.get("/", &range(0, MIB)), &body, 0, MIB);
    is_part(&bed.get("/", &range(MIB + 5, 4 * MIB - 5)), &body, MIB + 5, 4 * MIB - 5);
    assert_eq!(ranges(&bed), ["0-1048575", "1048576-4194303"]);
    assert_eq!(field(&bed.origin.asked("/")[1], "if-range"), Some("\"1\""));
    ranged.says(FRESH);
    is_part(&bed.get("/", &range(4 * MIB, 5 * MIB)), &body, 4 * MIB, 5 * MIB);
    // The part made the object fresh again.
    assert_eq!(outcome(&bed.get("/", &range(0, 5 * MIB))), "hit");
    assert_eq!((ranges(&bed).len(), ranged.sent()), (3, 5 * MIB));
    for ignores in [false, true] {
        let (bed, ranged, _) = crate::slices::bed(STALE, 8 * MIB);
        bed.get("/", &range(0, MIB));
        let new: Vec<u8> = bytes(6 * MIB).into_iter().rev().collect();
        ranged.changes("\"2\"", new.clone());
        if ignores {
            ranged.ignores_if_range();
        }
        let reply = bed.get("/", &range(MIB + 5, 2 * MIB));
        assert_eq!((reply.status(), reply.is_whole, reply.field("etag")), (206, true, Some("\"2\"")), "{ignores}");
        assert!(reply.body == new[MIB + 5..2 * MIB], "{ignores}");
        let reply = bed.get("/", "");
        assert!(reply.is_whole && reply.body == new, "{ignores}");
    }
    let (bed, ranged, _) = crate::slices::bed(STALE, 8 * MIB);
    bed.get("/", &range(0, MIB));
    ranged.changes("\"2\"", bytes(2 * MIB));
    let reply = bed.get("/", &range(7 * MIB, 8 * MIB));
    assert_eq!((reply.status(), reply.field("content-range")), (416, Some("bytes */2097152")));
}

#[test]
fn a_stale_object_that_has_changed_is_replaced_by_the_part_that_comes() {
    let (bed, ranged, _) = bed("cache-control: max-age=60\nage: 100", 4 * MIB);
    bed.get("/", &range(0, 2 * MIB));
    let new: Vec<u8> = bytes(3 * MIB).into_iter().rev().collect();
    ranged.changes("\"2\"", new.clone());
    ranged.says(FRESH);
    for expected in ["stored", "hit"] {
        let reply = bed.get("/", &range(0, MIB));
        assert!(reply.body == new[..MIB] && reply.field("content-range") == Some("bytes 0-1048575/3145728"));
        assert_eq!(outcome(&reply), expected);
    }
    let whole = bed.get("/", "");
    assert!(whole.is_whole && whole.body == new);
    assert_eq!(bed.files().len(), 1);
}

#[test]
fn a_stored_object_alone_is_what_only_if_cached_gets() {
    let (bed, _, body) = bed(FRESH, 3 * MIB);
    bed.get("/", &range(0, MIB));
    is_part(&bed.get("/", &format!("{}\ncache-control: only-if-cached", range(5, MIB))), &body, 5, MIB);
    for fields in [range(MIB, 2 * MIB), "accept: */*".to_owned()] {
        let reply = bed.get("/", &format!("{fields}\ncache-control: only-if-cached"));
        assert_eq!((reply.status(), outcome(&reply)), (504, "unavailable"));
    }
    assert_eq!(bed.origin.count("/"), 1);
}

#[test]
fn an_object_takes_half_of_the_cache_at_most() {
    let sizes = Sizes { disk: 8 << 20, hot: 0, object: 1 << 19 };
    for (length, is_stored) in [(4 * MIB, true), (4 * MIB + 1, false)] {
        let bed = Bed::with(sizes, &[]);
        let ranged = Ranged::new(FRESH, "\"1\"", bytes(length));
        bed.origin.serves("/", &ranged);
        for fields in [range(0, MIB), range(0, MIB), String::new()] {
            assert!(bed.get("/", &fields).is_whole);
        }
        assert_eq!(bed.files().len(), usize::from(is_stored), "{length}");
    }
}

#[test]
fn a_request_that_changes_the_url_removes_the_blocks() {
    let (bed, ranged, body) = bed(FRESH, 4 * MIB);
    let fields = format!("x-longhaul-scheme: http\n{}", range(0, MIB));
    bed.get("/", &fields);
    let file = bed.files().remove(0);
    assert_eq!(bed.post("/").status(), 204);
    assert!(!file.exists());
    is_part(&bed.get("/", &fields), &body, 0, MIB);
    assert_eq!(ranged.sent(), 2 * MIB);
}

#[test]
fn a_client_that_insists_gets_a_part_of_a_stale_object_only_if_it_is_still_true() {
    const STALE: &str = "cache-control: max-age=60\nage: 100\ncontent-type: application/x-test";
    let (bed, ranged, body) = bed(STALE, 4 * MIB);
    let fields = format!("{}\nif-match: \"1\"", range(0, MIB));
    is_part(&bed.get("/", &fields), &body, 0, MIB);
    let reply = bed.get("/", &fields);
    is_part(&reply, &body, 0, MIB);
    assert_eq!((outcome(&reply), ranged.sent()), ("revalidated", MIB));
    ranged.changes("\"2\"", body.iter().map(|byte| !byte).collect());
    assert_eq!(outcome(&bed.get("/", &fields)), "past");
    assert_eq!(field(bed.origin.asked("/").last().unwrap(), "if-match"), Some("\"1\""));
}
