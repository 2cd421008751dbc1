//! Bytes to pixels. A decoder that reports any fault leaves the image: browsers show damaged images in their own ways.

use image_variants::Left;
use png::{ColorType, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::pixels::Pixels;
use image_variants::header::{Header, MOST_SIDE};

/// The most scans of a progressive JPEG. A file of few bytes can have many, and each costs time.
const MOST_SCANS: usize = 64;

/// The bytes that the PNG decoder may hold besides the image.
const PNG_BYTES: usize = 64 * 1024 * 1024;

/// An image and its colour profile.
pub type Decoded = (Pixels, Option<Vec<u8>>);

/// Decodes a JPEG image.
///
/// # Errors
/// The reason why the image stays.
pub fn jpeg(bytes: &[u8], header: &Header) -> Result<Decoded, Left> {
    let side = MOST_SIDE as usize;
    let options = DecoderOptions::default()
        .set_max_width(side)
        .set_max_height(side)
        .set_strict_mode(true)
        .jpeg_set_max_scans(MOST_SCANS)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let pixels = decoder.decode().map_err(|_| Left::Malformed)?;
    let pixels = Pixels { width: header.width, height: header.height, alpha: false, bytes: pixels };
    if pixels.is_whole() { Ok((pixels, decoder.icc_profile())) } else { Err(Left::Malformed) }
}

/// Decodes a PNG image.
///
/// # Errors
/// The reason why the image stays.
pub fn png(bytes: &[u8], header: &Header) -> Result<Decoded, Left> {
    let mut decoder = png::Decoder::new_with_limits(std::io::Cursor::new(bytes), png::Limits { bytes: PNG_BYTES });
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(|_| Left::Malformed)?;
    let size = reader.output_buffer_size().ok_or(Left::Pixels)?;
    let mut raw = vec![0; size];
    let frame = reader.next_frame(&mut raw).map_err(|_| Left::Malformed)?;
    // The checks of the last chunks belong to the image, too.
    reader.finish().map_err(|_| Left::Malformed)?;
    raw.truncate(frame.buffer_size());
    let (bytes, alpha) = match frame.color_type {
        ColorType::Rgb => (raw, false),
        ColorType::Rgba => (raw, true),
        ColorType::Grayscale => (raw.iter().flat_map(|&grey| [grey; 3]).collect(), false),
        ColorType::GrayscaleAlpha => {
            (raw.as_chunks().0.iter().flat_map(|&[grey, alpha]| [grey, grey, grey, alpha]).collect(), true)
        }
        ColorType::Indexed => return Err(Left::Malformed),
    };
    let profile = reader.info().icc_profile.as_ref().map(|profile| profile.to_vec());
    let pixels = Pixels { width: header.width, height: header.height, alpha, bytes };
    if pixels.is_whole() { Ok((pixels, profile)) } else { Err(Left::Malformed) }
}
