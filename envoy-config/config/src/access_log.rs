//! `log`: the access log. The run decides the file behind `on`, so the destination in force is a type of its own.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// The group `log` of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The wished destination.
    pub access: LogWish,
    /// The time after its last line at which a rotated file is deleted.
    pub keep: Duration,
    /// The size at which a file is rotated before its day ends.
    pub size: Bytes,
    /// The form of clients' addresses.
    pub clients: LoggedClients,
    /// True if the bytes of each client and site are written down.
    pub who: bool,
}

/// The value of `log.access`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogWish {
    /// `off`
    Off,
    /// `on`: a file in the folder for logs that systemd gives, or in the state folder.
    On,
    /// `stderr`
    Stderr,
    /// An absolute path.
    File(PathBuf),
}

/// The form of clients' addresses in the access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedClients {
    /// `cut`: the first 24 bits of an address.
    Cut,
    /// `whole`
    Whole,
}

/// The destination of the access log that is in force. Each line is one JSON object.
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
