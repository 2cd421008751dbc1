//! Both ends of a pair in one process, without a proxy.
//!
//! The shipped filters run as they are. This crate is their host, on a clock of its own, in the place of Envoy. The link
//! delays, cuts and reorders. The ends restart and reload, and lack abilities. Clients have private and public pages.
//! Another remote sends nonsense. [`Broken`] lists the laws that every run keeps.
//!
//! A seed gives a set-up and a list of orders ([`draw`]). [`run`] follows them. The same seed gives the same run.
//!
//! | module | what |
//! |---|---|
//! | `vm` | one filter in one worker, and its host |
//! | `place`, `pair` | the modules of both ends |
//! | `board` | the memory that the workers of an end share |
//! | `exchange`, `piece`, `passage` | a request on its way, and what Envoy does with it |
//! | `cache` | the cache of the remote |
//! | `link`, `origin`, `browser` | the rest of the world |
//! | `orders`, `world` | what happens, and when |
//! | `laws` | what must hold |

mod board;
mod browser;
mod cache;
mod exchange;
mod fields;
mod laws;
mod link;
mod orders;
mod origin;
mod pair;
mod passage;
mod piece;
mod place;
mod vm;
mod world;

pub use board::Most;
pub use laws::Broken;
pub use orders::{End, Order, SetUp, draw};
pub use world::{Done, run};
