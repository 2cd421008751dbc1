//! The url-rewrite filter: proxy-wasm callbacks handed to the pure crates, nothing else.
//!
//! One callback is one call into `url_rewriting` or `page_objects`, whose answer is a value (edits, a reply, bytes) that is applied here.
//! There is no `if` about URLs, headers or markup in this crate; `filters/README.md` says why.
//!
//! | module | callbacks |
//! |---|---|
//! | `root` | configuration |
//! | `shared` | what all streams of a configuration share |
//! | `stream` | requests and responses |
//! | `counters` | what Prometheus sees |
//! | `objects` | a page's objects: prefetched, and put into pages |
//! | `board` | what all workers remember of visitors |
//! | `account` | what the access log sees of a page |

mod account;
mod board;
mod counters;
mod objects;
mod root;
mod shared;
mod stream;

/// The module's entry point. The SDK's macro exports it without a word of documentation.
#[allow(missing_docs)]
mod entry {
    proxy_wasm::main! {{ filter_host::root::register::<crate::shared::Shared>() }}
}
