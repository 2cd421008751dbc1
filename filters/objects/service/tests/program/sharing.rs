//! Responses that belong to one client.

use crate::bed::{Bed, at_once};
use crate::origin::{Answer, Gate, field};

const FRESH: &str = "cache-control: max-age=60\netag: \"1\"";
const PUBLIC: &str = "cache-control: public, max-age=60\netag: \"1\"";

fn numbered(fields: &str) -> [Answer; 4] {
    ["1", "2", "3", "4"].map(|body| Answer::whole(fields, body.as_bytes()))
}

#[test]
fn what_belongs_to_one_client_is_never_shared() {
    let cookies = ("cookie: id=1", "cookie: id=2");
    for (response, (one, other)) in [
        ("cache-control: max-age=60, public\nset-cookie: id=1", ("", "")),
        ("cache-control: max-age=60, public\nset-cookie: id=1", cookies),
        ("cache-control: max-age=60, private", ("", "")),
        ("cache-control: max-age=60, private", cookies),
        ("cache-control: max-age=60, no-store", ("", "")),
        ("cache-control: max-age=60, public, no-store", cookies),
        ("cache-control: max-age=60", cookies),
        ("cache-control: max-age=60, must-revalidate", cookies),
        ("cache-control: max-age=60", ("authorization: Basic YTpi", "authorization: Basic YTpj")),
        ("cache-control: max-age=60", ("cache-control: no-store", "cache-control: no-store")),
        ("cache-control: max-age=60\nvary: *", ("", "")),
        ("cache-control: max-age=60\ncdn-cache-control: max-age=9", ("", "")),
        ("cache-control: max-age=60\nwww-authenticate: Negotiate", ("", "")),
    ] {
        let bed = Bed::new();
        bed.origin.plays("/", numbered(response));
        for (fields, body) in [(one, "1"), (other, "2"), (one, "3"), ("", "4")] {
            assert!(bed.files().is_empty(), "{response}");
            let reply = bed.get("/", fields);
            assert_eq!(reply.text(), body, "{response} {fields}");
        }
        for (asked, fields) in bed.origin.asked("/").iter().zip([one, other, one]) {
            assert!(
                asked.contains(fields) && asked.contains("cookie") == fields.contains("cookie"),
                "{asked} {fields}"
            );
        }
    }
}

#[test]
fn what_the_origin_shares_explicitly_is_shared() {
    let bed = Bed::new();
    for (at, (response, one, other)) in [
        (PUBLIC, "cookie: id=1", "cookie: id=2"),
        (PUBLIC, "", "cookie: id=2"),
        (PUBLIC, "", "authorization: Basic YTpi"),
        ("cache-control: s-maxage=60", "cookie: id=1", "cookie: id=2"),
        (FRESH, "", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/{at}");
        bed.origin.plays(&path, numbered(response));
        assert_eq!(bed.get(&path, one).text(), "1");
        bed.is_kept(&path);
        let reply = bed.get(&path, other);
        assert_eq!((reply.text(), reply.is_stored()), ("1", true), "{response} {other}");
    }
}

#[test]
fn a_client_with_credentials_gets_its_own_response_beside_a_stored_one() {
    let bed = Bed::new();
    for credentials in ["cookie: id=1", "authorization: Basic YTpi", "cache-control: no-store"] {
        bed.stores("/", FRESH, b"for all");
        bed.origin.plays("/", [Answer::whole(FRESH, b"own")]);
        assert_eq!(bed.get("/", credentials).text(), "own", "{credentials}");
        assert!(bed.origin.asked("/").last().unwrap().contains(credentials));
        assert_eq!(bed.get("/", "").text(), "for all", "{credentials}");
        bed.origin.plays("/", [Answer::whole(FRESH, b"for all")]);
        bed.get("/", "cache-control: no-cache");
    }
}

#[test]
fn a_304_with_a_cookie_ends_storage_and_goes_to_its_client_alone() {
    for cookie in ["set-cookie: id=1", "cache-control: private, max-age=60", "cache-control: no-store"] {
        let bed = Bed::new();
        bed.stores("/", "cache-control: max-age=60\netag: \"1\"\nage: 70", b"stored");
        assert_eq!(bed.files().len(), 1);
        let next = Answer::whole("cache-control: private", b"next");
        bed.origin.plays("/", [Answer::status("304 Not Modified", &format!("etag: \"1\"\n{cookie}"), b""), next]);
        let first = bed.get("/", "");
        assert_eq!((first.status(), first.text()), (200, "stored"));
        assert_eq!(first.field("set-cookie"), cookie.strip_prefix("set-cookie: "));
        assert!(bed.files().is_empty(), "{cookie}");
        let second = bed.get("/", "");
        assert_eq!((second.text(), second.field("set-cookie")), ("next", None), "{cookie}");
    }
}

/// Another program removes the stored response while the origin is asked, so the second client waits for the first.
#[test]
fn a_304_with_a_cookie_does_not_go_to_a_client_that_waits() {
    let bed = Bed::new();
    bed.stores("/", FRESH, b"stored");
    let gate = Gate::default();
    let own = Answer::status("304 Not Modified", "etag: \"1\"\nset-cookie: id=1", b"");
    bed.origin.plays("/", [Answer::after(&gate, own), Answer::whole("cache-control: private", b"next")]);
    let first = bed.send("/", "cache-control: no-cache");
    bed.asks("/", 2);
    bed.files().into_iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let second = bed.send("/", "");
    bed.settle();
    gate.open();
    let (first, second) = (first.end(), second.end());
    assert_eq!((first.text(), first.field("set-cookie")), ("stored", Some("id=1")));
    assert_eq!((second.text(), second.field("set-cookie")), ("next", None));
}

#[test]
fn a_client_that_waits_gets_no_response_of_another_one() {
    let bed = Bed::new();
    for (at, (response, one, other)) in [
        ("cache-control: public, max-age=60\nset-cookie: id=1", "", ""),
        ("cache-control: private", "", ""),
        ("cache-control: max-age=60", "cookie: id=1", ""),
        ("cache-control: max-age=60\nvary: accept-language", "accept-language: en", "accept-language: de"),
    ]
    .into_iter()
    .enumerate()
    {
        let (path, gate) = (format!("/{at}"), Gate::default());
        bed.origin.plays(
            &path,
            [
                Answer::after(&gate, Answer::whole(response, b"one's")),
                Answer::whole("cache-control: private", b"other's"),
            ],
        );
        let first = bed.send(&path, one);
        bed.asks(&path, 1);
        let second = bed.send(&path, other);
        bed.settle();
        gate.open();
        let second = second.end();
        assert_eq!((second.text(), second.field("set-cookie")), ("other's", None), "{response}");
        assert_eq!(first.end().text(), "one's");
    }
}

#[test]
fn requests_for_a_private_url_do_not_wait_for_one_another() {
    let bed = Bed::new();
    let fields = "cache-control: private";
    let gate = Gate::default();
    let answers =
        [Answer::whole(fields, b"1"), Answer::after(&gate, Answer::whole(fields, b"2")), Answer::whole(fields, b"3")];
    bed.origin.plays("/", answers);
    assert_eq!(bed.get("/", "").text(), "1");
    let slow = bed.send("/", "");
    bed.asks("/", 2);
    assert_eq!(at_once(|| bed.get("/", "")).text(), "3");
    gate.open();
    assert_eq!(slow.end().text(), "2");
}

#[test]
fn a_client_with_a_cookie_does_not_wait_for_the_head_of_another_response() {
    let bed = Bed::new();
    let gate = Gate::default();
    bed.origin.plays("/", [Answer::after(&gate, Answer::whole(FRESH, b"1")), Answer::whole(FRESH, b"2")]);
    let slow = bed.send("/", "");
    bed.asks("/", 1);
    assert_eq!(at_once(|| bed.get("/", "cookie: id=2")).text(), "2");
    assert_eq!(field(&bed.origin.asked("/")[1], "cookie"), Some("id=2"));
    gate.open();
    assert_eq!(slow.end().text(), "1");
}

#[test]
fn a_client_with_a_cookie_joins_a_body_that_is_for_all() {
    for (fields, is_joined) in [(PUBLIC, true), (FRESH, false)] {
        let bed = Bed::new();
        let gate = Gate::default();
        let slow = Answer::sized(fields, 4).send(b"st").wait(&gate).send(b"op");
        bed.origin.plays("/", [slow, Answer::whole("cache-control: private", b"own")]);
        let mut first = bed.send("/", "");
        assert_eq!(first.read(2), b"st");
        let mut second = bed.send("/", "cookie: id=2");
        second.head();
        gate.open();
        assert_eq!((first.end().text(), second.end().text()), ("stop", if is_joined { "stop" } else { "own" }));
    }
}

/// A client could else choose by a field of its own what others get.
#[test]
fn a_field_that_vary_does_not_name_keeps_a_request_from_the_cache() {
    let bed = Bed::new();
    for name in ["x-forwarded-host", "x-original-url", "x-http-method-override", "x-api-key", "forwarded"] {
        let (path, field) = (format!("/{name}"), format!("{name}: evil.example"));
        bed.origin.plays(&path, numbered(FRESH));
        assert_eq!(bed.get(&path, &field).text(), "1", "{name}");
        assert_eq!(bed.get(&path, "").text(), "2", "{name}: the first response was not stored");
        assert_eq!(bed.get(&path, &field).text(), "3", "{name}: the stored response is not for this request");
        assert_eq!(bed.get(&path, "").text(), "2", "{name}");
    }
    for (path, fields, vary) in
        [("/named", "x-forwarded-host: a.example", "\nvary: x-forwarded-host"), ("/own", "x-app-version: 7", "")]
    {
        bed.origin.plays(path, numbered(&format!("{FRESH}{vary}")));
        bed.get(path, fields);
        bed.settle();
        for _ in 0..2 {
            assert_eq!(bed.get(path, fields).text(), "1", "{path}");
        }
    }
}

#[test]
fn fields_of_proxies_stay_out_of_requests_that_fill_the_cache() {
    let bed = Bed::new();
    bed.origin.plays("/", numbered(FRESH));
    bed.get("/", "via: 1.1 a\nmax-forwards: 3\naccept: text/html");
    let asked = bed.origin.asked("/").remove(0);
    assert!(
        asked.contains("accept: text/html") && !asked.contains("via") && !asked.contains("max-forwards"),
        "{asked}"
    );
}

#[test]
fn the_response_says_which_requests_may_go_past_the_program() {
    let bed = Bed::new();
    for (at, (status, fields, request, expected)) in [
        ("200 OK", "cache-control: private", "", Some("all")),
        ("200 OK", "cache-control: max-age=60\nset-cookie: id=1", "", Some("all")),
        ("200 OK", FRESH, "cookie: id=1", Some("cookie")),
        ("200 OK", FRESH, "", None),
        ("200 OK", FRESH, "x-api-key: 1", None),
        ("503 Down", "cache-control: private", "", None),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/{at}");
        bed.origin.plays(&path, [1, 2].map(|_| Answer::status(status, fields, b"x")));
        let marks = [0, 1].map(|_| bed.get(&path, request).field("x-longhaul-private").map(ToOwned::to_owned));
        assert_eq!(marks, [0, 1].map(|_| expected.map(ToOwned::to_owned)), "{fields} {request}");
    }
}
