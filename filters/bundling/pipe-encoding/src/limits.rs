//! All bounds, by name.

/// The most bytes that one call may decompress to. A frame of HTTP/2 has 16 KiB, so this is 2560:1. gzip never exceeds
/// 1032:1.
pub const BYTES_AT_ONCE: usize = 40 << 20;
/// A worker that holds more bytes of windows than this requests no more br. Responses to earlier requests may still
/// come.
pub const MANY_WINDOW_BYTES: usize = 64 << 20;
/// The most bytes of windows that one worker holds. The proxy's sandbox has 1 GiB.
pub const MOST_WINDOW_BYTES: usize = 256 << 20;
