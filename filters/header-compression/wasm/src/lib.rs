//! The header-compression filter: proxy-wasm callbacks handed to `header_codec`, nothing else.
//!
//! One callback is one call into the codec's ends, whose answer is a value (`Edit`) that is applied here. There is no
//! `if` about headers in this crate; `filters/README.md` says why.
//!
//! | module | callbacks |
//! |---|---|
//! | `root` | configuration |
//! | `shared` | what all streams of a worker share |
//! | `stream` | requests and responses |
//! | `counters` | what Prometheus sees |

mod counters;
mod root;
mod shared;
mod stream;

/// The module's entry point. The SDK's macro exports it without a word of documentation.
#[allow(missing_docs)]
mod entry {
    proxy_wasm::main! {{ filter_host::root::register::<crate::root::Worker>() }}
}
