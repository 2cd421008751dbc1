//! Checks that Envoy can watch its files. Each watched file takes one of the kernel's inotify instances, and a user has
//! a fixed number for all programs together. If none is left, Envoy aborts with a message that names another setting.

use std::io;

use rustix::fs::inotify;
use rustix::io::Errno;

/// Checks that `wanted` instances are free now. The error gives the number of free ones and the remedy. Other programs
/// may take them before Envoy does.
pub(super) fn are_to_be_had(wanted: usize) -> io::Result<()> {
    let mut held = Vec::with_capacity(wanted);
    while held.len() < wanted {
        match inotify::init(inotify::CreateFlags::CLOEXEC) {
            Ok(instance) => held.push(instance),
            Err(Errno::MFILE) => return Err(exhausted(wanted, held.len())),
            // Envoy will report this error better.
            Err(_) => break,
        }
    }
    Ok(())
}

fn exhausted(wanted: usize, left: usize) -> io::Error {
    io::Error::other(format!(
        "{wanted} inotify instances are needed, one for each file that is watched, and the kernel gives this user {left} \
         more: raise fs.inotify.max_user_instances (sysctl -w fs.inotify.max_user_instances=1024, and the same in \
         /etc/sysctl.d), or stop other programs of this user that watch files"
    ))
}
