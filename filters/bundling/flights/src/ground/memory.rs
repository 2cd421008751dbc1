//! What a worker of the far end remembers beyond a flight: what the near end holds, and which objects of a page are used.
//! Both are bounded, and forgetting costs only bytes.

use std::collections::HashMap;

use crate::board::{Board, update};
use crate::digest::Ident;
use crate::limits;

/// Objects that near ends hold, the longest known forgotten first. On the board, for all workers: a near end's flights come
/// on any of its connections.
///
/// A key of eight bytes stands for an object: what is taken for another one is not at the near end, which says so.
#[derive(Clone, Copy)]
pub(super) struct Known<'b> {
    pub(super) board: &'b dyn Board,
}

fn known_name(store: u64) -> String {
    format!("known/{}", store % limits::STORES)
}

/// The name of a store comes first in its value, so that one that takes another's place begins anew.
fn keys_of(value: &[u8], store: u64) -> Vec<[u8; 8]> {
    let mut keys = value.as_chunks::<8>().0.iter().copied();
    if keys.next() == Some(store.to_le_bytes()) { keys.collect() } else { Vec::new() }
}

fn key_of(ident: &Ident) -> [u8; 8] {
    ident.first_chunk().copied().unwrap_or_default()
}

impl Known<'_> {
    /// Notes that `store` gets the object; false if it has it.
    pub(super) fn add(self, store: u64, ident: &Ident) -> bool {
        let mut is_new = false;
        update(self.board, &known_name(store), |value| {
            let mut keys = keys_of(value, store);
            is_new = !keys.contains(&key_of(ident));
            if !is_new {
                return None;
            }
            keys.push(key_of(ident));
            let too_many = keys.len().saturating_sub(limits::KNOWN);
            keys.drain(..too_many);
            Some([&store.to_le_bytes()[..], keys.as_flattened()].concat())
        });
        is_new
    }

    /// The store has lost it.
    pub(super) fn forget(self, store: u64, ident: &Ident) {
        update(self.board, &known_name(store), |value| {
            let mut keys = keys_of(value, store);
            let before = keys.len();
            keys.retain(|key| *key != key_of(ident));
            (keys.len() < before).then(|| [&store.to_le_bytes()[..], keys.as_flattened()].concat())
        });
    }
}

/// Why an object is not fetched for a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    /// Browsers of earlier visitors did not ask for it.
    Unused,
    /// It could not be sent the last time.
    Unfit,
}

/// Visitors in a row whose browsers did not ask for an object, until it is no more sent.
const MISSES: u8 = 2;
/// What was learnt is forgotten so long after the page was last asked for.
const PAGE_MS: u64 = 24 * 3600 * 1000;

/// What is learnt of pages, by what their URLs hash to.
#[derive(Debug, Default)]
pub(super) struct Pages(HashMap<u64, Page>);

#[derive(Debug, Default)]
struct Page {
    changed_ms: u64,
    objects: HashMap<u64, Lesson>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Lesson {
    misses: u8,
    unfit: bool,
}

impl Pages {
    /// Whether, and why, an object is not worth fetching.
    pub(super) fn skips(&self, page: u64, object: u64) -> Option<Skip> {
        let lesson = self.0.get(&page)?.objects.get(&object)?;
        if lesson.unfit {
            Some(Skip::Unfit)
        } else if lesson.misses >= MISSES {
            Some(Skip::Unused)
        } else {
            None
        }
    }

    /// A browser of a new visitor did or did not ask for it.
    pub(super) fn used(&mut self, page: u64, object: u64, was_used: bool, now_ms: u64) {
        self.learn(page, object, now_ms, |lesson| {
            lesson.misses = if was_used { 0 } else { lesson.misses.saturating_add(1) };
        });
    }

    /// It cannot be sent.
    pub(super) fn unfit(&mut self, page: u64, object: u64, now_ms: u64) {
        self.learn(page, object, now_ms, |lesson| lesson.unfit = true);
    }

    fn learn(&mut self, page: u64, object: u64, now_ms: u64, lesson: impl FnOnce(&mut Lesson)) {
        if !self.0.contains_key(&page) && self.0.len() >= limits::PAGES {
            self.0.retain(|_, page| now_ms.saturating_sub(page.changed_ms) < PAGE_MS);
            let oldest = self.0.iter().min_by_key(|(_, page)| page.changed_ms).map(|(key, _)| *key);
            if let Some(oldest) = oldest.filter(|_| self.0.len() >= limits::PAGES) {
                self.0.remove(&oldest);
            }
        }
        let page = self.0.entry(page).or_default();
        if now_ms.saturating_sub(page.changed_ms) > PAGE_MS {
            page.objects.clear();
        }
        page.changed_ms = now_ms;
        if page.objects.len() < limits::ENTRIES || page.objects.contains_key(&object) {
            lesson(page.objects.entry(object).or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::memory::Memory;

    #[test]
    fn what_a_store_has_is_known_until_it_is_lost_or_too_long_ago() {
        let board = Memory::default();
        let known = Known { board: &board };
        let one = [1; 24];
        assert!(known.add(1, &one) && !known.add(1, &one));
        assert!(known.add(2, &one), "another store");
        known.forget(1, &one);
        assert!(known.add(1, &one));
        for number in 0..limits::KNOWN as u64 {
            let mut ident = [9; 24];
            ident[..8].copy_from_slice(&number.to_le_bytes());
            known.add(1, &ident);
        }
        assert!(known.add(1, &one));
        assert!(known.add(2 + limits::STORES, &one), "a store in the place of another");
        assert!(known.add(2, &one));
        assert!(board.0.borrow().values().all(|(value, _)| value.len() <= 8 * (limits::KNOWN + 1)));
    }

    #[test]
    fn what_two_visitors_in_a_row_did_not_use_is_skipped_until_it_is_used_or_forgotten() {
        let mut pages = Pages::default();
        pages.used(1, 5, false, 0);
        assert_eq!(pages.skips(1, 5), None);
        pages.used(1, 5, false, 0);
        assert_eq!(pages.skips(1, 5), Some(Skip::Unused));
        assert_eq!(pages.skips(2, 5), None, "of another page");
        pages.used(1, 5, true, 0);
        assert_eq!(pages.skips(1, 5), None);
        pages.unfit(1, 6, 0);
        assert_eq!(pages.skips(1, 6), Some(Skip::Unfit));
        pages.used(1, 7, true, PAGE_MS + 1);
        assert_eq!(pages.skips(1, 6), None);
    }

    #[test]
    fn pages_are_bounded_and_the_oldest_goes() {
        let mut pages = Pages::default();
        for page in 0..limits::PAGES as u64 + 5 {
            pages.unfit(page, 1, page);
        }
        assert_eq!(pages.0.len(), limits::PAGES);
        assert_eq!((pages.skips(0, 1), pages.skips(5, 1)), (None, Some(Skip::Unfit)));
    }
}
