//! The policy of request headers, row by row.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are not seen as tests by clippy.toml

mod headers;

use headers::{Change, changes, fields, plan};
use url_mapping::{Refusal, Scheme};
use url_rewriting::Plan;
use url_rewriting::headers::request::{Decision, Destination, Exchange, Visit, decide};
use url_rewriting::headers::{Fields, ReplyReason};

/// A request to another host than the proxy.
const TRANSPARENT: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "http"), (":authority", "www.foo.example"), (":path", "/a?b")];
/// A request for an object that moved to the proxy's https name.
const MOVED: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "https"), (":authority", "pep.example.net"), (":path", "/i.cnn.net/a?b")];

fn with<'a>(base: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let replaced = |name: &str| more.iter().any(|(other, _)| *other == name && name.starts_with(':'));
    base.iter().filter(|(name, _)| !replaced(name)).chain(more).copied().collect()
}

#[track_caller]
fn forwarded(request: &[(&str, &str)]) -> (Vec<Change>, Visit) {
    match decide(&plan("safe"), &fields(request)) {
        Decision::Forward { edits, visit } => (changes(&edits), visit),
        Decision::Reply(reply, _) => panic!("answered with {reply:?}"),
    }
}

#[track_caller]
fn replied(request: &[(&str, &str)]) -> (u16, Option<String>, ReplyReason) {
    match decide(&plan("safe"), &fields(request)) {
        Decision::Forward { edits, .. } => panic!("sent up with {edits:?}"),
        Decision::Reply(reply, because) => {
            let fields: Fields<'_> = reply.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            assert_eq!(fields.get("cache-control"), Some(&b"no-store"[..]), "a reply must not be stored");
            assert!(fields.get("content-security-policy").is_some_and(|policy| policy.ends_with(b"sandbox")));
            (reply.status, fields.text("location").map(str::to_owned), because)
        }
    }
}

fn set(name: &str, value: &str) -> Change {
    Change::Set(name.to_owned(), value.to_owned())
}

fn removed(name: &str) -> Change {
    Change::Remove(name.to_owned())
}

// ----- transparent

#[test]
fn a_transparent_request_goes_up_as_it_is() {
    let (edits, visit) =
        forwarded(&with(TRANSPARENT, &[("cookie", "a=b"), ("authorization", "x"), ("range", "bytes=0-9")]));
    assert_eq!(edits, []);
    assert_eq!(
        (visit.scheme, visit.authority.as_str(), visit.path.as_str()),
        (Scheme::Http, "www.foo.example", "/a?b")
    );
    assert_eq!((visit.moved, visit.exchange), (None, Exchange::Ordinary));
    let (edits, visit) = forwarded(&with(TRANSPARENT, &[(":scheme", "https"), (":method", "HEAD")]));
    assert_eq!(edits, []);
    assert_eq!((visit.scheme, visit.exchange), (Scheme::Https, Exchange::HeadersOnly));
}

#[test]
fn ports_that_are_not_listed_are_refused() {
    for authority in
        ["www.foo.example:22", "www.foo.example:65536", "www.foo.example:", "www.foo.example:http", "[2001:db8::1]:25"]
    {
        let (status, location, because) = replied(&with(TRANSPARENT, &[(":authority", authority)]));
        assert_eq!((status, location, because), (403, None, ReplyReason::PortNotListed), "{authority}");
    }
    for authority in
        ["www.foo.example:80", "www.foo.example:443", "www.foo.example:8080", "[2001:db8::1]:80", "[2001:db8::1]"]
    {
        forwarded(&with(TRANSPARENT, &[(":authority", authority)]));
    }
}

#[test]
fn internal_headers_from_a_client_do_not_reach_the_inner_hop() {
    let (edits, _) = forwarded(&with(
        TRANSPARENT,
        &[("x-longhaul-scheme", "https"), ("x-longhaul-map", "x"), ("x-longhaul-map", "y"), ("x-longhaulage", "z")],
    ));
    assert_eq!(edits, [removed("x-longhaul-scheme"), removed("x-longhaul-map")]);
    let (edits, _) = forwarded(&with(MOVED, &[("x-longhaul-scheme", "https"), ("x-longhaul-map", "x")]));
    assert_eq!(
        edits.iter().filter(|edit| edit.name() == "x-longhaul-scheme").collect::<Vec<_>>(),
        [&set("x-longhaul-scheme", "http")]
    );
    assert!(edits.contains(&removed("x-longhaul-map")));
}

#[test]
fn a_field_that_the_other_end_of_the_link_sets_stays() {
    let plan = |peer_fields: &str| {
        let json =
            format!(r#"{{"targets": {{}}, "own": [], "level": "off", "ports": [80], "peer_fields": [{peer_fields}]}}"#);
        Plan::from_json(json.as_bytes()).unwrap()
    };
    let request = with(TRANSPARENT, &[("x-longhaul-client", "192.0.2.1"), ("x-longhaul-map", "x")]);
    let edits = |peer_fields: &str| match decide(&plan(peer_fields), &fields(&request)) {
        Decision::Forward { edits, .. } => changes(&edits),
        Decision::Reply(reply, _) => panic!("answered with {reply:?}"),
    };
    assert_eq!(edits(r#""x-longhaul-client""#), [removed("x-longhaul-map")]);
    assert_eq!(edits(""), [removed("x-longhaul-client"), removed("x-longhaul-map")]);
}

#[test]
fn the_response_knows_that_the_request_is_for_no_page() {
    let visit = |more: &[(&str, &str)]| forwarded(&with(TRANSPARENT, more)).1;
    assert!(visit(&[("sec-fetch-dest", "empty")]).is_fetched_by_script);
    assert!(visit(&[("x-requested-with", "XMLHttpRequest")]).is_fetched_by_script);
    assert!(!visit(&[("sec-fetch-dest", "document")]).is_fetched_by_script);
    assert!(visit(&[("cookie", "a=b")]).bears_cookie);
    assert!(!visit(&[("accept", "text/html")]).bears_cookie);
    assert_eq!(visit(&[("upgrade", "websocket"), ("connection", "upgrade")]).exchange, Exchange::Tunnel);
    assert_eq!(visit(&[(":method", "CONNECT"), (":protocol", "websocket")]).exchange, Exchange::Tunnel);
}

// ----- moved objects

#[test]
fn an_object_is_requested_at_its_true_url_without_credentials() {
    let (edits, visit) = forwarded(&with(
        MOVED,
        &[
            ("cookie", "a=b"),
            ("authorization", "Basic x"),
            ("proxy-authorization", "y"),
            ("accept", "image/*"),
            ("origin", "http://www.foo.example"),
        ],
    ));
    assert_eq!(
        edits,
        [
            set(":authority", "i.cnn.net"),
            set(":path", "/a?b"),
            set(":scheme", "http"),
            set("x-longhaul-scheme", "http"),
            removed("authorization"),
            removed("cookie"),
            removed("proxy-authorization"),
        ]
    );
    let moved = visit.moved.unwrap();
    assert_eq!(
        (moved.scheme, moved.authority.as_str(), moved.path.as_str()),
        (Scheme::Https, "pep.example.net", "/i.cnn.net/a?b")
    );
    assert_eq!(
        (moved.destination, moved.origin.as_deref()),
        (Destination::Media, Some(&b"http://www.foo.example"[..]))
    );
    assert_eq!((visit.scheme, visit.authority.as_str(), visit.path.as_str()), (Scheme::Http, "i.cnn.net", "/a?b"));
}

#[test]
fn the_scheme_and_port_of_the_origin_are_those_the_path_says() {
    for (path, authority, scheme) in [
        ("/i.cnn.net:443/x", "i.cnn.net", "https"),
        ("/i.cnn.net:8080/x", "i.cnn.net:8080", "http"),
        ("/i.cnn.net:80/x", "i.cnn.net", "http"),
    ] {
        let (edits, _) = forwarded(&with(MOVED, &[(":path", path)]));
        let expected = [
            set(":authority", authority),
            set(":path", "/x"),
            set(":scheme", scheme),
            set("x-longhaul-scheme", scheme),
        ];
        assert_eq!(edits, expected);
    }
}

#[test]
fn an_http_origin_gets_only_what_browsers_send_to_http() {
    let hints =
        [("sec-fetch-dest", "image"), ("sec-fetch-mode", "no-cors"), ("sec-ch-ua", "x"), ("accept-language", "en")];
    let (edits, _) = forwarded(&with(MOVED, &hints));
    for name in ["sec-fetch-dest", "sec-fetch-mode", "sec-ch-ua"] {
        assert!(edits.contains(&removed(name)), "{name}");
    }
    assert!(!edits.contains(&removed("accept-language")));
    let (edits, _) = forwarded(&with(MOVED, &[&hints[..], &[(":path", "/i.cnn.net:443/x")]].concat()));
    assert!(edits.iter().all(|edit| matches!(edit, Change::Set(..))), "{edits:?}");
}

#[test]
fn no_origin_learns_how_the_proxys_origin_relates_to_the_page() {
    let relations =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-user", "?1"), ("sec-fetch-storage-access", "active")];
    for path in ["/i.cnn.net/x", "/i.cnn.net:443/x"] {
        let (edits, visit) = forwarded(&with(MOVED, &[&relations[..], &[(":path", path)]].concat()));
        for (name, _) in relations {
            assert!(edits.contains(&removed(name)), "{name} to {path}");
        }
        assert!(visit.moved.is_some());
    }
    assert_eq!(forwarded(&with(TRANSPARENT, &relations)).0, [], "the browser says it of the origin itself there");
}

#[test]
fn documents_and_scripts_in_the_proxys_origin_are_redirected_to_their_true_url() {
    let to_true_url = |more: &[(&str, &str)]| {
        assert_eq!(
            replied(&with(MOVED, more)),
            (307, Some("http://i.cnn.net/a?b".to_owned()), ReplyReason::Redirected),
            "{more:?}"
        );
    };
    for destination in [
        "iframe",
        "frame",
        "fencedframe",
        "embed",
        "object",
        "worker",
        "sharedworker",
        "serviceworker",
        "audioworklet",
        "paintworklet",
        "manifest",
        "xslt",
        "report",
        "json",
        "something-new",
    ] {
        to_true_url(&[("sec-fetch-dest", destination)]);
    }
    to_true_url(&[("sec-fetch-dest", "image"), ("sec-fetch-mode", "navigate")]);
    to_true_url(&[("service-worker", "script"), ("sec-fetch-dest", "script")]);
    to_true_url(&[(":method", "POST")]);
    to_true_url(&[(":method", "DELETE"), ("sec-fetch-dest", "empty")]);
    for destination in ["audio", "empty", "font", "image", "script", "style", "track", "video"] {
        forwarded(&with(MOVED, &[("sec-fetch-dest", destination), ("sec-fetch-mode", "no-cors")]));
    }
    forwarded(&with(MOVED, &[("accept", "*/*"), (":method", "HEAD")]));
    forwarded(&with(MOVED, &[("sec-fetch-dest", "empty"), (":method", "OPTIONS")]));
}

/// The fields by which browsers mark a navigation, to an https name and to an http address.
const NAVIGATIONS: [&[(&str, &str)]; 4] = [
    &[("sec-fetch-dest", "document"), ("sec-fetch-mode", "navigate")],
    &[("sec-fetch-mode", "navigate")],
    &[("upgrade-insecure-requests", "1")],
    &[("accept", "text/html,application/xhtml+xml")],
];

#[test]
fn the_proxys_name_is_an_open_redirect() {
    for navigation in NAVIGATIONS {
        for referer in [
            None,
            Some("https://mail.example/"),
            Some("http://www.foo.example/"),
            Some("https://www.cnn.net/"), // to http: lower
            Some("http://cnn.net@evil.example/"),
            Some("http://evil.example/cnn.net"),
            Some("http://evilcnn.net/"),
            Some("https://pep.example.net/evil.example/a.svg"),
            Some("https://pep.example.net/"),
            Some("about:blank"),
            Some(""),
        ] {
            let referer = referer.map(|referer| ("referer", referer));
            let request: Vec<_> = with(MOVED, navigation).into_iter().chain(referer).collect();
            assert_eq!(replied(&request), (403, None, ReplyReason::LinkOffered), "{request:?}");
        }
        let posted = with(&with(MOVED, navigation), &[(":method", "POST")]);
        assert_eq!(replied(&posted).2, ReplyReason::LinkOffered);
    }
    let excluded = with(&with(MOVED, NAVIGATIONS[0]), &[(":path", "/www.bank.example:443/")]);
    assert_eq!(replied(&excluded).2, ReplyReason::LinkOffered);
    // A path that names no host is an error, for a navigation as well.
    let unknown = with(&with(MOVED, NAVIGATIONS[0]), &[(":path", "/not_a_host/")]);
    assert_eq!(replied(&unknown).0, 403);
}

#[test]
fn a_navigation_from_the_targets_own_site_is_redirected() {
    for navigation in NAVIGATIONS {
        for referer in ["http://www.cnn.net/", "http://I.CNN.net:8080/x", "https://pep.example.net/i.cnn.net/a.svg"] {
            let request = with(&with(MOVED, navigation), &[("referer", referer)]);
            let location = Some("http://i.cnn.net/a?b".to_owned());
            assert_eq!(replied(&request), (307, location, ReplyReason::Redirected), "{referer}");
        }
    }
}

#[test]
fn proofs_of_a_session_go_up_from_the_proxys_origin() {
    let more =
        [("dpop", "x"), ("secure-session-response", "x"), ("sec-browsing-topics", "x"), ("accept-language", "en")];
    let (edits, _) = forwarded(&with(MOVED, &more));
    for (name, _) in &more[..3] {
        assert!(edits.contains(&removed(name)), "{name}");
    }
    assert!(!edits.contains(&removed("accept-language")));
    let (edits, _) = forwarded(&with(TRANSPARENT, &more));
    assert!(!edits.contains(&removed("dpop")));
}

#[test]
fn an_excluded_host_is_sent_to_its_true_url_however_the_request_came_about() {
    let excluded = with(MOVED, &[(":path", "/www.bank.example:443/logo.png"), ("sec-fetch-dest", "image")]);
    let location = Some("https://www.bank.example/logo.png".to_owned());
    assert_eq!(replied(&excluded), (307, location, ReplyReason::Redirected));
}

#[test]
fn a_path_that_names_no_object_is_refused_in_one_line() {
    for (path, status, refusal) in [
        ("/", 404, Refusal::FrontPage),
        ("/favicon.ico", 403, Refusal::NoHost),
        ("/images/x.png", 403, Refusal::Host),
        ("/i.cnn.net:0/x", 403, Refusal::PortForm),
        ("/i.cnn.net:25/x", 403, Refusal::PortNotListed),
        ("/pep.example.net/x", 403, Refusal::Loop),
        ("/198.51.100.12:8080/x", 403, Refusal::Loop),
    ] {
        assert_eq!(replied(&with(MOVED, &[(":path", path)])), (status, None, ReplyReason::Refused(refusal)), "{path}");
    }
    assert_eq!(replied(&with(MOVED, &[("upgrade", "websocket")])).2, ReplyReason::NotAnObject);
}

// ----- both

#[test]
fn a_referer_that_names_the_proxy_is_restored() {
    let moved = ("referer", "https://pep.example.net/i.cnn.net/site.css");
    assert!(forwarded(&with(MOVED, &[moved])).0.contains(&set("referer", "http://i.cnn.net/site.css")));
    assert!(forwarded(&with(TRANSPARENT, &[moved])).0.contains(&set("referer", "http://i.cnn.net/")));
    assert!(forwarded(&with(TRANSPARENT, &[("referer", "https://pep.example.net/")])).0.contains(&removed("referer")));
    let (edits, _) = forwarded(&with(MOVED, &[("referer", "http://www.foo.example/")]));
    assert!(edits.iter().all(|edit| edit.name() != "referer"));
}

#[test]
fn the_page_that_asks_is_the_one_its_referer_names_if_that_is_not_the_proxy() {
    let page = |referer: &str| forwarded(&with(MOVED, &[("referer", referer)])).1.moved.unwrap().page;
    assert_eq!(page("https://www.foo.example/").as_deref(), Some("https://www.foo.example"));
    assert_eq!(page("http://www.foo.example:8080/a?b=//c").as_deref(), Some("http://www.foo.example:8080"));
    assert_eq!(page("https://pep.example.net/i.cnn.net/site.css"), None, "a sheet, which does not say its page");
    assert_eq!(page("about:blank"), None);
    assert_eq!(forwarded(MOVED).1.moved.unwrap().page, None);
}

#[test]
fn the_origin_sees_its_own_entity_tags_only() {
    let fingerprint = format!("{:016x}", plan("safe").fingerprint());
    let ours = format!("W/\"abc;lh={fingerprint}\"");
    let (edits, visit) = forwarded(&with(TRANSPARENT, &[("if-none-match", &ours), ("if-modified-since", "x")]));
    assert_eq!(edits, [set("if-none-match", "\"abc\"")]);
    assert!(visit.names_our_etag);
    let outdated = "W/\"abc;lh=0000000000000000\"";
    let (edits, visit) = forwarded(&with(TRANSPARENT, &[("if-none-match", outdated), ("if-modified-since", "x")]));
    assert_eq!(edits, [removed("if-none-match"), removed("if-modified-since")]);
    assert!(!visit.names_our_etag);
    let (edits, visit) = forwarded(&with(TRANSPARENT, &[("if-none-match", "\"abc\""), ("if-modified-since", "x")]));
    assert_eq!(edits, []);
    assert!(!visit.names_our_etag);
}

#[test]
fn no_range_of_a_rewritable_body_is_requested() {
    let range = ("range", "bytes=100-");
    let without =
        |more: &[(&str, &str)]| forwarded(&with(TRANSPARENT, &[&[range], more].concat())).0.contains(&removed("range"));
    assert!(without(&[("accept", "text/html,*/*")]));
    assert!(without(&[("accept", "text/css,*/*;q=0.1")]));
    assert!(without(&[("sec-fetch-dest", "document")]));
    assert!(without(&[("if-range", "W/\"abc;lh=0000000000000000\"")]));
    assert!(!without(&[]));
    assert!(!without(&[("accept", "video/*"), ("sec-fetch-dest", "video"), ("if-range", "\"abc\"")]));
}

#[test]
fn dictionaries_of_the_browser_are_not_offered() {
    let (edits, _) = forwarded(&with(TRANSPARENT, &[("available-dictionary", ":x:"), ("dictionary-id", "y")]));
    assert_eq!(edits, [removed("available-dictionary"), removed("dictionary-id")]);
}
