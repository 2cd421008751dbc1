//! The laws of rewriting, tested on pages made of the markup that matters.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use common::{Rewritten, page, plan, plan_with, rewrite, rewrite_in, sheet, undo};
use proptest::prelude::*;
use url_rewriting::BailOut;

/// Complete markup in which something can move.
const MARKUP: &[&str] = &[
    "<img src=http://a.example/1.png>",
    "<img alt='x' src = \"//a.example/2.png?x=1&amp;y=2\" / >",
    "<IMG SRC='http://b.example/3 4.png' src=http://c.example/no>",
    "<img srcset='http://a.example/w_1,h_2/5.png 1x, //b.example/6.png 2x' sizes=1>",
    "<script src=https://a.example/7.js></script>",
    "<script>var a = \"<img src='http://a.example/no'>\";</script>",
    "<script type=module src=http://a.example/8.js></script>",
    "<link rel=stylesheet href=http://a.example/9.css>",
    "<link rel=stylesheet href=http://a.example/9.css integrity=sha256-x>",
    "<link rel=canonical href=http://a.example/>",
    "<style>@import 'http://a.example/10.css';a{b:url(http://a.example/11.png)}</style>",
    "<p style='background:url(http://a.example/12.png)'>",
    "<p style=\"background:url(&quot;http://a.example/13.png&quot;)\">",
    "<td background=http://a.example/14.png>",
    "<noscript><img src=http://a.example/15.png></noscript>",
    "<!-- <img src=http://a.example/no> -->",
    "<textarea><img src=http://a.example/no></textarea>",
    "<svg><image xlink:href=http://a.example/16.png /></svg>",
    "<video poster=http://a.example/17.png src=http://a.example/18.mp4></video>",
    "<input type=image src=http://a.example/19.png><input src=http://a.example/no>",
    "<base href=http://b.example/dir/>",
    "<img src=20.png>",
    "<meta charset=utf-8>",
    "text & <more> text",
    "<a href=http://a.example/no data-src=http://a.example/no>",
    "<img src='http://user@a.example/no'><img src='data:,no'><img src='#no'>",
    "<img src='http://bank.example/no'>",
];

/// Bytes that break markup.
const BREAKERS: &[&str] =
    &["<", ">", "\"", "'", "<!--", "-->", "</", "=", "&", "\0", "\u{FEFF}", " ", "<svg>", "</style>", "<p "];

fn markup(breaking: bool) -> impl Strategy<Value = Vec<u8>> {
    let breakers = if breaking { BREAKERS } else { &["\n"] };
    let word = prop_oneof![
        3 => prop::sample::select(MARKUP.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::sample::select(breakers.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

/// Checks the law of every outcome: the output is the whole input, with only URLs changed.
fn is_whole(input: &[u8], done: &Rewritten, level: &str) -> Result<(), TestCaseError> {
    let fault = undo::only_moved_urls_differ(input, &done.bytes, &done.seen, plan(level).mapper());
    prop_assert!(fault.is_ok(), "{:?}\n{}\n{}", fault, String::from_utf8_lossy(input), done.text());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_page_cut_anywhere_comes_out_the_same(input in markup(true), piece in 1_usize..50) {
        let whole = rewrite(&plan("full"), page(), &input);
        prop_assert_eq!(&whole, &rewrite_in(&plan("full"), page(), &input, piece));
        prop_assert_eq!(whole, rewrite_in(&plan("full"), page(), &input, 1));
    }

    #[test]
    fn only_urls_change_and_they_lead_back(input in markup(false)) {
        for level in ["safe", "full"] {
            is_whole(&input, &rewrite(&plan(level), page(), &input), level)?;
        }
    }

    #[test]
    fn twice_is_once(input in markup(true)) {
        let once = rewrite(&plan("full"), page(), &input);
        prop_assert_eq!(&once.bytes, &rewrite(&plan("full"), page(), &once.bytes).bytes);
    }

    #[test]
    fn a_page_without_moved_urls_is_unchanged(input in markup(true)) {
        prop_assert_eq!(&rewrite(&plan("off"), page(), &input).bytes, &input);
        let nowhere = rewrite(&plan("off"), sheet(), &input);
        prop_assert_eq!(&nowhere.bytes, &input);
    }

    #[test]
    fn output_is_the_rewritten_prefix_and_the_untouched_rest(
        input in markup(false),
        growth in 1_usize..200,
        piece in 1_usize..100,
    ) {
        let tight = plan_with("full", &format!(r#"{{"output_growth_bytes": {growth}}}"#));
        let done = rewrite_in(&tight, page(), &input, piece);
        prop_assert!(done.bytes.len() <= input.len() + growth);
        let free = rewrite(&plan("full"), page(), &input);
        match done.bail_out {
            None => prop_assert_eq!(&done.bytes, &free.bytes),
            Some(cause) => {
                prop_assert_eq!(cause, BailOut::Growth);
                let same = done.bytes.iter().zip(&free.bytes).take_while(|(one, other)| one == other).count();
                prop_assert!(input.ends_with(&done.bytes[same..]), "{}", done.text());
            }
        }
        prop_assert_eq!(&done.bytes, &rewrite(&tight, page(), &input).bytes);
    }
}
