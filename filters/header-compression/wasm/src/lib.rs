//! The header-compression filter: proxy-wasm callbacks handed to header-codec, nothing else.
