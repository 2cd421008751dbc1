//! The shared memory of all generations of one Envoy.
//!
//! A generation sets a flag there while it starts. If it dies before it is ready, the flag remains. From then on every
//! other generation exits with "previous envoy process is still initializing".

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The size of a `pthread_mutex_t` in the C library.
const MUTEX: u64 = if cfg!(target_arch = "aarch64") { 48 } else { 40 };
/// The place of the flags in `SharedMemory` of Envoy 1.40 (`hot_restart_impl.h`), behind its size, its version and two
/// mutexes.
const FLAGS_AT: u64 = 16 + 2 * MUTEX;
const SIZE: u64 = FLAGS_AT + 8;
/// `HOT_RESTART_VERSION` there.
const VERSION: u64 = 11;

/// Returns the path of the memory of the generations that share `base_id`.
pub(super) fn path(base_id: u32) -> PathBuf {
    // Envoy multiplies the base ID by ten, to distinguish generations.
    PathBuf::from(format!("/dev/shm/envoy_shared_memory_{}", u64::from(base_id) * 10))
}

/// Returns true if a generation is starting, or died while it started. Returns false if the memory cannot be read.
pub(super) fn says_starting(base_id: u32) -> bool {
    let mut flags = [0; 8];
    let read = OpenOptions::new().read(true).open(path(base_id)).and_then(|it| it.read_exact_at(&mut flags, FLAGS_AT));
    read.is_ok() && flags != [0; 8]
}

/// Clears the flag of a generation that died while it started. Call it only while no generation starts.
///
/// # Errors
/// The memory does not exist, or differs from the layout of this version of Envoy.
pub(super) fn forget_dead_successor(base_id: u32) -> io::Result<()> {
    clear_flags(&path(base_id))
}

fn clear_flags(path: &Path) -> io::Result<()> {
    let memory = OpenOptions::new().read(true).write(true).open(path)?;
    let number = |at: u64| {
        let mut bytes = [0; 8];
        memory.read_exact_at(&mut bytes, at).map(|()| u64::from_ne_bytes(bytes))
    };
    if number(FLAGS_AT)? == 0 {
        return Ok(());
    }
    if (number(0)?, number(8)?) != (SIZE, VERSION) {
        return Err(io::Error::other(
            "the previous one died while it started, and this Envoy cannot be taken over from",
        ));
    }
    memory.write_all_at(&[0; 8], FLAGS_AT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(size: u64, version: u64, flags: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(SIZE).unwrap()];
        for (at, number) in [(0, size), (8, version), (FLAGS_AT, flags)] {
            let at = usize::try_from(at).unwrap();
            bytes[at..at + 8].copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn the_flag_of_a_dead_generation_is_cleared_and_memory_of_another_layout_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        for (before, after) in [
            (memory(SIZE, VERSION, 1), Some(memory(SIZE, VERSION, 0))),
            (memory(SIZE, VERSION, 0), Some(memory(SIZE, VERSION, 0))),
            (memory(SIZE, VERSION + 1, 1), None),
            (memory(SIZE + 8, VERSION, 1), None),
        ] {
            std::fs::write(&path, &before).unwrap();
            assert_eq!(clear_flags(&path).is_ok(), after.is_some());
            assert_eq!(std::fs::read(&path).unwrap(), after.unwrap_or(before));
        }
    }
}
