//! Header lists to one compact field and back, with references to what the peer has acknowledged: pure, no I/O.
#![allow(missing_docs)]
mod block;
mod bulk;
mod coder;
mod date;
mod dictionary;
mod digits;
mod error;
mod exchange;
mod ground;
mod hash;
pub mod limits;
mod message;
mod policy;
mod range;
mod remote;
mod session;
mod site;
mod spell;
mod text;
pub mod training;
mod value;
mod walk;

pub use block::Block;
pub use dictionary::Dictionary;
pub use error::{DecodeError, Unpackable};
pub use exchange::{Exchange, Side, View};
pub use ground::{Answering, Ground};
pub use message::{FORMAT, Refusal, hello, is_hello};
pub use policy::is_hop_by_hop;
pub use remote::{Pending, Remote};
