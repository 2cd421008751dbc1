//! The signals that end a program.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Returns a future that completes with SIGTERM or SIGINT.
///
/// # Errors
/// The signals cannot be caught.
pub fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    let (mut terminated, mut interrupted) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}
