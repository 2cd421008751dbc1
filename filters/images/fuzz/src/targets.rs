//! The targets. Each panics where a law is broken.

use fuzz_driver::Target;
use http_semantics::Fields;
use image_variants::header::{self, Header, MOST_SIDE};
use image_variants::response::{self, Sizes, Source};
use image_variants::tag::Variant;
use image_variants::{key, request};

use crate::seeds;

/// Every target.
pub const TARGETS: &[Target] =
    &[("jpeg", jpeg, seeds::jpegs), ("png", png, seeds::pngs), ("headers", headers, seeds::headers)];

const MOST_PIXELS: u64 = 8_000_000;
const SIZES: Sizes = Sizes { min_bytes: 1, max_bytes: 1 << 20 };
const VARIANT: Variant = Variant { quality: 75 };

/// The header of a JPEG file.
pub fn jpeg(data: &[u8]) {
    read_jpeg(data);
}

/// The header of a PNG file.
pub fn png(data: &[u8]) {
    read_png(data);
}

pub(crate) fn read_jpeg(data: &[u8]) -> bool {
    is_bounded(header::read(Source::Jpeg, data, MOST_PIXELS).ok())
}

pub(crate) fn read_png(data: &[u8]) -> bool {
    is_bounded(header::read(Source::Png, data, MOST_PIXELS).ok())
}

/// Law: an image that is decoded has pixels, and not too many.
fn is_bounded(header: Option<Header>) -> bool {
    let Some(Header { width, height, .. }) = header else { return false };
    assert!(width > 0 && height > 0 && width <= MOST_SIDE && height <= MOST_SIDE);
    assert!(u64::from(width) * u64::from(height) <= MOST_PIXELS);
    true
}

/// Header fields, one a line. Laws: path and tag of the origin come back.
pub fn headers(data: &[u8]) {
    let lines = data.split(|&byte| byte == b'\n');
    let fields: Fields<'_> = lines
        .filter_map(|line| {
            let at = line.iter().skip(1).position(|&byte| byte == b':')? + 1;
            Some((&line[..at], &line[at + 1..]))
        })
        .collect();
    let _ = request::left(&fields);
    if let Ok(fit) = response::fit(&fields, SIZES) {
        assert!(fit.length > 0 && fit.length <= 1 << 20);
    }
    for (_, value) in fields.iter() {
        if let Some(path) = key::of(value) {
            assert_eq!(key::origin(&path), Some(value));
        }
        if let Some(tag) = VARIANT.tag(value) {
            let origin = VARIANT.origin(&tag).expect("the tag of a variant");
            assert_eq!(VARIANT.tag(&origin), Some(tag));
        }
    }
}
