//! Pages and style sheets by example. Every folder of `cases/` is one example with its expected output.
//!
//! The page is `input.html` (or `input.css`), and the output is `expected.html` (or `.css`). `case.json` holds the
//! purpose of the case, the body's URL, and the fate of every URL in it, in order. To add a case, add a folder.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::path::Path;

use common::{Rewritten, body, plan, rewrite, rewrite_in};
use serde::Deserialize;
use url_mapping::{Base, Scheme};
use url_rewriting::{Body, Kind};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The purpose of the case, as a sentence.
    shows: String,
    /// The URL of the body.
    #[serde(default = "default_url")]
    url: String,
    #[serde(default = "default_level")]
    level: String,
    /// The `charset` of its `Content-Type`.
    #[serde(default)]
    charset: Option<String>,
    /// `place url fate` for every URL, in order.
    urls: Vec<[String; 3]>,
}

fn default_url() -> String {
    "http://www.example.org/dir/page.html".to_owned()
}

fn default_level() -> String {
    "safe".to_owned()
}

fn body_of(case: &Case, kind: Kind) -> Body {
    let (scheme, rest) = case.url.split_once("://").unwrap();
    let (authority, path) = rest.split_at(rest.find('/').unwrap());
    let scheme = Scheme::from_name(scheme.as_bytes()).unwrap();
    let encoding = case.charset.as_ref().map(|label| encoding_rs::Encoding::for_label(label.as_bytes()).unwrap());
    Body { encoding, ..body(kind, Base::new(scheme, authority, path).unwrap()) }
}

fn run(folder: &Path) {
    let case: Case = serde_json::from_slice(&std::fs::read(folder.join("case.json")).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let (kind, extension) = if folder.join("input.css").exists() { (Kind::Css, "css") } else { (Kind::Html, "html") };
    let input = std::fs::read(folder.join("input").with_extension(extension)).unwrap();
    let expected = std::fs::read(folder.join("expected").with_extension(extension)).unwrap();
    let plan = plan(&case.level);
    let said = format!("{}: {}", folder.display(), case.shows);

    let done = rewrite(&plan, body_of(&case, kind), &input);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&done.bytes), text(&expected), "{said}");
    assert!(done.bytes == expected, "{said}: bytes differ that text does not show");
    assert_eq!(fates(&done), case.urls, "{said}");
    for piece in 1..input.len().min(100) {
        assert_eq!(done, rewrite_in(&plan, body_of(&case, kind), &input, piece), "{said} in pieces of {piece}");
    }
}

fn fates(done: &Rewritten) -> Vec<[String; 3]> {
    done.seen.iter().map(|url| [url.place.clone(), url.url.clone(), url.fate().to_owned()]).collect()
}

#[test]
fn every_case_comes_out_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut folders: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() >= 15, "the cases are gone");
    for folder in folders {
        run(&folder);
    }
}
