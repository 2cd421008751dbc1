//! Pages with inlined objects. They differ from the page without inlining only by the objects.

use std::cell::RefCell;
use std::rc::Rc;

use page_objects::Config;
use page_objects::inline::{Inliner, ObjectStore, Visitor};
use page_objects::prefetch::{Candidates, Fetcher, PrefetchObserver, RequestTemplate};
use shared_board::Board;
use url_mapping::{Base, Scheme};
use url_rewriting::headers::{Fields, request};
use url_rewriting::{Body, Kind, Packing, Plan, Policies, Preloads, Rewriter};

const PAGE_BYTES: usize = 1_000;
const GROWTH_BYTES: usize = 4_096;

const PICTURE: &[u8] = b"GIF89a...";
const PICTURE_URL: &[u8] = b"data:image/gif;base64,R0lGODlhLi4u";
const SHEET: &[u8] = b"/*SHEET*/p{background:url(x.png)}q{fill:url(#y)}/*END*/";
const SHEET_BEGINS: &[u8] = b"/*SHEET*/";
const SHEET_ENDS: &[u8] = b"/*END*/</style>";
const SCRIPT: &[u8] = b"/*SCRIPT*/a<b/*STOP*/";
const SCRIPT_BEGINS: &[u8] = b"/*SCRIPT*/";
const SCRIPT_ENDS: &[u8] = b"/*STOP*/";
/// The texts by which an inlined object is found in a page.
const MARKS: [&[u8]; 3] = [PICTURE_URL, SHEET_BEGINS, SCRIPT_BEGINS];

/// A board that remembers no visitor.
struct Forgetful;

impl Board for Forgetful {
    fn get(&self, _: &str) -> (Vec<u8>, u32) {
        (Vec::new(), 0)
    }

    fn set(&self, _: &str, _: &[u8], _: u32) -> bool {
        true
    }
}

struct Worker {
    plan: Rc<Plan>,
    store: Rc<RefCell<ObjectStore>>,
}

struct Passed {
    bytes: Vec<u8>,
    inlined_bytes: u64,
    bailed_out: bool,
}

impl Worker {
    fn new(level: &str) -> Self {
        let json = format!(
            r#"{{"targets": {{"https": ["pep.example.net"]}}, "own": ["pep.example.net"], "level": "{level}",
                "ports": [80, 443], "prefetch": true, "inline": {{"object_bytes": 200, "page_bytes": {PAGE_BYTES}}},
                "limits": {{"page_memory_bytes": 16384, "url_bytes": 512, "output_growth_bytes": {GROWTH_BYTES}}}}}"#
        );
        let config = <Config>::from_json(json.as_bytes()).expect("the configuration is a good one");
        let plan = Plan::new(&config).expect("it can be meant");
        let store = Rc::new(RefCell::new(ObjectStore::of(&config).expect("objects are put into pages")));
        Self { plan, store }
    }

    /// Passes a page, with or without inlining. Also returns the objects to fetch for it.
    fn pass(&self, input: &[u8], piece: usize, inlines: bool) -> (Passed, Rc<RefCell<Candidates>>) {
        let request: Fields<'_> = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "www.foo.example"),
            (":path", "/dir/page.html"),
            ("accept", "text/html"),
        ]
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        .collect();
        let answer: Fields<'_> = [(&b":status"[..], &b"200"[..])].into_iter().collect();
        let request::Decision::Forward { visit, .. } = request::decide(&self.plan, &request) else {
            panic!("not forwarded")
        };
        let template = RequestTemplate::of(&visit, &request).expect("a browser's").expect("for a page");
        let visitor = Visitor { address: b"192.0.2.1:1", secret: [0; 16], now_h: 0 };
        let visitors = (&visitor, &Forgetful as &dyn Board);
        let inliner = Inliner::new(&self.plan, &self.store, &template, &visit, &answer, 0, visitors);
        let (observer, found) = PrefetchObserver::new(Rc::clone(&self.plan), template);
        let base = Base::new(Scheme::Http, &visit.authority, &visit.path).expect("a URL");
        let body = Body {
            kind: Kind::Html,
            packing: Packing::Plain,
            base,
            encoding: None,
            policies: Policies::default(),
            preloads: Preloads::default(),
        };
        let mut rewriter = Rewriter::new(Rc::clone(&self.plan), body, Some(Box::new(observer)));
        if let Some((inliner, _)) = inliner.filter(|_| inlines) {
            rewriter.substitute(Box::new(inliner));
        }
        let mut bytes = Vec::new();
        for piece in input.chunks(piece) {
            rewriter.write(piece, &mut bytes);
        }
        rewriter.finish(&mut bytes);
        let inlined_bytes = rewriter.counts().substituted_bytes;
        (Passed { bytes, inlined_bytes, bailed_out: rewriter.bail_out().is_some() }, found)
    }

    /// Fetches all objects that were found. The path of an object decides its type.
    fn fetch(&self, found: &Rc<RefCell<Candidates>>) {
        let mut fetcher = Fetcher::default();
        for candidate in found.take().candidates {
            let _ = fetcher.ask(candidate, 0);
        }
        while let Some(order) = fetcher.next(0, |_| ()) {
            let path = order.fields().into_iter().find(|(name, _)| *name == ":path").expect("a path").1;
            let (kind, body) = match path {
                path if path.contains("css") => ("text/css", SHEET),
                path if path.contains("js") => ("text/javascript", SCRIPT),
                _ => ("image/gif", PICTURE),
            };
            let answer = [(":status", "200"), ("content-type", kind), ("cache-control", "max-age=60")];
            let answer: Fields<'_> = answer.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            fetcher.sent(order, 1);
            fetcher.ended(1, Some(&answer), 0, |candidate, fresh_ms| {
                let mut store = self.store.borrow_mut();
                if let Some(reservation) = store.reserve(candidate, &answer, body.len(), fresh_ms, 0) {
                    store.put(&reservation, body);
                }
            });
        }
    }
}

/// Tests inlining. Without objects in the store it changes nothing. Any split of a page gives the same result, and
/// growth is bounded. The result without the inlined objects is the page as it passes without inlining.
pub fn inline(data: &[u8]) {
    let (piece, input) = super::cut(data);
    for level in ["safe", "full"] {
        let worker = Worker::new(level);
        let (plain, _) = worker.pass(input, input.len().max(1), false);
        let (first, found) = worker.pass(input, input.len().max(1), true);
        assert!(first.bytes == plain.bytes && first.inlined_bytes == 0, "with nothing at hand nothing is put in");
        worker.fetch(&found);
        let (whole, _) = worker.pass(input, input.len().max(1), true);
        let (pieces, _) = worker.pass(input, piece, true);
        assert!(whole.inlined_bytes <= PAGE_BYTES as u64, "the page's budget is kept");
        assert!(whole.bytes.len() <= input.len() + GROWTH_BYTES, "growth is bounded");
        if plain.bailed_out || whole.bailed_out || pieces.bailed_out {
            continue;
        }
        assert!(whole.bytes == pieces.bytes, "pieces of {piece} bytes give another body than the whole");
        assert!(whole.inlined_bytes > 0 || whole.bytes == plain.bytes, "it changed, and nothing was put in");
        // In a page with the text of a mark, nobody can see which marks stand in objects.
        let has_mark = MARKS.iter().any(|mark| find(&plain.bytes, mark).is_some());
        assert!(has_mark || without_objects(&whole.bytes, &plain.bytes), "more changed than what was put in");
    }
}

/// Returns true if the page `put` is the page `plain` with inlined objects.
fn without_objects(mut put: &[u8], mut plain: &[u8]) -> bool {
    loop {
        let next = MARKS.into_iter().filter_map(|mark| Some((find(put, mark)?, mark))).min_by_key(|(at, _)| *at);
        let Some((at, mark)) = next else { return put == plain };
        let end_of = |mark: &[u8]| Some(at + find(&put[at..], mark)? + mark.len());
        let (start, end, stands_for_tag) = if mark == PICTURE_URL {
            (Some(at), Some(at + mark.len()), false)
        } else if mark == SHEET_BEGINS {
            (rfind(&put[..at], b"<style"), end_of(SHEET_ENDS), true)
        } else {
            (rfind(&put[..at], b"<script"), end_of(SCRIPT_ENDS), true)
        };
        let (Some(start), Some(end)) = (start, end) else { return false };
        if !plain.starts_with(&put[..start]) {
            return false;
        }
        plain = &plain[start..];
        let replaced = if stands_for_tag { tag_length(plain) } else { url_length(plain) };
        (put, plain) = (&put[end..], &plain[replaced..]);
    }
}

fn url_length(bytes: &[u8]) -> usize {
    let ends = |byte: &u8| *byte <= b' ' || matches!(byte, b'"' | b'\'' | b'>');
    bytes.iter().position(ends).unwrap_or(bytes.len())
}

/// Returns the length of a start tag, up to the first `>` outside quoted values.
fn tag_length(tag: &[u8]) -> usize {
    let (mut quote, mut behind_sign) = (None, false);
    for (at, &byte) in tag.iter().enumerate() {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') if behind_sign => (quote, behind_sign) = (Some(byte), false),
            (None, b'=') => behind_sign = true,
            (None, byte) => behind_sign &= byte.is_ascii_whitespace(),
        }
    }
    tag.len()
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

fn rfind(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).rposition(|window| window == needle)
}
