//! The places of filters on the way of a request, and the name of a module in one of them.

use crate::orders::End;

/// The filters in the order of a request.
pub(crate) const FILTERS: usize = 4;
/// The place of bundling at the remote.
pub(crate) const REMOTE_BUNDLING: usize = 0;
/// The place of header compression at the remote, the first behind the router.
pub(crate) const REMOTE_HEADERS: usize = 1;
/// The place of header compression at the ground, the first behind the link.
pub(crate) const GROUND_HEADERS: usize = 2;
/// The place of bundling at the ground.
pub(crate) const GROUND_BUNDLING: usize = 3;

/// Names a module: the place of its filter, its worker, and how often the worker has loaded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VmKey {
    pub(crate) place: usize,
    pub(crate) worker: u8,
    pub(crate) generation: u32,
}

impl VmKey {
    /// The end that it is at.
    pub(crate) fn end(self) -> End {
        if self.place < GROUND_HEADERS { End::Remote } else { End::Ground }
    }
}
