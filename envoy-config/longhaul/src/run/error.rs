//! The reasons why a run could not start, or did not end in order.

use std::io;
use std::path::PathBuf;

use longhaul_config::Bytes;

use super::generation::GenerateError;
use super::locate::LocateError;
use super::ports::PortError;
use super::state::StateError;
use super::tree::WriteError;

/// The reason why a run could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// A program, the filter or the certificate authorities are missing.
    #[error(transparent)]
    Locate(#[from] LocateError),
    /// The state folder cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// Sockets that cannot be used, one on a line.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\nerror: "))]
    Ports(Vec<PortError>),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file could not be rendered.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The cache folder cannot be made.
    #[error("cannot use the folder {}, set by `cache.dir`: {error}", path.display())]
    CacheFolder {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The disk is smaller than the cache. Once it is full, Envoy aborts the responses that it caches.
    #[error(
        "`cache.size` is {size}, and the disk of {}, set by `cache.dir`, has {room} free. On a full disk, nothing more is cached. Write a smaller size, or another folder",
        path.display()
    )]
    CacheTooLarge {
        /// The cache folder.
        path: PathBuf,
        /// The size in the settings.
        size: Bytes,
        /// The bytes that are free or already belong to the cache.
        room: Bytes,
    },
    /// A program could not be started, or ended before it served.
    #[error("{0}")]
    Start(String),
    /// Signals or file watches are not available.
    #[error("cannot set up: {0}")]
    System(String),
    /// A second signal ended the drain or the stop.
    #[error("stopped at once")]
    Interrupted,
}
