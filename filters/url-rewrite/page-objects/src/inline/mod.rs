//! Puts small objects into the page itself. Each spares the browser a request, and with it up to a round trip of the slow
//! link.
//!
//! The bytes were prefetched for earlier visitors of the same page. An object is put in only where the page means the same
//! with it. In doubt, the browser requests it as before.
//!
//! | module | job |
//! |---|---|
//! | `store` | the objects of a worker, and facts about their use: bounded |
//! | `inliner` | the decisions about the objects of one page |
//! | `content` | kinds of objects: picture, style sheet, script |
//! | `picture` | pictures as `data:` URLs |
//! | `text` | style sheets and scripts as the text of an element |
//! | `element` | the tags that such an element can replace |
//! | `visits` | marks of visitors that had a page of the site before: bounded |
//! | `sheet` | the URLs of a style sheet, rewritten so that they mean the same in the page |
//! | `reason` | the reasons against an object |

mod content;
mod element;
mod inliner;
mod picture;
mod reason;
mod sheet;
mod store;
mod text;
mod visits;

pub use inliner::Inliner;
pub use reason::{NotInlined, Refusals};
pub use store::{ObjectStore, Reservation};
pub use visits::Visitor;

/// Every bound of inlining that no link decides, by name.
mod limits {
    /// Objects whose use in pages is remembered in one worker.
    pub(super) const REMEMBERED: usize = 8_192;
    /// Bytes of the objects in the store of one worker.
    pub(super) const STORE_BYTES: usize = 8 << 20;
    /// The lifetime of the fact that pages use an object more than once, in milliseconds.
    pub(super) const BELIEVED_MS: u64 = 3_600_000;
    /// Boxes of marks of visitors, and marks in one box. A mark has 12 bytes, so all have 1.5 MiB in the whole proxy.
    pub(super) const BOXES: u64 = 2_048;
    pub(super) const MARKS_A_BOX: usize = 64;
    /// The lifetime of a mark in hours: a day.
    pub(super) const FORGOTTEN_H: u32 = 24;
}
