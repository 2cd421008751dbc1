//! The url-rewrite filter: proxy-wasm callbacks handed to the pure crates, nothing else.
