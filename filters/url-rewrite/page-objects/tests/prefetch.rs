//! The objects that are prefetched, and in what order. The facts that a worker learns from the results.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are not seen as tests by clippy.toml

#[path = "../../url-rewriting/tests/headers/mod.rs"]
mod headers;

use headers::{fields, plan};
use page_objects::{Candidate, Ended, Failure, Fetcher, Order, PrefetchObserver, RequestTemplate, Skip};
use url_mapping::Base;
use url_rewriting::headers::request::{Decision, Visit, decide};
use url_rewriting::{Body, Kind, Packing, Policies, Preloads, Rewriter};

const PAGE: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "www.foo.example"),
    (":path", "/dir/page"),
    ("accept", "text/html,*/*;q=0.8"),
    ("user-agent", "a browser"),
    ("cookie", "secret=1"),
    ("authorization", "Basic YTpi"),
    ("sec-ch-ua", "\"a browser\""),
    ("sec-fetch-dest", "document"),
];
const FRESH: &[(&str, &str)] = &[(":status", "200"), ("cache-control", "max-age=60")];
const NEVER_KEPT: &[(&str, &str)] = &[(":status", "200"), ("cache-control", "no-store")];

fn visit(request: &[(&str, &str)]) -> Visit {
    match decide(&plan("safe"), &fields(request)) {
        Decision::Forward { visit, .. } => visit,
        Decision::Reply(reply, _) => panic!("answered with {reply:?}"),
    }
}

/// Returns the candidates of a page with this markup, and the reasons of the objects that were left out.
fn candidates(request: &[(&str, &str)], answer: &[(&str, &str)], markup: &str) -> (Vec<Candidate>, Vec<Skip>) {
    let visit = visit(request);
    let template =
        RequestTemplate::of(&visit, &fields(request)).unwrap().unwrap().with_answer(&fields(answer)).unwrap();
    let (observer, found) = PrefetchObserver::new(plan("safe"), template);
    let base = Base::new(visit.scheme, &visit.authority, &visit.path).unwrap();
    let body = Body {
        kind: Kind::Html,
        packing: Packing::Plain,
        base,
        encoding: None,
        policies: Policies::default(),
        preloads: Preloads::default(),
    };
    let mut rewriter = Rewriter::new(plan("safe"), body, Some(Box::new(observer)));
    let mut out = Vec::new();
    rewriter.write(markup.as_bytes(), &mut out);
    rewriter.finish(&mut out);
    let found = found.take();
    (found.candidates, found.skipped)
}

fn of(markup: &str) -> Vec<Candidate> {
    candidates(PAGE, &[(":status", "200")], markup).0
}

fn value(order: &Order, name: &str) -> Option<String> {
    order.fields().into_iter().find(|(field, _)| *field == name).map(|(_, value)| value)
}

/// Returns authority and path of the requests to be sent now.
fn next(fetcher: &mut Fetcher, now_ms: u64) -> Option<(Order, String)> {
    let order = fetcher.next(now_ms, |why| assert_eq!(why, Skip::Held))?;
    let url = format!("{}{}", value(&order, ":authority").unwrap(), value(&order, ":path").unwrap());
    Some((order, url))
}

#[test]
fn scripts_and_sheets_go_first_then_pictures_in_the_order_of_the_page_and_each_once() {
    let mut fetcher = Fetcher::default();
    for candidate in of(concat!(
        "<img src=//a.example/1.png><img src=//b.example/2.png><img src=//a.example/1.png>",
        "<script src=//a.example/3.js></script><link rel=stylesheet href=//b.example/4.css>"
    )) {
        fetcher.ask(candidate, 0).unwrap();
    }
    let mut sent = Vec::new();
    while let Some((order, url)) = next(&mut fetcher, 1) {
        fetcher.sent(order, u32::try_from(sent.len()).unwrap());
        sent.push(url);
    }
    assert_eq!(sent, ["a.example/3.js", "b.example/4.css", "a.example/1.png", "b.example/2.png"]);
}

#[test]
fn a_request_says_what_the_browsers_own_would_and_no_more() {
    let said = |page: &[(&'static str, &'static str)], answer: &[(&str, &str)], markup: &str| {
        let mut fetcher = Fetcher::default();
        fetcher.ask(candidates(page, answer, markup).0.remove(0), 0).unwrap();
        let (order, _) = next(&mut fetcher, 0).unwrap();
        let mut names: Vec<_> = order.fields().into_iter().map(|(name, _)| name).skip(4).collect();
        names.sort_unstable();
        (names.join(" "), value(&order, "accept"), value(&order, "referer"))
    };
    let ok = [(":status", "200")];
    let (names, accept, referer) = said(PAGE, &ok, "<link rel=stylesheet href=http://a.example/1.css>");
    assert_eq!(names, "accept accept-encoding referer user-agent");
    assert_eq!(accept.as_deref(), Some("text/css,*/*;q=0.1"));
    assert_eq!(referer.as_deref(), Some("http://www.foo.example/"), "another origin gets the page's origin alone");
    let (names, ..) = said(PAGE, &ok, "<img src=https://a.example/1.png>");
    assert_eq!(names, "accept accept-encoding referer sec-ch-ua sec-fetch-dest sec-fetch-mode user-agent");
    let hushed = [(":status", "200"), ("referrer-policy", "no-referrer")];
    assert_eq!(said(PAGE, &hushed, "<img src=https://a.example/1.png>").2, None);
}

#[test]
fn one_host_is_asked_six_things_at_a_time_and_does_not_hold_up_another() {
    let mut fetcher = Fetcher::default();
    let many: String = (0..10).map(|n| ["<img src=//a.example/", &n.to_string(), ".png>"].concat()).collect();
    for candidate in of(&format!("{many}<img src=//b.example/last.png>")) {
        fetcher.ask(candidate, 0).unwrap();
    }
    let mut token = 0;
    let mut send_all = |fetcher: &mut Fetcher| {
        let mut sent = Vec::new();
        while let Some((order, url)) = next(fetcher, 0) {
            fetcher.sent(order, token);
            token += 1;
            sent.push(url);
        }
        sent
    };
    let first = send_all(&mut fetcher);
    assert_eq!((first.len(), first.last().map(String::as_str)), (7, Some("b.example/last.png")));
    assert_eq!(fetcher.ended(0, Some(&fields(FRESH)), 1), Some(Ended::Stored));
    assert_eq!(send_all(&mut fetcher), ["a.example/6.png"], "one ended, one goes");
    assert_eq!(fetcher.ended(1, None, 1), Some(Ended::Failed(Failure::NoAnswer)));
    assert_eq!(send_all(&mut fetcher), ["a.example/7.png"]);
    assert_eq!(fetcher.ended(99, None, 1), None, "not ours");
}

#[test]
fn a_prefetch_that_waited_too_long_is_dropped() {
    let mut fetcher = Fetcher::default();
    fetcher.ask(of("<img src=//a.example/1.png>").remove(0), 0).unwrap();
    let mut skipped = Vec::new();
    assert!(fetcher.next(3_001, |why| skipped.push(why)).is_none());
    assert_eq!(skipped, [Skip::Late]);
    assert!(fetcher.is_idle());
}

#[test]
fn finished_prefetches_and_the_browsers_own_requests_teach() {
    let script = || of("<script src=//a.example/1.js?v=2></script>").remove(0);
    let after = |answer: Option<&[(&str, &str)]>| {
        let mut fetcher = Fetcher::default();
        fetcher.ask(script(), 0).unwrap();
        let (order, _) = next(&mut fetcher, 0).unwrap();
        fetcher.sent(order, 7);
        let ended = fetcher.ended(7, answer.map(fields).as_ref(), 0).unwrap();
        (ended, fetcher.ask(script(), 1).err())
    };
    assert_eq!(after(Some(FRESH)), (Ended::Stored, Some(Skip::Held)));
    // The cache selects by `Vary`.
    let negotiated = [FRESH, &[("vary", "Accept-Encoding")]].concat();
    assert_eq!(after(Some(&negotiated)), (Ended::Stored, Some(Skip::Held)));
    let validated = [(":status", "200"), ("cache-control", "no-cache"), ("etag", "\"a\"")];
    assert_eq!(after(Some(&validated)), (Ended::Failed(Failure::Uncacheable), Some(Skip::Uncacheable)));
    assert_eq!(after(Some(NEVER_KEPT)), (Ended::Failed(Failure::Uncacheable), Some(Skip::Uncacheable)));
    assert_eq!(after(Some(&[(":status", "403")])), (Ended::Failed(Failure::Status), Some(Skip::LeftAlone)));
    assert_eq!(after(None), (Ended::Failed(Failure::NoAnswer), Some(Skip::LeftAlone)));

    let moved =
        [(":method", "GET"), (":scheme", "https"), (":authority", "pep.example.net"), (":path", "/a.example/1.js")];
    let mut fetcher = Fetcher::default();
    fetcher.saw(&visit(&moved), &fields(FRESH), 0);
    assert_eq!(fetcher.ask(script(), 1), Ok(()), "kept in general, but perhaps not this one");
    fetcher.saw(&visit(&moved), &fields(NEVER_KEPT), 0);
    assert_eq!(fetcher.ask(script(), 1), Err(Skip::Uncacheable));
    assert_eq!(fetcher.ask(script(), 3_600_001), Ok(()), "it is forgotten");
}

#[test]
fn a_picture_with_a_query_is_fetched_only_where_such_are_known_to_be_kept() {
    let picture = || of("<img src=//a.example/1.png?w=2>").remove(0);
    let mut fetcher = Fetcher::default();
    assert_eq!(fetcher.ask(picture(), 0), Err(Skip::Unproven));
    let other = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "pep.example.net"),
        (":path", "/a.example/1.png?w=1"),
    ];
    fetcher.saw(&visit(&other), &fields(FRESH), 0);
    assert_eq!(fetcher.ask(picture(), 0), Ok(()));
}

#[test]
fn a_worker_has_so_many_waiting_and_under_way_and_no_more() {
    let mut fetcher = Fetcher::default();
    let page: String = (0..40).map(|n| ["<img src=//h", &n.to_string(), ".example/x.png>"].concat()).collect();
    let mut refused = 0;
    for number in 0..20 {
        for candidate in of(&page.replace("/x.png", &format!("/{number}.png"))) {
            refused += usize::from(fetcher.ask(candidate, 0) == Err(Skip::QueueFull));
        }
    }
    assert_eq!(refused, 20 * 40 - 512);
    let mut sent = 0;
    while let Some((order, _)) = next(&mut fetcher, 0) {
        fetcher.sent(order, sent);
        sent += 1;
    }
    assert_eq!(sent, 48);
}

#[test]
fn one_page_has_so_many_objects_fetched_and_no_more() {
    let page: String = (0..200)
        .map(|n| ["<img src=//h", &(n % 9).to_string(), ".example/", &n.to_string(), ".png>"].concat())
        .collect();
    let (candidates, skipped) = candidates(PAGE, &[(":status", "200")], &page);
    assert_eq!((candidates.len(), skipped.len()), (96, 104));
    assert!(skipped.iter().all(|why| *why == Skip::PageLimit));
}

#[test]
fn nothing_is_prefetched_for_clients_that_would_request_no_objects() {
    let with = |more: &[(&'static str, &'static str)]| {
        let request: Vec<_> = PAGE.iter().chain(more).copied().collect();
        RequestTemplate::of(&visit(&request), &fields(&request)).unwrap().err()
    };
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[("save-data", "on")]), Some(Skip::SaveData));
    assert_eq!(with(&[("sec-purpose", "prefetch")]), Some(Skip::Speculative));
    assert_eq!(with(&[("purpose", "prefetch")]), Some(Skip::Speculative));
    assert_eq!(with(&[("cache-control", "no-cache")]), Some(Skip::Reload));
    assert_eq!(with(&[("cache-control", "max-age=0")]), None, "looked at again, not reloaded past caches");
    let script = [PAGE, &[("sec-fetch-dest", "empty")]].concat();
    let script: Vec<_> = script.into_iter().filter(|field| *field != ("sec-fetch-dest", "document")).collect();
    assert!(RequestTemplate::of(&visit(&script), &fields(&script)).is_none(), "no page for a window");
}
