//! The cache-admission filter: callbacks of a host that call `cache_admission`, and nothing else.
//!
//! | module | callbacks |
//! |---|---|
//! | `root` | configuration |
//! | `fetch`, `origin` | requests and responses at the two positions |
//! | `worker` | state that all streams of a worker share |
//! | `counters` | metrics |

mod counters;
mod fetch;
mod origin;
mod root;
mod worker;

pub use worker::Worker as CacheAdmission;
