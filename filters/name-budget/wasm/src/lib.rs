//! The name-budget filter: proxy-wasm callbacks handed to `name_budget`, nothing else.
//!
//! | module | callbacks |
//! |---|---|
//! | `root` | configuration |
//! | `stream` | requests |
//! | `worker` | what all streams of a worker share |

mod root;
mod stream;
mod worker;

/// The module's entry point. The SDK's macro exports it without a word of documentation.
#[allow(missing_docs)]
mod entry {
    proxy_wasm::main! {{ filter_host::root::register::<crate::worker::Worker>() }}
}
