use proptest::prelude::*;

use super::*;

const MOST_PIXELS: u64 = 8_000_000;

fn jpeg(segments: &[(u8, &[u8])]) -> Vec<u8> {
    let mut file = vec![0xff, 0xd8];
    for (marker, content) in segments {
        file.extend([0xff, *marker]);
        file.extend(u16::try_from(content.len() + 2).unwrap().to_be_bytes());
        file.extend(*content);
    }
    file.extend(b"scan\xff\xd9");
    file
}

fn frame(depth: u8, width: u16, height: u16, components: u8) -> Vec<u8> {
    [&[depth][..], &height.to_be_bytes(), &width.to_be_bytes(), &[components]].concat()
}

fn png(width: u32, height: u32, depth: u8, chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let first = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, 2, 0, 0, 0]].concat();
    let all =
        [(b"IHDR", &first[..])].into_iter().chain(chunks.iter().copied()).chain([(b"IDAT", &b"x"[..]), (b"IEND", b"")]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, content) in all {
        file.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
        file.extend(name);
        file.extend(content);
        file.extend([0; 4]);
    }
    file
}

/// Exif data with entries of a directory: tag, type, value.
fn exif(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = b"Exif\0\0".to_vec();
    bytes.extend(tiff(entries, &[]));
    bytes
}

/// The first directory is followed by `rest`.
fn tiff(entries: &[(u16, u16, u32)], rest: &[u8]) -> Vec<u8> {
    let mut bytes = b"MM\0*\0\0\0\x08".to_vec();
    directory(&mut bytes, entries);
    bytes.extend(rest);
    bytes
}

fn directory(bytes: &mut Vec<u8>, entries: &[(u16, u16, u32)]) {
    bytes.extend(u16::try_from(entries.len()).unwrap().to_be_bytes());
    for &(tag, kind, value) in entries {
        bytes.extend([&tag.to_be_bytes()[..], &kind.to_be_bytes(), &1u32.to_be_bytes()].concat());
        let value = if kind == 3 { value << 16 } else { value };
        bytes.extend(value.to_be_bytes());
    }
}

fn read_jpeg(segments: &[(u8, &[u8])]) -> Result<Header, Left> {
    read(Source::Jpeg, &jpeg(segments), MOST_PIXELS)
}

#[test]
fn a_jpeg_says_its_size_and_its_orientation() {
    let plain = read_jpeg(&[(0xe0, b"JFIF\0"), (0xc2, &frame(8, 400, 300, 3)), (0xda, b"")]);
    assert_eq!(plain, Ok(Header { width: 400, height: 300, orientation: Orientation::Upright }));
    for (value, expected) in [
        (6, Orientation::Clockwise),
        (3, Orientation::UpsideDown),
        (0, Orientation::Upright),
        (9, Orientation::Upright),
    ] {
        let data = exif(&[(0x0112, 3, value)]);
        let header = read_jpeg(&[(0xe1, &data), (0xc0, &frame(8, 4, 3, 1)), (0xda, b"")]).unwrap();
        assert_eq!((header.orientation, header.width), (expected, 4), "{value}");
    }
}

#[test]
fn a_jpeg_that_a_variant_could_not_show_stays() {
    for (name, segments, expected) in [
        ("CMYK", vec![(0xc0, frame(8, 4, 3, 4)), (0xda, vec![])], Left::Colours),
        ("12 bit", vec![(0xc1, frame(12, 4, 3, 3)), (0xda, vec![])], Left::Depth),
        ("lossless", vec![(0xc3, frame(8, 4, 3, 3)), (0xda, vec![])], Left::Type),
        ("arithmetic", vec![(0xc9, frame(8, 4, 3, 3)), (0xda, vec![])], Left::Type),
        ("100 megapixels", vec![(0xc0, frame(8, 10_000, 10_000, 3)), (0xda, vec![])], Left::Pixels),
        ("a long side", vec![(0xc0, frame(8, 16_384, 10, 3)), (0xda, vec![])], Left::Pixels),
        ("no height", vec![(0xc0, frame(8, 4, 0, 3)), (0xda, vec![])], Left::Malformed),
        ("two frames", vec![(0xc0, frame(8, 4, 3, 3)), (0xc0, frame(8, 4, 3, 3)), (0xda, vec![])], Left::Type),
        ("a gain map", vec![(0xe2, b"MPF\0".to_vec()), (0xc0, frame(8, 4, 3, 3)), (0xda, vec![])], Left::Animated),
        ("no frame", vec![(0xda, vec![])], Left::Malformed),
        ("no scan", vec![(0xc0, frame(8, 4, 3, 3))], Left::Malformed),
    ] {
        let segments: Vec<(u8, &[u8])> =
            segments.iter().map(|(marker, content)| (*marker, content.as_slice())).collect();
        assert_eq!(read_jpeg(&segments), Err(expected), "{name}");
    }
    let whole = jpeg(&[(0xc0, &frame(8, 4, 3, 3)), (0xda, b"")]);
    assert!(read(Source::Jpeg, &whole, MOST_PIXELS).is_ok());
    assert_eq!(read(Source::Jpeg, &whole[..whole.len() - 1], MOST_PIXELS), Err(Left::Malformed), "truncated");
    assert_eq!(read(Source::Png, &whole, MOST_PIXELS), Err(Left::Type), "wrong type");
    assert_eq!(read(Source::Jpeg, b"GIF89a", MOST_PIXELS), Err(Left::Type));
}

#[test]
fn an_image_with_a_size_of_its_own_stays() {
    // 144 pixels per inch and a size of half the pixels: browsers show 200 CSS pixels. The second directory stands
    // behind the first, and the resolution behind it.
    let of = |width: u32, resolution: u32| {
        let second = 8 + 2 + 3 * 12;
        let behind = second + 2 + 12;
        let mut rest = Vec::new();
        directory(&mut rest, &[(0xa002, 4, width)]);
        rest.extend([resolution.to_be_bytes(), 1u32.to_be_bytes()].concat());
        let tiff = tiff(&[(0x011a, 5, behind), (0x0128, 3, 2), (0x8769, 4, second)], &rest);
        let data = [&b"Exif\0\0"[..], &tiff].concat();
        read_jpeg(&[(0xe1, &data), (0xc0, &frame(8, 400, 300, 3)), (0xda, b"")])
    };
    assert_eq!(of(200, 144), Err(Left::Exif));
    for (width, resolution) in [(400, 72), (400, 300), (123, 300)] {
        assert!(of(width, resolution).is_ok(), "{width} {resolution}");
    }
}

#[test]
fn a_png_stays_if_a_variant_could_not_show_it() {
    let read_png = |width, height, depth, chunks: &[(&[u8; 4], &[u8])]| {
        read(Source::Png, &png(width, height, depth, chunks), MOST_PIXELS).map(|header| (header.width, header.height))
    };
    let srgb: Vec<u8> = [31_270u32, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000]
        .into_iter()
        .flat_map(u32::to_be_bytes)
        .collect();
    let turned = tiff(&[(0x0112, 3, 6)], &[]);
    let upright = tiff(&[(0x0112, 3, 1)], &[]);
    let gamma = |value: u32| value.to_be_bytes();
    for (name, chunks, expected) in [
        ("plain", vec![], Ok((400, 300))),
        ("sRGB gamma and primaries", vec![(b"gAMA", &gamma(45_455)[..]), (b"cHRM", &srgb)], Ok((400, 300))),
        ("a gamma that sRGB overrules", vec![(b"gAMA", &gamma(100_000)), (b"sRGB", b"\0")], Ok((400, 300))),
        ("an upright eXIf", vec![(b"eXIf", &upright)], Ok((400, 300))),
        ("another gamma", vec![(b"gAMA", &gamma(100_000))], Err(Left::Colours)),
        ("other primaries", vec![(b"cHRM", &[0; 32])], Err(Left::Colours)),
        ("HDR", vec![(b"cICP", b"\x09\x10\0\x01")], Err(Left::Colours)),
        ("animated", vec![(b"acTL", &[0, 0, 0x27, 0x10, 0, 0, 0, 0])], Err(Left::Animated)),
        ("turned", vec![(b"eXIf", &turned)], Err(Left::Exif)),
    ] {
        assert_eq!(read_png(400, 300, 8, &chunks), expected, "{name}");
    }
    assert_eq!(read_png(400, 300, 16, &[]), Err(Left::Depth));
    assert_eq!(read_png(10_000, 10_000, 1, &[]), Err(Left::Pixels));
    assert_eq!(read_png(u32::MAX, u32::MAX, 8, &[]), Err(Left::Pixels));
    assert_eq!(read_png(0, 3, 8, &[]), Err(Left::Malformed));
    let whole = png(4, 3, 8, &[]);
    assert_eq!(read(Source::Png, &whole[..whole.len() - 1], MOST_PIXELS), Err(Left::Malformed), "truncated");
}

proptest! {
    #[test]
    fn no_bytes_are_too_odd(bytes: Vec<u8>, cut in 0usize..200, at in 0usize..200, byte: u8) {
        let _ = read(Source::Jpeg, &bytes, MOST_PIXELS);
        let _ = read(Source::Png, &bytes, MOST_PIXELS);
        let data = exif(&[(0x0112, 3, 6), (0x8769, 4, 8), (0x011a, 5, 20)]);
        for (source, mut file) in [
            (Source::Jpeg, jpeg(&[(0xe1, &data), (0xc0, &frame(8, 4, 3, 3)), (0xda, b"")])),
            (Source::Png, png(4, 3, 8, &[(b"eXIf", &data[6..])])),
        ] {
            if let Some(place) = file.get_mut(at) {
                *place = byte;
            }
            file.truncate(file.len().saturating_sub(cut));
            let _ = read(source, &file, MOST_PIXELS);
        }
    }
}
