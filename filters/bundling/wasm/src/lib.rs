//! The bundling filter: proxy-wasm callbacks handed to `page_flights`, nothing else.
//!
//! One callback is one call into an end, whose answer is a value that is applied here. There is no `if` about URLs, headers
//! or bytes in this crate; `filters/README.md` says why.
//!
//! | module | callbacks |
//! |---|---|
//! | `root` | configuration, ticks, answers to requests of our own |
//! | `remote`, `ground` | requests and responses at either end |
//! | `worker` | what all streams of a worker share; doing what an end says |
//! | `counters` | what Prometheus sees |

mod counters;
mod ground;
mod remote;
mod root;
mod worker;

/// The module's entry point. The SDK's macro exports it without a word of documentation.
#[allow(missing_docs)]
mod entry {
    proxy_wasm::main! {{ filter_host::root::register::<crate::root::End>() }}
}
