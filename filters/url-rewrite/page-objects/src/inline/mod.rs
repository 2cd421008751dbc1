//! Putting small objects into the page itself, so that the browser need not ask for them: a round trip of the slow link
//! each, or a share of one.
//!
//! The bytes come from what was prefetched for earlier visitors of the same page. An object is put in only where the page
//! means the same with it; in doubt, the browser asks for it as ever.
//!
//! | module | job |
//! |---|---|
//! | `store` | the objects a worker has at hand, and what it learned of their use: bounded |
//! | `inliner` | one page: which of its objects are put in, and why others are not |
//! | `content` | what an object is: a picture, a sheet, a script |
//! | `picture` | pictures as `data:` URLs |
//! | `text` | sheets and scripts as the text of an element |
//! | `element` | which tags such an element can stand for |
//! | `visits` | who has had a page of the site before: bounded |
//! | `sheet` | a sheet's URLs, so that they mean the same in the page |
//! | `reason` | why an object was not put in |

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
    /// Bytes of the objects that one worker has at hand.
    pub(super) const STORE_BYTES: usize = 8 << 20;
    /// How long it is believed that an object is used more than once.
    pub(super) const BELIEVED_MS: u64 = 3_600_000;
    /// Boxes of marks of visitors, and marks in one: of each 12 bytes, a megabyte and a half in the whole proxy.
    pub(super) const BOXES: u64 = 2_048;
    pub(super) const MARKS_A_BOX: usize = 64;
    /// For how long a visitor of a site is remembered, in hours: a day.
    pub(super) const FORGOTTEN_H: u32 = 24;
}
