//! The bundling filter at the ground: the entry point of its module.

filter_host::entry_point!(bundling_streams::Ground);
