//! Style sheets and scripts as elements of the page.

use page_objects::inline::NotInlined;

use super::worker::{List, Page, Seen, Worker};
use super::{BUDGET, origin};

const SHEET: List<'static> = &[("content-type", "text/css; charset=utf-8"), ("cache-control", "max-age=60")];
const SCRIPT: List<'static> = &[("content-type", "text/javascript"), ("cache-control", "max-age=60")];
const MOVED: &str = "https://pep.example.net";

/// Returns the style sheet that the origin has under a path.
pub(crate) fn sheet(path: &str) -> (List<'static>, &'static [u8]) {
    let text: &[u8] = match path {
        "/dir/urls.css" => {
            b"@import 'more.css'; p{background:url( a.png )}q{background:url(\"//img.example/b.png\")}\
             r{fill:url(#r)}s{background:url(data:,x)}t{mask:url(../m.svg#m)}"
        }
        "/font.css" | "/dir/font.css" => b"@font-face{font-family:f;src:url(data:font/woff2,x),url(f.woff2)}",
        "/fonts-in-data.css" => b"@font-face{font-family:f;src:url(data:font/woff2,x)}",
        "/ends.css" => b"p::after{content:'</style>'}",
        "/empty-url.css" => b"p{background:url()}",
        "/unseen-import.css" => b"/* @import 'a.css' */",
        "/umlaut.css" => "p::after{content:'\u{fc}'}".as_bytes(),
        "/referrer.css" => {
            return (
                &[("content-type", "text/css"), ("cache-control", "max-age=60"), ("referrer-policy", "no-referrer")],
                b"p{}",
            );
        }
        "/not.css" => return (&[("content-type", "text/plain"), ("cache-control", "max-age=60")], b"p{}"),
        "/by-cookie.css" => {
            return (&[("content-type", "text/css"), ("cache-control", "max-age=60"), ("vary", "Cookie")], b"p{}");
        }
        _ => b"p{color:red}",
    };
    (SHEET, text)
}

/// The same for scripts.
pub(crate) fn script(path: &str) -> (List<'static>, &'static [u8]) {
    let text: &[u8] = match path {
        "/ends.js" => b"document.write('<script></script>')",
        "/looks.js" => b"var me = document.currentScript",
        "/html.js" => return (&[("content-type", "text/html"), ("cache-control", "max-age=60")], b"a()"),
        _ => b"a()",
    };
    (SCRIPT, text)
}

fn later(level: &str, page: Page<'_>) -> Seen {
    let mut worker = Worker::new(level, BUDGET, origin);
    worker.pass(page);
    worker.pass(page)
}

fn full(markup: &str) -> Seen {
    later("full", Page::of(markup))
}

/// Asserts that only the first style sheet is put in.
#[track_caller]
fn stays(level: &str, markup: &str, why: NotInlined) {
    let markup = format!("<link rel=stylesheet href=http://a.example/first.css>{markup}");
    let seen = later(level, Page::of(&markup));
    assert_eq!((seen.inlined, &seen.refused), (1, &vec![(why, 1)]), "{markup}: {}", seen.html);
}

#[test]
fn a_small_sheet_is_an_element_of_a_later_visitors_page() {
    let seen = later(
        "safe",
        Page::of("<!doctype html><title>t</title>\n<link rel=stylesheet media=screen href=//a.example/1.css><p>"),
    );
    assert_eq!(seen.html, "<!doctype html><title>t</title>\n<style media=screen>p{color:red}</style><p>");
    assert_eq!((seen.inlined, seen.moved), (1, 0));
}

#[test]
fn urls_of_a_sheet_mean_in_the_page_what_they_meant_in_the_sheet_and_move_like_the_pages_own() {
    let seen =
        later("safe", Page { path: "/page/", ..Page::of("<link rel=stylesheet href=http://a.example/dir/urls.css>") });
    let wanted = format!(
        "<style>@import '{MOVED}/a.example/dir/more.css'; p{{background:url( {MOVED}/a.example/dir/a.png )}}\
         q{{background:url(\"{MOVED}/img.example/b.png\")}}r{{fill:url(#r)}}s{{background:url(data:,x)}}\
         t{{mask:url(http://a.example/m.svg#m)}}</style>"
    );
    assert_eq!(seen.html, wanted);
    // The `@import`, two pictures; the mask is fetched with CORS and stays.
    assert_eq!((seen.inlined, seen.moved), (1, 3));
}

#[test]
fn a_sheet_whose_tag_says_more_or_stands_elsewhere_stays() {
    for tag in ["id=a", "title=a", "onload=a()", "data-a=b", "type=text/plain"] {
        stays("safe", &format!("<link rel=stylesheet href=http://a.example/1.css {tag}>"), NotInlined::Attributes);
    }
    stays("safe", "<div><link rel=stylesheet href=http://a.example/1.css></div>", NotInlined::Place);
    stays("safe", "<link rel=stylesheet media=print href=http://a.example/1.css>", NotInlined::Uncertain);
    stays("safe", "<noscript><link rel=stylesheet href=http://a.example/1.css></noscript>", NotInlined::Uncertain);
    stays("safe", "<template><link rel=stylesheet href=http://a.example/1.css></template>", NotInlined::Uncertain);
    let icon = later("safe", Page::of("<link rel=icon href=http://a.example/1.css>"));
    assert!(icon.refused.is_empty(), "an icon is never inlined: {:?}", icon.refused);
}

#[test]
fn a_sheet_whose_text_would_mean_something_else_in_the_page_stays() {
    for (path, why) in [
        ("ends", NotInlined::Text),
        ("empty-url", NotInlined::Unread),
        ("unseen-import", NotInlined::Unread),
        ("font", NotInlined::Fonts),
        ("umlaut", NotInlined::Charset),
        ("referrer", NotInlined::NotHeld),
        ("not", NotInlined::NotHeld),
        ("by-cookie", NotInlined::NotHeld),
    ] {
        let markup = format!(
            "<link rel=stylesheet href=http://a.example/first.css><link rel=stylesheet href=http://a.example/{path}.css>"
        );
        let seen = later("safe", Page::of(&markup));
        assert_eq!((seen.inlined, &seen.refused), (1, &vec![(why, 1)]), "{path}: {}", seen.html);
    }
    assert_eq!(later("safe", Page::of("<link rel=stylesheet href=//a.example/fonts-in-data.css>")).inlined, 1);
    assert_eq!(
        later("safe", Page::of("<meta charset=utf-8><link rel=stylesheet href=//a.example/umlaut.css>")).inlined,
        1
    );
    let own = full("<link rel=stylesheet href=/dir/font.css>");
    assert!(
        own.html.contains("url(http://www.foo.example/dir/f.woff2)"),
        "fonts of the page's own origin stay there: {}",
        own.html
    );
}

#[test]
fn policies_against_sheets_and_scripts_in_the_page_are_kept() {
    let markup = "<link rel=stylesheet href=http://a.example/1.css><script src=http://a.example/1.js></script>";
    for (policy, inlined) in [
        ("img-src 'none'", 2),
        ("style-src http: https: 'unsafe-inline'", 2),
        ("default-src http: https: 'unsafe-inline'", 2),
        ("style-src http: https:", 1),
        ("script-src http: https:", 1),
        ("script-src http: https: 'unsafe-inline'; style-src-elem http: https:", 1),
        ("default-src http: https:", 0),
        ("style-src http: https: 'unsafe-inline', style-src http: https:", 1),
        ("style-src http: https: 'unsafe-inline' 'nonce-x'", 1),
    ] {
        let answer: List<'_> = &[("content-security-policy", policy)];
        let seen = later("full", Page { answer, ..Page::of(markup) });
        assert_eq!(seen.inlined, inlined, "{policy}: {:?} {}", seen.refused, seen.html);
    }
    let in_page = format!("<meta http-equiv=content-security-policy content='default-src http: https:'>{markup}");
    assert_eq!(full(&in_page).inlined, 0);
}

#[test]
fn a_script_is_an_element_at_level_full_with_the_end_tag_that_was_there() {
    let seen = full("<p><script type='text/javascript' src=http://a.example/1.js> \n</SCRIPT ><p>");
    assert_eq!(seen.html, "<p><script type='text/javascript'>a() \n</SCRIPT ><p>");
    stays("safe", "<script src=http://a.example/1.js></script>", NotInlined::Level);
}

#[test]
fn a_script_that_is_not_just_run_where_it_stands_stays() {
    for tag in ["async", "defer", "id=a", "charset=utf-8", "nomodule", "onload=a()", "data-a=b"] {
        let why = if tag == "nomodule" { NotInlined::Uncertain } else { NotInlined::Attributes };
        stays("full", &format!("<script src=http://a.example/1.js {tag}></script>"), why);
    }
    for content in ["a()", "<!-- -->", "</scripty>", ""] {
        stays("full", &format!("<script src=http://a.example/1.js>{content}"), NotInlined::Content);
    }
    stays("full", "<script src=http://a.example/ends.js></script>", NotInlined::Text);
    stays("full", "<script src=http://a.example/looks.js></script>", NotInlined::Text);
    stays("full", "<math></math><script src=http://a.example/1.js></script>", NotInlined::Place);
    stays("full", "<frameset><script src=http://a.example/1.js></script>", NotInlined::Place);
}

#[test]
fn a_text_of_another_type_than_its_use_is_not_put_in() {
    for tag in ["<script src=http://a.example/html.js></script>", "<script src=http://a.example/1.css></script>"] {
        let seen = full(&format!("<script src=http://a.example/1.js></script>{tag}"));
        assert!(
            seen.html.ends_with(&format!(
                "{}</script>",
                tag.replace("http://", "https://pep.example.net/").trim_end_matches("</script>")
            )),
            "{}",
            seen.html
        );
        assert_eq!(seen.inlined, 1);
    }
}

#[test]
fn a_sheet_named_twice_or_on_two_pages_is_cheaper_in_the_browsers_cache() {
    let twice = "<link rel=stylesheet href=http://a.example/1.css><link rel=stylesheet href=http://a.example/1.css>";
    let seen = full(&format!("<link rel=stylesheet href=http://a.example/first.css>{twice}"));
    assert_eq!(seen.refused, [(NotInlined::Repeated, 2)]);
    let mut worker = Worker::new("full", BUDGET, origin);
    let page =
        Page::of("<link rel=stylesheet href=http://a.example/1.css><link rel=stylesheet href=http://a.example/2.css>");
    worker.pass(page);
    worker.pass(Page { path: "/other", ..Page::of("<link rel=stylesheet href=http://a.example/1.css>") });
    let seen = worker.pass(page);
    assert_eq!((seen.inlined, seen.refused), (1, vec![(NotInlined::Shared, 1)]));
}
