//! Putting small objects into the page itself, so that the browser need not ask for them: a round trip of the slow link
//! each, or a share of one.
//!
//! The bytes come from what was fetched ahead for earlier visitors of the same page. An object is put in only where the
//! page means the same with it; in doubt, the browser asks for it as ever.
//!
//! | module | job |
//! |---|---|
//! | `shelf` | the objects a worker has at hand, and what it learned of their use: bounded |
//! | `inliner` | one page: which of its objects are put in, and why others are not |
//! | `matter` | what an object is: a picture, a sheet, a script |
//! | `picture` | pictures as `data:` URLs |
//! | `text` | sheets and scripts as the text of an element |
//! | `form` | which tags such an element can stand for |
//! | `visits` | who has had a page of the site before: bounded |
//! | `sheet` | a sheet's URLs, so that they mean the same in the page |

mod form;
mod inliner;
mod matter;
mod picture;
mod sheet;
mod shelf;
mod text;
mod visits;

use serde::{Deserialize, Serialize};

use http_semantics::labels::labelled;

pub(crate) use form::{Form, Surroundings};
pub use inliner::Inliner;
pub(crate) use inliner::{Put, Standing};
pub use shelf::{Shelf, Spot};
pub use visits::Visitor;

/// What the link makes worth while, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The largest object that is put into a page, as its origin sent it, unpacked.
    pub object_bytes: usize,
    /// By how much a page may grow by what is put into it.
    pub page_bytes: usize,
}

/// Every bound of inlining that no link decides, by name.
mod limits {
    /// Objects whose use in pages is remembered in one worker.
    pub(super) const REMEMBERED: usize = 8_192;
    /// Bytes of the objects that one worker has at hand.
    pub(super) const SHELF_BYTES: usize = 8 << 20;
    /// How long it is believed that an object is used more than once.
    pub(super) const BELIEVED_MS: u64 = 3_600_000;
    /// Boxes of marks of visitors, and marks in one: of each 12 bytes, a megabyte and a half in the whole proxy.
    pub(super) const BOXES: u64 = 2_048;
    pub(super) const MARKS_A_BOX: usize = 64;
    /// For how long a visitor of a site is remembered, in hours: a day.
    pub(super) const FORGOTTEN_H: u32 = 24;
}

labelled! {
    /// Why an object that could have been put into the page was not.
    Kept {
        /// Page: its browser has been here (a cookie, a conditional request) and may have the object.
        Returning = "returning";
        /// Page: it was come to from another page of its site.
        Referred = "referred";
        /// Page: its visitor had another of its site within a day, and what belongs into the browser's cache goes there.
        Seen = "seen";
        /// Page: nothing of it was at hand when its headers left, so it kept its validators.
        NothingHeld = "nothing_held";
        /// The browser may not want it: lazy, one of several candidates, in a template or `noscript`.
        Uncertain = "uncertain";
        /// Fetched with CORS, which a `data:` URL is not.
        Cors = "cors";
        /// Its URL has a fragment, or characters that browsers write in another way.
        Spelling = "spelling";
        /// The page's policies allow none here.
        Csp = "csp";
        /// The page uses it more than once, so that one copy in the browser's cache is cheaper.
        Repeated = "repeated";
        /// Other pages use it too.
        Shared = "shared";
        /// A script below level full.
        Level = "level";
        /// Its tag says more than that the object is to be used here.
        Attributes = "attributes";
        /// Its tag stands where another element would mean something else: a sheet outside the head, a script near SVG.
        Place = "place";
        /// Its element has content of its own.
        Content = "content";
        /// Its text ends the element that would hold it, or looks for the place it came from.
        Text = "text";
        /// Its text and the page are, or may be, in different encodings.
        Charset = "charset";
        /// It is a sheet of another origin with fonts, which their server may give to that origin's sheets only.
        Fonts = "fonts";
        /// It is a sheet with a URL that cannot be written so that it means the same in the page.
        Unread = "unread";
        /// It is not at hand, or too large, or of a type that is not put into pages.
        NotHeld = "not_held";
        /// It was fetched for browsers that know other formats.
        Format = "format";
        /// It does not stay fresh for as long as the page does.
        Stale = "stale";
        /// The page has grown by all that the link makes worth while.
        PageLimit = "page_limit";
    }
}
