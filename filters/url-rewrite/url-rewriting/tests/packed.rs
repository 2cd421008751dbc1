//! The behaviour table of compressed bodies, tested natively. `wasm/tests` tests the same table in Envoy.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::io::Write;
use std::rc::Rc;

use common::{page, plan, rewrite, sheet};
use flate2::Compression;
use flate2::write::GzEncoder;
use url_rewriting::{Body, Broken, Packing, Plan, Rewriter};

const PIECES: [usize; 5] = [1, 7, 1000, 32 * 1024, 1024 * 1024];

fn html() -> Vec<u8> {
    let line =
        |n| format!("<p id={n}><img src=http://i{}.example.com/{n}.png><a href=http://a.example.com/>x</a>\n", n % 9);
    (0..3000).flat_map(|n| line(n).into_bytes()).collect()
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn packed(body: Body) -> Body {
    Body { packing: Packing::Gzip, ..body }
}

/// Returns the output, and why it is not complete, if it is not.
fn through(plan: &Rc<Plan>, body: Body, sent: &[u8], piece: usize) -> (Vec<u8>, Option<Broken>) {
    let mut rewriter = Rewriter::new(Rc::clone(plan), body, None);
    let mut out = Vec::new();
    for chunk in sent.chunks(piece) {
        rewriter.write(chunk, &mut out);
    }
    rewriter.finish(&mut out);
    (out, rewriter.broken())
}

#[test]
fn a_compressed_body_is_rewritten_as_the_plain_one_in_any_pieces() {
    let plan = plan("safe");
    let css: Vec<u8> = b"a { background: url(http://i.example.com/a.png) }\n".repeat(500);
    for (body, plain) in [(page as fn() -> Body, html()), (sheet, css)] {
        let expected = rewrite(&plan, body(), &plain).bytes;
        assert_ne!(expected, plain, "something moved");
        for piece in PIECES {
            assert_eq!(through(&plan, packed(body()), &gzip(&plain), piece), (expected.clone(), None), "{piece}");
            assert_eq!(through(&plan, body(), &plain, piece), (expected.clone(), None), "plain in {piece}");
        }
    }
}

#[test]
fn a_body_with_a_false_content_encoding_is_rewritten_as_plain() {
    let plan = plan("safe");
    let expected = rewrite(&plan, page(), &html()).bytes;
    for piece in PIECES {
        assert_eq!(through(&plan, packed(page()), &html(), piece), (expected.clone(), None), "{piece}");
    }
    assert_eq!(through(&plan, packed(page()), b"", 1), (Vec::new(), None));
}

#[test]
fn a_body_that_breaks_off_is_rewritten_up_to_there_to_the_last_byte_and_known_as_broken() {
    let plan = plan("safe");
    let whole = gzip(&html());
    for part in [20, whole.len() / 3, whole.len() - 20] {
        let sent = &whole[..part];
        // The expected part of the body, by another decoder.
        let mut held = Vec::new();
        let _ = std::io::copy(&mut flate2::read::GzDecoder::new(sent), &mut held);
        assert!(html().starts_with(&held));
        let expected = rewrite(&plan, page(), &held).bytes;
        for piece in PIECES {
            assert_eq!(through(&plan, packed(page()), sent, piece), (expected.clone(), Some(Broken::CutOff)), "{part}");
        }
    }
}

#[test]
fn bytes_are_counted_after_decompression() {
    let plan = plan("safe");
    let mut rewriter = Rewriter::new(plan, packed(page()), None);
    rewriter.write(&gzip(&html()), &mut Vec::new());
    assert_eq!(rewriter.bytes_read(), html().len() as u64);
    assert!(rewriter.unpacks());
}
