//! Stored responses, and what requests select them by.

use crate::bed::{Bed, bytes};
use crate::origin::{Answer, field};

const FRESH: &str = "cache-control: max-age=60\netag: \"1\"";

#[test]
fn the_second_request_is_a_hit_with_an_age() {
    let bed = Bed::new();
    for length in [0, 5, 65_536, 65_537, 3_000_000] {
        let (path, body) = (format!("/{length}?a=b"), bytes(length));
        bed.origin.plays(&path, [Answer::whole(&format!("{FRESH}\nx-own: y"), &body)]);
        let first = bed.get(&path, "");
        // It has an age only if the origin seems to have taken a second or more.
        assert!(first.status() == 200 && first.field("age") != Some("0"), "{length}");
        bed.is_kept(&path);
        let second = bed.get(&path, "");
        assert!(second.field("age").unwrap().parse::<u64>().unwrap() < 30, "{length}");
        for reply in [&first, &second] {
            assert!(reply.is_whole && reply.body == body, "{length}");
            assert_eq!(reply.field("content-length").unwrap(), length.to_string());
            assert_eq!((reply.field("x-own"), reply.field("etag")), (Some("y"), Some("\"1\"")), "{length}");
        }
        assert_eq!(bed.origin.count(&path), 1, "{length}");
    }
}

#[test]
fn an_age_of_the_origin_counts() {
    let bed = Bed::new();
    bed.origin.plays("/", [Answer::whole(&format!("{FRESH}\nage: 20"), b"a")]);
    for expected in [1, 1, 1] {
        let reply = bed.get("/", "");
        assert!((20..50).contains(&reply.field("age").unwrap().parse::<u64>().unwrap()));
        bed.is_kept("/");
        assert_eq!(bed.origin.count("/"), expected);
    }
}

#[test]
fn a_response_that_is_not_fresh_has_no_hit() {
    let bed = Bed::new();
    for (at, fields) in
        ["", "cache-control: max-age=0", "cache-control: no-cache\netag: \"1\"", "etag: \"1\""].iter().enumerate()
    {
        let path = format!("/{at}");
        bed.origin.plays(&path, [Answer::whole(fields, b"1"), Answer::whole(fields, b"2")]);
        assert_eq!((bed.get(&path, "").text(), bed.get(&path, "").text()), ("1", "2"), "{fields}");
    }
}

#[test]
fn a_chunked_body_is_stored_and_then_has_a_length() {
    let bed = Bed::new();
    let (one, two) = (bytes(70_000), bytes(9));
    for chunks in [vec![], vec![two.clone()], vec![one.clone(), two]] {
        let path = format!("/{}", chunks.len());
        let answer = chunks.iter().fold(Answer::chunked(FRESH), |answer, chunk| answer.chunk(chunk)).chunk(b"");
        bed.origin.plays(&path, [answer]);
        let first = bed.get(&path, "");
        assert!(first.is_whole && first.body == chunks.concat(), "{path}");
        bed.is_kept(&path);
        let second = bed.get(&path, "");
        assert!(second.is_stored() && second.body == chunks.concat(), "{path}");
        assert_eq!(second.field("content-length").unwrap(), chunks.concat().len().to_string());
        assert_eq!(second.field("transfer-encoding"), None);
    }
}

#[test]
fn scheme_host_and_url_tell_responses_apart() {
    let bed = Bed::new();
    let requests = [
        ("/a", "x-longhaul-scheme: https", "1"),
        ("/a", "x-longhaul-scheme: http", "2"),
        ("/a", "x-longhaul-scheme: https\nhost: other.test", "3"),
        ("/a?", "x-longhaul-scheme: https", "4"),
        ("/a?b", "x-longhaul-scheme: https", "5"),
        ("/A", "x-longhaul-scheme: https", "6"),
    ];
    bed.origin.plays("/a", ["1", "2", "3"].map(|body| Answer::whole(FRESH, body.as_bytes())));
    for (path, _, body) in &requests[3..] {
        bed.origin.plays(path, [Answer::whole(FRESH, body.as_bytes())]);
    }
    for _ in 0..2 {
        for (path, fields, body) in requests {
            assert_eq!(bed.get(path, fields).text(), body, "{path} {fields}");
        }
        bed.keeps(6);
    }
    assert_eq!(bed.get("/a", "x-longhaul-scheme: https\nhost: WWW.Test").text(), "1");
    assert_eq!(bed.origin.count("/a"), 3);
}

#[test]
fn vary_tells_two_languages_apart() {
    let bed = Bed::new();
    let fields = format!("{FRESH}\nvary: Accept-Language");
    bed.origin.plays("/", ["en", "de", "none"].map(|body| Answer::whole(&fields, body.as_bytes())));
    for _ in 0..3 {
        for (asked, body) in
            [("accept-language: en", "en"), ("accept-language: de", "de"), ("accept-language: DE", "de"), ("", "none")]
        {
            assert_eq!(bed.get("/", asked).text(), body);
        }
        bed.keeps(4);
    }
    assert_eq!(bed.origin.count("/"), 3);
    assert_eq!(bed.get("/", "accept-language: en").field("vary"), Some("Accept-Language"));
}

#[test]
fn an_unsafe_request_removes_every_variant_for_good() {
    let bed = Bed::new();
    let fields = format!("{FRESH}\nvary: accept-language");
    bed.origin.plays("/", ["en 1", "de 1", "en 2", "de 2"].map(|body| Answer::whole(&fields, body.as_bytes())));
    bed.stores("/plain", FRESH, b"a");
    let [en, de] = ["en", "de"].map(|language| format!("x-longhaul-scheme: http\naccept-language: {language}"));
    for round in ["1", "2"] {
        for (asked, language) in [(&en, "en"), (&de, "de"), (&en, "en"), (&de, "de")] {
            assert_eq!(bed.get("/", asked).text(), format!("{language} {round}"));
            bed.settle();
        }
        assert_eq!(bed.post("/").status(), 204);
    }
    assert_eq!(bed.origin.count("/"), 4, "the copy of an unsafe request reaches no origin");
    assert!(bed.get("/plain", "").is_stored(), "other URLs stay");
}

#[test]
fn the_origin_hears_the_class_of_content_encodings() {
    let bed = Bed::new();
    let fields = format!("{FRESH}\nvary: accept-encoding");
    let answers = (1..10).map(|body: u8| Answer::whole(&fields, body.to_string().as_bytes()));
    bed.origin.plays("/", answers);
    for (accepts, heard, body) in [
        ("accept-encoding: gzip, deflate, br, zstd", "br, gzip", "1"),
        ("accept-encoding: br;q=0.9, gzip", "br, gzip", "1"),
        ("accept-encoding: gzip;q=0.5", "gzip", "2"),
        ("accept-encoding: gzip, br;q=0", "gzip", "2"),
        ("accept-encoding: deflate", "identity", "3"),
        ("", "identity", "3"),
        ("accept-encoding: gzip, identity;q=0", "gzip, identity;q=0", "4"),
    ] {
        assert_eq!(bed.get("/", accepts).text(), body, "{accepts}");
        bed.keeps(body.parse::<usize>().unwrap() + 1);
        let asked = bed.origin.asked("/");
        assert_eq!(asked.len().to_string(), body, "{accepts}");
        assert_eq!(field(&asked[asked.len() - 1], "accept-encoding"), Some(heard), "{accepts}");
    }
}

#[test]
fn head_gets_the_fields_of_a_stored_response() {
    let bed = Bed::new();
    for body in [bytes(100), bytes(100_000)] {
        let path = &format!("/{}", body.len());
        bed.stores(path, FRESH, &body);
        let reply = bed.head(path, "");
        assert!(reply.is_stored());
        assert_eq!((reply.status(), reply.field("etag")), (200, Some("\"1\"")));
        assert_eq!(reply.field("content-length").unwrap(), body.len().to_string());
        assert_eq!(bed.head(path, "if-none-match: \"1\"").status(), 304);
        assert_eq!(bed.origin.count(path), 1);
    }
}

#[test]
fn head_alone_stores_nothing() {
    let bed = Bed::new();
    bed.origin.plays("/", [Answer::begin("200 OK", FRESH, "content-length: 7\r\n"), Answer::whole(FRESH, b"a body.")]);
    let reply = bed.head("/", "");
    assert_eq!((reply.status(), reply.field("content-length")), (200, Some("7")));
    assert!(bed.origin.asked("/")[0].starts_with("HEAD "));
    assert_eq!(bed.get("/", "").text(), "a body.");
}

#[test]
fn a_client_that_has_the_response_gets_a_304() {
    const CHANGED: &str = "Fri, 27 Nov 2026 10:00:00 GMT";
    let bed = Bed::new();
    bed.stores("/", &format!("{FRESH}\nlast-modified: {CHANGED}"), b"a");
    for (condition, expected) in [
        ("if-none-match: \"1\"", 304),
        ("if-none-match: W/\"1\", \"2\"", 304),
        ("if-none-match: \"2\"", 200),
        ("if-none-match: 1", 304),
        ("if-none-match: 2", 200),
        (&format!("if-modified-since: {CHANGED}"), 304),
        ("if-modified-since: Fri, 27 Nov 2026 09:00:00 GMT", 200),
        ("if-match: \"1\"", 200),
    ] {
        let reply = bed.get("/", condition);
        assert_eq!((reply.status(), reply.is_stored()), (expected, true), "{condition}");
        assert_eq!((reply.field("etag"), reply.text()), (Some("\"1\""), if expected == 304 { "" } else { "a" }));
    }
    assert_eq!(bed.origin.count("/"), 1);
}

#[test]
fn a_condition_for_the_origin_reaches_it() {
    let bed = Bed::new();
    bed.stores("/", FRESH, b"a");
    bed.origin.plays("/", [Answer::status("412 Precondition Failed", "", b"")]);
    assert_eq!(bed.get("/", "if-match: \"2\"").status(), 412);
    assert_eq!(field(&bed.origin.asked("/")[1], "if-match"), Some("\"2\""));
    assert!(bed.get("/", "").is_stored());
    let changed = "if-none-match: \"2\"";
    bed.origin.plays("/new", [Answer::status("304 Not Modified", "", b"")]);
    assert_eq!(bed.get("/new", changed).status(), 304, "nothing is stored: the client's own condition");
    assert!(bed.origin.asked("/new")[0].contains(changed));
}

#[test]
fn other_statuses_are_stored_as_the_rules_say() {
    let bed = Bed::new();
    for (status, is_stored) in [
        ("203 Other", true),
        ("301 Moved Permanently", true),
        ("404 Not Found", true),
        ("302 Found", true),
        ("299 Whatever", true),
        ("499 Whatever", true),
        ("599 Whatever", true),
        ("206 Partial Content", false),
        ("418 Teapot", false),
        ("420 Enhance Your Calm", false),
        ("429 Too Many Requests", false),
    ] {
        let path = format!("/{}", &status[..3]);
        bed.origin.plays(&path, ["1", "2"].map(|body| Answer::status(status, FRESH, body.as_bytes())));
        assert_eq!(bed.get(&path, "").text(), "1");
        if is_stored {
            bed.is_kept(&path);
        }
        let second = bed.get(&path, "");
        assert_eq!((second.text(), second.is_stored()), if is_stored { ("1", true) } else { ("2", false) }, "{status}");
        assert_eq!(second.status().to_string(), status[..3]);
    }
}

#[test]
fn a_response_with_must_understand_is_stored_if_its_status_is_known() {
    let bed = Bed::new();
    for (status, is_stored) in [("200 OK", true), ("599 Whatever", false)] {
        let path = format!("/{}", &status[..3]);
        let fields = "cache-control: max-age=60, no-store, must-understand";
        bed.origin.plays(&path, ["1", "2"].map(|body| Answer::status(status, fields, body.as_bytes())));
        assert_eq!(bed.get(&path, "").text(), "1");
        if is_stored {
            bed.is_kept(&path);
        }
        assert_eq!(bed.get(&path, "").text(), if is_stored { "1" } else { "2" }, "{status}");
    }
}

#[test]
fn a_date_that_ends_a_lifetime_has_any_case() {
    let bed = Bed::new();
    for (at, (expires, is_stored)) in [
        ("Mon, 18 Aug 2070 02:01:18 GMT", true),
        ("MON, 18 AUG 2070 02:01:18 gmt", true),
        ("Thu Aug 18 02:01:18 2070", true),
        ("Mon, 18 Aug 2070 02:01:18 UTC", false),
        ("Mon, 18 AUG 1990 02:01:18 GMT", false),
    ]
    .into_iter()
    .enumerate()
    {
        let (path, fields) = (format!("/{at}"), format!("expires: {expires}"));
        bed.origin.plays(&path, ["1", "2"].map(|body| Answer::whole(&fields, body.as_bytes())));
        assert_eq!(bed.get(&path, "").text(), "1");
        if is_stored {
            bed.is_kept(&path);
        }
        assert_eq!(bed.get(&path, "").text(), if is_stored { "1" } else { "2" }, "{expires}");
    }
}

#[test]
fn a_content_range_counts_if_it_names_a_part() {
    let bed = Bed::new();
    for (at, (range, is_stored)) in
        [("posts 0-24/319", true), ("bytes 0-0/1", true), ("bytes 0-0/2", false)].into_iter().enumerate()
    {
        let (path, fields) = (format!("/{at}"), format!("{FRESH}\ncontent-range: {range}"));
        bed.origin.plays(&path, ["1", "2"].map(|body| Answer::whole(&fields, body.as_bytes())));
        assert_eq!(bed.get(&path, "").text(), "1");
        if is_stored {
            bed.is_kept(&path);
        }
        let second = bed.get(&path, if is_stored { "range: bytes=0-0" } else { "" });
        let expected = if is_stored { "1" } else { "2" };
        assert_eq!((second.status(), second.text(), second.field("content-range")), (200, expected, Some(range)));
    }
}

#[test]
fn fields_of_one_connection_are_neither_passed_nor_stored() {
    let bed = Bed::new();
    let fields = format!("{FRESH}\nkeep-alive: timeout=5\nproxy-connection: x");
    bed.origin.plays("/", [Answer::whole(&fields, b"a")]);
    for _ in 0..2 {
        let reply = bed.get("/", "te: trailers\nkeep-alive: 1");
        assert_eq!((reply.field("keep-alive"), reply.field("proxy-connection")), (None, None));
    }
    let asked = &bed.origin.asked("/")[0];
    assert_eq!((field(asked, "te"), field(asked, "keep-alive"), field(asked, "host")), (None, None, Some("www.test")));
}
