//! The name-budget filter: callbacks of a host that call `name_budget`, and nothing else.
//!
//! | module | callbacks |
//! |---|---|
//! | `root` | configuration |
//! | `stream` | requests |
//! | `worker` | state that all streams of a worker share |

mod root;
mod stream;
mod worker;

pub use worker::Worker as NameBudget;
