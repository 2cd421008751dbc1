//! Reads one page with a visitor that only counts, and prints the number of URLs. `make bench ONLY=url-rewrite` measures it:
//! this is what finding URLs costs, without any decision about them.
//!
//! `count PAGE`

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for measuring"
)]

use std::hint::black_box;

use page_scanner::{Fits, Kind, Limits, Packing, Scanner, UrlReference, Visitor};

/// The size in which Envoy hands bodies over.
const CHUNK_BYTES: usize = 16 * 1024;

struct Count(u64);

impl Visitor for Count {
    fn url(&mut self, _: &UrlReference<'_>, _: Fits<'_>) -> Option<String> {
        self.0 += 1;
        None
    }
}

fn main() {
    let page = std::fs::read(std::env::args().nth(1).expect("PAGE")).unwrap();
    println!("{}", scan(&page));
}

/// Reads the page once. A function of its own, because callgrind counts its instructions.
#[inline(never)]
fn scan(page: &[u8]) -> u64 {
    let mut scanner = Scanner::new(Kind::Html, Packing::Plain, None, Limits::default());
    let (mut count, mut out) = (Count(0), Vec::new());
    for chunk in page.chunks(CHUNK_BYTES) {
        out.clear();
        scanner.write(chunk, &mut count, &mut out);
        black_box(&out);
    }
    scanner.finish(&mut count, &mut out);
    count.0
}
