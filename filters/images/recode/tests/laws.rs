//! The laws of the crate, with files that other encoders made and a decoder that is not libwebp.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use std::io::Cursor;

use image_recode::pixels::Pixels;
use image_recode::{Left, Policy, Source, recode, riff};
use image_webp::WebPDecoder;
use jpeg_encoder::{ColorType, Encoder};
use proptest::prelude::*;

const POLICY: Policy = Policy { jpeg_quality: 75, png_quality: None, method: 2, pixels: 1_000_000 };

/// A picture with edges, a gradient and some noise, so that no encoder has an easy task.
fn picture(width: u32, height: u32, alpha: bool, seed: u32) -> Pixels {
    let mut noise = seed | 1;
    let mut bytes = Vec::new();
    for y in 0..height {
        for x in 0..width {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let edge = if (x / 17 + y / 15) % 2 == 0 { 90 } else { 20 };
            let sample = |shift: u32| u8::try_from((edge + x * shift / 2 + y / 2 + (noise >> 28)).min(255)).unwrap();
            bytes.extend([sample(1), sample(2), sample(3)]);
            if alpha {
                bytes.push(if x < width / 3 { 0 } else { sample(0) });
            }
        }
    }
    Pixels { width, height, alpha, bytes }
}

fn jpeg(pixels: &Pixels, quality: u8, exif_orientation: Option<u8>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, quality);
    if let Some(orientation) = exif_orientation {
        let entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0];
        let data = [&b"Exif\0\0MM\0*\0\0\0\x08\0\x01"[..], &entry, &[0; 4]].concat();
        encoder.add_app_segment(1, data).unwrap();
    }
    let (width, height) = (u16::try_from(pixels.width).unwrap(), u16::try_from(pixels.height).unwrap());
    encoder.encode(&pixels.bytes, width, height, ColorType::Rgb).unwrap();
    file
}

fn png(pixels: &Pixels) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, pixels.width, pixels.height);
    encoder.set_color(if pixels.alpha { png::ColorType::Rgba } else { png::ColorType::Rgb });
    // Stored, so that any encoder gains.
    encoder.set_compression(png::Compression::NoCompression);
    encoder.write_header().unwrap().write_image_data(&pixels.bytes).unwrap();
    file
}

fn decoded(file: &[u8]) -> Pixels {
    let mut decoder = WebPDecoder::new(Cursor::new(file)).unwrap();
    let (width, height) = decoder.dimensions();
    let mut bytes = vec![0; decoder.output_buffer_size().unwrap()];
    decoder.read_image(&mut bytes).unwrap();
    Pixels { width, height, alpha: decoder.has_alpha(), bytes }
}

/// The reason why an image stays.
fn reason(source: Source, file: &[u8]) -> Option<Left> {
    recode(source, file, &POLICY).err()
}

/// The mean difference of a sample.
fn difference(one: &Pixels, other: &Pixels) -> f64 {
    assert_eq!((one.width, one.height, one.alpha), (other.width, other.height, other.alpha));
    let sum: u32 = one.bytes.iter().zip(&other.bytes).map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
    f64::from(sum) / f64::from(u32::try_from(one.bytes.len()).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_png_keeps_every_pixel(width in 1u32..60, height in 1u32..60, alpha: bool, seed: u32) {
        let original = picture(width, height, alpha, seed);
        let file = png(&original);
        match recode(Source::Png, &file, &POLICY) {
            Ok(variant) => {
                let mut shown = decoded(&variant);
                if alpha && !shown.alpha {
                    // Every pixel is opaque, and the encoder left the channel out.
                    shown.bytes = shown.bytes.chunks(3).flat_map(|rgb| [rgb[0], rgb[1], rgb[2], 255]).collect();
                    shown.alpha = true;
                }
                prop_assert!(shown == original);
                prop_assert!(variant.len() * 10 <= file.len() * 9);
                prop_assert!(recode(Source::Png, &file, &POLICY) == Ok(variant));
            }
            Err(left) => prop_assert_eq!(left, Left::NoGain),
        }
    }

    #[test]
    fn a_jpeg_looks_the_same_and_is_smaller(width in 16u32..80, height in 16u32..80, seed: u32, quality in 50u8..=100) {
        let original = picture(width, height, false, seed);
        let file = jpeg(&original, quality, None);
        match recode(Source::Jpeg, &file, &POLICY) {
            Ok(variant) => {
                prop_assert!(variant.len() * 10 <= file.len() * 9);
                prop_assert!(difference(&decoded(&variant), &original) < 16.0);
                prop_assert!(recode(Source::Jpeg, &file, &POLICY) == Ok(variant));
            }
            Err(left) => prop_assert_eq!(left, Left::NoGain),
        }
    }

    #[test]
    fn a_damaged_file_is_a_reason_or_an_image_of_the_same_size(at in 0usize..6000, byte: u8, cut in 0usize..40) {
        let original = picture(64, 48, false, 7);
        for (source, mut file) in [(Source::Jpeg, jpeg(&original, 95, None)), (Source::Png, png(&original))] {
            let length = file.len();
            file[at % length] = byte;
            file.truncate(length - cut);
            if let Ok(variant) = recode(source, &file, &POLICY) {
                let shown = decoded(&variant);
                let header = image_variants::header::read(source, &file, POLICY.pixels).unwrap();
                prop_assert_eq!((shown.width, shown.height), (header.width, header.height));
            }
        }
    }
}

#[test]
fn a_turned_photo_is_shown_upright() {
    let original = picture(96, 64, false, 3);
    let upright = decoded(&recode(Source::Jpeg, &jpeg(&original, 95, None), &POLICY).unwrap());
    let turned = decoded(&recode(Source::Jpeg, &jpeg(&original, 95, Some(6)), &POLICY).unwrap());
    assert_eq!((turned.width, turned.height), (64, 96));
    let expected = upright.clone().turned(image_variants::header::Orientation::Clockwise);
    let wrong = upright.turned(image_variants::header::Orientation::Counterclockwise);
    let (near, far) = (difference(&turned, &expected), difference(&turned, &wrong));
    assert!(near * 2.0 < far, "clockwise: {near}, the other way: {far}");
}

#[test]
fn a_truncated_or_damaged_image_stays() {
    let mut file = jpeg(&picture(128, 128, false, 5), 95, None);
    assert!(recode(Source::Jpeg, &file, &POLICY).is_ok());
    file.truncate(file.len() / 2);
    assert_eq!(reason(Source::Jpeg, &file), Some(Left::Malformed));
    let mut file = png(&picture(64, 64, false, 5));
    let middle = file.len() / 2;
    file[middle] ^= 1;
    assert_eq!(reason(Source::Png, &file), Some(Left::Malformed), "a wrong CRC");
}

#[test]
fn a_png_is_lossy_only_if_the_policy_has_a_quality_for_it() {
    let original = picture(64, 64, true, 9);
    let policy = Policy { png_quality: Some(50), ..POLICY };
    let lossy = recode(Source::Png, &png(&original), &policy).unwrap();
    let exact = recode(Source::Png, &png(&original), &POLICY).unwrap();
    assert!(lossy.len() < exact.len());
    assert!(decoded(&lossy) != original);
    assert!(decoded(&exact) == original);
}

#[test]
fn a_profile_is_kept_in_the_file() {
    let profile = moxcms::ColorProfile::new_display_p3().encode().unwrap();
    for alpha in [false, true] {
        let original = picture(33, 21, alpha, 1);
        for mode in [image_recode::encode::Mode::Lossless, image_recode::encode::Mode::Lossy { quality: 80 }] {
            let plain = image_recode::encode::webp(&original, mode, 2).unwrap();
            let file = riff::with_profile(&plain, &original, &profile).unwrap();
            assert!(decoded(&file) == decoded(&plain), "{mode:?}");
            let mut decoder = WebPDecoder::new(Cursor::new(&file)).unwrap();
            assert_eq!(decoder.icc_profile().unwrap(), Some(profile.clone()), "{mode:?}");
        }
    }
}

#[test]
fn an_image_that_would_not_shrink_stays() {
    let original = picture(64, 64, false, 2);
    let small = recode(Source::Png, &png(&original), &POLICY).map(|file| file.len());
    assert!(small.is_ok());
    assert_eq!(reason(Source::Jpeg, &jpeg(&picture(256, 256, false, 2), 5, None)), Some(Left::NoGain));
}
