//! The only code that makes proxy-wasm host calls: bytes in and out, typed errors, never a panic.
