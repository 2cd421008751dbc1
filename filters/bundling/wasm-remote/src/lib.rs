//! The bundling filter at the remote: the entry point of its module.
//!
//! The ground finds objects in pages and compresses. Without that code the module has a quarter of the bytes. Envoy holds
//! several copies of a module: its bytes, machine code, and a form from which workers load it.

/// The module's entry point. The SDK's macro exports it without documentation.
#[allow(missing_docs)]
mod entry {
    proxy_wasm::main! {{ filter_host::root::register::<bundling_streams::Remote>() }}
}
