//! The chunks of a PNG file (PNG, third edition, sections 5 and 11).

use crate::Left;

use super::exif::Exif;
use super::reader::Reader;
use super::{Header, Orientation};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The chromaticities of sRGB, as a `cHRM` chunk has them.
const SRGB_PRIMARIES: [u32; 8] = [31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000];

/// The `gAMA` of sRGB is 45455. Files round it.
const SRGB_GAMMA: std::ops::RangeInclusive<u32> = 45_000..=46_000;

pub(super) fn read(bytes: &[u8]) -> Result<Header, Left> {
    let mut reader = Reader(bytes.strip_prefix(SIGNATURE).ok_or(Left::Type)?);
    let (name, first) = chunk(&mut reader).ok_or(Left::Malformed)?;
    if name != b"IHDR" {
        return Err(Left::Malformed);
    }
    let (width, height) = size(first)?;
    let mut colours = Colours::default();
    loop {
        let (name, content) = chunk(&mut reader).ok_or(Left::Malformed)?;
        match name {
            b"acTL" => return Err(Left::Animated),
            // Colours that no profile of a WebP states.
            b"cICP" | b"mDCV" | b"cLLI" => return Err(Left::Colours),
            b"iCCP" | b"sRGB" => colours.stated = true,
            b"gAMA" => colours.other |= Reader(content).u32().is_none_or(|gamma| !SRGB_GAMMA.contains(&gamma)),
            b"cHRM" => colours.other |= !is_srgb(content),
            b"eXIf" if is_turned(content, width, height) => return Err(Left::Exif),
            b"IEND" => break,
            _ => {}
        }
    }
    if colours.other && !colours.stated {
        return Err(Left::Colours);
    }
    Ok(Header { width, height, orientation: Orientation::Upright })
}

/// The facts about colours in the chunks.
#[derive(Debug, Default)]
struct Colours {
    /// A profile or `sRGB` wins over the other chunks.
    stated: bool,
    /// A gamma or primaries that are not those of sRGB.
    other: bool,
}

/// Returns the name and the content of a chunk. The decoder checks its CRC.
fn chunk<'a>(reader: &mut Reader<'a>) -> Option<(&'a [u8; 4], &'a [u8])> {
    let length = usize::try_from(reader.u32()?).ok()?;
    let name = reader.take(4)?.first_chunk()?;
    let content = reader.take(length)?;
    reader.u32()?;
    Some((name, content))
}

fn size(content: &[u8]) -> Result<(u32, u32), Left> {
    let mut reader = Reader(content);
    let mut read = || Some((reader.u32()?, reader.u32()?, reader.u8()?));
    let (width, height, depth) = read().ok_or(Left::Malformed)?;
    if depth > 8 { Err(Left::Depth) } else { Ok((width, height)) }
}

fn is_srgb(content: &[u8]) -> bool {
    let mut reader = Reader(content);
    SRGB_PRIMARIES.iter().all(|&expected| reader.u32().is_some_and(|value| value.abs_diff(expected) <= 10))
}

fn is_turned(content: &[u8], width: u32, height: u32) -> bool {
    let exif = Exif::read(content);
    exif.has_own_size(width, height) || exif.orientation.is_some_and(|orientation| orientation != 1)
}
