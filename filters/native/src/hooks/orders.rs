//! The hooks in any order that Envoy keeps, with every filter and bytes of all kinds: nothing panics.
//!
//! `make test-asan` runs these tests with `AddressSanitizer`, which ends them if the module reads what Envoy does not lend
//! any more. The fake frees what it lent at the next change, as Envoy does. `LONGHAUL_ORDERS` is the number of seeds.

#![allow(unsafe_code)] // the test is in Envoy's place

use std::{env, mem};

use fastrand::Rng;

use super::*;
use crate::fake::{fake, has_rung, hold_links, token};

/// Filters as `longhaul render` configures them.
const FILTERS: &[(&str, &str)] = &[
    (
        "url-rewrite@edge",
        r#"{"targets":{"https":["www.test"],"http":[]},"own":["www.test","198.51.100.12"],"level":"safe","exclude":[],"ports":[80,443],"prefetch":true,"bypass":true,"limits":{"page_memory_bytes":262144,"url_bytes":8192,"srcset_candidates":256,"nesting":4,"output_growth_bytes":8388608},"account":true}"#,
    ),
    (
        "url-rewrite@ground",
        r#"{"targets":{"https":[],"http":[]},"own":[],"level":"off","exclude":[],"ports":[80,443],"peer_fields":["x-longhaul-client"],"prefetch":false,"bypass":false,"limits":{"page_memory_bytes":262144,"url_bytes":8192,"srcset_candidates":256,"nesting":4,"output_growth_bytes":8388608},"account":false}"#,
    ),
    ("name-budget@edge", r#"{"per_client":64}"#),
    (
        "object-reader@edge",
        r#"{"folder":"/nonexistent/objects","hot_bytes":65536,"object_bytes":4096,"sent_bytes":65536,"plain_fields":[],"images":false}"#,
    ),
    (
        "bundling-remote@remote",
        r#"{"role":"remote","cluster":"pipe","rtt_ms":600,"down":2500000,"up":625000,"store_bytes":65536,"buffer_bytes":65536,"flights":true,"caches":true,"deltas":true}"#,
    ),
    (
        "bundling@ground",
        r#"{"role":"ground","cluster":"fetch","rtt_ms":600,"down":2500000,"up":625000,"store_bytes":65536,"buffer_bytes":65536,"flights":true,"caches":false,"deltas":true,"names":"pushed"}"#,
    ),
    ("header-compression@remote", r#"{"role":"remote"}"#),
    ("header-compression@ground", r#"{"role":"ground"}"#),
    ("filter-calls", "{}"),
    ("link-share", r#"{"direction":"response","links":[{"name":"","bytes_per_second":1000000,"weights":[]}]}"#),
];

const FIELDS: &[(&str, &[&str])] = &[
    (":method", &["GET", "HEAD", "POST", "CONNECT", ""]),
    (":scheme", &["http", "https"]),
    (":authority", &["www.test", "img.test:8080", "[2001:db8::1]:80", "\u{0}"]),
    (":path", &["/", "/a.png?b", "/.well-known/longhaul", "*", ""]),
    (":status", &["200", "206", "304", "404", "103", "x"]),
    ("accept-encoding", &["br", "gzip, br;q=0", "identity;q=0,*"]),
    ("cache-control", &["no-store", "max-age=60", "private, s-maxage=x"]),
    ("content-encoding", &["br", "gzip", "x"]),
    ("content-length", &["0", "5", "99999999999999999999"]),
    ("content-type", &["text/html", "text/html; charset=utf-16", "text/css", "image/png", ";"]),
    ("cookie", &["a=b", "a=b; c"]),
    ("etag", &["\"x\"", "W/\"x\"", "x"]),
    ("link", &["</a.css>; rel=preload", "<;"]),
    ("range", &["bytes=0-1", "bytes=-5", "x"]),
    ("vary", &["*", "accept-encoding, origin"]),
    ("x-longhaul-base", &["1", "x"]),
    ("x-longhaul-client", &["192.0.2.7", "2001:db8::1", "x"]),
    ("x-longhaul-flight", &["1", ""]),
    ("x-longhaul-headers", &["\u{1}\u{2}", "AAAA"]),
    ("x-longhaul-map", &["1"]),
    ("x-longhaul-takes", &["br", "br, delta, flights"]),
];

const PIECES: &[&str] = &[
    "<html><head><base href=//b.test/><link rel=stylesheet href='http://www.test/a.css'>",
    "<img srcset='http://img.test/a.png 1x, //img.test/b.png 2x' src=",
    "<style>@import 'http://www.test/b.css'; p { background: url(http://img.test/c.png) }</style>",
    "<script src=\"http://www.test/d.js\" integrity=\"sha256-x\"></script><!--",
    "body { background: url(\"http://www.test/",
    "\u{0}\u{7f}",
];

/// A stream of Envoy, and what Envoy holds for it while another stream runs.
struct Stream {
    handle: Ptr,
    maps: [Vec<(Vec<u8>, Vec<u8>)>; 4],
    held: Vec<u8>,
    bell: usize,
    /// The next hook.
    next: Step,
    has_call: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    RequestHeaders,
    RequestBody,
    ResponseHeaders,
    ResponseBody,
    End,
}

fn bytes(rng: &mut Rng) -> Vec<u8> {
    if rng.u8(..4) == 0 {
        let mut noise = vec![0; rng.usize(..600)];
        rng.fill(&mut noise);
        return noise;
    }
    let mut text: Vec<u8> = (0..rng.usize(..6)).flat_map(|_| rng.choice(PIECES).unwrap().bytes()).collect();
    text.truncate(rng.usize(..=text.len()));
    text
}

fn fields(rng: &mut Rng, must: &[&str]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (name, values) in FIELDS {
        let pseudo = name.starts_with(':');
        if must.contains(name) || (!pseudo && rng.u8(..4) == 0) {
            let value = rng.choice(*values).unwrap().as_bytes().to_vec();
            fields.push(((*name).into(), if rng.u8(..16) == 0 { bytes(rng) } else { value }));
        }
    }
    fields
}

/// Gives the end of a request to a hook, and takes back what it lent.
fn call_ends(rng: &mut Rng, tell: impl FnOnce(u32, &[LentField], &[Lent])) {
    let (fields, body) = (fields(rng, &[":status"]), bytes(rng));
    let lent: Vec<LentField> = fields.iter().map(|(name, value)| LentField::of(name, value)).collect();
    let pieces: Vec<Lent> = body.chunks(5).map(Lent::of).collect();
    tell(rng.u32(..3), &lent, &pieces);
}

/// Calls the hooks of the main thread.
fn on_main_thread(config: Ptr, rng: &mut Rng) {
    fake(|fake| fake.calls.clear());
    envoy_dynamic_module_on_http_filter_config_scheduled(token(), config, rng.u64(..4));
    if fake(|fake| fake.calls.iter().any(|call| call.starts_with("main thread calls"))) {
        call_ends(rng, |outcome, fields, pieces| {
            envoy_dynamic_module_on_http_filter_config_http_callout_done(
                token(),
                config,
                7,
                outcome,
                fields.as_ptr(),
                fields.len(),
                pieces.as_ptr(),
                pieces.len(),
            );
        });
    }
}

impl Stream {
    fn open(config: Ptr) -> Self {
        let handle = envoy_dynamic_module_on_http_filter_new(config, token());
        let maps = Default::default();
        Self { handle, maps, held: Vec::new(), bell: 0, next: Step::RequestHeaders, has_call: false }
    }

    /// Exchanges the stream with the one that the fake has.
    fn enter(&mut self) {
        fake(|fake| {
            mem::swap(&mut fake.maps, &mut self.maps);
            mem::swap(&mut fake.held, &mut self.held);
            mem::swap(&mut fake.bell, &mut self.bell);
            fake.received.clear();
            fake.calls.clear();
        });
    }

    fn leave(&mut self) {
        self.has_call |= fake(|fake| fake.calls.iter().any(|call| call.starts_with("the stream calls")));
        self.enter();
    }

    /// Calls the next hook, or one that may come at any time.
    fn step(&mut self, rng: &mut Rng) {
        self.enter();
        match rng.u8(..8) {
            0 if has_rung(fake(|fake| fake.bell)) => {
                envoy_dynamic_module_on_http_filter_scheduled(token(), self.handle, 0);
            }
            1 if mem::take(&mut self.has_call) => call_ends(rng, |outcome, fields, pieces| {
                envoy_dynamic_module_on_http_filter_http_callout_done(
                    token(),
                    self.handle,
                    9,
                    outcome,
                    fields.as_ptr(),
                    fields.len(),
                    pieces.as_ptr(),
                    pieces.len(),
                );
            }),
            2 => envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(token(), self.handle),
            3 => envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(token(), self.handle),
            _ => self.go_on(rng),
        }
        self.leave();
    }

    fn go_on(&mut self, rng: &mut Rng) {
        let end = rng.u8(..3) == 0;
        self.next = match self.next {
            Step::RequestHeaders => {
                fake(|fake| fake.maps[0] = fields(rng, &[":method", ":scheme", ":authority", ":path"]));
                envoy_dynamic_module_on_http_filter_request_headers(token(), self.handle, end);
                if end { Step::ResponseHeaders } else { Step::RequestBody }
            }
            Step::RequestBody => {
                fake(|fake| fake.received = bytes(rng));
                envoy_dynamic_module_on_http_filter_request_body(token(), self.handle, end);
                if rng.bool() {
                    envoy_dynamic_module_on_http_filter_request_trailers(token(), self.handle);
                }
                if end { Step::ResponseHeaders } else { Step::RequestBody }
            }
            Step::ResponseHeaders => {
                fake(|fake| fake.maps[2] = fields(rng, &[":status"]));
                envoy_dynamic_module_on_http_filter_response_headers(token(), self.handle, end);
                if end { Step::End } else { Step::ResponseBody }
            }
            Step::ResponseBody => {
                self.piece(bytes(rng), end);
                match (end, rng.u8(..4)) {
                    (true, _) => Step::End,
                    (false, 0) => {
                        fake(|fake| fake.maps[3] = fields(rng, &[]));
                        envoy_dynamic_module_on_http_filter_response_trailers(token(), self.handle);
                        Step::End
                    }
                    (false, _) => Step::ResponseBody,
                }
            }
            Step::End => Step::End,
        };
    }

    fn piece(&mut self, piece: Vec<u8>, end: bool) {
        const STOP_AND_BUFFER: u32 = 1;
        fake(|fake| fake.received = piece);
        let status = envoy_dynamic_module_on_http_filter_response_body(token(), self.handle, end);
        fake(|fake| {
            let received = mem::take(&mut fake.received);
            if status == STOP_AND_BUFFER { fake.held.extend(received) } else { fake.held.clear() }
        });
    }
}

fn run(name: &str, json: &str, seed: u64) {
    let _links = hold_links();
    let mut rng = Rng::with_seed(seed);
    fake(|fake| fake.counters.clear());
    let lent = |text: &str| Lent::of(text.as_bytes());
    let config = envoy_dynamic_module_on_http_filter_config_new(token(), lent(name), lent(json));
    assert!(!config.is_null(), "{name} is refused: {:?}", fake(|fake| fake.calls.clone()));
    let mut streams: Vec<Stream> = Vec::new();
    for _ in 0..rng.usize(..60) {
        match rng.usize(..12) {
            0 | 1 if streams.len() < 4 => streams.push(Stream::open(config)),
            2 if !streams.is_empty() => {
                let mut gone = streams.swap_remove(rng.usize(..streams.len()));
                gone.enter();
                envoy_dynamic_module_on_http_filter_destroy(gone.handle);
                gone.leave();
            }
            3 => on_main_thread(config, &mut rng),
            _ => {
                if let Some(one) = rng.choice(streams.iter_mut()) {
                    one.step(&mut rng.fork());
                }
            }
        }
    }
    for mut one in streams {
        one.enter();
        envoy_dynamic_module_on_http_filter_destroy(one.handle);
        one.leave();
    }
    let panics: Vec<(String, u64)> = fake(|fake| {
        let is_panic = |(name, count): &&(String, u64)| name.ends_with("panics_total") && *count > 0;
        fake.counters.iter().filter(is_panic).cloned().collect()
    });
    assert_eq!(panics, [], "{name}, seed {seed}");
    envoy_dynamic_module_on_http_filter_config_destroy(config);
}

#[test]
fn no_order_of_hooks_and_no_bytes_make_a_filter_panic() {
    let seeds = env::var("LONGHAUL_ORDERS").map_or(60, |seeds| seeds.parse().unwrap());
    for (name, json) in FILTERS {
        for seed in 0..seeds {
            run(name, json, seed);
        }
    }
}
