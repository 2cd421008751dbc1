//! Sliced objects in use: which of their blocks are on their way, and who reads what.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use http_semantics::FieldList;
use object_rules::slices::{BLOCK, Blocks, MOST_RUN, Part};
use object_store::{Body, Key, Object, Slices};
use tokio::sync::{Notify, watch};

use crate::run::{Progress, Run};

/// How many blocks must be there for a run to end before them. The bytes on the link are lost then, so one block does not pay.
const LEAST_MET: u64 = 4;

/// How far a run may be ahead of all its readers. A client that pauses a long download must not load the link with all of it.
const MOST_AHEAD: u64 = MOST_RUN * BLOCK;

/// A sliced object that somebody reads or fills.
#[derive(Debug)]
pub(crate) struct Sliced {
    pub(crate) key: Key,
    pub(crate) file: Slices,
    /// The fields of the stored response, with its validator.
    pub(crate) fields: FieldList,
    state: Mutex<State>,
    /// Some reader has come further, or has left.
    moved: Notify,
}

#[derive(Debug, Default)]
struct State {
    runs: Vec<Arc<Run>>,
    /// The bytes that each reader still needs.
    readers: HashMap<u64, Range<u64>>,
}

/// The place of a block.
#[derive(Debug)]
pub(crate) enum Place {
    /// In the file, with bytes that are right.
    There,
    /// On its way.
    Coming(Arc<Run>),
    /// Not known to be there. The file says more.
    Unknown,
}

impl Sliced {
    pub(crate) fn blocks(&self) -> Blocks {
        self.file.blocks()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where a block is, as far as this process knows.
    pub(crate) fn place(&self, block: u64) -> Place {
        self.place_in(&self.state(), block)
    }

    fn place_in(&self, state: &State, block: u64) -> Place {
        if self.file.is_checked(block) {
            return Place::There;
        }
        let bytes = self.blocks().bytes(block);
        let coming = state.runs.iter().find(|run| run.brings(&bytes));
        coming.map_or(Place::Unknown, |run| Place::Coming(Arc::clone(run)))
    }

    /// Announces a run that begins with a block, up to the byte `end`. `noted` says which blocks the file has. Returns the place of
    /// the block instead if another reader was faster.
    pub(crate) fn announce(&self, block: u64, end: u64, noted: &[bool]) -> Result<Announced, Place> {
        let mut state = self.state();
        match self.place_in(&state, block) {
            Place::Unknown => {}
            place => return Err(place),
        }
        let is_missing = |block| !is_noted(noted, block) && matches!(self.place_in(&state, block), Place::Unknown);
        let bytes = self.blocks().run(block, end, is_missing);
        Ok(state.announce(bytes))
    }

    /// Announces a run for a response that the origin sends already.
    pub(crate) fn announce_part(&self, part: &Part) -> Announced {
        self.state().announce(part.bytes.clone())
    }

    /// Forgets a run that ends.
    pub(crate) fn forget(&self, run: &Arc<Run>) {
        self.state().runs.retain(|other| !Arc::ptr_eq(other, run));
    }

    /// Returns true if a run should go on at the byte `at`, where a block begins: somebody needs bytes behind it that do not
    /// come otherwise.
    pub(crate) fn needs(&self, run: &Arc<Run>, at: u64) -> bool {
        let state = self.state();
        let is_read = state.readers.values().any(|reader| reader.start < run.bytes.end && at < reader.end);
        let first = Blocks::of(at);
        let mut next = first..self.blocks().touched(&(at..run.bytes.end)).end.min(first.saturating_add(LEAST_MET));
        let comes = |block: u64| {
            let bytes = self.blocks().bytes(block);
            let is_others = |other: &&Arc<Run>| !Arc::ptr_eq(other, run) && other.brings(&bytes);
            self.file.is_checked(block) || state.runs.iter().any(|other| is_others(&other))
        };
        is_read && !next.all(comes)
    }

    /// Waits while a run that has come to the byte `at` is far ahead of all its readers.
    pub(crate) async fn pace(&self, run: &Run, at: u64) {
        loop {
            // What moves after this line wakes the task.
            let moved = self.moved.notified();
            if !self.is_far_ahead(run, at) {
                return;
            }
            moved.await;
        }
    }

    /// A run without readers is not ahead of any: it ends after its block.
    fn is_far_ahead(&self, run: &Run, at: u64) -> bool {
        let state = self.state();
        let mut readers =
            state.readers.values().filter(|reader| reader.start < run.bytes.end && at < reader.end).peekable();
        readers.peek().is_some() && readers.all(|reader| reader.start.saturating_add(MOST_AHEAD) < at)
    }

    /// Notes that somebody reads these bytes.
    pub(crate) fn interest(self: &Arc<Self>, bytes: Range<u64>) -> Interest {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.state().readers.insert(number, bytes);
        self.moved.notify_waiters();
        Interest { sliced: Arc::clone(self), number }
    }
}

/// Returns true if the map of a file has a block.
pub(crate) fn is_noted(map: &[bool], block: u64) -> bool {
    usize::try_from(block).is_ok_and(|at| map.get(at).is_some_and(|noted| *noted))
}

/// A run that the others know, and the sender of its progress.
pub(crate) type Announced = (Arc<Run>, watch::Sender<Progress>);

impl State {
    fn announce(&mut self, bytes: Range<u64>) -> Announced {
        let (run, told) = Run::new(bytes);
        let run = Arc::new(run);
        self.runs.push(Arc::clone(&run));
        (run, told)
    }
}

/// Says that somebody reads. Runs that nobody needs end.
#[derive(Debug)]
pub(crate) struct Interest {
    sliced: Arc<Sliced>,
    number: u64,
}

impl Interest {
    /// Notes that the bytes before `at` are not needed any more.
    pub(crate) fn advance(&self, at: u64) {
        if let Some(bytes) = self.sliced.state().readers.get_mut(&self.number) {
            bytes.start = at;
        }
        self.sliced.moved.notify_waiters();
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.sliced.state().readers.remove(&self.number);
        self.sliced.moved.notify_waiters();
    }
}

/// The sliced objects in use, by the stamp of their file. Nothing stays open without a reader or a run.
#[derive(Debug, Default)]
pub(crate) struct InUse(Mutex<HashMap<u64, Weak<Sliced>>>);

impl InUse {
    /// Returns what all users of an object share. None for an object that is not sliced.
    pub(crate) fn of(&self, object: &Object) -> Option<Arc<Sliced>> {
        let Body::Slices(file) = &object.body else { return None };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sliced) = known.get(&file.stamp()).and_then(Weak::upgrade) {
            return Some(sliced);
        }
        let sliced = Arc::new(Sliced {
            key: object.key(),
            file: file.clone(),
            fields: object.head.fields.clone(),
            state: Mutex::default(),
            moved: Notify::new(),
        });
        known.retain(|_, sliced| sliced.strong_count() > 0);
        known.insert(file.stamp(), Arc::downgrade(&sliced));
        Some(sliced)
    }
}
