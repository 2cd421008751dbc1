//! Parts of stored bodies.

use crate::bed::{Bed, bytes, wait};
use crate::client::Reply;
use crate::origin::{Answer, Gate, field};

const FRESH: &str = "cache-control: max-age=60\netag: \"1\"\ncontent-type: text/plain";
const STALE: &str = "cache-control: max-age=60\netag: \"0\"\nage: 100";

/// Returns the parts of a multipart body, each with its `Content-Range`.
fn parts(reply: &Reply) -> Vec<(String, Vec<u8>)> {
    let kind = reply.field("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap().trim_matches('"');
    let (mark, mut rest, mut parts) = (format!("--{boundary}"), &reply.body[..], Vec::new());
    loop {
        let at = find(rest, mark.as_bytes()).unwrap();
        if let Some(range) = parts.last_mut() {
            let (_, body): &mut (String, Vec<u8>) = range;
            *body = rest[..at - 2].to_vec();
        }
        rest = &rest[at + mark.len()..];
        if rest.starts_with(b"--") {
            return parts;
        }
        let end = find(rest, b"\r\n\r\n").unwrap() + 4;
        let head = std::str::from_utf8(&rest[2..end]).unwrap().to_lowercase();
        assert_eq!(field(&head, "content-type"), Some("text/plain"));
        parts.push((field(&head, "content-range").unwrap().to_owned(), Vec::new()));
        rest = &rest[end..];
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[test]
fn a_stored_body_gives_the_parts_that_a_request_names() {
    let bed = Bed::new();
    // One body lies in memory, and the other one in a file.
    for length in [1000_usize, 300_000] {
        let (path, body) = (format!("/{length}"), bytes(length));
        bed.stores(&path, FRESH, &body);
        for (range, from, to) in [
            ("0-0", 0, 1),
            ("5-9", 5, 10),
            ("990-", 990, length),
            ("-10", length - 10, length),
            ("900-99999999", 900, length),
            ("-99999999", 0, length),
        ] {
            let reply = bed.get(&path, &format!("range: bytes={range}"));
            assert_eq!((reply.status(), reply.is_whole, reply.is_stored()), (206, true, true), "{range}");
            assert!(reply.body == body[from..to], "{range}");
            assert_eq!(reply.field("content-range").unwrap(), format!("bytes {from}-{}/{length}", to - 1));
            assert_eq!(reply.field("content-length").unwrap(), (to - from).to_string());
            assert_eq!((reply.field("etag"), reply.field("content-type")), (Some("\"1\""), Some("text/plain")));
        }
        for range in ["bytes=0-1,0-", "bytes=9-5", "lines=0-1"] {
            let reply = bed.get(&path, &format!("range: {range}"));
            assert_eq!((reply.status(), reply.is_whole), (200, true), "{range}");
            assert!(reply.body == body, "{range}");
        }
        assert_eq!(bed.origin.count(&path), 1);
        // The origin's error has a body and fields of its own.
        bed.origin.plays(&path, [Answer::status("416 Range Not Satisfiable", "x: own", b"why")]);
        let reply = bed.get(&path, "range: bytes=300000-");
        assert_eq!((reply.status(), reply.text(), reply.field("x")), (416, "why", Some("own")));
    }
}

#[test]
fn several_parts_come_in_one_body() {
    let bed = Bed::new();
    for length in [1000_usize, 300_000] {
        let (path, body) = (format!("/{length}"), bytes(length));
        bed.stores(&path, FRESH, &body);
        let reply = bed.get(&path, "range: bytes=0-1, 100-899, -1");
        assert_eq!((reply.status(), reply.is_whole, reply.field("content-range")), (206, true, None));
        assert_eq!(reply.field("content-length").unwrap(), reply.body.len().to_string());
        let expected = [(0, 2), (100, 900), (length - 1, length)]
            .map(|(from, to)| (format!("bytes {from}-{}/{length}", to - 1), body[from..to].to_vec()));
        assert!(parts(&reply) == expected);
    }
}

#[test]
fn if_range_decides_between_a_part_and_the_whole() {
    const CHANGED: &str = "Fri, 27 Nov 2026 10:00:00 GMT";
    let bed = Bed::new();
    let fields = format!("{FRESH}\nlast-modified: {CHANGED}\ndate: Fri, 27 Nov 2026 10:30:00 GMT");
    bed.stores("/", &fields.replace("max-age=60", "max-age=999999999"), b"a body");
    for (condition, expected) in [
        ("\"1\"", (206, "body")),
        ("\"2\"", (200, "a body")),
        ("W/\"1\"", (200, "a body")),
        (CHANGED, (206, "body")),
        ("Fri, 27 Nov 2026 10:00:01 GMT", (200, "a body")),
    ] {
        let reply = bed.get("/", &format!("range: bytes=2-\nif-range: {condition}"));
        assert_eq!((reply.status(), reply.text()), expected, "{condition}");
    }
    assert_eq!(bed.origin.count("/"), 1);
}

#[test]
fn a_range_of_what_is_not_stored_is_the_origins() {
    let bed = Bed::new();
    let part = Answer::status("206 Partial Content", &format!("{FRESH}\ncontent-range: bytes 2-5/6"), b"body");
    bed.origin.plays("/", [part, Answer::whole(FRESH, b"a body")]);
    let reply = bed.get("/", "range: bytes=2-");
    assert_eq!((reply.status(), reply.text(), reply.field("content-range")), (206, "body", Some("bytes 2-5/6")));
    assert_eq!(field(&bed.origin.asked("/")[0], "range"), Some("bytes=2-"));
    assert_eq!(bed.get("/", "").text(), "a body");
}

#[test]
fn parts_come_while_the_body_does() {
    let body = bytes(200_000);
    for (range, status, from, to) in [
        ("range: bytes=10-19", 206, 10, 20),
        ("range: bytes=1000-149999", 206, 1000, 150_000),
        ("range: bytes=-10", 206, 199_990, 200_000),
        ("range: bytes=10-19\nif-range: \"1\"", 206, 10, 20),
        ("range: bytes=10-19\nif-range: \"0\"", 200, 0, 200_000),
        ("range: bytes=0-1, 10-19", 200, 0, 200_000),
        ("", 200, 0, 200_000),
    ] {
        let bed = Bed::new();
        bed.stores("/", STALE, &bytes(300_000));
        let gate = Gate::default();
        let slow = Answer::sized(FRESH, body.len()).send(&body[..100_000]).wait(&gate).send(&body[100_000..]);
        bed.origin.plays("/", [slow]);
        let mut first = bed.send("/", range);
        first.head();
        let mut second = bed.send("/", range);
        second.head();
        assert_eq!(bed.origin.count("/"), 2, "{range}");
        if to <= 100_000 {
            first.read(to - from);
            second.read(to - from);
        }
        gate.open();
        for reply in [first.end(), second.end()] {
            assert_eq!((reply.status(), reply.is_whole), (status, true), "{range}");
            assert!(reply.body == body[from..to], "{range}");
            assert_eq!(reply.field("content-length").unwrap(), (to - from).to_string());
            let expected = (status == 206).then(|| format!("bytes {from}-{}/200000", to - 1));
            assert_eq!(reply.field("content-range"), expected.as_deref(), "{range}");
        }
        wait(&format!("the whole body is stored: {range}"), || bed.get("/", "").body == body);
        assert_eq!(field(&bed.origin.asked("/")[1], "range"), None);
    }
}

#[test]
fn a_range_of_a_body_without_length_gets_the_whole() {
    let bed = Bed::new();
    bed.stores("/", STALE, b"old");
    bed.origin.plays("/", [Answer::chunked(FRESH).chunk(b"a ").chunk(b"body").chunk(b"")]);
    let reply = bed.get("/", "range: bytes=2-");
    assert_eq!((reply.status(), reply.text(), reply.field("content-range")), (200, "a body", None));
    wait("the new response is stored", || bed.get("/", "range: bytes=2-").text() == "body");
}

/// Bundling at a remote decompresses br for most requests of a class, and says so. It does not for a range, whose bytes would
/// go into a download without their content encoding.
#[test]
fn a_response_in_br_is_not_for_a_request_that_nobody_decompresses() {
    let bed = Bed::new();
    let (in_br, plain) = (bytes(1000), bytes(3000));
    let fields = "cache-control: max-age=60\netag: \"br\"\nvary: Accept-Encoding\ncontent-encoding: br";
    let takes = "accept-encoding: gzip\nx-longhaul-takes: br";
    bed.origin.plays("/a", [Answer::whole(fields, &in_br), Answer::whole(FRESH, &plain)]);
    assert!(bed.get("/a", takes).body == in_br);
    bed.keeps(2);
    bed.settle();
    let stored = bed.get("/a", takes);
    assert!(stored.is_stored() && stored.body == in_br);
    for more in ["", "\nrange: bytes=0-9"] {
        let reply = bed.get("/a", &format!("accept-encoding: gzip{more}"));
        assert_eq!((reply.field("content-encoding"), reply.is_stored()), (None, false), "{more:?}");
        assert!(reply.body == plain);
    }
    assert!(bed.get("/a", takes).is_stored());
}
