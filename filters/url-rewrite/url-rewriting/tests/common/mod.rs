//! Shared by all tests of the crate: a plan, the rewriting of a page whole or in pieces, and the corpora.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "helpers of tests; each test uses its own part"
)]

pub mod undo;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use url_mapping::{Base, Outcome, Scheme};
use url_rewriting::{BailOut, Body, Chunk, Kind, Packing, Plan, Policies, Preloads, Rewriter, UrlEvent};

/// The proxy of all tests.
pub const PROXY: &str = "https://pep.example.net/";

/// Returns a plan with an https target, at `level`, with the default limits.
pub fn plan(level: &str) -> Rc<Plan> {
    plan_with(level, "{}")
}

/// Returns the same plan with other limits, as JSON.
pub fn plan_with(level: &str, limits: &str) -> Rc<Plan> {
    let json = format!(
        r#"{{"targets": {{"https": ["pep.example.net"]}}, "own": ["pep.example.net", "198.51.100.12:8080"],
            "level": "{level}", "exclude": ["bank.example"], "ports": [80, 443], "limits": {limits}}}"#
    );
    Plan::from_json(json.as_bytes()).unwrap()
}

/// Returns an HTML page at this host.
pub fn page_at(host: &str) -> Body {
    body(Kind::Html, Base::new(Scheme::Http, host, "/dir/page.html").unwrap())
}

/// Returns an HTML page of a host that none of the test pages names.
pub fn page() -> Body {
    page_at("www.test.example")
}

/// Returns a style sheet.
pub fn sheet() -> Body {
    body(Kind::Css, Base::new(Scheme::Http, "css.test.example", "/dir/sheet.css").unwrap())
}

/// Returns a body without header fields that matter.
pub fn body(kind: Kind, base: Base) -> Body {
    Body {
        kind,
        packing: Packing::Plain,
        base,
        encoding: None,
        policies: Policies::default(),
        preloads: Preloads::default(),
    }
}

/// A URL as the observer received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub place: String,
    pub url: String,
    pub outcome: Outcome,
    pub offset: usize,
}

impl Seen {
    /// Returns the new URL, if it moved.
    pub fn moved(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Moved(url) => Some(url),
            _ => None,
        }
    }

    /// Returns the metric's label, or `moved`.
    pub fn fate(&self) -> &'static str {
        match self.outcome {
            Outcome::Moved(_) => "moved",
            Outcome::Pinned(_, reason) | Outcome::Left(reason) => reason.as_str(),
        }
    }
}

/// The results of rewriting one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub bytes: Vec<u8>,
    pub seen: Vec<Seen>,
    pub bail_out: Option<BailOut>,
}

impl Rewritten {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Rewrites a body in these pieces.
pub fn rewrite_pieces<'p>(plan: &Rc<Plan>, body: Body, pieces: impl Iterator<Item = &'p [u8]>) -> Rewritten {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&seen);
    let observer = move |event: &UrlEvent<'_>| {
        sink.borrow_mut().push(Seen {
            place: format!("{} {}", event.place.element, event.place.attribute),
            url: event.url.to_owned(),
            outcome: event.outcome.clone(),
            offset: event.offset,
        });
    };
    let mut rewriter = Rewriter::new(Rc::clone(plan), body, Some(Box::new(observer)));
    let mut bytes = Vec::new();
    for piece in pieces {
        let start = bytes.len();
        let became = rewriter.write(piece, &mut bytes);
        assert!(became == Chunk::Changed || &bytes[start..] == piece, "a chunk that is said to be as it came is so");
    }
    rewriter.finish(&mut bytes);
    let bail_out = rewriter.bail_out();
    let moved = seen.borrow().iter().filter(|url: &&Seen| url.moved().is_some()).count();
    assert_eq!(rewriter.counts().moved, moved as u64, "the tally and the observer agree");
    Rewritten { bytes, seen: seen.take(), bail_out }
}

/// Rewrites a body in one piece.
pub fn rewrite(plan: &Rc<Plan>, body: Body, input: &[u8]) -> Rewritten {
    rewrite_pieces(plan, body, std::iter::once(input))
}

/// Rewrites a body in pieces of one size.
pub fn rewrite_in(plan: &Rc<Plan>, body: Body, input: &[u8], piece_bytes: usize) -> Rewritten {
    rewrite_pieces(plan, body, input.chunks(piece_bytes))
}

/// Returns the folder of test material. Without it, prints the reason and returns `None`.
pub fn corpora(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("LONGHAUL_CORPORA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpora"), PathBuf::from);
    let path = root.join(folder);
    if path.is_dir() {
        Some(path)
    } else {
        eprintln!("skipped: no test material at {} (LONGHAUL_CORPORA names its folder)", path.display());
        None
    }
}

/// Returns every file below a folder with this extension, in order.
pub fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A small generator of pseudo-random numbers, so that a failing run can be repeated.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        // Knuth's multiplier. Its high bits are the most random ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }

    /// Cuts `input` into pieces of at most `most` bytes.
    pub fn cut<'i>(&mut self, input: &'i [u8], most: usize) -> Vec<&'i [u8]> {
        let mut pieces = Vec::new();
        let mut rest = input;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((1 + self.below(most)).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}
