//! The header-compression filter: the entry point of its module.

filter_host::entry_point!(header_compression_streams::HeaderCompression);
