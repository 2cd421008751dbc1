//! Reads what the first bytes of an image say. Nothing is decoded.
//!
//! This is the only reader of foreign bytes that runs outside the sandbox. It has a fuzz target.

mod exif;
mod jpeg;
mod png;
mod reader;

use crate::Left;
use crate::response::Source;

/// The longest side of a WebP image, in pixels.
pub const MOST_SIDE: u32 = 16_383;

/// The orientation of an image by its Exif data, 1 to 8 (Exif 2.32, tag 0x0112).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Orientation {
    /// As it is stored.
    #[default]
    Upright,
    /// Mirrored left to right.
    Mirrored,
    /// Turned by 180 degrees.
    UpsideDown,
    /// Mirrored top to bottom.
    Flipped,
    /// Rows and columns change places.
    Transposed,
    /// Shown after a turn of 90 degrees clockwise.
    Clockwise,
    /// Rows and columns change places along the other diagonal.
    Transversed,
    /// Shown after a turn of 90 degrees counter-clockwise.
    Counterclockwise,
}

impl Orientation {
    fn of(value: u16) -> Option<Self> {
        Some(match value {
            1 => Self::Upright,
            2 => Self::Mirrored,
            3 => Self::UpsideDown,
            4 => Self::Flipped,
            5 => Self::Transposed,
            6 => Self::Clockwise,
            7 => Self::Transversed,
            8 => Self::Counterclockwise,
            _ => return None,
        })
    }

    /// Returns true if width and height change places.
    pub const fn swaps_sides(self) -> bool {
        matches!(self, Self::Transposed | Self::Clockwise | Self::Transversed | Self::Counterclockwise)
    }
}

/// The facts in the header of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The width as stored, in pixels.
    pub width: u32,
    /// The height as stored, in pixels.
    pub height: u32,
    /// The orientation in which browsers show it.
    pub orientation: Orientation,
}

/// Reads the header of an image.
///
/// # Errors
/// The reason why the image cannot have a variant.
pub fn read(source: Source, bytes: &[u8], most_pixels: u64) -> Result<Header, Left> {
    let header = match source {
        Source::Jpeg => jpeg::read(bytes)?,
        Source::Png => png::read(bytes)?,
    };
    let Header { width, height, .. } = header;
    if width == 0 || height == 0 {
        return Err(Left::Malformed);
    }
    if width.max(height) > MOST_SIDE || u64::from(width) * u64::from(height) > most_pixels {
        return Err(Left::Pixels);
    }
    Ok(header)
}

#[cfg(test)]
mod tests;
