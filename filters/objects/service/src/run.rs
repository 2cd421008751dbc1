//! A run: bytes of a sliced object that one request to the origin brings, and its readers.

use std::ops::Range;

use object_rules::slices::{BLOCK, MOST_RUN};
use tokio::sync::watch;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The origin has not responded.
    Asking,
    /// The bytes before this one are in the file, and more follow.
    To(u64),
    /// The bytes before this one are in the file, and no more follow.
    Ended(u64, End),
}

/// Why a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// All its bytes came.
    Whole,
    /// Nobody reads what follows, or it is there.
    NotNeeded,
    /// The origin has another object by now, or one that is not for all.
    Changed,
    /// The origin does not respond, or broke off.
    Origin,
    /// The file takes no bytes.
    Disk,
}

/// A run that is on its way.
#[derive(Debug)]
pub(crate) struct Run {
    /// The bytes of the object that were requested.
    pub(crate) bytes: Range<u64>,
    progress: watch::Receiver<Progress>,
}

impl Run {
    /// Returns a run, and the sender of its progress.
    pub(crate) fn new(bytes: Range<u64>) -> (Self, watch::Sender<Progress>) {
        let (told, progress) = watch::channel(Progress::Asking);
        (Self { bytes, progress }, told)
    }

    /// Returns true if the run brings all bytes of a block soon. A reader does not wait for a whole download to come to it.
    pub(crate) fn brings(&self, block: &Range<u64>) -> bool {
        let at = match *self.progress.borrow() {
            Progress::Asking => self.bytes.start,
            Progress::To(at) => at,
            Progress::Ended(..) => return false,
        };
        let soon = at.saturating_add(MOST_RUN.saturating_mul(BLOCK));
        self.bytes.start <= block.start && block.end <= self.bytes.end && block.start < soon
    }

    /// Returns a handle that sees the progress.
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Waits for the first byte at `at`. False if it does not come.
    pub(crate) async fn reaches(&self, at: u64) -> bool {
        let mut progress = self.progress();
        let known = progress.wait_for(|progress| match progress {
            Progress::Asking => false,
            Progress::To(_) | Progress::Ended(..) => true,
        });
        match known.await.as_deref() {
            Ok(Progress::To(_)) => true,
            Ok(Progress::Ended(have, _)) => *have > at,
            Ok(Progress::Asking) | Err(_) => false,
        }
    }
}
