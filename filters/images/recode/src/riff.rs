//! The container of a WebP file (RFC 9649, section 2), with a colour profile.

use crate::pixels::Pixels;

const HAS_PROFILE: u8 = 0b10_0000;
const HAS_ALPHA: u8 = 0b1_0000;

/// Adds a colour profile to a file. Returns None if the file is not as the encoder writes it.
pub fn with_profile(file: &[u8], pixels: &Pixels, profile: &[u8]) -> Option<Vec<u8>> {
    let chunks = file.get(12..)?;
    let (mut extended, chunks) = match chunks.strip_prefix(b"VP8X") {
        Some(rest) => {
            let (content, rest) = rest.get(4..)?.split_first_chunk::<10>()?;
            (*content, rest)
        }
        None => (extended(pixels)?, chunks),
    };
    *extended.first_mut()? |= HAS_PROFILE;
    let mut body = b"WEBP".to_vec();
    push(&mut body, *b"VP8X", &extended)?;
    push(&mut body, *b"ICCP", profile)?;
    body.extend_from_slice(chunks);
    let mut file = Vec::with_capacity(body.len() + 8);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&u32::try_from(body.len()).ok()?.to_le_bytes());
    file.append(&mut body);
    Some(file)
}

/// The content of a chunk `VP8X`: flags, and the size of the canvas less one.
fn extended(pixels: &Pixels) -> Option<[u8; 10]> {
    let [wide, wider, widest, _] = pixels.width.checked_sub(1)?.to_le_bytes();
    let [high, higher, highest, _] = pixels.height.checked_sub(1)?.to_le_bytes();
    let flags = if pixels.alpha { HAS_ALPHA } else { 0 };
    Some([flags, 0, 0, 0, wide, wider, widest, high, higher, highest])
}

fn push(body: &mut Vec<u8>, name: [u8; 4], content: &[u8]) -> Option<()> {
    body.extend_from_slice(&name);
    body.extend_from_slice(&u32::try_from(content.len()).ok()?.to_le_bytes());
    body.extend_from_slice(content);
    // Chunks begin at even positions.
    body.resize(body.len() + content.len() % 2, 0);
    Some(())
}
