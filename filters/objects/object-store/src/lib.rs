//! Responses of an HTTP cache in files.
//!
//! A response lies in a file that its 128-bit hash names. The file system is the index: another process finds what this
//! one stored at once, and a restart finds everything. The [`Store`] fills the files, bounds their bytes on disk, and keeps
//! small responses in memory. A process that only reads uses [`Onlooker`].
//!
//! The laws of the store:
//! - **A lookup never gives wrong data.** A file is renamed into its place after its data were written. A checksum covers
//!   its head, and the head states the length of the body. A file that does not fit together is a miss.
//! - **A block of a sliced body never gives wrong data.** Its checksum is written after it, and compared at its first use.
//! - **The bytes on disk are bounded**, with those of files in the making and of removed files that readers still hold.
//!   After a start, the bound holds once the scan of the folder is over.
//! - **A broken disk costs the cache only.** A write that fails leaves nothing behind, and the store refuses new ones for
//!   [`PAUSE`].
//! - **Calls wait for the disk**, except those of an [`Onlooker`] and [`Reader::read_now`]. So a program makes them in threads.

mod checks;
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
mod onlooker;
mod read;
mod reader;
mod refresh;
mod slice_writer;
mod slices;
mod store;
mod system;
mod upkeep;

pub use files::Folder;
pub use fill::Fill;
pub use head::{Head, HeadError, Kind, MAX_BODY_AT, MAX_FIELDS, MAX_HEAD, Placed, decode, encode};
pub use health::PAUSE;
pub use key::{Key, Name};
pub use object::{Body, Found, MAX_MEMORY_BODY, Marker, Object};
pub use onlooker::{Onlooker, Seen};
pub use reader::Reader;
pub use slice_writer::SliceWriter;
pub use slices::Slices;
pub use store::{Counts, Options, Store};
pub use system::now_s;
pub use upkeep::{Listed, Verified};
