//! Every bound, with its reason. Both ends apply them, so they are part of version 1 of the wire format.

/// Header fields in one block; each cookie crumb counts as one. Envoy refuses more than 100 fields by default, and
/// crumbs need more room.
pub const FIELDS: usize = 512;

/// Bytes of names and values in one block. It stops a message of a few bytes from copying without end. Envoy's default
/// limit for a whole header block is 60 KiB.
pub const BLOCK_BYTES: usize = 96 * 1024;

/// Bytes of one compressed field. A block whose compressed field is longer travels plain.
pub const MESSAGE_BYTES: usize = 64 * 1024;

/// Bytes in one block that may be spelt under the model, at a quarter of a microsecond each. Longer text goes to Brotli
/// or uncompressed, so that a large block cannot hold up a worker.
pub const MODELLED_BYTES: usize = 4 * 1024;

/// Values of this many bytes or more go to Brotli, which is then both smaller and much faster than the model. Fields in
/// which repetition may leak a secret are the exception (`Form::repeats_safely`).
pub const BULK_BYTES: usize = 384;

/// Completed exchanges that a message may refer to. Measured on real traces, 64 instead of 16 save a tenth, and 256
/// instead of 64 save a hundredth.
pub const VIEW_EXCHANGES: usize = 64;

/// Bytes of header blocks in one view; the oldest exchanges leave first. It bounds the memory for one client.
pub const VIEW_BYTES: usize = 64 * 1024;

/// Bytes of headers in one exchange. A larger exchange is not remembered, because it would push out all others.
pub const EXCHANGE_BYTES: usize = 16 * 1024;

/// Number of the latest exchanges that are candidates for the base of a block.
pub const BASES: usize = 32;

/// Distinct earlier values of a field that a message may refer to.
pub const RECENT_VALUES: usize = 16;

/// Complete exchanges that a ground keeps for one client until the remote puts them into a view.
pub const PENDING: usize = 64;

/// Distance from the newest exchange, in exchanges, beyond which an exchange no longer enters a view, because the
/// ground may have dropped it. Less than [`PENDING`], because exchanges complete out of order.
pub const LATEST_PENDING: u64 = 48;

/// Bytes of the [`PENDING`] exchanges. This is twice a view, because each end completes exchanges in its own order. The
/// remote announces at most one view.
pub const PENDING_BYTES: usize = 2 * VIEW_BYTES;
