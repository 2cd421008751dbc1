//! Compresses a list of header fields into one compact field, and restores it. A message may refer to exchanges that
//! the peer has acknowledged.
//!
//! The crate is pure and does no I/O.
mod block;
mod bulk;
mod coder;
mod counts;
mod date;
mod dictionary;
mod digits;
mod error;
mod exchange;
mod ground;
mod ground_end;
mod hash;
pub mod limits;
mod message;
mod peer;
mod policy;
mod range;
mod remote;
mod remote_end;
mod scene;
mod session;
mod spell;
mod text;
pub mod training;
mod treatment;
mod value;
mod walk;

pub use block::Block;
pub use counts::{Count, Counts};
pub use dictionary::Dictionary;
pub use error::{DecodeError, Unpackable};
pub use exchange::{Exchange, Side, View};
pub use ground::{Answering, Ground};
pub use ground_end::{GroundEnd, GroundStream};
pub use http_semantics::FieldList;
pub use message::{FORMAT, Refusal, hello, is_hello};
pub use peer::{OFFER_INTERVAL, Turn};
pub use policy::is_hop_by_hop;
pub use remote::{Pending, Remote};
pub use remote_end::{KEPT_BODY_BYTES, RemoteEnd, RemoteRequest, RemoteStream, is_of_a_client};
pub use treatment::{FIELD, RETRY, Treatment};
