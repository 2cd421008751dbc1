//! All bounds, by name.

/// The most bytes that one call may decompress to. A frame of HTTP/2 has 16 KiB, so this is 2560:1. gzip never exceeds
/// 1032:1.
pub const BYTES_AT_ONCE: usize = 40 << 20;
/// A worker that holds more bytes of windows than this requests no more br. Responses to earlier requests may still
/// come.
pub const MANY_WINDOW_BYTES: usize = 64 << 20;
/// The most bytes of windows that one worker holds. The proxy's sandbox has 1 GiB.
pub const MOST_WINDOW_BYTES: usize = 256 << 20;
/// The bytes that the encoder of one page counts as: its window, twice, and its tables.
pub const SENDER_BYTES: usize = 4 << 20;
/// The time for a page that is requested again because its base was lost, in milliseconds.
pub const AGAIN_MS: u64 = 120_000;
