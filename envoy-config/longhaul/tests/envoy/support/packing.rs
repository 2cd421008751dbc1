//! Content encodings, as origins use them and as clients read them.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::http::Answer;

pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn gunzip(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    GzDecoder::new(data).read_to_end(&mut out).expect("gzip");
    out
}

pub(crate) fn brotli(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    brotli::CompressorWriter::new(&mut out, 4096, 5, 20).write_all(data).unwrap();
    out
}

fn unbrotli(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    brotli::Decompressor::new(data, 4096).read_to_end(&mut out).expect("brotli");
    out
}

/// Returns the body of a response without its content encoding.
pub(crate) fn decoded(answer: &Answer) -> Vec<u8> {
    match answer.header("content-encoding").as_deref() {
        Some("br") => unbrotli(&answer.body),
        Some("gzip") => gunzip(&answer.body),
        None => answer.body.clone(),
        Some(other) => panic!("content-encoding {other}"),
    }
}
