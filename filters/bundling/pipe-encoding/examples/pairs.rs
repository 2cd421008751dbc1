//! Encodes pages as differences from other pages of their sites.
//!
//!     pairs FOLDER [gzip|br|delta]
//!
//! FOLDER has pairs `SITE1.html` and `SITE2.html`. Prints for each pair the bytes of the second page by gzip 6, by br 5 and
//! as a delta. With a name of a coder, only that one runs, so that a profiler can count its instructions.

#![allow(clippy::expect_used, reason = "a measurement, not shipped")]

use std::io::Write as _;
use std::path::Path;

use pipe_encoding::delta::{Receiver, Sender};
use pipe_encoding::{Windows, limits};

const PIECE_BYTES: usize = 16 << 10;

fn by_gzip(page: &[u8]) -> usize {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(page).expect("memory");
    encoder.finish().expect("memory").len()
}

fn by_delta(base: &[u8], page: &[u8]) -> Vec<u8> {
    let mut sender = Sender::new(base, &Windows::default()).expect("memory");
    let mut out = Vec::new();
    for piece in page.chunks(PIECE_BYTES) {
        sender.write(piece, &mut out);
    }
    sender.finish(&mut out);
    out
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("a folder");
    let coder = arguments.next().unwrap_or_default();
    let mut firsts: Vec<_> =
        std::fs::read_dir(Path::new(&folder)).expect("readable").flatten().map(|one| one.path()).collect();
    firsts.sort();
    for first in firsts {
        let Some(stem) = first.to_str().and_then(|path| path.strip_suffix("1.html")) else { continue };
        let Ok(page) = std::fs::read(format!("{stem}2.html")) else { continue };
        let base = std::fs::read(&first).expect("readable");
        if base == page {
            continue;
        }
        let gzip = if matches!(&*coder, "" | "gzip") { by_gzip(&page) } else { 0 };
        let br = if matches!(&*coder, "" | "br") { by_delta(b"", &page).len() } else { 0 };
        let delta = if matches!(&*coder, "" | "delta") { by_delta(&base, &page) } else { Vec::new() };
        if coder.is_empty() {
            let mut got = Vec::new();
            let mut receiver = Receiver::new(base, &Windows::default());
            receiver.write(&delta, &mut got, limits::BYTES_AT_ONCE).expect("readable");
            receiver.finish().expect("complete");
            assert_eq!(got, page, "{stem}");
            println!("{stem} {} {gzip} {br} {}", page.len(), delta.len());
        }
    }
}
