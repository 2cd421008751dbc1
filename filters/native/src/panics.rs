//! The traces of a panic: one line in Envoy's log for each place in the code, and a count.

use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::{Mutex, PoisonError};

use crate::abi;

/// Returns the name of the counter of a filter's panics. It stands among the filter's own counters.
pub(crate) fn counter(filter: &str) -> String {
    format!("longhaul_{}_panics_total", filter.replace('-', "_"))
}

/// Envoy's level `critical`.
const CRITICAL: u32 = 5;

/// Places beyond this number are counted only.
const MOST_PLACES: usize = 64;

thread_local! {
    /// The reason and place of the last panic of this thread.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes panics leave their reason and place for [`caught`], instead of a line on stderr.
pub(crate) fn keep_reasons() {
    set_hook(Box::new(|panic| {
        let reason = panic.to_string();
        // A panic while the thread ends has no place for its reason any more.
        let _ = LAST.try_with(|last| {
            if let Ok(mut last) = last.try_borrow_mut() {
                *last = reason;
            }
        });
    }));
}

/// Runs filter code. None: it panicked, and the log says why.
pub(crate) fn caught<T>(filter: &str, run: impl FnOnce() -> T) -> Option<T> {
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let payload = match outcome {
        Ok(value) => return Some(value),
        Err(payload) => payload,
    };
    // The payload may be anything, even a value that panics when it is dropped.
    std::mem::forget(payload);
    let reason = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| std::mem::take(&mut *last)));
    let reason = reason.ok().and_then(Result::ok).unwrap_or_default();
    if is_new(&reason) {
        abi::log(
            CRITICAL,
            &format!("{filter}: {reason}; it costs one stream, and later ones like it are only counted"),
        );
    }
    None
}

/// Returns true if no panic of this place was logged before.
fn is_new(reason: &str) -> bool {
    static PLACES: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    // "panicked at FILE:LINE:COLUMN:", then the message in a line of its own.
    let place = reason.lines().next().unwrap_or_default();
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    let places = places.get_or_insert_default();
    places.len() < MOST_PLACES && places.insert(place.to_owned())
}
