//! Decoded pixels.

use image_variants::header::Orientation;

/// An image of 8 bits a sample, in rows from the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// True: RGBA. False: RGB.
    pub alpha: bool,
    /// `width * height` times 3 or 4 bytes.
    pub bytes: Vec<u8>,
}

impl Pixels {
    /// Bytes of one pixel.
    pub const fn step(&self) -> usize {
        if self.alpha { 4 } else { 3 }
    }

    /// Returns true if `bytes` has the length that width and height say.
    pub fn is_whole(&self) -> bool {
        let pixels = u64::from(self.width) * u64::from(self.height);
        self.width > 0 && self.height > 0 && pixels.checked_mul(self.step() as u64) == Some(self.bytes.len() as u64)
    }

    /// Turns an image as browsers show it.
    #[must_use]
    pub fn turned(self, orientation: Orientation) -> Self {
        if orientation == Orientation::Upright {
            return self;
        }
        let step = self.step();
        let (width, height) = (self.width as usize, self.height as usize);
        let (across, down) = if orientation.swaps_sides() { (height, width) } else { (width, height) };
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for y in 0..down {
            for x in 0..across {
                let (right, bottom) = (width - 1, height - 1);
                let (from_x, from_y) = match orientation {
                    Orientation::Upright => (x, y),
                    Orientation::Mirrored => (right - x, y),
                    Orientation::UpsideDown => (right - x, bottom - y),
                    Orientation::Flipped => (x, bottom - y),
                    Orientation::Transposed => (y, x),
                    Orientation::Clockwise => (y, bottom - x),
                    Orientation::Transversed => (right - y, bottom - x),
                    Orientation::Counterclockwise => (right - y, x),
                };
                let at = (from_y * width + from_x) * step;
                bytes.extend_from_slice(self.bytes.get(at..at + step).unwrap_or_default());
            }
        }
        let (width, height) =
            if orientation.swaps_sides() { (self.height, self.width) } else { (self.width, self.height) };
        Self { width, height, alpha: self.alpha, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Orientation::{Clockwise, Counterclockwise, Flipped, Mirrored, Transposed, Transversed, Upright, UpsideDown};

    fn image(width: u32, rows: &[u8]) -> Pixels {
        let height = u32::try_from(rows.len()).unwrap() / width;
        Pixels {
            width,
            height,
            alpha: false,
            bytes: rows.iter().flat_map(|&value| [value, value + 1, value + 2]).collect(),
        }
    }

    #[test]
    fn an_image_is_turned_as_exif_says() {
        // a b c
        // d e f
        for (orientation, width, rows) in [
            (Upright, 3, b"abcdef"),
            (Mirrored, 3, b"cbafed"),
            (UpsideDown, 3, b"fedcba"),
            (Flipped, 3, b"defabc"),
            (Transposed, 2, b"adbecf"),
            (Clockwise, 2, b"daebfc"),
            (Transversed, 2, b"fcebda"),
            (Counterclockwise, 2, b"cfbead"),
        ] {
            let turned = image(3, b"abcdef").turned(orientation);
            assert_eq!(turned, image(width, rows), "{orientation:?}");
            assert!(turned.is_whole());
        }
    }

    #[test]
    fn an_image_that_lacks_a_byte_is_not_whole() {
        let mut short = image(3, b"abcdef");
        short.bytes.pop();
        assert!(!short.is_whole());
        assert!(!Pixels { width: 0, height: 0, alpha: true, bytes: Vec::new() }.is_whole());
    }
}
