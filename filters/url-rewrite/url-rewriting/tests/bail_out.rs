//! Beyond a limit, the rest of the page passes unchanged. No content of a page makes it lose a byte.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::rc::Rc;

use common::{page, plan, plan_with, rewrite, rewrite_in, sheet};
use encoding_rs::{ISO_2022_JP, UTF_16LE};
use url_rewriting::{BailOut, Rewriter};

const IMAGE: &str = "<img src=http://a.example/x.png>";
const MOVED: &str = "<img src=https://pep.example.net/a.example/x.png>";

/// Returns the largest number of bytes that a rewriter holds back when it gets one small piece at a time.
fn most_held(html: &[u8]) -> usize {
    let mut rewriter = Rewriter::new(plan("full"), page(), None);
    let (mut out, mut given, mut most) = (Vec::new(), 0, 0);
    for piece in html.chunks(512) {
        rewriter.write(piece, &mut out);
        given += piece.len();
        // Moved URLs make the output longer, so this may count too few bytes as held.
        most = most.max(given.saturating_sub(out.len()));
    }
    rewriter.finish(&mut out);
    assert!(out.len() >= html.len());
    most
}

#[test]
fn no_page_is_too_large_too_deep_or_too_strange_to_be_read_to_its_end() {
    let long = "x".repeat(200_000);
    for (name, odd) in [
        ("deep", "<div>".repeat(60_000)),
        ("a long attribute", format!("<div title=\"{long}\">")),
        ("a long image", format!("<img alt=\"{long}\" src=http://a.example/long.png>")),
        ("a long name", format!("<{long}>")),
        ("a long comment", format!("<!--{long}-->")),
        ("a long script", format!("<script>{long}</script>")),
        ("a long sheet", format!("<style>a{{{long}}}b{{c:'{long}';d:url(data:{long})}}</style>")),
        ("a long noscript", format!("<noscript>{long}<img src=http://a.example/no></noscript>")),
        ("many attributes", format!("<p {}>", "a=b ".repeat(50_000))),
        ("many declarations", format!("<p style='{}'>", "a:url(b);".repeat(10_000))),
    ] {
        let html = format!("{IMAGE}{odd}{IMAGE}");
        let done = rewrite(&plan("full"), page(), html.as_bytes());
        assert_eq!(done.bail_out, None, "{name}");
        assert_eq!(done.text(), format!("{MOVED}{odd}{MOVED}"), "{name}");
        assert_eq!(done, rewrite_in(&plan("full"), page(), html.as_bytes(), 1000), "{name}");
        let most = most_held(html.as_bytes());
        assert!(most <= 64 * 1024 + 512, "{name}: {most} bytes are held");
    }
}

#[test]
fn a_page_that_needs_too_much_memory_is_whole_with_the_rest_untouched() {
    // In SVG the scanner consults the parser, which must store the names of tags.
    let html = format!("{IMAGE}<svg><{}>{IMAGE}", "x".repeat(200_000));
    for piece in [1000, 16 * 1024, usize::MAX] {
        let done = rewrite_in(&plan("full"), page(), html.as_bytes(), piece);
        assert_eq!(done.bail_out, Some(BailOut::Memory), "pieces of {piece}");
        assert_eq!(done.text(), html.replacen(IMAGE, MOVED, 1), "pieces of {piece}");
    }
}

#[test]
fn text_and_finished_tags_leave_at_once() {
    let mut rewriter = Rewriter::new(plan("full"), page(), None);
    for (piece, leaves) in [
        ("<p>some text", "<p>some text"),
        ("<img src=http://a.example", ""),
        ("/x.png", ""),
        (">more", "<img src=https://pep.example.net/a.example/x.png>more"),
        ("<style>a{b:url(", "<style>a{b:"),
        ("c)}d{", "url(https://pep.example.net/www.test.example/dir/c)}d{"),
        ("</style", ""),
        ("><script>var a = 1;", "></style>"),
    ] {
        let mut out = Vec::new();
        rewriter.write(piece.as_bytes(), &mut out);
        let text = String::from_utf8(out).unwrap();
        if leaves == "></style>" {
            assert_eq!(text, "</style><script>var a = 1;");
        } else {
            assert_eq!(text, leaves, "after {piece:?}");
        }
    }
}

#[test]
fn encodings_that_are_no_extension_of_ascii_pass_untouched() {
    for (encoding, mark) in [(Some(UTF_16LE), ""), (Some(ISO_2022_JP), ""), (None, "\u{FEFF}")] {
        let text = format!("{mark}{IMAGE}");
        let html =
            if mark.is_empty() { text.into_bytes() } else { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
        for piece in [1, 2, 3, 1000] {
            let mut body = page();
            body.encoding = encoding;
            let done = rewrite_in(&plan("full"), body, &html, piece);
            assert_eq!((done.bytes.as_slice(), done.bail_out), (html.as_slice(), Some(BailOut::Encoding)));
        }
    }
    let declared = format!("{IMAGE}<meta charset=iso-2022-jp>{IMAGE}");
    let done = rewrite(&plan("full"), page(), declared.as_bytes());
    assert_eq!(done.text(), format!("{MOVED}<meta charset=iso-2022-jp>{IMAGE}"));
    assert_eq!(done.bail_out, Some(BailOut::Encoding));
}

#[test]
fn a_byte_order_mark_of_utf_8_stays_and_hides_nothing() {
    let html = format!("\u{FEFF}{IMAGE}");
    for piece in [1, 2, 3, 4, 1000] {
        let done = rewrite_in(&plan("full"), page(), html.as_bytes(), piece);
        assert_eq!((done.text(), done.bail_out), (format!("\u{FEFF}{MOVED}"), None));
    }
}

#[test]
fn growth_ends_at_the_limit_in_pages_and_in_sheets() {
    let tight = plan_with("full", r#"{"output_growth_bytes": 50}"#);
    let done = rewrite(&tight, page(), IMAGE.repeat(9).as_bytes());
    assert_eq!(
        (done.text(), done.bail_out),
        (format!("{}{}", MOVED.repeat(2), IMAGE.repeat(7)), Some(BailOut::Growth))
    );
    let rule = "a{b:url(http://a.example/x)}";
    let moved = "a{b:url(https://pep.example.net/a.example/x)}";
    let done = rewrite(&tight, sheet(), rule.repeat(9).as_bytes());
    assert_eq!((done.text(), done.bail_out), (format!("{}{}", moved.repeat(2), rule.repeat(7)), Some(BailOut::Growth)));
}

#[test]
fn candidates_and_urls_beyond_their_limits_stay_and_the_page_goes_on() {
    let tight = plan_with("full", r#"{"srcset_candidates": 2, "url_bytes": 60}"#);
    let list = "<img srcset='http://a.example/1, http://a.example/2, http://a.example/3'>";
    let long = format!("<img src=http://a.example/{}>", "x".repeat(60));
    let done = rewrite(&tight, page(), format!("{list}{long}{IMAGE}").as_bytes());
    assert_eq!(done.text(), format!("{list}{long}{MOVED}"));
    let fates: Vec<_> = done.seen.iter().map(common::Seen::fate).collect();
    assert_eq!(fates, ["srcset_limit", "too_long", "moved"]);
}

#[test]
fn markup_in_markup_is_followed_as_deep_as_the_limit_says() {
    let html = format!("<noscript><noscript>{IMAGE}</noscript>{IMAGE}");
    for (nesting, wanted) in [
        (0, format!("<noscript><noscript>{IMAGE}</noscript>{MOVED}")),
        (1, format!("<noscript><noscript>{IMAGE}</noscript>{MOVED}")),
        (2, format!("<noscript><noscript>{MOVED}</noscript>{MOVED}")),
    ] {
        let plan = plan_with("full", &format!(r#"{{"nesting": {nesting}}}"#));
        assert_eq!(rewrite(&plan, page(), html.as_bytes()).text(), wanted, "{nesting}");
    }
}

#[test]
fn calls_after_the_end_or_after_a_bail_out_lose_nothing() {
    let mut rewriter = Rewriter::new(Rc::clone(&plan("full")), page(), None);
    let mut out = Vec::new();
    rewriter.finish(&mut out);
    rewriter.write(IMAGE.as_bytes(), &mut out);
    rewriter.finish(&mut out);
    rewriter.finish(&mut out);
    assert_eq!(out, IMAGE.as_bytes());
}
