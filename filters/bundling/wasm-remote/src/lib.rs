//! The bundling filter at the remote: the entry point of its module.
//!
//! The ground finds objects in pages and compresses. Without that code the module has a quarter of the bytes. Envoy holds
//! several copies of a module: its bytes, machine code, and a form from which workers load it.

filter_host::entry_point!(bundling_streams::Remote);
