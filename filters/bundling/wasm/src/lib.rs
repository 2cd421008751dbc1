//! The bundling filter at the ground: the entry point of its module.

/// The module's entry point. The SDK's macro exports it without documentation.
#[allow(missing_docs)]
mod entry {
    proxy_wasm::main! {{ filter_host::root::register::<bundling_streams::Ground>() }}
}
