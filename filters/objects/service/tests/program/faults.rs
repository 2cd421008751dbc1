//! Disks and origins that fail.

use crate::bed::{Bed, Sizes, bytes, wait};
use crate::origin::{Answer, Gate};

const FRESH: &str = "cache-control: max-age=60\netag: \"1\"";

/// Envoy then repeats the request past the program.
#[test]
fn without_an_origin_there_is_no_response() {
    let bed = Bed::new();
    let many = (0..300).fold(String::new(), |fields, at| format!("{fields}x-{at}: a\n"));
    for answer in [
        Answer::default().close(),
        Answer::default().send(b"HTTP/1.1 200 OK\r\nx").close(),
        Answer::default().send(b"no response\r\n\r\n").close(),
        Answer::whole(&many, b"a"),
    ] {
        for fields in ["", "cookie: a=b", "range: bytes=0-1", "authorization: Basic YTpi"] {
            bed.origin.plays("/", [answer.clone()]);
            let reply = bed.get("/", fields);
            assert_eq!((reply.head.as_str(), reply.body.len()), ("", 0), "{fields}");
        }
    }
    bed.origin.close();
    assert_eq!(bed.get("/", "").head, "");
    bed.origin.open();
    bed.origin.plays("/", [Answer::whole(FRESH, b"a")]);
    assert_eq!(bed.get("/", "").text(), "a");
}

#[test]
fn all_clients_that_wait_get_no_response_if_the_origin_gives_none() {
    let bed = Bed::new();
    let gate = Gate::default();
    bed.origin.plays("/", [Answer::after(&gate, Answer::default().close())]);
    let clients: Vec<_> = (0..5).map(|_| bed.send("/", "")).collect();
    bed.settle();
    gate.open();
    assert!(clients.into_iter().all(|client| client.end().head.is_empty()));
}

#[test]
fn a_client_that_waited_asks_the_origin_itself_if_the_first_request_failed() {
    let bed = Bed::new();
    let gate = Gate::default();
    bed.origin.plays("/", [Answer::after(&gate, Answer::default().close()), Answer::whole(FRESH, b"a")]);
    let first = bed.send("/", "");
    bed.asks("/", 1);
    let second = bed.send("/", "");
    bed.settle();
    gate.open();
    assert_eq!((first.end().status(), second.end().text()), (0, "a"));
}

#[test]
fn an_idle_connection_that_the_origin_ended_costs_no_response() {
    let bed = Bed::new();
    bed.origin.plays("/", [Answer::whole("cache-control: no-store", b"a")]);
    for _ in 0..20 {
        assert_eq!(bed.get("/", "").text(), "a");
        bed.origin.hang_up();
    }
    assert_eq!(bed.origin.count("/"), 20);
}

/// Requests ask the origin, and get all bytes.
fn passes_whole(bed: &Bed, path: &str, length: usize) {
    let body = bytes(length);
    let chunked = body.chunks(70_000).fold(Answer::chunked(FRESH), Answer::chunk).chunk(b"");
    for answer in [Answer::whole(FRESH, &body), chunked] {
        bed.origin.plays(path, [answer]);
        let asked = bed.origin.count(path);
        // A request that comes just before the end of the one before it shares that one's response.
        wait("a request that asks the origin again", || {
            let reply = bed.get(path, "");
            assert!(reply.is_whole && reply.body == body, "{path}");
            bed.origin.count(path) >= asked + 3
        });
    }
    assert!(bed.files().is_empty(), "{path}");
}

#[test]
fn a_folder_without_room_for_new_files_costs_the_cache_only() {
    let bed = Bed::new();
    let new = bed.store().join("new");
    std::fs::remove_dir(&new).unwrap();
    std::fs::write(new, "").unwrap();
    passes_whole(&bed, "/", 500_000);
}

#[test]
fn a_folder_that_takes_no_names_costs_the_cache_only() {
    let bed = Bed::new();
    for first in 0..=255 {
        std::fs::write(bed.store().join(format!("{first:02x}")), "").unwrap();
    }
    passes_whole(&bed, "/", 500_000);
}

#[test]
fn a_store_that_is_too_small_costs_the_cache_only() {
    let bed = Bed::with(Sizes { disk: 400_000, ..Sizes::default() }, &[]);
    passes_whole(&bed, "/", 500_000);
    bed.stores("/small", FRESH, b"a");
}

/// The system refuses to write files of more than 100 KiB.
#[test]
fn a_disk_that_fails_within_a_body_costs_the_cache_only() {
    let limit = ["sh", "-c", "trap '' 25; ulimit -f 200; exec \"$@\"", "sh"];
    let bed = Bed::with(Sizes::default(), &limit);
    bed.stores("/small", FRESH, b"a");
    std::fs::remove_file(&bed.files()[0]).unwrap();
    passes_whole(&bed, "/", 500_000);
}

#[test]
fn a_store_that_is_full_makes_room() {
    let bed = Bed::with(Sizes { disk: 1 << 20, hot: 0, object: 1 << 20 }, &[]);
    let body = bytes(200_000);
    for at in 0..20 {
        bed.stores(&format!("/{at}"), FRESH, &body);
    }
    assert!((3..6).contains(&bed.files().len()), "{:?}", bed.files());
    assert!(bed.get("/19", "").is_stored());
}

#[test]
fn a_torn_file_is_a_miss() {
    let body = bytes(100_000);
    for (path, length) in [("/no-head", 10), ("/cut", 50_000), ("/empty", 0)] {
        let mut bed = Bed::new();
        bed.stores(path, FRESH, &body);
        let file = std::fs::OpenOptions::new().write(true).open(&bed.files()[0]).unwrap();
        file.set_len(length).unwrap();
        bed.restart();
        let reply = bed.get(path, "");
        assert!(reply.is_whole && reply.body == body, "{path}");
        assert_eq!(bed.origin.count(path), 2);
    }
}
