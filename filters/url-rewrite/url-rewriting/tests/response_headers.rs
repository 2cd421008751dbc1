//! The policy of response headers and of bodies to rewrite, row by row.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are not seen as tests by clippy.toml

mod headers;

use headers::{edited, fields, plan};
use url_mapping::Scheme;
use url_rewriting::Kind;
use url_rewriting::eligible::{self, Ineligible};
use url_rewriting::headers::request::{Destination, Exchange, Moved, Visit};
use url_rewriting::response::{Decision, decide};

const PAGE: &[(&str, &str)] =
    &[(":status", "200"), ("content-type", "text/html; charset=utf-8"), ("content-length", "5")];
const IMAGE: &[(&str, &str)] =
    &[(":status", "200"), ("content-type", "image/png"), ("content-length", "5"), ("etag", "\"a\"")];
const SHEET: &[(&str, &str)] = &[(":status", "200"), ("content-type", "text/css"), ("content-length", "5")];

fn page_visit() -> Visit {
    Visit {
        scheme: Scheme::Http,
        authority: "www.foo.example".to_owned(),
        path: "/news/".to_owned(),
        moved: None,
        exchange: Exchange::Ordinary,
        is_fetched_by_script: false,
        bears_cookie: false,
        asks_range: false,
        names_our_etag: false,
    }
}

fn moved_visit(scheme: Scheme, destination: Destination) -> Visit {
    let authority = if scheme == Scheme::Https { "pep.example.net" } else { "198.51.100.12:8080" };
    let moved = Moved {
        scheme,
        authority: authority.to_owned(),
        path: "/i.cnn.net/css/a.css".to_owned(),
        destination,
        page: None,
        origin: None,
    };
    Visit { authority: "i.cnn.net".to_owned(), path: "/css/a.css".to_owned(), moved: Some(moved), ..page_visit() }
}

fn with<'a>(base: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    base.iter().filter(|(name, _)| more.iter().all(|(other, _)| other != name)).chain(more).copied().collect()
}

/// Returns the headers that the client gets, and the kind of body that is rewritten.
#[track_caller]
fn through(visit: &Visit, response: &[(&str, &str)]) -> (Vec<(String, String)>, Option<Kind>) {
    match decide(&plan("safe"), visit, &fields(response)) {
        Decision::Pass { edits } => (edited(response, &edits), None),
        Decision::Rewrite { edits, body } => (edited(response, &edits), Some(body.kind)),
        Decision::Reply(reply, _) => panic!("answered with {reply:?}"),
    }
}

fn get<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

// ----- pages and style sheets at their own URLs

#[test]
fn a_page_is_rewritten_and_nothing_says_its_old_length_or_digest() {
    let about_bytes = [
        ("content-md5", "x"),
        ("digest", "x"),
        ("repr-digest", "x"),
        ("content-digest", "x"),
        ("accept-ranges", "bytes"),
        ("last-modified", "x"),
        ("set-cookie", "a=b"),
        ("cache-control", "max-age=60"),
        ("strict-transport-security", "max-age=1"),
    ];
    let (headers, kind) = through(&page_visit(), &with(PAGE, &about_bytes));
    assert_eq!(kind, Some(Kind::Html));
    for gone in ["content-length", "content-md5", "digest", "repr-digest", "content-digest", "accept-ranges"] {
        assert_eq!(get(&headers, gone), None, "{gone}");
    }
    for kept in ["last-modified", "set-cookie", "cache-control", "strict-transport-security", "content-type"] {
        assert!(get(&headers, kept).is_some(), "{kept}");
    }
}

#[test]
fn unchanged_responses_keep_every_header_but_those_that_lead_around_the_proxy() {
    let response = with(
        IMAGE,
        &[
            ("accept-ranges", "bytes"),
            ("set-cookie", "a=b"),
            ("access-control-allow-origin", "*"),
            ("link", "<http://x.example/>; rel=preload; as=image"),
        ],
    );
    assert_eq!(through(&page_visit(), &response), (edited(&response, &[]), None));
    let leading = [("alt-svc", "h3=\":443\""), ("alternate-protocol", "x"), ("nel", "{}"), ("use-as-dictionary", "x")];
    for base in [PAGE, IMAGE] {
        let (headers, _) = through(&page_visit(), &with(base, &leading));
        for (gone, _) in leading {
            assert_eq!(get(&headers, gone), None, "{gone}");
        }
    }
}

#[test]
fn a_rewritten_page_has_an_entity_tag_of_its_own_and_its_304_the_same() {
    let plan = plan("safe");
    let ours = format!("W/\"a;lh={:016x}\"", plan.fingerprint());
    let tag = |visit: &Visit, response: &[(&str, &str)]| get(&through(visit, response).0, "etag").map(str::to_owned);
    assert_eq!(tag(&page_visit(), &with(PAGE, &[("etag", "\"a\"")])), Some(ours.clone()));
    assert_eq!(tag(&page_visit(), &with(PAGE, &[("etag", "nonsense")])), None);
    assert_eq!(tag(&page_visit(), IMAGE).as_deref(), Some("\"a\""));
    let not_modified = [(":status", "304"), ("etag", "\"a\"")];
    assert_eq!(tag(&page_visit(), &not_modified).as_deref(), Some("\"a\""));
    assert_eq!(tag(&Visit { names_our_etag: true, ..page_visit() }, &not_modified), Some(ours));
}

#[test]
fn head_has_the_headers_of_the_page_without_a_body_to_rewrite() {
    let head = Visit { exchange: Exchange::HeadersOnly, ..page_visit() };
    let response = with(PAGE, &[("etag", "\"a\""), ("content-security-policy", "img-src i.cnn.net")]);
    let (of_head, kind) = through(&head, &response);
    assert_eq!(kind, None);
    assert_eq!(of_head, through(&page_visit(), &response).0);
}

#[test]
fn policies_are_translated_for_pages_and_for_the_304_that_browsers_apply_to_them() {
    let policy = [("content-security-policy", "img-src http://i.cnn.net")];
    let translated =
        Some("img-src http://i.cnn.net https://pep.example.net/i.cnn.net/ https://pep.example.net/i.cnn.net:443/");
    let (headers, _) = through(&page_visit(), &with(PAGE, &policy));
    assert_eq!(get(&headers, "content-security-policy"), translated);
    let (headers, _) = through(&page_visit(), &with(&[(":status", "304")], &policy));
    assert_eq!(get(&headers, "content-security-policy"), translated);
    let (headers, _) = through(&page_visit(), &with(IMAGE, &policy));
    assert_eq!(get(&headers, "content-security-policy"), Some("img-src http://i.cnn.net"));
    let report = [("content-security-policy-report-only", "img-src http://i.cnn.net")];
    let (headers, _) = through(&page_visit(), &with(PAGE, &report));
    assert_eq!(get(&headers, "content-security-policy-report-only"), translated);
}

#[test]
fn preloads_of_a_page_move_as_far_as_its_policy_lets_them() {
    let link = ("link", "<http://i.cnn.net/a.css>; rel=stylesheet");
    let moved = Some("<https://pep.example.net/i.cnn.net/a.css>; rel=stylesheet");
    assert_eq!(get(&through(&page_visit(), &with(PAGE, &[link])).0, "link"), moved);
    let closed = with(PAGE, &[link, ("content-security-policy", "style-src 'nonce-abc'")]);
    assert_eq!(get(&through(&page_visit(), &closed).0, "link"), Some(link.1));
    let dictionary = with(PAGE, &[("link", "</d>; rel=compression-dictionary")]);
    assert_eq!(get(&through(&page_visit(), &dictionary).0, "link"), None);
}

#[test]
fn every_reason_not_to_rewrite_is_found_and_leaves_the_length_alone() {
    type Case<'a> = (&'a [(&'a str, &'a str)], Ineligible);
    let cases: [Case<'_>; 23] = [
        (&[("content-type", "application/xhtml+xml")], Ineligible::Type),
        (&[("content-type", "text/htmlx")], Ineligible::Type),
        (&[("content-type", "text/plain")], Ineligible::Type),
        (&[("content-type", "")], Ineligible::Type),
        (&[("content-type", "text/css")], Ineligible::SheetInPlace),
        (&[(":status", "204")], Ineligible::Status),
        (&[(":status", "206")], Ineligible::Status),
        (&[(":status", "302")], Ineligible::Status),
        (&[(":status", "304")], Ineligible::Status),
        (&[(":status", "101")], Ineligible::Status),
        (&[("content-encoding", "br")], Ineligible::Encoded),
        (&[("content-encoding", "gzip"), ("content-encoding", "gzip")], Ineligible::Encoded),
        (&[("content-encoding", "gzip, br")], Ineligible::Encoded),
        (&[("cache-control", "max-age=1, No-Transform")], Ineligible::NoTransform),
        (&[("cross-origin-embedder-policy", "require-corp; report-to=\"x\"")], Ineligible::Isolated),
        (&[("cross-origin-embedder-policy", "credentialless")], Ineligible::Isolated),
        (&[("content-disposition", "attachment; filename=x.html")], Ineligible::Attachment),
        (&[("content-type", "text/html; charset=utf-16le")], Ineligible::Charset),
        (&[("content-type", "text/html; charset=iso-2022-jp")], Ineligible::Charset),
        // Labels of the standard's `replacement` encoding, which decodes nothing.
        (&[("content-type", "text/html; charset=iso-2022-kr")], Ineligible::Charset),
        (&[("content-type", "text/html; charset=hz-gb-2312")], Ineligible::Charset),
        (&[("trailer", "x-checksum")], Ineligible::Trailers),
        (&[(":status", "nonsense")], Ineligible::Status),
    ];
    for (more, reason) in cases {
        let response = with(PAGE, more);
        let (headers, kind) = through(&page_visit(), &response);
        assert_eq!((kind, get(&headers, "content-length")), (None, Some("5")), "{more:?}");
        let status = response.iter().find(|(name, _)| *name == ":status").unwrap().1.parse().unwrap_or(0);
        assert_eq!(eligible::kind(&plan("safe"), &page_visit(), status, &fields(&response)), Err(reason), "{more:?}");
    }
    for (visit, reason) in [
        (Visit { authority: "WWW.bank.example:80".to_owned(), ..page_visit() }, Ineligible::Excluded),
        (Visit { is_fetched_by_script: true, ..page_visit() }, Ineligible::FetchedByScript),
    ] {
        assert_eq!(eligible::kind(&plan("safe"), &visit, 200, &fields(PAGE)), Err(reason));
    }
    assert_eq!(eligible::kind(&plan("off"), &page_visit(), 200, &fields(PAGE)), Err(Ineligible::MovesNothing));
}

#[test]
fn pages_and_sheets_of_every_ordinary_kind_are_rewritten() {
    for more in [
        &[("content-type", "TEXT/HTML")][..],
        &[("content-type", "text/html;charset=windows-1252")],
        // An unknown label declares nothing, as in browsers: <https://encoding.spec.whatwg.org/#concept-encoding-get>
        &[("content-type", "text/html; charset=unheard-of")],
        &[("content-type", "text/html; charset=utf-7")],
        &[("content-encoding", "gzip")],
        &[("content-encoding", "x-GZIP")],
        &[(":status", "203")],
        &[(":status", "404")],
        &[(":status", "503")],
        &[("content-encoding", "identity")],
        &[("content-disposition", "inline")],
        &[("cache-control", "private")],
        &[("cross-origin-embedder-policy", "unsafe-none")],
        &[("cross-origin-embedder-policy-report-only", "require-corp")],
        &[("cross-origin-opener-policy", "same-origin")],
    ] {
        assert_eq!(through(&page_visit(), &with(PAGE, more)).1, Some(Kind::Html), "{more:?}");
    }
    assert_eq!(through(&moved_visit(Scheme::Https, Destination::Style), SHEET).1, Some(Kind::Css));
}

#[test]
fn a_page_with_an_embedder_policy_keeps_its_preloads_also_where_a_304_repeats_them() {
    let link = ("link", "<http://i.cnn.net/a.css>; rel=stylesheet");
    let isolated = ("cross-origin-embedder-policy", "require-corp");
    for response in [PAGE, &[(":status", "304")]] {
        let headers = through(&page_visit(), &with(response, &[link, isolated])).0;
        assert_eq!(headers, edited(&with(response, &[link, isolated]), &[]));
        let headers = through(&page_visit(), &with(response, &[link])).0;
        assert_ne!(get(&headers, "link"), Some(link.1));
    }
}

#[test]
fn a_page_with_cookies_keeps_what_they_may_reach() {
    let links = "<http://img.foo.example/a.css>; rel=stylesheet, <http://i.cnn.net/b.css>; rel=stylesheet";
    let moved_others = links.replace("http://i.cnn.net", "https://pep.example.net/i.cnn.net");
    let moved_all = moved_others.replace("http://img.foo.example", "https://pep.example.net/img.foo.example");
    let come_down = |bears_cookie: bool, more: &[(&'static str, &'static str)]| {
        let visit = Visit { bears_cookie, ..page_visit() };
        let headers = through(&visit, &with(PAGE, &[&[("link", links)], more].concat())).0;
        get(&headers, "link").unwrap().to_owned()
    };
    assert_eq!(come_down(false, &[]), moved_all);
    assert_eq!(come_down(true, &[]), moved_others);
    assert_eq!(come_down(false, &[("set-cookie", "domain=x; Path=/; HttpOnly")]), moved_all);
    assert_eq!(come_down(false, &[("set-cookie", "a=b"), ("set-cookie", "c=d;DOMAIN=foo.example")]), moved_others);
}

#[test]
fn after_an_upgrade_nothing_is_touched() {
    let tunnel = Visit { exchange: Exchange::Tunnel, ..page_visit() };
    let response = [(":status", "101"), ("upgrade", "websocket"), ("content-type", "text/html")];
    assert_eq!(through(&tunnel, &response), (edited(&response, &[]), None));
}

// ----- the proxy's own origin

#[test]
fn an_answer_of_the_proxys_origin_is_nobodys_page_and_nobodys_account() {
    let foreign = [
        ("set-cookie", "a=b"),
        ("set-cookie", "c=d"),
        ("clear-site-data", "*"),
        ("service-worker-allowed", "/"),
        ("strict-transport-security", "max-age=1"),
        ("www-authenticate", "Basic"),
        ("content-security-policy", "img-src *"),
        ("cross-origin-resource-policy", "same-origin"),
        ("report-to", "{}"),
        ("link", "</x>; rel=preload"),
        ("alt-svc", "h3"),
        ("access-control-allow-origin", "*"),
        ("cache-control", "max-age=60"),
        ("timing-allow-origin", "*"),
    ];
    let (headers, kind) = through(&moved_visit(Scheme::Https, Destination::Media), &with(IMAGE, &foreign));
    assert_eq!(kind, None);
    for gone in [
        "set-cookie",
        "clear-site-data",
        "service-worker-allowed",
        "strict-transport-security",
        "www-authenticate",
        "report-to",
        "link",
        "alt-svc",
    ] {
        assert_eq!(get(&headers, gone), None, "{gone}");
    }
    for (name, value) in [
        ("content-security-policy", "sandbox"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("x-content-type-options", "nosniff"),
        ("access-control-allow-origin", "*"),
        ("cache-control", "max-age=60"),
        ("timing-allow-origin", "*"),
        ("etag", "\"a\""),
        ("content-length", "5"),
    ] {
        assert_eq!(get(&headers, name), Some(value), "{name}");
    }
}

#[test]
fn a_header_that_speaks_for_a_whole_origin_comes_down_from_the_proxys() {
    let dated = [
        "set-login",
        "secure-session-registration",
        "attribution-reporting-register-source",
        "attribution-reporting-register-trigger",
        "activate-storage-access",
        "observe-browsing-topics",
        "document-policy",
        "sourcemap",
        "shared-storage-write",
        "supports-loading-mode",
        "origin-trial",
        "no-vary-search",
        "ad-auction-signals",
        "ad-auction-additional-bid",
        "sec-a-name-of-tomorrow",
        "x-allow-fledge",
    ];
    let foreign: Vec<_> = dated.iter().map(|name| (*name, "x")).collect();
    let (headers, _) = through(&moved_visit(Scheme::Https, Destination::Media), &with(IMAGE, &foreign));
    let (untouched, _) = through(&page_visit(), &with(IMAGE, &foreign));
    for name in dated {
        assert_eq!((get(&headers, name), get(&untouched, name)), (None, Some("x")), "{name}");
    }
}

#[test]
fn a_preload_in_a_header_keeps_the_use_in_the_page() {
    let link = [("link", "<http://i.cnn.net/a.js>; rel=preload; as=script")];
    let Decision::Rewrite { body, edits } = decide(&plan("safe"), &page_visit(), &fields(&with(PAGE, &link))) else {
        panic!("a page is rewritten");
    };
    assert!(!edits.iter().any(|edit| edit.name() == "link"));
    let mut rewriter = url_rewriting::Rewriter::new(plan("safe"), *body, None);
    let mut out = Vec::new();
    rewriter.write(b"<script src=http://i.cnn.net/a.js></script><script src=http://i.cnn.net/b.js></script>", &mut out);
    rewriter.finish(&mut out);
    let wanted =
        "<script src=http://i.cnn.net/a.js></script><script src=https://pep.example.net/i.cnn.net/b.js></script>";
    assert_eq!(String::from_utf8(out).unwrap(), wanted);
}

#[test]
fn a_moved_sheet_is_rewritten_and_a_page_there_is_not() {
    let (headers, kind) =
        through(&moved_visit(Scheme::Https, Destination::Style), &with(SHEET, &[("cache-control", "no-transform")]));
    assert_eq!((kind, get(&headers, "content-length")), (Some(Kind::Css), None));
    assert_eq!(through(&moved_visit(Scheme::Https, Destination::Other), PAGE).1, None);
    let off = decide(&plan("off"), &moved_visit(Scheme::Https, Destination::Style), &fields(SHEET));
    assert!(matches!(off, Decision::Rewrite { .. }), "its references would miss otherwise");
}

#[test]
fn nosniff_is_left_out_only_where_it_would_block_what_loads_today() {
    let nosniff = |destination, kind: &str, more: &[(&str, &str)]| {
        let response = with(&[(":status", "200"), ("content-type", kind)], more);
        get(&through(&moved_visit(Scheme::Https, destination), &response).0, "x-content-type-options").is_some()
    };
    for (destination, kind, expected) in [
        (Destination::Script, "text/javascript; charset=utf-8", true),
        (Destination::Script, "application/x-javascript", true),
        (Destination::Script, "text/plain", false),
        (Destination::Script, "", false),
        (Destination::Style, "text/css", true),
        (Destination::Style, "text/plain", false),
        (Destination::Media, "image/webp", true),
        (Destination::Media, "text/html", false),
        (Destination::Media, "application/octet-stream", false),
        (Destination::Other, "application/json", true),
        (Destination::Unknown, "text/plain", true),
    ] {
        assert_eq!(nosniff(destination, kind, &[]), expected, "{destination:?} {kind}");
    }
    assert!(
        nosniff(Destination::Script, "text/plain", &[("x-content-type-options", "nosniff")]),
        "the origin's own stays"
    );
    for destination in [Destination::Script, Destination::Style, Destination::Media, Destination::Unknown] {
        assert!(!nosniff(destination, "text/plain", &[(":status", "404")]), "{destination:?}: the failure is shown");
        assert!(!nosniff(destination, "text/plain", &[(":status", "502")]), "{destination:?}");
        assert!(nosniff(destination, "text/plain", &[(":status", "404"), ("x-content-type-options", "nosniff")]));
    }
    assert!(nosniff(Destination::Script, "text/plain", &[(":status", "301")]));
}

#[test]
fn mislabelled_scripts_and_style_sheets_are_not_served_from_an_http_address() {
    let outcome = |scheme, destination, kind: &str, status: &str| {
        decide(
            &plan("safe"),
            &moved_visit(scheme, destination),
            &fields(&[(":status", status), ("content-type", kind)]),
        )
    };
    for (destination, kind) in [
        (Destination::Unknown, "text/plain"),
        (Destination::Unknown, ""),
        (Destination::Unknown, "application/octet-stream"),
        (Destination::Style, "text/plain"),
    ] {
        match outcome(Scheme::Http, destination, kind, "200") {
            Decision::Reply(reply, _) => {
                assert_eq!(reply.status, 307);
                assert!(reply.fields.contains(&(b"location".to_vec(), b"http://i.cnn.net/css/a.css".to_vec())));
            }
            decision => panic!("{kind}: {decision:?}"),
        }
        assert!(!matches!(outcome(Scheme::Https, destination, kind, "200"), Decision::Reply(..)));
        assert!(!matches!(outcome(Scheme::Http, destination, kind, "404"), Decision::Reply(..)));
    }
    for (destination, kind) in [
        (Destination::Unknown, "image/png"),
        (Destination::Unknown, "application/javascript"),
        (Destination::Unknown, "text/css"),
        (Destination::Unknown, "font/woff2"),
        (Destination::Style, "text/css"),
        (Destination::Media, "text/plain"),
    ] {
        assert!(!matches!(outcome(Scheme::Http, destination, kind, "200"), Decision::Reply(..)), "{kind}");
    }
}

#[test]
fn redirects_stay_in_the_prefix_space_and_refreshes_leave_it() {
    let header = |name: &'static str, value: &str| {
        let response = [(":status", "302"), (name, value)];
        get(&through(&moved_visit(Scheme::Https, Destination::Media), &response).0, name).map(str::to_owned)
    };
    for (location, expected) in [
        ("/x.png", "https://pep.example.net/i.cnn.net/x.png"),
        ("x.png", "x.png"),
        ("http://other.example/x.png", "https://pep.example.net/other.example/x.png"),
        ("https://other.example/x.png", "https://pep.example.net/other.example:443/x.png"),
        ("//img.bank.example/x.png", "http://img.bank.example/x.png"),
        ("http://img.bank.example/x.png", "http://img.bank.example/x.png"),
        ("http://10.0.0.1/x.png", "http://10.0.0.1/x.png"),
    ] {
        assert_eq!(header("location", location).as_deref(), Some(expected), "{location}");
    }
    assert_eq!(header("refresh", "0; url=/x").as_deref(), Some("0;url=http://i.cnn.net/x"));
    assert_eq!(header("refresh", "0"), None);
    let response = [(":status", "302"), ("location", "/x"), ("refresh", "0; url=/x")];
    assert_eq!(through(&page_visit(), &response).0, edited(&response, &[]), "at home both are the page's own business");
}

#[test]
fn only_responses_that_were_same_origin_stay_readable() {
    let allowed = |origin: &str, more: &[(&str, &str)]| {
        let mut visit = moved_visit(Scheme::Https, Destination::Other);
        visit.moved.as_mut().unwrap().origin = Some(origin.as_bytes().to_vec());
        let (headers, _) = through(&visit, &with(IMAGE, more));
        (get(&headers, "access-control-allow-origin").map(str::to_owned), get(&headers, "vary").map(str::to_owned))
    };
    let page = "http://i.cnn.net";
    assert_eq!(allowed(page, &[]), (Some(page.to_owned()), Some("Origin".to_owned())));
    assert_eq!(allowed(page, &[("access-control-allow-origin", "*")]), (Some("*".to_owned()), None));
    for stranger in ["https://i.cnn.net", "http://www.cnn.com", "http://i.cnn.net:8080", "null", ""] {
        assert_eq!(allowed(stranger, &[]), (None, None), "{stranger}");
    }
}

#[test]
fn an_object_keeps_the_policy_that_keeps_the_asking_page_out_and_no_other() {
    let shown_to = |page: Option<&str>, policies: &[(&'static str, &'static str)]| {
        let mut visit = moved_visit(Scheme::Https, Destination::Media);
        visit.moved.as_mut().unwrap().page = page.map(str::to_owned);
        let (headers, _) = through(&visit, &with(IMAGE, policies));
        let varies = get(&headers, "vary").map(str::to_owned);
        let policy = get(&headers, "cross-origin-resource-policy").unwrap().to_owned();
        assert_eq!(varies.as_deref(), (policy != "cross-origin").then_some("Referer"), "{page:?} {policies:?}");
        policy
    };
    let (own, sites, others) =
        (Some("http://i.cnn.net"), Some("https://www.cnn.net:8443"), Some("http://www.foo.example"));
    let same_origin = [("cross-origin-resource-policy", "same-origin")];
    let same_site = [("cross-origin-resource-policy", "same-site")];
    for page in [sites, others, Some("https://i.cnn.net"), Some("http://i.cnn.net:8080")] {
        assert_eq!(shown_to(page, &same_origin), "same-origin", "{page:?}");
    }
    assert_eq!(shown_to(others, &same_site), "same-site");
    assert_eq!(shown_to(Some("http://[2001:db8::1]:8080"), &same_site), "same-site");
    for page in [own, None] {
        assert_eq!(shown_to(page, &same_origin), "cross-origin", "{page:?}");
    }
    for page in [own, sites, None] {
        assert_eq!(shown_to(page, &same_site), "cross-origin", "{page:?}");
    }
    for policies in [
        &[][..],
        &[("cross-origin-resource-policy", "cross-origin")],
        // Browsers treat neither as a policy.
        &[("cross-origin-resource-policy", "Same-Origin")],
        &[same_origin[0], same_origin[0]],
    ] {
        assert_eq!(shown_to(others, policies), "cross-origin", "{policies:?}");
    }
}
