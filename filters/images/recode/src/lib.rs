//! Makes images smaller: the bytes of a JPEG or PNG and a policy in, the bytes of a WebP or a reason out.
//!
//! | module | job |
//! |---|---|
//! | [`policy`] | qualities and limits |
//! | [`decode`] | pixels |
//! | [`pixels`] | turns them as the Exif data say |
//! | [`profile`] | the colour profiles that a variant keeps |
//! | [`encode`], [`riff`] | the WebP file |
//!
//! Laws, held by tests:
//!
//! - A variant has at most nine tenths of the original's bytes.
//! - The same bytes and policy give the same variant.
//! - The variant of a PNG has the very same pixels, unless the policy has a quality for PNG.
//! - A variant has the size that browsers show of the original.
//!
//! [`image_variants::header`] reads type, size, depth, colours and Exif data before anything is decoded.
//!
//! Decoders and the encoder read hostile bytes, and one of them is C. Call [`recode`] in a process without rights.

pub mod decode;
pub mod encode;
pub mod pixels;
pub mod policy;
pub mod profile;
pub mod riff;

pub use image_variants::Left;
pub use image_variants::response::Source;
pub use policy::Policy;

use image_variants::header;

use crate::encode::Mode;

/// Returns a smaller image.
///
/// # Errors
/// The reason why the original stays.
pub fn recode(source: Source, bytes: &[u8], policy: &Policy) -> Result<Vec<u8>, Left> {
    let header = header::read(source, bytes, policy.pixels)?;
    let (pixels, profile) = match source {
        Source::Jpeg => decode::jpeg(bytes, &header)?,
        Source::Png => decode::png(bytes, &header)?,
    };
    let profile = profile::kept(profile)?;
    let pixels = pixels.turned(header.orientation);
    let mode = match (source, policy.png_quality) {
        (Source::Jpeg, _) => Mode::Lossy { quality: policy.jpeg_quality },
        (Source::Png, Some(quality)) => Mode::Lossy { quality },
        (Source::Png, None) => Mode::Lossless,
    };
    let file = encode::webp(&pixels, mode, policy.method).ok_or(Left::Worker)?;
    let file = match profile {
        Some(profile) => riff::with_profile(&file, &pixels, &profile).ok_or(Left::Worker)?,
        None => file,
    };
    if file.len().saturating_mul(10) > bytes.len().saturating_mul(9) { Err(Left::NoGain) } else { Ok(file) }
}
