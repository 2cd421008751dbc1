//! Both ends of bundling: the objects of a page cross the link before browsers request them. Pure: no I/O, no clock.
//!
//! The ground reads a page as it streams by, fetches the page's objects and sends them. The remote keeps the objects
//! and serves them to browsers. All objects of one page form a *flight*. The remote opens the flight with a header of
//! the page's request. It also sends *slots*: small requests over the same connection. The ground holds a slot until it
//! has something to send. The response to the slot is a *parcel*. So the page's own response carries nothing of the
//! flight, and no byte of the page waits for an object.
//!
//! | module | job |
//! |---|---|
//! | `config`, `link` | the configuration, and the bounds that follow from the link's rates and round-trip time |
//! | `fields` | header lists |
//! | `request` | which requests open a flight, and which a flight can serve |
//! | `object` | which objects any client may receive, and how their headers are encoded |
//! | `digest` | names of URLs and objects |
//! | `wire`, `frames` | parcels as bytes; `filters/bundling/README.md` has the format |
//! | `report` | the remote's report on a flight, for the page's next visitors |
//! | `finder`, `faces`, `selectors` | objects that a page and its style sheets name, and which of them a browser requests |
//! | `hosts` | the hosts that a page names, for the resolver of the ground |
//! | `ground` | the end on the wired side |
//! | `remote` | the end beside the clients |
//! | `shelf`, `log` | what all workers of the remote share on a [`shared_board`] |
//! | `counts` | metrics of both ends |

pub mod config;
pub mod counts;
mod digest;
mod faces;
mod fields;
mod finder;
mod frames;
pub mod ground;
mod hosts;
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

use hex::FromHex as _;
use http_semantics::Reply;
use shared_board::Board;
use std::time::Duration;

pub use config::{Config, ConfigError, Role};
pub use counts::{Count, Counts};
pub use ground::GroundEnd;
pub use limits::{KNOWN_BYTES, STORES};
pub use object_config::{CACHES as CACHES_FIELD, VALID as VALID_FIELD};
pub use pipe_encoding::delta::limits::BASES_BYTES;
pub use remote::RemoteEnd;

/// The request header that opens a flight: `ID;STORE;CLIENT`. `filters/bundling/README.md` describes the format.
pub const FLIGHT_FIELD: &str = "x-longhaul-flight";
/// The response header of a parcel: for how many milliseconds the ground held the slot while it had all objects of the
/// parcel not yet. Below zero, the oldest object waited for the slot. The remote computes the age of the objects by it.
pub const HELD_FIELD: &str = "x-longhaul-held";
/// The request header for the resolver of the ground: the host of a page, then hosts that it names, separated by commas.
pub const HOSTS_FIELD: &str = "x-longhaul-hosts";
/// The authority of slots and reports. The remote lets no request of a client with this authority pass.
pub const SLOT_AUTHORITY: &str = "bundle.pair.invalid";

/// Reads the name of a remote in a field.
fn read_store(name: &str) -> Option<u64> {
    <[u8; 8]>::from_hex(name).ok().map(u64::from_le_bytes)
}

/// One end of the link. Its driver reports events to it, then takes the requests and releases that result.
pub trait End {
    /// Acts on deadlines, and on changes by other workers on the board.
    fn tick(&mut self, board: &dyn Board, now_ms: u64);
    /// Handles the end of a request that this end sent. `call` is its [`Call::id`].
    fn answered(&mut self, board: &dyn Board, call: u64, answer: &Answer<'_>, now_ms: u64);
    /// Forgets a stream that has ended, complete or not.
    fn gone(&mut self, stream: u32);
    /// Takes the requests to send. The driver must send them from a context that outlives every stream.
    fn take_calls(&mut self) -> Vec<Call>;
    /// Takes the streams to release.
    fn take_releases(&mut self) -> Vec<(u32, Release)>;
    /// Returns the time until [`End::tick`] has work. `None` means not before another event.
    fn next_tick(&self) -> Option<Duration>;
    /// Returns what happened since [`Counts::take`] was last called.
    fn counts(&mut self) -> &mut Counts;
}

/// The way in which a held stream goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// The request gets this response.
    Answer(Reply),
    /// The request goes on as if it had not been held.
    GoOn,
    /// The request goes on with this value of [`VALID_FIELD`].
    Valid(String),
    /// The part of the response that the proxy holds goes on.
    GoOnDown,
}

/// A request that an end wants to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Names the request in [`End::answered`].
    pub id: u64,
    /// The cluster that gets it.
    pub to: Callee,
    /// Header fields, pseudo-headers first.
    pub fields: Vec<(&'static str, String)>,
    /// Time until the request counts as failed, in milliseconds.
    pub timeout_ms: u64,
}

/// The cluster that a [`Call`] is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee {
    /// [`Config::cluster`].
    Own,
    /// [`Config::names`].
    Names,
}

/// The end of a request that an end sent.
#[derive(Debug)]
pub enum Answer<'a> {
    /// A response arrived: its headers, among them `:status`, and its body.
    Came(&'a [(&'a [u8], &'a [u8])], &'a [u8]),
    /// No response arrived.
    Failed,
}
