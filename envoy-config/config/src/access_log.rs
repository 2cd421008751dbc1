//! The destination of the access log, which is an argument of the command and no key of the file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The destination of the access log. Each line is one JSON object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessLog {
    /// No access log.
    #[default]
    Off,
    /// stderr, together with Envoy's own messages.
    Stderr,
    /// A file, which Envoy reopens on SIGUSR1.
    File(PathBuf),
}
