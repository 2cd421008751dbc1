//! The name-budget filter: proxy-wasm callbacks that call `name_budget`, and nothing else.
//!
//! | module | callbacks |
//! |---|---|
//! | `root` | configuration |
//! | `stream` | requests |
//! | `worker` | state that all streams of a worker share |

mod root;
mod stream;
mod worker;

/// The module's entry point. The SDK's macro exports it without documentation.
#[allow(missing_docs)]
mod entry {
    proxy_wasm::main! {{ filter_host::root::register::<crate::worker::Worker>() }}
}
