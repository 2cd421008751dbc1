//! One worker as the filter runs it, without a proxy. Pages pass, and their objects are prefetched and stored.

use std::cell::RefCell;
use std::rc::Rc;

use page_objects::Config;
use page_objects::inline::{Inliner, NotInlined, ObjectStore, Visitor};
use page_objects::prefetch::{Fetcher, PrefetchObserver, RequestTemplate};
use shared_board::{Board, Memory};
use url_mapping::Base;
use url_rewriting::headers::request::{Decision, decide};
use url_rewriting::headers::{Edit, Fields, csp};
use url_rewriting::{Body, Kind, Packing, Plan, Policies, Preloads, Rewriter};

/// A header list.
pub(crate) type List<'a> = &'a [(&'a str, &'a str)];

/// Returns headers and body that an origin has under a path.
pub(crate) type Origin = fn(&str) -> (List<'static>, &'static [u8]);

/// A request for a page and its response.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    pub(crate) path: &'a str,
    /// The client's address. `None`: another one each time.
    pub(crate) client: Option<&'a str>,
    pub(crate) request: List<'a>,
    pub(crate) answer: List<'a>,
    pub(crate) markup: &'a str,
    /// The pieces it comes in, in bytes.
    pub(crate) piece: usize,
}

impl<'a> Page<'a> {
    pub(crate) fn of(markup: &'a str) -> Self {
        Self { path: "/", client: None, request: &[], answer: &[], markup, piece: usize::MAX }
    }
}

/// The result.
pub(crate) struct Seen {
    pub(crate) html: String,
    pub(crate) edits: Vec<Edit>,
    pub(crate) inlined: u64,
    pub(crate) moved: u64,
    pub(crate) refused: Vec<(NotInlined, u64)>,
}

pub(crate) struct Worker {
    plan: Rc<Plan>,
    store: Rc<RefCell<ObjectStore>>,
    fetcher: Fetcher,
    board: Memory,
    passed: usize,
    origin: Origin,
    pub(crate) now_ms: u64,
}

pub(crate) fn fields(list: List<'_>) -> Fields<'_> {
    list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
}

impl Worker {
    pub(crate) fn new(level: &str, budget: &str, origin: Origin) -> Self {
        let json = format!(
            r#"{{"targets": {{"https": ["pep.example.net"]}}, "own": ["pep.example.net"], "level": "{level}",
                "ports": [80, 443], "prefetch": true, "inline": {budget}}}"#
        );
        let config: Config = serde_json::from_str(&json).unwrap();
        let plan = Plan::new(&config).unwrap();
        let store = Rc::new(RefCell::new(ObjectStore::of(&config).unwrap()));
        Self { plan, store, fetcher: Fetcher::default(), board: Memory::default(), passed: 0, origin, now_ms: 0 }
    }

    /// Passes a page, and prefetches its objects.
    pub(crate) fn pass(&mut self, page: Page<'_>) -> Seen {
        // The first value of a name counts.
        let ours = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "www.foo.example"),
            (":path", page.path),
            ("accept", "text/html,image/webp"),
        ];
        let request: Vec<_> = page.request.iter().copied().chain(ours).collect();
        let answer: Vec<_> = [(":status", "200")].into_iter().chain(page.answer.iter().copied()).collect();
        let Decision::Forward { visit, .. } = decide(&self.plan, &fields(&request)) else { panic!("not forwarded") };
        let template =
            RequestTemplate::of(&visit, &fields(&request)).unwrap().unwrap().with_answer(&fields(&answer)).unwrap();
        let address = page.client.map_or_else(|| format!("client {}", self.passed), str::to_owned);
        self.passed += 1;
        let now_h = u32::try_from(self.now_ms / 3_600_000).unwrap();
        let visitor = Visitor { address: address.as_bytes(), secret: [0; 16], now_h };
        let visitors = (&visitor, &self.board as &dyn Board);
        let (inliner, refusals) =
            Inliner::new(&self.plan, &self.store, &template, &visit, &fields(&answer), self.now_ms, visitors).unwrap();
        let edits = inliner.edits();
        let (observer, found) = PrefetchObserver::new(Rc::clone(&self.plan), template);
        let base = Base::new(visit.scheme, &visit.authority, &visit.path).unwrap();
        let policies = fields(&answer).get("content-security-policy").map_or_else(Policies::default, |text| {
            csp::translate(&self.plan, &base, std::str::from_utf8(text).unwrap()).policies
        });
        let body = Body {
            kind: Kind::Html,
            packing: Packing::Plain,
            base,
            encoding: None,
            policies,
            preloads: Preloads::default(),
        };
        let mut rewriter = Rewriter::new(Rc::clone(&self.plan), body, Some(Box::new(observer)));
        rewriter.substitute(Box::new(inliner));
        let mut out = Vec::new();
        for piece in page.markup.as_bytes().chunks(page.piece) {
            rewriter.write(piece, &mut out);
        }
        rewriter.finish(&mut out);
        let tally = rewriter.counts();
        for candidate in found.take().candidates {
            let _ = self.fetcher.ask(candidate, self.now_ms);
        }
        self.fetch();
        let html = String::from_utf8(out).unwrap();
        Seen { html, edits, inlined: tally.substituted, moved: tally.moved, refused: refusals.iter().collect() }
    }

    fn fetch(&mut self) {
        let now_ms = self.now_ms;
        while let Some(order) = self.fetcher.next(now_ms, |_| ()) {
            let path = order.fields().into_iter().find(|(name, _)| *name == ":path").unwrap().1;
            let (headers, body) = (self.origin)(&path);
            let answer: Vec<_> = [(":status", "200")].into_iter().chain(headers.iter().copied()).collect();
            let answer = fields(&answer);
            self.fetcher.sent(order, 1);
            self.fetcher.ended(1, Some(&answer), now_ms, |candidate, fresh_ms| {
                let mut objects = self.store.borrow_mut();
                if let Some(reservation) = objects.reserve(candidate, &answer, body.len(), fresh_ms, now_ms) {
                    objects.put(&reservation, body);
                }
            });
        }
    }
}
