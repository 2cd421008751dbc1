//! Qualities and limits.

/// How images are recoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The quality of WebP for JPEG images, 1 to 100.
    pub jpeg_quality: u8,
    /// The quality of WebP for PNG images, 1 to 100. None: lossless. Some PNG images carry data in their colours, for
    /// example the heights of a map.
    pub png_quality: Option<u8>,
    /// The effort of the encoder, 0 to 6. At 4, a megapixel takes about 0.1 s.
    pub method: u8,
    /// The most pixels of an image. It bounds memory and time before anything is decoded.
    pub pixels: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { jpeg_quality: 75, png_quality: None, method: 4, pixels: 8_000_000 }
    }
}
