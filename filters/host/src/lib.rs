//! The only code that calls the host: bytes in and out, typed errors, never a panic.
//!
//! There are two back ends with the same calls. `wasm` is a module in a proxy-wasm host; only it has unsafe code. `native`
//! passes the calls to a [`Host`] of the program. Nothing above this crate knows which one it has.
//!
//! The SDK's own wrappers panic on every unexpected status, and decode header values as UTF-8. A panic kills the
//! worker's VM with every page in flight. So `wasm` takes only the dispatcher and its traits from the SDK, and filters make
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
//! | `tables` | none: the tables of counters in the documents, for tests |
//! | [`property`] | what the proxy knows of the stream |
//! | [`root`] | none: the filter of a worker, and how it is configured |
//! | [`stream`] | none: the callbacks of a stream |
//! | [`log`] | log lines, and panics as critical ones |

pub mod body;
pub mod callout;
pub mod clock;
pub mod context;
mod drawn;
mod error;
pub mod headers;
mod kinds;
pub mod log;
pub mod metrics;
#[cfg(not(target_arch = "wasm32"))]
mod native;
mod pairs;
mod pieces;
pub mod property;
pub mod random;
pub mod reply;
pub mod root;
pub mod shared;
pub mod stream;
#[cfg(not(target_arch = "wasm32"))]
pub mod tables;
pub mod timer;
#[cfg(target_arch = "wasm32")]
mod wasm;

pub use error::HostError;
pub use kinds::Half;
#[cfg(not(target_arch = "wasm32"))]
use native::calls;
#[cfg(not(target_arch = "wasm32"))]
pub use native::{Host, Slice, serve};
#[cfg(target_arch = "wasm32")]
use wasm::calls;
#[cfg(target_arch = "wasm32")]
pub use wasm::register;

/// The SDK, for [`entry_point`].
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub use proxy_wasm;
