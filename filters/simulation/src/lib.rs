//! Both ends of a pair in one process, without a proxy.
//!
//! The shipped filters run as they are, down to the crates that Envoy's callbacks enter. This crate is their host, on a
//! clock of its own. The link delays, cuts and reorders. Ends restart, reload and lack abilities. Clients load private and
//! public pages, and another remote sends nonsense. The [`laws`](Broken) judge every response.
//!
//! A seed gives a set-up and a list of orders ([`draw`]). [`run`] follows them. The same seed gives the same run.
//!
//! | module | what |
//! |---|---|
//! | `vm` | one filter in one worker, and its host |
//! | `pair` | the modules of both ends |
//! | `exchange`, `passage` | a request on its way, and what Envoy does with it |
//! | `link`, `origin`, `browser` | the rest of the world |
//! | `orders`, `world` | what happens, and when |
//! | `laws` | what must hold |

mod browser;
mod exchange;
mod laws;
mod link;
mod orders;
mod origin;
mod pair;
mod passage;
mod vm;
mod world;

pub use laws::Broken;
pub use orders::{End, Order, SetUp, draw, shrink};
pub use world::{Done, run};
