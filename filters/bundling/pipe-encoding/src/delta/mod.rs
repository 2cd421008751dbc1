//! A page as a difference from another page of its site, the *base*, which both ends have.
//!
//! A delta is a stream of br (RFC 7932) that may refer to the base as to the bytes before its own, and then the name of
//! the page. A page's name is the first 24 bytes of its SHA-256. Laws, each with a test:
//! - The receiver gets the sender's page, byte for byte and for any split, or an error. A wrong base never gives a wrong
//!   page.
//! - Every flushed piece of a page is readable when it arrives.
//! - Only a response that any client may have becomes a base, or is encoded against one.
//! - A base that the remote has lost costs one more request.
//! - The bases of one end are bounded, and so are the encoders of one worker.
//!
//! | module | job |
//! |---|---|
//! | `bases` | the pages that one end has, by site |
//! | `fields` | the header fields |
//! | `policy` | which pages become a base, and which are sent as a delta |
//! | `kept` | a page on its way to become a base |
//! | `stream` | both coders |
//! | `incoming`, `outgoing` | one page at the remote, and at the ground |

mod bases;
mod fields;
mod incoming;
mod kept;
mod outgoing;
mod policy;
mod stream;
#[cfg(test)]
mod tests;

pub use bases::Name;
pub(crate) use fields::BASE_FIELD;
pub use incoming::RequestFields;
pub(crate) use incoming::{Form, Incoming};
pub use outgoing::Outgoing;
pub use policy::{Left, verdict};
pub use stream::{Receiver, Sender};

/// All bounds.
pub mod limits {
    /// Pages of one site.
    pub const PAGES: usize = 4;
    /// The largest page that becomes a base, in bytes.
    pub const PAGE_BYTES: usize = 256 << 10;
    /// All bases of one end, in bytes.
    pub const BASES_BYTES: u64 = 8 << 20;
    /// All pages of one end.
    pub const SLOTS: u8 = 192;
}
