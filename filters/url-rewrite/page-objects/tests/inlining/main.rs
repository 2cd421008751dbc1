//! The objects that are put into pages, the visitors that receive them, and other changes of such pages.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are not seen as tests by clippy.toml

mod texts;
mod worker;

use page_objects::inline::NotInlined;
use proptest::prelude::*;
use url_rewriting::headers::Edit;
use worker::{List, Page, Worker};

const BUDGET: &str = r#"{"object_bytes": 1000, "page_bytes": 4000}"#;
const GIF: &[u8] = b"GIF89a....";
const AS_URL: &str = "data:image/gif;base64,R0lGODlhLi4uLg==";
const LARGE: &[u8] = &{
    let mut bytes = [0; 1001];
    let (magic, _) = bytes.split_at_mut(6);
    magic.copy_from_slice(b"GIF89a");
    bytes
};
const KEPT: List<'static> = &[("content-type", "image/gif"), ("cache-control", "max-age=60")];

fn origin(path: &str) -> (List<'static>, &'static [u8]) {
    match path {
        path if path.contains(".css") => texts::sheet(path),
        path if path.contains(".js") => texts::script(path),
        "/large.gif" => (KEPT, LARGE),
        "/empty.gif" => (KEPT, b""),
        "/almost.gif" => (KEPT, LARGE.split_at(999).0),
        "/no-gif.gif" => (KEPT, b"<html>"),
        "/cookie.gif" => {
            (&[("content-type", "image/gif"), ("cache-control", "max-age=60"), ("set-cookie", "a=b")], GIF)
        }
        "/private.gif" => (&[("content-type", "image/gif"), ("cache-control", "private, max-age=60")], GIF),
        "/by-accept.gif" => {
            (&[("content-type", "image/gif"), ("cache-control", "max-age=60"), ("vary", "Accept")], GIF)
        }
        "/theirs.gif" => (
            &[
                ("content-type", "image/gif"),
                ("cache-control", "max-age=60"),
                ("cross-origin-resource-policy", "same-site"),
            ],
            GIF,
        ),
        _ => (KEPT, GIF),
    }
}

/// Passes a page whose objects were prefetched for an earlier visitor.
fn second(page: Page<'_>) -> worker::Seen {
    let mut worker = Worker::new("safe", BUDGET, origin);
    worker.pass(Page { request: &[], ..page });
    worker.pass(page)
}

#[track_caller]
fn stays(markup: &str, why: NotInlined) {
    let markup = format!("<img src=http://a.example/first.gif>{markup}");
    let seen = second(Page::of(&markup));
    assert_eq!(seen.inlined, 1, "only the first: {}", seen.html);
    assert!(seen.refused.iter().any(|(refused, _)| *refused == why), "{markup}: {:?}", seen.refused);
}

#[test]
fn a_picture_stands_in_the_page_for_the_second_visitor_and_not_for_the_first() {
    let markup =
        "<p><img alt=\"a\" src=\"http://a.example/1.gif\"><img src=http://a.example/2.gif/><img src='/own.gif'>";
    let mut worker = Worker::new("safe", BUDGET, origin);
    let first = worker.pass(Page::of(markup));
    assert_eq!((first.inlined, first.moved, first.edits.len()), (0, 2, 0));
    assert_eq!(first.refused, [(NotInlined::NothingHeld, 2)]);
    let second = worker.pass(Page::of(markup));
    let unquoted = AS_URL.replace("==", "&#61;&#61;");
    assert_eq!(second.html, format!("<p><img alt=\"a\" src=\"{AS_URL}\"><img src={unquoted}><img src='/own.gif'>"));
    assert_eq!((second.inlined, second.moved), (2, 0));
}

#[test]
fn a_page_with_objects_in_it_has_no_validators_and_another_keeps_them() {
    let removed = |seen: &worker::Seen| seen.edits.iter().map(|edit| edit.name().to_owned()).collect::<Vec<_>>();
    let mut worker = Worker::new("safe", BUDGET, origin);
    let with = Page::of("<img src=http://a.example/1.gif>");
    assert!(removed(&worker.pass(with)).is_empty(), "nothing is at hand yet");
    assert_eq!(removed(&worker.pass(with)), ["etag", "last-modified"]);
    let without = Page { path: "/other", ..Page::of("<p>") };
    assert!(removed(&worker.pass(without)).is_empty());
    assert!(worker.pass(with).edits.iter().all(|edit| matches!(edit, Edit::Remove(_))));
}

#[test]
fn a_visitor_who_has_been_here_has_the_objects_and_gets_urls() {
    for header in
        [("cookie", "a=b"), ("if-none-match", "\"x\""), ("if-modified-since", "Sat, 21 Nov 2026 13:00:00 GMT")]
    {
        let seen = second(Page { request: &[header], ..Page::of("<img src=http://a.example/1.gif>") });
        assert_eq!((seen.inlined, seen.moved, seen.refused), (0, 1, vec![(NotInlined::Returning, 1)]), "{header:?}");
        assert!(seen.edits.is_empty());
    }
}

#[test]
fn a_visitors_second_page_of_a_site_has_urls_and_the_next_visitors_first_page_has_not() {
    let mut worker = Worker::new("safe", BUDGET, origin);
    let page = Page::of("<img src=http://a.example/1.gif>");
    let of = |client| Page { client: Some(client), ..page };
    worker.pass(of("192.0.2.1:1000"));
    let again = worker.pass(of("192.0.2.1:1001"));
    assert_eq!((again.inlined, again.refused, again.edits.len()), (0, vec![(NotInlined::Seen, 1)], 0));
    assert_eq!(worker.pass(of("192.0.2.2:1000")).inlined, 1);
    assert_eq!(worker.pass(of("192.0.2.2:1000")).inlined, 0, "and from the second page on, it has not");
}

#[test]
fn a_visitor_from_another_page_of_the_site_gets_urls() {
    for (referer, inlined) in [
        ("http://www.foo.example/other", 0),
        ("https://shop.Foo.example", 0),
        ("http://search.example/?q=foo.example", 1),
        ("about:client", 1),
    ] {
        let request: List<'_> = &[("referer", referer)];
        let seen = second(Page { request, ..Page::of("<img src=http://a.example/1.gif>") });
        assert_eq!(seen.inlined, inlined, "{referer}: {:?}", seen.refused);
        assert_eq!(seen.refused, if inlined == 0 { vec![(NotInlined::Referred, 1)] } else { vec![] });
    }
}

#[test]
fn objects_that_a_browser_may_not_request_or_requests_in_its_own_way_stay() {
    stays("<img loading=lazy src=http://a.example/1.gif>", NotInlined::Uncertain);
    stays("<img srcset='http://a.example/1.gif 2x' src=http://a.example/2.gif>", NotInlined::Uncertain);
    stays(
        "<picture><source srcset=http://a.example/1.gif><img src=http://a.example/2.gif></picture>",
        NotInlined::Uncertain,
    );
    stays("<noscript><img src=http://a.example/1.gif></noscript>", NotInlined::Uncertain);
    stays("<template><img src=http://a.example/1.gif></template>", NotInlined::Uncertain);
    stays("<img src=http://a.example/1.svg#part>", NotInlined::Spelling);
    stays("<img src='http://a.example/a b.gif'>", NotInlined::Spelling);
    let mut full = Worker::new("full", BUDGET, origin);
    let cors = Page::of("<img src=http://a.example/first.gif><img crossorigin src=http://a.example/1.gif>");
    full.pass(cors);
    assert_eq!(full.pass(cors).refused, [(NotInlined::Cors, 1)]);
}

#[test]
fn objects_for_some_clients_or_of_another_type_than_labelled_stay() {
    for path in ["large", "empty", "no-gif", "cookie", "private", "by-accept", "theirs"] {
        stays(&format!("<img src=http://a.example/{path}.gif>"), NotInlined::NotHeld);
    }
}

#[test]
fn one_copy_in_the_browsers_cache_is_cheaper_than_two_in_pages() {
    stays("<img src=http://a.example/1.gif><img src=http://a.example/1.gif>", NotInlined::Repeated);
    stays("<img src=http://a.example/1.gif><p style='background:url(http://a.example/1.gif)'>", NotInlined::Repeated);
    let mut worker = Worker::new("safe", BUDGET, origin);
    let one = Page::of("<img src=http://a.example/logo.gif><img src=http://a.example/1.gif>");
    let other = Page { path: "/other", ..Page::of("<img src=http://a.example/logo.gif>") };
    worker.pass(one);
    worker.pass(other);
    let seen = worker.pass(one);
    assert_eq!((seen.inlined, seen.refused), (1, vec![(NotInlined::Shared, 1)]));
    worker.now_ms = 3_600_001;
    assert_eq!(worker.pass(one).inlined, 0, "not fresh any more");
    assert_eq!(worker.pass(one).inlined, 2, "what was believed is forgotten");
}

#[test]
fn policies_are_kept() {
    for (policy, inlined) in [
        ("img-src 'self' http: data:", 1),
        ("default-src * data:", 1),
        ("script-src 'none'", 1),
        ("img-src *", 0),
        ("default-src *", 0),
        ("img-src * data:, img-src *", 0),
    ] {
        let answer: List<'_> = &[("content-security-policy", policy)];
        let seen = second(Page { answer, ..Page::of("<img src=http://a.example/1.gif>") });
        assert_eq!(seen.inlined, inlined, "{policy}: {:?}", seen.refused);
    }
    stays(
        "<meta http-equiv=content-security-policy content='img-src *'><img src=http://a.example/1.gif>",
        NotInlined::Csp,
    );
}

#[test]
fn a_page_does_not_outlive_what_is_in_it() {
    for (cache_control, inlined) in
        [("max-age=50", 1), ("no-store", 1), ("max-age=61", 0), ("max-age=50, stale-while-revalidate=50", 0)]
    {
        let answer: List<'_> = &[("cache-control", cache_control)];
        let seen = second(Page { answer, ..Page::of("<img src=http://a.example/1.gif>") });
        assert_eq!(seen.inlined, inlined, "{cache_control}: {:?}", seen.refused);
    }
}

#[test]
fn browsers_of_other_formats_get_what_was_fetched_for_them() {
    let seen = second(Page { request: &[("accept", "text/html")], ..Page::of("<img src=http://a.example/1.gif>") });
    assert_eq!((seen.inlined, seen.refused), (0, vec![(NotInlined::NothingHeld, 1)]));
    let mut worker = Worker::new("safe", BUDGET, origin);
    let old = Page { request: &[("accept", "text/html")], ..Page::of("<img src=http://a.example/1.gif>") };
    worker.pass(old);
    assert_eq!(worker.pass(old).inlined, 1);
}

#[test]
fn a_page_grows_by_its_budget_and_no_more() {
    let markup: String =
        (0..5).map(|n| ["<img src=http://", &n.to_string(), ".example/almost.gif>"].concat()).collect();
    let seen = second(Page::of(&markup));
    assert_eq!((seen.inlined, seen.refused), (2, vec![(NotInlined::PageLimit, 3)]));
    assert!(seen.html.len() < markup.len() + 4000);
}

const WORDS: &[&str] = &[
    "<link rel=stylesheet href=http://a.example/1.css>",
    "<LINK media=screen HREF='//a.example/2.css' rel=stylesheet />",
    "<link rel=stylesheet href=http://a.example/3.css id=x>",
    "<script src=http://a.example/1.js></script>",
    "<SCRIPT type='text/javascript' src=http://a.example/2.js> \n </SCRIPT >",
    "<script src=http://a.example/3.js>x</script>",
    "<table>",
    "<title>t</title>",
    "<img src=http://a.example/1.gif>",
    "<img alt=x src=\"//b.example/2.gif\" loading=lazy>",
    "<IMG SRC='http://a.example/large.gif'>",
    "<picture><source srcset=http://a.example/3.gif><img src=http://a.example/4.gif></picture>",
    "<script>\"<img src=http://a.example/5.gif>\"</script>",
    "<svg><image href=http://a.example/6.gif /></svg>",
    "<noscript><img src=http://a.example/7.gif></noscript>",
    "text <p> & ",
    "<!-- <img src=http://a.example/8.gif> -->",
    "<meta http-equiv=content-security-policy content=\"img-src http:\">",
];

fn markup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..10).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn with_nothing_at_hand_a_page_is_what_it_is_without_inlining(markup in markup()) {
        let mut worker = Worker::new("safe", BUDGET, |_| (&[], b""));
        let first = worker.pass(Page::of(&markup)).html;
        let second = worker.pass(Page::of(&markup));
        prop_assert_eq!(second.inlined, 0);
        prop_assert_eq!(second.html, first);
    }

    #[test]
    fn pieces_do_not_matter(markup in markup(), piece in 1_usize..40) {
        for level in ["safe", "full"] {
            let [whole, pieces] = [usize::MAX, piece].map(|piece| {
                let mut worker = Worker::new(level, BUDGET, origin);
                worker.pass(Page::of(&markup));
                worker.pass(Page { piece, ..Page::of(&markup) })
            });
            prop_assert_eq!(whole.html, pieces.html);
            prop_assert_eq!(whole.refused, pieces.refused);
        }
    }
}
