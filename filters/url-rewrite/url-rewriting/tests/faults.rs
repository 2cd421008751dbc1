//! Faults that were found in pages. Each test is named after its fault, and fails if the fault returns.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use common::{PROXY, page, plan, rewrite};
use url_mapping::Level;

/// Rewrites the page at level safe.
fn safe(page_text: &str) -> String {
    at("safe", page_text)
}

fn at(level: &str, page_text: &str) -> String {
    String::from_utf8(rewrite(&plan(level), page(), page_text.as_bytes()).bytes).unwrap()
}

/// Checks the page, in which `here/` stands before every URL that moves.
fn moved(level: Level, page_text: &str) {
    let level = if level == Level::Full { "full" } else { "safe" };
    let source = page_text.replace("here/", "//");
    assert_eq!(at(level, &source), page_text.replace("here/", PROXY), "{page_text}");
}

#[test]
fn a_policy_that_is_named_with_a_character_reference_is_overlooked() {
    for name in ["Content&#45;Security&#45;Policy", "content-security-polic&#x79;", "Content-Security-Policy"] {
        let page =
            format!("<meta http-equiv='{name}' content=\"img-src i.example.com\"><img src=//j.example.com/a.png>");
        assert!(safe(&page).ends_with("<img src=//j.example.com/a.png>"), "{page}");
    }
    // Another name is another header.
    moved(
        Level::Safe,
        "<meta http-equiv='Content&#47;Security-Policy' content=\"img-src 'self'\"><img src=here/i.example.com/a>",
    );
}

#[test]
fn a_policy_beside_a_charset_is_overlooked() {
    let page =
        "<meta charset=utf-8 http-equiv=Content-Security-Policy content=\"img-src 'self'\"><img src=//i.example.com/a>";
    assert!(safe(page).ends_with("<img src=//i.example.com/a>"));
}

#[test]
fn a_character_reference_in_type_rel_or_media_is_not_decoded() {
    for page in [
        "<script type='text&#x2F;javascript' src=here/s.example.com/a.js></script>",
        "<link rel='shortcut&#x20;icon' href=here/s.example.com/a.ico>",
        "<link rel='style&#115;heet' href=here/s.example.com/a.css>",
        "<input type='im&#97;ge' src=here/s.example.com/a.png>",
        "<style type='text&sol;css'>p { background: url(here/s.example.com/a.png) }</style>",
    ] {
        moved(Level::Safe, page);
    }
    for page in [
        "<script type='modul&#101;' src=//s.example.com/a.js></script>",
        "<link rel='modul&#101;preload' href=//s.example.com/a.js>",
        "<link rel=preload as='f&#101;tch' href=//s.example.com/a.json>",
    ] {
        moved(Level::Safe, page);
    }
}

#[test]
fn a_character_reference_hides_that_an_object_is_fetched_with_credentials() {
    moved(Level::Full, "<img crossorigin='use&#45;credentials' src=//s.example.com/a.png>");
    moved(Level::Full, "<script integrity='&#32;' src=here/s.example.com/a.js></script>");
}

#[test]
fn a_preload_is_moved_although_a_script_makes_its_consumer() {
    let page = "<link rel=preload as=script href=//s.example.com/a.js><script>load('//s.example.com/a.js')</script>";
    assert_eq!(safe(page), page);
}

#[test]
fn a_file_is_fetched_once_where_its_preload_stays() {
    for page in [
        // The consumer stays with the preload, anywhere behind it.
        "<link rel=preload as=script href=//s.example.com/a.js><script src=//s.example.com/a.js></script>\
         <script src=here/s.example.com/b.js></script>",
        "<link rel=preload as=image href=//s.example.com/a.png><p style='background: url(//s.example.com/a.png)'>\
         <img srcset='here/s.example.com/b.png 1x, //s.example.com/a.png 2x'>",
        "<link rel=preload as=style href=//s.example.com/a.css#x><link rel=stylesheet href=//s.example.com/a.css>",
        "<link rel=preload as=image imagesrcset='//s.example.com/a.png 1x'><img src=//s.example.com/a.png>",
        // Behind its consumer, a preload moves with it.
        "<script src=here/s.example.com/a.js></script><link rel=preload as=script href=here/s.example.com/a.js>",
        // A preload that turns into the style sheet itself is its own consumer.
        "<link rel=preload as=style href=here/s.example.com/a.css onload=\"this.rel='stylesheet'\">\
         <noscript><link rel=stylesheet href=here/s.example.com/a.css></noscript>",
    ] {
        moved(Level::Safe, page);
    }
}

#[test]
fn a_hint_to_connect_beside_a_style_sheet_keeps_it_from_moving() {
    moved(Level::Safe, "<link rel='dns-prefetch stylesheet' href=here/s.example.com/a.css>");
    moved(Level::Safe, "<link rel='dns-prefetch' href=//s.example.com/>");
}

#[test]
fn the_src_of_an_svg_image_is_moved() {
    moved(
        Level::Safe,
        "<svg><image src=//s.example.com/a.png href=here/s.example.com/b.png></svg><image src=here/s.example.com/c.png>",
    );
}

#[test]
fn an_icon_in_front_of_a_base_is_resolved_without_it() {
    let icon = "<link rel=icon href=/a.ico>";
    assert_eq!(at("full", icon), icon);
    let behind =
        at("full", "<base href=http://b.example.com/><link rel=icon href=/a.ico><link rel=icon href=//c.example.com/>");
    assert!(behind.contains(&format!("{PROXY}b.example.com/a.ico")), "{behind}");
    moved(Level::Full, "<link rel=icon href=here/c.example.com/a.ico><base href=http://b.example.com/>");
}

#[test]
fn text_of_a_script_behind_svg_that_math_closes_is_changed() {
    for start in ["<math><svg></math>", "<svg><math></svg>", "<math><mi><svg></math>"] {
        let page = format!("{start}<script>\"<img src=http://s.example.com/a.png>\"</script>");
        assert_eq!(safe(&page), page, "{start}");
    }
    // After correct nesting, and after unmatched end tags, the scanner reads on as usual.
    for start in
        ["<math><annotation-xml><svg></svg></annotation-xml></math>", "<svg></math></svg>", "<svg></svg></svg>"]
    {
        moved(
            Level::Safe,
            &format!("{start}<script>\"<img src=//s.example.com/a.png>\"</script><img src=here/s.example.com/b.png>"),
        );
    }
}
