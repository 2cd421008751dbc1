//! Decides which images may be replaced by a smaller variant, before anything is decoded, and names the variant.
//!
//! | module | question |
//! |---|---|
//! | [`left`] | Why is an image left as its origin sent it? |
//! | [`request`] | Does this client accept a variant? |
//! | [`response`] | May this response be replaced, and which headers does the variant have? |
//! | [`header`] | What do the first bytes of an image say? |
//! | [`tag`] | Which entity tag has a variant? |
//! | [`config`] | How is the program `longhaul-images` configured? |
//! | [`key`] | Under which path does the cache store a variant? |
//!
//! Laws, held by tests: the origin's path and tag come back from the variant's ones. A path or tag that is no variant's
//! stays as it is. No input makes [`header::read`] panic.
//!
//! The crate is pure, and knows neither pixels nor files. It builds for wasm, too.

pub mod config;
pub mod header;
pub mod key;
pub mod left;
pub mod request;
pub mod response;
pub mod tag;

pub use config::Config;
pub use left::Left;
