//! Responses in files.
