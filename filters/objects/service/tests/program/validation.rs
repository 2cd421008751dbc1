//! Stored responses that the origin validates.

use crate::bed::{Bed, at_once, bytes, wait};
use crate::origin::{Answer, Gate, field};

const STALE: &str = "cache-control: max-age=60\netag: \"1\"\nage: 100\nx-old: a\nx-kept: b";

fn not_modified(fields: &str) -> Answer {
    Answer::status("304 Not Modified", fields, b"")
}

#[test]
fn a_304_renews_a_stale_response() {
    for body in [bytes(5), bytes(100_000)] {
        let bed = Bed::new();
        bed.stores("/", STALE, &body);
        bed.origin.plays("/", [not_modified("cache-control: max-age=90\netag: \"1\"\nx-old: c\nx-new: d")]);
        let asked = bed.origin.count("/");
        for _ in 0..3 {
            let reply = bed.get("/", "");
            assert!(reply.is_whole && reply.body == body);
            assert_eq!((reply.status(), reply.field("cache-control")), (200, Some("max-age=90")));
            assert_eq!(["x-old", "x-new", "x-kept"].map(|name| reply.field(name)), [Some("c"), Some("d"), Some("b")]);
            assert_eq!(reply.field("content-length").unwrap(), body.len().to_string());
            assert_eq!(bed.origin.count("/"), asked + 1);
        }
        let asked = bed.origin.asked("/");
        assert_eq!(field(&asked[asked.len() - 1], "if-none-match"), Some("\"1\""));
    }
}

#[test]
fn the_clients_own_condition_is_answered_after_validation() {
    let bed = Bed::new();
    bed.stores("/", STALE, b"a");
    bed.origin.plays("/", [not_modified("etag: \"1\"")]);
    for (condition, expected) in [("if-none-match: \"1\"", 304), ("if-none-match: \"2\"", 200)] {
        assert_eq!(bed.get("/", condition).status(), expected);
    }
    let asked = bed.origin.asked("/");
    assert_eq!(asked[1..].iter().map(|head| field(head, "if-none-match")).collect::<Vec<_>>(), [Some("\"1\""); 1]);
}

#[test]
fn a_response_with_a_date_alone_is_validated_by_it() {
    const CHANGED: &str = "last-modified: Fri, 27 Nov 2026 10:00:00 GMT";
    let bed = Bed::new();
    bed.stores("/", &format!("cache-control: max-age=0\n{CHANGED}"), b"a");
    bed.origin.plays("/", [not_modified("")]);
    assert_eq!(bed.get("/", "").text(), "a");
    assert!(bed.origin.asked("/")[1].contains(&CHANGED.replace("last-modified", "if-modified-since")));
}

#[test]
fn a_new_response_replaces_a_stale_one() {
    let bed = Bed::new();
    bed.stores("/", STALE, b"old");
    bed.origin.plays("/", [Answer::whole("cache-control: max-age=60\netag: \"2\"", b"new")]);
    for _ in 0..2 {
        let reply = bed.get("/", "");
        assert_eq!((reply.text(), reply.field("x-kept")), ("new", None));
        bed.is_kept("/");
    }
    assert_eq!((bed.origin.count("/"), bed.files().len()), (2, 1));
}

#[test]
fn a_304_for_another_response_gets_a_whole_one() {
    let bed = Bed::new();
    bed.stores("/", STALE, b"old");
    let new = Answer::whole("cache-control: max-age=60\netag: \"2\"", b"new");
    bed.origin.plays("/", [not_modified("etag: \"2\""), new]);
    assert_eq!(bed.get("/", "").text(), "new");
    bed.is_kept("/");
    let reply = bed.get("/", "");
    assert_eq!((reply.text(), reply.field("etag"), reply.is_stored()), ("new", Some("\"2\""), true));
    let asked = bed.origin.asked("/");
    assert_eq!((asked.len(), field(&asked[2], "if-none-match")), (3, None));
}

#[test]
fn a_response_just_stale_is_served_while_the_origin_validates_it() {
    let stale = "cache-control: public, max-age=60, stale-while-revalidate=900\netag: \"1\"\nage: 100";
    for fresh in [
        Answer::whole("cache-control: public, max-age=60\netag: \"2\"", b"new"),
        not_modified("cache-control: public, max-age=60\netag: \"1\""),
    ] {
        let bed = Bed::new();
        bed.stores("/", stale, b"old");
        let gate = Gate::default();
        bed.origin.plays("/", [Answer::after(&gate, fresh)]);
        for _ in 0..3 {
            let reply = bed.get("/", "cookie: id=1\naccept-language: en");
            assert_eq!((reply.text(), reply.field("cache-control").unwrap().contains("stale")), ("old", true));
        }
        bed.asks("/", 2);
        let asked = bed.origin.asked("/");
        assert_eq!(
            ["if-none-match", "cookie", "accept-language"].map(|name| field(&asked[1], name)),
            [Some("\"1\""), None, Some("en")]
        );
        gate.open();
        wait("the response is fresh", || !bed.get("/", "").field("cache-control").unwrap().contains("stale"));
        bed.settle();
        assert_eq!(bed.origin.count("/"), 2, "one request validates the response");
    }
}

#[test]
fn a_failed_validation_leaves_the_response_that_is_just_stale() {
    let bed = Bed::new();
    bed.stores("/", "cache-control: max-age=60, stale-while-revalidate=900\netag: \"1\"\nage: 100", b"old");
    bed.origin.plays("/", [Answer::status("503 Service Unavailable", "", b"")]);
    wait("a second request that validates the response", || {
        assert_eq!(bed.get("/", "").text(), "old");
        bed.origin.count("/") >= 3
    });
    bed.origin.close();
    assert_eq!(bed.get("/", "").text(), "old");
}

/// 0: no response.
#[test]
fn a_stale_response_is_better_than_an_error_if_it_may_be_used() {
    let failures = [
        ("500 Internal Server Error", 500),
        ("502 Bad Gateway", 502),
        ("503 Service Unavailable", 503),
        ("504 Gateway Timeout", 504),
    ];
    for (cache_control, is_used) in [
        ("max-age=60", true),
        ("max-age=60, stale-if-error=100", true),
        ("max-age=60, stale-if-error=5", false),
        ("max-age=60, must-revalidate", false),
        ("max-age=60, stale-if-error=100, proxy-revalidate", false),
        ("s-maxage=60", false),
        ("no-cache", false),
        ("no-cache, stale-if-error=100", false),
    ] {
        let bed = Bed::new();
        let fields = format!("cache-control: {cache_control}\netag: \"1\"\nage: 80");
        bed.origin.plays("/", [Answer::whole(&fields, b"old")]);
        bed.get("/", "");
        wait("the response is stored", || bed.files().len() == 1);
        for (status, expected) in failures {
            bed.origin.plays("/", [Answer::status(status, "", b"error")]);
            let (expected, text) = if is_used { (200, "old") } else { (expected, "error") };
            let reply = bed.get("/", "");
            assert_eq!((reply.status(), reply.text()), (expected, text), "{cache_control} {status}");
        }
        bed.origin.plays("/", [Answer::default().close()]);
        assert_eq!(bed.get("/", "").status(), if is_used { 200 } else { 0 }, "{cache_control}, no response");
        bed.origin.close();
        assert_eq!(bed.get("/", "").status(), if is_used { 200 } else { 0 }, "{cache_control}, no origin");
        assert_eq!(bed.get("/", "cache-control: no-cache").status(), 0, "{cache_control}, a reload");
        bed.origin.open();
        bed.origin.plays("/", [Answer::status("404 Not Found", "", b"gone")]);
        assert_eq!(bed.get("/", "").status(), 404, "{cache_control}");
    }
}

#[test]
fn a_client_that_wants_stored_responses_alone_does_not_reach_the_origin() {
    let bed = Bed::new();
    assert_eq!(bed.get("/", "cache-control: only-if-cached").status(), 504);
    bed.stores("/", "cache-control: max-age=60\netag: \"1\"", b"a");
    assert_eq!(bed.get("/", "cache-control: only-if-cached").text(), "a");
    bed.stores("/stale", STALE, b"a");
    assert_eq!(bed.get("/stale", "cache-control: only-if-cached").status(), 504);
    assert_eq!((bed.origin.count("/"), bed.origin.count("/stale")), (1, 1));
}

#[test]
fn a_reload_reaches_the_origin_and_replaces_the_response() {
    let bed = Bed::new();
    for reload in ["cache-control: no-cache", "pragma: no-cache", "cache-control: max-age=0"] {
        let fields = "cache-control: max-age=60\netag: \"1\"\nage: 5";
        bed.stores("/", fields, b"old");
        let asked = bed.origin.count("/");
        bed.origin.plays("/", [Answer::whole("cache-control: max-age=60\netag: \"2\"\nage: 5", b"new")]);
        assert_eq!(bed.get("/", reload).text(), "new", "{reload}");
        wait("the response is replaced", || bed.get("/", "").text() == "new");
        assert_eq!(bed.origin.count("/"), asked + 1, "{reload}");
        assert_eq!(bed.files().len(), 1);
        bed.origin.plays("/", [Answer::whole(fields, b"old")]);
        bed.get("/", "cache-control: no-cache");
        wait("the response is replaced", || bed.get("/", "").text() == "old");
    }
}

#[test]
fn a_reload_does_not_wait_for_the_request_of_another_client() {
    let bed = Bed::new();
    let gate = Gate::default();
    let fields = "cache-control: max-age=60";
    bed.origin.plays("/", [Answer::after(&gate, Answer::whole(fields, b"1")), Answer::whole(fields, b"2")]);
    let slow = bed.send("/", "");
    bed.asks("/", 1);
    assert_eq!(at_once(|| bed.get("/", "cache-control: no-cache")).text(), "2");
    gate.open();
    assert_eq!(slow.end().text(), "1");
}

/// A client that continues a download must not get the rest of another body.
#[test]
fn a_client_that_insists_on_a_stale_response_gets_no_part_of_a_new_one() {
    for condition in ["if-match: \"1\"", "if-unmodified-since: Fri, 27 Nov 2026 10:00:00 GMT"] {
        let bed = Bed::new();
        bed.stores("/", &format!("{STALE}\nlast-modified: Fri, 27 Nov 2026 10:00:00 GMT"), b"old body");
        bed.origin.plays("/", [Answer::status("412 Precondition Failed", "", b"")]);
        assert_eq!(bed.get("/", &format!("{condition}\nrange: bytes=4-")).status(), 412);
        assert!(bed.origin.asked("/")[1].contains(condition), "{condition}");
    }
}

#[test]
fn a_request_for_a_part_validates_the_whole_and_keeps_it() {
    let bed = Bed::new();
    bed.stores("/", STALE, b"old body");
    bed.origin.plays("/", [not_modified("cache-control: max-age=60\netag: \"1\"")]);
    let reply = bed.get("/", "range: bytes=0-2");
    assert_eq!((reply.status(), reply.text()), (206, "old"));
    assert_eq!(bed.get("/", "").text(), "old body");
    assert_eq!(bed.origin.count("/"), 2);
}

/// The origin's error has a body and fields of its own.
#[test]
fn a_request_for_a_part_beyond_a_stale_body_is_the_origins() {
    let bed = Bed::new();
    bed.stores("/", STALE, b"old body");
    bed.origin.plays("/", [Answer::status("416 Range Not Satisfiable", "x: own", b"why")]);
    let reply = bed.get("/", "range: bytes=99-");
    assert_eq!((reply.status(), reply.text(), reply.field("x")), (416, "why", Some("own")));
    let asked = bed.origin.asked("/");
    assert_eq!((field(&asked[1], "range"), field(&asked[1], "if-none-match")), (Some("bytes=99-"), None));
}

#[test]
fn a_validation_that_comes_with_the_request_renews_a_stale_response() {
    const STALE: &str = "cache-control: max-age=60\nage: 100\netag: \"1\"";
    let with = |lines: &str, more: &str| format!("x-longhaul-valid: {}{more}", hex::encode(lines));
    let renews = "etag:\"1\"\ncache-control:max-age=60\n";
    for (sent, expected) in [
        (with(renews, ""), 1),
        (with("etag:W/\"1\"\ncache-control:max-age=60\n", ""), 1),
        (with("etag:\"2\"\ncache-control:max-age=60\n", ""), 2),
        (with("cache-control:max-age=60\n", ""), 2),
        (with(renews, "\r\ncache-control: no-cache"), 2),
        ("x-longhaul-valid: no hexadecimal".to_owned(), 2),
    ] {
        let bed = Bed::new();
        bed.stores("/", STALE, b"a");
        bed.origin.plays("/", [Answer::whole(STALE, b"a")]);
        assert_eq!(bed.get("/", &sent).text(), "a");
        assert_eq!(bed.origin.count("/"), expected, "{sent}");
        assert!(bed.origin.asked("/").iter().all(|asked| field(asked, "x-longhaul-valid").is_none()));
        if expected == 1 {
            assert!(bed.get("/", "").is_stored() && bed.origin.count("/") == 1, "it is fresh now");
        }
    }
}
