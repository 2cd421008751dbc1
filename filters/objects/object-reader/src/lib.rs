//! The reader of the store in Envoy. It serves small fresh responses from the files of `longhaul-objects`, so that a hit needs
//! no socket. All other requests pass, to the program or past it. Only native programs can have it: it reads files.
//!
//! | module | does |
//! |---|---|
//! | `root` | configuration |
//! | `stream` | requests and responses |
//! | `worker` | state that all streams of a worker share |
//! | `shelf` | the look into the store, which all workers share |
//! | `glance` | the outcomes |
//! | `counters` | metrics |

mod counters;
mod glance;
mod root;
mod shelf;
mod stream;
mod worker;

pub use glance::Glance;
pub use worker::Worker as ObjectReader;
