//! The rules by which a shared cache stores and reuses responses: RFC 9111, RFC 5861, and the conditions and ranges of RFC 9110.
//!
//! The crate is pure. It takes header lists ([`http_semantics::Fields`]) and the time, and returns values. The clock comes
//! in as `now_s`, in seconds since 1970. `:method`, `:scheme`, `:authority` and `:path` of a request and `:status` of a
//! response count as fields.
//!
//! | question | answer |
//! |---|---|
//! | May this response be stored, and how long is it fresh? | [`storable`] |
//! | May this request have the stored response? | [`Life::allows`] |
//! | Which of the stored responses of a URL fits a request? | [`variant`] |
//! | Has the client the stored response already? | [`conditions`] |
//! | Does a field of the request choose a response that the key would not tell apart? | [`plain`] |
//! | Which bytes does the request ask for? | [`ranges`], [`multipart`] |
//! | Which parts of an object may be stored, and which are asked for? | [`slices`] |
//! | What is the response then? | [`mod@reply`] |
//! | How did the request end? | [`Outcome`] |
//! | Do several hosts serve the same objects? | [`groups`] |
//! | Were the responses for a URL not stored lately? | [`Private`] |
//! | What becomes of a stored response after a 304? | [`update`] |
//!
//! The rule about credentials and private responses is not here. It is [`http_semantics::shareable()`], which bundling uses
//! too.

pub mod conditions;
mod directives;
pub mod groups;
mod life;
mod lists;
pub mod multipart;
mod outcome;
mod past;
pub mod plain;
mod private;
pub mod ranges;
pub mod reply;
mod reuse;
pub mod slices;
mod storing;
mod tags;
pub mod update;
pub mod validation;
pub mod variant;

pub use directives::Directives;
pub use life::Life;
pub use outcome::Outcome;
pub use past::{Past, PastFor};
pub use private::Private;
pub use reuse::{CLOCK_TOLERANCE_S, Use};
pub use storing::{MOST_HEURISTIC_S, storable};
