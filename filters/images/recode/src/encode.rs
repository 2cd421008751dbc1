//! Pixels to WebP, by libwebp. This is the only unsafe code outside `filters/host`.
//!
//! No pure Rust encoder for lossy WebP has a licence that fits, and the safe binding of libwebp (the crate `webp`) holds
//! on to a release of 2023. So the five calls stand here.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::{ptr, slice};

use libwebp_sys::{
    WebPConfig, WebPEncode, WebPMemoryWrite, WebPMemoryWriter, WebPMemoryWriterClear, WebPMemoryWriterInit,
    WebPPicture, WebPPictureFree, WebPPictureImportRGB, WebPPictureImportRGBA,
};

use crate::pixels::Pixels;

/// The quality of an encoded image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every pixel stays as it is, also below full transparency.
    Lossless,
    /// Smaller at the cost of details.
    Lossy {
        /// 1 to 100.
        quality: u8,
    },
}

/// libwebp's own effort for lossless images: its default.
const LOSSLESS_EFFORT: f32 = 75.0;

/// Encodes an image. `method` is the effort, 0 to 6. Returns None if the pixels are not whole, or memory is short.
pub fn webp(pixels: &Pixels, mode: Mode, method: u8) -> Option<Vec<u8>> {
    if !pixels.is_whole() {
        return None;
    }
    let config = config(mode, method)?;
    let mut picture = WebPPicture::new().ok()?;
    picture.width = i32::try_from(pixels.width).ok()?;
    picture.height = i32::try_from(pixels.height).ok()?;
    picture.use_argb = i32::from(mode == Mode::Lossless);
    let stride = i32::try_from(pixels.step()).ok()?.checked_mul(picture.width)?;
    let mut written = Written::new();
    picture.writer = Some(WebPMemoryWrite);
    picture.custom_ptr = ptr::from_mut(&mut written.0).cast::<c_void>();
    // SAFETY: `pixels.is_whole()`, so `bytes` has `stride` times `height` bytes. The import copies them. `written`
    // outlives the encoder, which alone calls the writer. `WebPPictureFree` frees what the import and the encoder
    // allocated, and takes a picture that an import refused.
    let done = unsafe {
        let source = pixels.bytes.as_ptr();
        let imported = if pixels.alpha {
            WebPPictureImportRGBA(&raw mut picture, source, stride)
        } else {
            WebPPictureImportRGB(&raw mut picture, source, stride)
        };
        let done = imported != 0 && WebPEncode(&raw const config, &raw mut picture) != 0;
        WebPPictureFree(&raw mut picture);
        done
    };
    done.then(|| written.bytes())
}

fn config(mode: Mode, method: u8) -> Option<WebPConfig> {
    let mut config = WebPConfig::new().ok()?;
    config.method = i32::from(method.min(6));
    // One thread: the same bytes on every machine, and processor time that a limit can bound.
    config.thread_level = 0;
    match mode {
        Mode::Lossless => {
            config.lossless = 1;
            config.exact = 1;
            config.quality = LOSSLESS_EFFORT;
        }
        Mode::Lossy { quality } => config.quality = f32::from(quality.clamp(1, 100)),
    }
    Some(config)
}

/// The memory to which libwebp writes.
struct Written(WebPMemoryWriter);

impl Written {
    fn new() -> Self {
        let mut writer = WebPMemoryWriter { mem: ptr::null_mut(), size: 0, max_size: 0, pad: [0] };
        // SAFETY: the function writes the fields of a writer that is ours.
        unsafe { WebPMemoryWriterInit(&raw mut writer) };
        Self(writer)
    }

    fn bytes(&self) -> Vec<u8> {
        if self.0.mem.is_null() {
            return Vec::new();
        }
        // SAFETY: libwebp allocated `mem` and wrote `size` bytes of it.
        unsafe { slice::from_raw_parts(self.0.mem, self.0.size) }.to_vec()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // SAFETY: libwebp allocated what the writer holds, or it holds nothing.
        unsafe { WebPMemoryWriterClear(&raw mut self.0) };
    }
}
