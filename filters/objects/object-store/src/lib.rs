//! Responses of an HTTP cache in files.
//!
//! A response lies in a file that its 128-bit hash names. The file system is the index: another process finds what this
//! one stored at once, and a restart finds everything. The [`Store`] fills the files, bounds their bytes on disk, and keeps
//! small responses in memory. A process that only reads uses [`Folder::peek`].
//!
//! The laws of the store:
//! - **A lookup never gives wrong data.** A file is renamed into its place after its data were written. A checksum covers
//!   its head, and the head states the length of the body. A file that does not fit together is a miss.
//! - **The bytes on disk are bounded**, with those of files in the making and of removed files that readers still hold.
//!   After a start, the bound holds once the scan of the folder is over.
//! - **A broken disk costs the cache only.** A write that fails leaves nothing behind, and the store refuses new ones for
//!   [`PAUSE`].
//! - **Calls wait for the disk**, except [`read_now`] and [`Folder::peek`] with [`Wait::Never`]. So a program makes them in
//!   threads.

mod disk;
mod files;
mod fill;
mod head;
mod health;
mod hot;
mod index;
mod key;
mod ledger;
mod object;
mod read;
mod refresh;
mod store;
mod upkeep;

pub use files::{Folder, Peeked, Version};
pub use fill::Fill;
pub use head::{Head, HeadError, Kind, MAX_BODY_AT, MAX_FIELDS, MAX_HEAD, Placed, decode, encode};
pub use health::PAUSE;
pub use key::Key;
pub use object::{Body, Found, MAX_MEMORY_BODY, Marker, Object, Reader};
pub use read::{Wait, read_now};
pub use store::{Counts, Options, Store};
pub use upkeep::{Listed, Verified};
