//! The only code that makes proxy-wasm host calls: bytes in and out, typed errors, never a panic.
//!
//! The SDK's own wrappers panic on every unexpected status, and decode header values as UTF-8. A panic kills the
//! worker's VM with every page in flight. So filters take only the dispatcher and the traits from the SDK, and make
//! every host call through this crate. A call in the wrong phase returns a [`HostError`], and the filter continues.
//!
//! | module | host calls |
//! |---|---|
//! | [`headers`] | read and edit the header maps |
//! | [`body`] | read and replace what the proxy shows of a body |
//! | [`callout`] | requests of our own |
//! | [`clock`] | a clock that does not step |
//! | [`timer`] | the root context's ticks |
//! | [`context`] | acting on a stream that is held |
//! | [`shared`] | values that all workers see |
//! | [`random`] | keys and salts |
//! | [`reply`] | answer instead of the origin |
//! | [`metrics`] | counters |
//! | [`property`] | what the proxy knows of the stream |
//! | [`root`] | none: the root context, and how a filter is configured |
//! | [`log`] | log lines, and panics as critical ones |

pub mod body;
pub mod callout;
pub mod clock;
pub mod context;
mod error;
mod ffi;
pub mod headers;
pub mod log;
pub mod metrics;
pub mod property;
pub mod random;
pub mod reply;
pub mod root;
pub mod shared;
pub mod timer;

pub use error::HostError;
