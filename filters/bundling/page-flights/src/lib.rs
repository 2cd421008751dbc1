//! Objects of a page sent over a link before they are asked for: pure, no I/O, no clock.
//!
//! The far end reads a page as it streams by, fetches its objects and sends them; the near end keeps them and answers the
//! browser. All of one page is a *flight*. The near end opens it by a header on the page's request, and gives it *slots*:
//! small requests over the same connection that the far end holds until it has something, and then answers with a
//! *parcel*. So nothing of it is on the page's own response, and no byte of the page waits for an object.
//!
//! | module | job |
//! |---|---|
//! | `config`, `link` | what an operator says, and what follows from the link's two numbers |
//! | `fields` | header lists |
//! | `request` | which requests open a flight, and which may be answered from one |
//! | `object` | which objects any client may have, and how they are packed for the way |
//! | `digest` | names of URLs and objects |
//! | `wire`, `frames` | parcels as bytes; `README.md` has the format |
//! | `report` | what the near end says of a flight afterwards, for the page's next visitors |
//! | `finder`, `faces`, `selectors` | objects of a page and of its sheets, by the code that moves URLs; which of them a browser requests |
//! | `ground` | the far end |
//! | `remote` | the near end |
//! | `shelf`, `log` | what all workers of the near end know together, on a [`shared_board`] |
//! | `counts` | what the ends count for operators |

pub mod config;
pub mod counts;
mod digest;
mod faces;
mod fields;
mod finder;
mod frames;
pub mod ground;
mod limits;
mod link;
mod log;
mod object;
pub mod remote;
mod report;
mod request;
mod selectors;
mod shelf;
#[cfg(test)]
mod tests;
mod wire;

use shared_board::Board;
use std::time::Duration;

pub use config::{Config, ConfigError, Role};
pub use counts::{Count, Counts};
pub use fields::FieldList;
pub use ground::GroundEnd;
pub use remote::RemoteEnd;

/// The header that opens a flight, on a page's request: `ID;STORE;CLIENT`, see `README.md`.
pub const FLIGHT_FIELD: &str = "x-longhaul-flight";
/// The name slots are sent to. No client's request with it gets past the near end.
pub const SLOT_AUTHORITY: &str = "bundle.pair.invalid";

/// An end of the link, as whoever drives it sees it: it says what is to be done, and is told what became of it.
pub trait End {
    /// Time has passed: deadlines, and what other workers have put on the board.
    fn tick(&mut self, board: &dyn Board, now_ms: u64);
    /// A request of ours has ended; `call` is its [`Call::id`].
    fn answered(&mut self, board: &dyn Board, call: u64, answer: &Answer<'_>, now_ms: u64);
    /// A stream is over, whole or not; nothing is done for it any more.
    fn gone(&mut self, stream: u32);
    /// Requests to send, from a context that outlives every stream.
    fn take_calls(&mut self) -> Vec<Call>;
    /// Streams that wait no more.
    fn take_releases(&mut self) -> Vec<(u32, Release)>;
    /// How soon [`End::tick`] has something to do; none: not before something else happens.
    fn next_tick(&self) -> Option<Duration>;
    /// What happened since it was last asked.
    fn counts(&mut self) -> &mut Counts;
}

/// A response of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers besides the status.
    pub fields: FieldList,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, fields: FieldList::new(), body: Vec::new() }
    }
}

/// What becomes of a stream that was held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// It is answered.
    Answer(Reply),
    /// The request goes on as if it had not been held.
    GoOn,
    /// What waits of the response goes on.
    GoOnDown,
}

/// A request of our own that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Our name for it, which comes back with its answer.
    pub id: u64,
    /// Header fields, pseudo-headers first.
    pub fields: Vec<(&'static str, String)>,
    /// When it has failed, in milliseconds.
    pub timeout_ms: u64,
}

/// How a request of ours ended.
#[derive(Debug)]
pub enum Answer<'a> {
    /// With an answer: its headers, `:status` among them, and its body.
    Came(&'a [(&'a [u8], &'a [u8])], &'a [u8]),
    /// With none.
    Failed,
}
