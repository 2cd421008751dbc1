//! Every bound in one place, each with its reason. Both ends apply them, so they are part of the wire format of version 1.

/// Header fields in one block, cookies counted by crumb. Envoy refuses more than 100 by default; crumbs need room above.
pub const FIELDS: usize = 512;

/// Bytes of names and values in one block, so that a message of a few bytes cannot be told to copy without end.
/// Envoy's own default for a whole header block is 60 KiB.
pub const BLOCK_BYTES: usize = 96 * 1024;

/// Bytes of one packed field. A block that packs to more is sent plain.
pub const MESSAGE_BYTES: usize = 64 * 1024;

/// Bytes in one block that may be spelt out under the model, which costs a quarter of a microsecond for each of them;
/// what is longer goes to Brotli, so that a large block cannot hold up a worker.
pub const MODELLED_BYTES: usize = 4 * 1024;

/// From this length on a literal goes to Brotli, which is then both smaller and much faster than the model.
pub const BULK_BYTES: usize = 384;

/// Completed exchanges that a message may refer to. Measured on real traces: 16 -> 64 saves a tenth, 64 -> 256 a hundredth.
pub const VIEW_EXCHANGES: usize = 64;

/// Bytes of header blocks in one view; what is older is forgotten first. Bounds what a client costs in memory.
pub const VIEW_BYTES: usize = 64 * 1024;

/// An exchange with more bytes of headers than this is never remembered: it would push out everything else.
pub const EXCHANGE_BYTES: usize = 16 * 1024;

/// How far back a block looks for one like itself.
pub const BASES: usize = 32;

/// Distinct earlier values of a field that a message may point at.
pub const RECENT_VALUES: usize = 16;

/// Complete exchanges that a ground keeps for a client until the remote says to put them into a view.
pub const PENDING: usize = 64;

/// An exchange this far behind the newest one is not put into a view any more, lest the ground has given it up. Less
/// than [`PENDING`], because exchanges complete out of order.
pub const LATEST_PENDING: u64 = 48;

/// Bytes of the same. Twice a view, because both ends complete exchanges in an order of their own; what the remote
/// announces is a view at most.
pub const PENDING_BYTES: usize = 2 * VIEW_BYTES;
