//! The segments of a JPEG file before its first scan (ITU-T T.81, annex B).

use crate::Left;

use super::exif::Exif;
use super::reader::Reader;
use super::{Header, Orientation};

const START_OF_IMAGE: [u8; 2] = [0xff, 0xd8];
const END_OF_IMAGE: [u8; 2] = [0xff, 0xd9];

pub(super) fn read(bytes: &[u8]) -> Result<Header, Left> {
    let mut reader = Reader(bytes.strip_prefix(&START_OF_IMAGE).ok_or(Left::Type)?);
    let mut frame = None;
    let mut exif = None;
    loop {
        let (marker, segment) = segment(&mut reader).ok_or(Left::Malformed)?;
        match marker {
            // Baseline, extended and progressive DCT. Browsers show no other process.
            0xc0..=0xc2 if frame.is_none() => frame = Some(size(segment)?),
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => return Err(Left::Type),
            0xe1 if exif.is_none() => exif = segment.strip_prefix(b"Exif\0\0").map(Exif::read),
            // Several pictures in one file: a gain map for bright screens, a second eye.
            0xe2 if segment.starts_with(b"MPF\0") => return Err(Left::Animated),
            0xda => break,
            _ => {}
        }
    }
    // Browsers show the part of an image that came. A decoder would fill the rest with grey.
    if !reader.0.windows(END_OF_IMAGE.len()).rev().any(|pair| pair == END_OF_IMAGE) {
        return Err(Left::Malformed);
    }
    let (width, height) = frame.ok_or(Left::Malformed)?;
    let exif: Exif = exif.unwrap_or_default();
    if exif.has_own_size(width, height) {
        return Err(Left::Exif);
    }
    Ok(Header { width, height, orientation: exif.orientation.and_then(Orientation::of).unwrap_or_default() })
}

/// Returns a marker and the content of its segment.
fn segment<'a>(reader: &mut Reader<'a>) -> Option<(u8, &'a [u8])> {
    if reader.u8()? != 0xff {
        return None;
    }
    // Any number of fill bytes may stand before a marker.
    let marker = loop {
        match reader.u8()? {
            0xff => {}
            marker => break marker,
        }
    };
    // TEM and RSTn have no content. A second start or an end before the first scan is an error.
    match marker {
        0x01 | 0xd0..=0xd7 => Some((marker, &[])),
        0x00 | 0xd8 | 0xd9 => None,
        _ => {
            let length = usize::from(reader.u16()?).checked_sub(2)?;
            Some((marker, reader.take(length)?))
        }
    }
}

/// The width and height of a frame.
fn size(segment: &[u8]) -> Result<(u32, u32), Left> {
    let mut reader = Reader(segment);
    let mut read = || Some((reader.u8()?, reader.u16()?, reader.u16()?, reader.u8()?));
    let (depth, height, width, components) = read().ok_or(Left::Malformed)?;
    if depth != 8 {
        return Err(Left::Depth);
    }
    if !matches!(components, 1 | 3) {
        return Err(Left::Colours);
    }
    Ok((width.into(), height.into()))
}
