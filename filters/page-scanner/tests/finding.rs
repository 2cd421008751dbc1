//! Tag scanner and foreign content together find exactly what the parser itself finds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lol_html::{HtmlRewriter, Settings, element};
use page_scanner::places::PLACES;
use page_scanner::{BailOut, Fits, Kind, Limits, Packing, Place, Scanner, UrlReference, Visitor};
use proptest::prelude::*;
use url_mapping::Reason;

/// Collects where the values of listed places begin.
#[derive(Default)]
struct Collector(BTreeSet<usize>);

impl Collector {
    fn collect(&mut self, place: &Place, offset: usize) {
        // Of other places, the names of element and attribute alone do not tell.
        if PLACES.iter().any(|it| (it.element, it.attribute) == (place.element, place.attribute)) {
            self.0.insert(offset);
        }
    }
}

impl Visitor for Collector {
    fn url(&mut self, reference: &UrlReference<'_>, _: Fits<'_>) -> Option<String> {
        if !reference.url.trim_matches(|character| character <= ' ').is_empty() {
            self.collect(reference.place, reference.offset);
        }
        None
    }

    fn unread(&mut self, place: &'static Place, offset: usize, _: Reason) {
        self.collect(place, offset);
    }
}

/// Where the parser itself says that values of these places begin.
fn found_by_parser(html: &[u8]) -> BTreeSet<usize> {
    let found = Rc::new(RefCell::new(BTreeSet::new()));
    let told = Rc::clone(&found);
    let handler = element!("*", move |element| {
        let name = element.tag_name();
        let places = PLACES.iter().filter(|place| place.element == name);
        for place in places {
            let attribute = element.attributes().iter().find(|attribute| attribute.name() == place.attribute);
            // An empty list of candidates holds no URL to be told of.
            let said = attribute.filter(|attribute| !attribute.value().is_empty());
            if let Some(location) = said.and_then(lol_html::html_content::Attribute::value_source_location) {
                told.borrow_mut().insert(location.bytes().start);
            }
        }
        Ok(())
    });
    let settings = Settings::new().with_strict(false).append_element_content_handler(handler);
    let mut parser = HtmlRewriter::new(settings, |_: &[u8]| ());
    parser.write(html).unwrap();
    parser.end().unwrap();
    found.take()
}

/// Where the scanner found values of these places, outside of `noscript`, which to the parser is text.
fn found_by_us(html: &[u8]) -> BTreeSet<usize> {
    // Without nesting, `noscript` is text to the scanner as well.
    let limits = Limits { nesting: 0, ..Limits::default() };
    let mut scanner = Scanner::new(Kind::Html, Packing::Plain, None, limits);
    let (mut collector, mut out) = (Collector::default(), Vec::new());
    scanner.write(html, &mut collector, &mut out);
    scanner.finish(&mut collector, &mut out);
    assert!(out == html, "a visitor that only looks changes nothing");
    collector.0
}

/// The finds of the parser that the scanner misses, and those of the scanner that the parser does not share.
fn differences(html: &[u8]) -> (Vec<String>, Vec<String>) {
    let ours = found_by_us(html);
    let parsers = found_by_parser(html);
    let excerpt = |at: &usize| String::from_utf8_lossy(&html[*at..html.len().min(at + 80)]).into_owned();
    (parsers.difference(&ours).map(excerpt).collect(), ours.difference(&parsers).map(excerpt).collect())
}

fn same_as_parser(html: &[u8], name: &str) {
    let (missed, invented) = differences(html);
    assert!(missed.is_empty() && invented.is_empty(), "{name}: missed {missed:#?}, invented {invented:#?}");
}

#[test]
fn markup_that_is_hard_to_read_is_read_as_the_parser_reads_it() {
    for html in [
        "<script><!-- <img src=a> <script src=b></script> <img src=c> --></script><img src=d>",
        "<script>'<img src=a>'</script><img src=b><textarea><img src=c></textarea><img src=d>",
        "<!-- <img src=a> --><img src=b><!--><img src=c>--><img src=d><![CDATA[<img src=e>]]><img src=f>",
        "<svg><![CDATA[<img src=a>]]><title><img src=b></title><image href=c /></svg><title><img src=d></title>",
        "<svg><style><img src=a></style></svg><style><img src=b></style><img src=c>",
        "<svg><script><img src=a></script></svg><img src=b>",
        "<math><mi><img src=a></mi><annotation-xml encoding=text/html><img src=b></annotation-xml></math><img src=c>",
        "<p title='<img src=a>' a=<img src=b><img src=c>><img src=d>",
        "<img src=a <img src=b><img src='c'src='d'><img/src=e/><IMG SRC=f>",
        "<a=b'><img src=a><a ='x'><img src=b><a b='x'c='><img src=c>'><img src=d>",
        "<iframe><img src=a></iframe><noembed><img src=b></noembed><noframes><img src=c></noframes><img src=d>",
        "<xmp><img src=a></xmp><img src=b><plaintext><img src=c></plaintext><img src=d>",
        "<select><xmp><script>'<img src=a>'</script></select><img src=b>",
        "<template><img src=a></template><img src=b><noscript><img src=c></noscript><img src=d>",
        "</script><img src=a></ p><img src=b></><img src=c><?php <img src=d>?><img src=e>",
        "<style><!-- </style><img src=a><style>/* </style> */<img src=b></style><img src=c>",
        "<svg><![CDATA[</svg>]]><image href=a /></svg><img src=b><script>'<img src=c>'</script><img src=d>",
        "<svg><desc></svg><script>'<img src=a>'</script></desc></svg><img src=b><svg></svg><img src=c>",
        "<math><mi></math><style><img src=a></style></mi></math><img src=b><style><img src=c></style><img src=d>",
        "<svg><title>a</title><g></svg><![CDATA[<img src=a>]]><img src=b><svg><a title='</svg>'><image href=c /></svg>",
        "<svg><foreignObject><p><svg></svg><script>'<img src=a>'</script></foreignObject></svg><title><img src=b></title>",
        "<svg><svg></svg><style><image href=a /></style></svg><style><img src=b></style><img src=c>",
        "<img src=a",
    ] {
        same_as_parser(html.as_bytes(), html);
    }
}

/// The folder of saved pages, or none with the reason printed.
fn saved_pages() -> Option<PathBuf> {
    let root = std::env::var_os("LONGHAUL_CORPORA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"), PathBuf::from);
    let path = root.join("html");
    if path.is_dir() {
        Some(path)
    } else {
        eprintln!("skipped: no test material at {} (LONGHAUL_CORPORA names its folder)", path.display());
        None
    }
}

/// Every page below a folder.
fn pages_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let pages = files.into_iter().filter(|path| path.extension().is_some_and(|found| found == "html"));
    pages.chain(folders.iter().flat_map(|folder| pages_below(folder))).collect()
}

#[test]
fn real_pages_are_read_as_the_parser_reads_them() {
    let Some(folder) = saved_pages() else { return };
    for path in pages_below(&folder) {
        same_as_parser(&std::fs::read(&path).unwrap(), &path.to_string_lossy());
    }
}

#[test]
fn a_tag_that_foreign_content_is_too_small_for_ends_reading_and_changes_nothing_behind_it() {
    struct Mover;
    impl Visitor for Mover {
        fn url(&mut self, _: &UrlReference<'_>, fits: Fits<'_>) -> Option<String> {
            fits("moved").ok().map(|()| "moved".to_owned())
        }
    }
    let limits = Limits { page_memory_bytes: 4096, ..Limits::default() };
    for (path, changes) in [("a".repeat(500), "moved"), ("a".repeat(5000), "c.png")] {
        let html = format!("<img src=a.png><svg><image href=b.png /><path d='{path}'/></svg><img src=c.png>");
        let mut scanner = Scanner::new(Kind::Html, Packing::Plain, None, limits);
        let mut out = Vec::new();
        for piece in html.as_bytes().chunks(100) {
            scanner.write(piece, &mut Mover, &mut out);
        }
        scanner.finish(&mut Mover, &mut out);
        let wanted = format!("<img src=moved><svg><image href=moved /><path d='{path}'/></svg><img src={changes}>");
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
        assert_eq!(scanner.bail_out(), (changes != "moved").then_some(BailOut::Memory));
    }
}

/// Texts that HTML's tokenizer reacts to, separated by `~`.
const HTML: &str = "<img src=a>~<img src='a'>~<p>~</p>~<p title='~<p title=\"~'~\"~>~<~</~/~=~-~!~ ~x~<!--~-->~--!>~<!-~<!~<?~\
    <!doctype html>~<![CDATA[~]]>~<script>~<script~</script>~</script~<SCRIPT/~<title>~</title>~<textarea>~\
    </textarea >~<style>~</style>~<noscript>~</noscript>~<iframe>~</iframe>~<xmp>~</xmp/>~<noembed>~</noembed>~\
    <noframes>~</noframes>~<select>~</select>~<template>~</template>~<table>~<td background=a>";

/// Texts that it also reacts to in the languages inside of HTML.
const FOREIGN: &str = "<svg>~</svg>~<svg/>~<math>~</math>~<mi>~</mi>~<desc>~</desc>~<foreignObject>~</foreignObject>~\
    <image href=a />~<font color=a>~<annotation-xml encoding=text/html>~</annotation-xml>";

/// Texts that end a script, or put its end off.
const SCRIPTS: &str = "<script>~<script ~</script>~</script/~<!--~-->~--~->~>~<img src=a>~ ~<!-~<";

fn markup(words: &[&'static str]) -> impl Strategy<Value = String> {
    let words = words.iter().flat_map(|words| words.split('~')).collect::<Vec<_>>();
    prop::collection::vec(prop::sample::select(words), 0..16).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_html_is_read_as_the_parser_reads_it(html in markup(&[HTML])) {
        prop_assert_eq!(differences(html.as_bytes()), Default::default(), "{}", html);
    }

    #[test]
    fn any_script_ends_where_it_ends_for_the_parser(scripts in markup(&[SCRIPTS])) {
        let html = format!("<script>{scripts}<img src=b></script><img src=c>");
        prop_assert_eq!(differences(html.as_bytes()), Default::default(), "{}", html);
    }

    /// In SVG and MathML something may be overlooked.
    #[test]
    fn in_other_languages_nothing_is_found_that_the_parser_does_not_find(html in markup(&[HTML, FOREIGN])) {
        let (_, invented) = differences(html.as_bytes());
        prop_assert_eq!(invented, Vec::<String>::new(), "{}", html);
    }
}
