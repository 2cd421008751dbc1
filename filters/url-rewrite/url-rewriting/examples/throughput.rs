//! Rewrites one page repeatedly and prints the cost. `make bench` compares it with the filter in Envoy.
//!
//! `throughput PAGE HOST CONFIGURATION MILLISECONDS`, where CONFIGURATION is the filter's JSON. Prints one line of
//! JSON. `cpu_seconds` counts this thread only, so that other programs on the machine do not count.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for measuring"
)]

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use url_mapping::{Base, Scheme};
use url_rewriting::{Body, Kind, Plan, Policies, Preloads, Rewriter};

/// The size in which Envoy hands bodies over.
const CHUNK_BYTES: usize = 16 * 1024;

fn main() {
    let [_, page, host, configuration, milliseconds] =
        <[String; 5]>::try_from(std::env::args().collect::<Vec<_>>()).expect("PAGE HOST CONFIGURATION MILLISECONDS");
    let page = std::fs::read(page).unwrap();
    let plan = Plan::from_json(configuration.as_bytes()).unwrap();
    let time = Duration::from_millis(milliseconds.parse().unwrap());
    let base = || Base::new(Scheme::Http, &host, "/").unwrap();
    let moved = rewrite(&plan, base(), &page);

    let (start, cpu_before) = (Instant::now(), cpu_seconds());
    let mut pages = 0;
    while start.elapsed() < time {
        black_box(rewrite(&plan, base(), black_box(&page)));
        pages += 1;
    }
    let cpu_seconds = cpu_seconds() - cpu_before;
    println!(r#"{{"pages": {pages}, "bytes": {}, "cpu_seconds": {cpu_seconds}, "moved": {moved}}}"#, page.len());
}

/// Rewrites the page once. A function of its own, because callgrind counts its instructions.
#[inline(never)]
fn rewrite(plan: &Rc<Plan>, base: Base, page: &[u8]) -> u64 {
    let body = Body {
        kind: Kind::Html,
        packing: url_rewriting::Packing::Plain,
        base,
        encoding: None,
        policies: Policies::default(),
        preloads: Preloads::default(),
    };
    let mut rewriter = Rewriter::new(Rc::clone(plan), body, None);
    let mut out = Vec::new();
    for chunk in page.chunks(CHUNK_BYTES) {
        out.clear();
        rewriter.write(chunk, &mut out);
        black_box(&out);
    }
    rewriter.finish(&mut out);
    rewriter.counts().moved
}

/// Returns the processor time of this thread (Linux).
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds: u64 = text.split(' ').next().unwrap().parse().unwrap();
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
