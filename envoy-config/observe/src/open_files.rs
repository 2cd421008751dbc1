//! The open files of a child beside its limit. At the limit, Envoy accepts no connection and opens none.

use procfs::process::{LimitValue, Process};
use serde::Serialize;

/// The part of the limit, in percent, from which on the files are too many.
const MANY_PERCENT: u64 = 80;

/// The open files of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OpenFiles {
    /// Files, sockets and pipes that are open.
    pub open: u64,
    /// The most that the process may have open.
    pub limit: u64,
}

impl OpenFiles {
    /// Returns the files of process `pid`. None if it has ended, if this user may not see them, and without a limit.
    pub fn of(pid: u32) -> Option<Self> {
        let process = Process::new(i32::try_from(pid).ok()?).ok()?;
        let LimitValue::Value(limit) = process.limits().ok()?.max_open_files.soft_limit else { return None };
        Some(Self { open: u64::try_from(process.fd_count().ok()?).ok()?, limit })
    }

    /// Returns true if the process comes close to its limit.
    pub(crate) fn are_many(self) -> bool {
        self.open.saturating_mul(100) >= self.limit.saturating_mul(MANY_PERCENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_process_are_counted_beside_its_limit() {
        let before = OpenFiles::of(std::process::id()).unwrap();
        let held: Vec<_> = (0..40).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let after = OpenFiles::of(std::process::id()).unwrap();
        // Other tests of this process open and close files meanwhile.
        assert!(after.open >= 40 && after.limit == before.limit, "{before:?} {after:?}");
        drop(held);
        assert_eq!(OpenFiles::of(u32::MAX), None);
    }

    #[test]
    fn four_fifths_of_the_limit_are_many() {
        let are_many = |open| OpenFiles { open, limit: 1000 }.are_many();
        assert!(!are_many(799) && are_many(800) && are_many(1000));
    }
}
