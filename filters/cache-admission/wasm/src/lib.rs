//! The cache-admission filter: proxy-wasm callbacks that call `cache_admission`, and nothing else.
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

/// The module's entry point. The SDK's macro exports it without documentation.
#[allow(missing_docs)]
mod entry {
    proxy_wasm::main! {{ filter_host::root::register::<crate::worker::Worker>() }}
}
