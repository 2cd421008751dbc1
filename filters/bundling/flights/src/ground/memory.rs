//! What a worker of the far end remembers beyond a flight: what the near end holds, and which objects of a page are used.
//! Both are bounded, and forgetting costs only bytes.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::digest::Ident;
use crate::limits;

/// Objects that near ends hold, the longest known forgotten first.
#[derive(Debug, Default)]
pub(super) struct Known {
    stores: VecDeque<(u64, Store)>,
}

#[derive(Debug, Default)]
struct Store {
    held: HashSet<Ident>,
    order: VecDeque<Ident>,
}

impl Known {
    /// Notes that `store` gets the object; false if it has it.
    pub(super) fn add(&mut self, store: u64, ident: Ident) -> bool {
        let store = self.store(store);
        if !store.is_some_and(|store| store.held.insert(ident)) {
            return false;
        }
        if let Some((_, store)) = self.stores.back_mut() {
            store.order.push_back(ident);
            while store.order.len() > limits::KNOWN {
                let Some(oldest) = store.order.pop_front() else { break };
                store.held.remove(&oldest);
            }
        }
        true
    }

    /// The store has lost it.
    pub(super) fn forget(&mut self, store: u64, ident: &Ident) {
        if let Some(store) = self.store(store)
            && store.held.remove(ident)
        {
            store.order.retain(|known| known != ident);
        }
    }

    /// The store, which from now on is the last used.
    fn store(&mut self, name: u64) -> Option<&mut Store> {
        let at = self.stores.iter().position(|(known, _)| *known == name);
        let entry = at.and_then(|at| self.stores.remove(at)).unwrap_or_else(|| (name, Store::default()));
        self.stores.push_back(entry);
        if self.stores.len() > limits::STORES {
            self.stores.pop_front();
        }
        self.stores.back_mut().map(|(_, store)| store)
    }
}

/// Why an object is not fetched for a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    /// Browsers of earlier visitors did not ask for it.
    Unused,
    /// The visitor's browser has it from an earlier visit.
    Seen,
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
    lifetime_s: u64,
    unfit: bool,
}

impl Pages {
    /// Whether, and why, an object is not worth fetching for a visitor who was on the page `seen_s` seconds ago.
    pub(super) fn skips(&self, page: u64, object: u64, seen_s: Option<u64>) -> Option<Skip> {
        let lesson = self.0.get(&page)?.objects.get(&object)?;
        if lesson.unfit {
            Some(Skip::Unfit)
        } else if lesson.misses >= MISSES {
            Some(Skip::Unused)
        } else if seen_s.is_some_and(|seconds| seconds < lesson.lifetime_s) {
            Some(Skip::Seen)
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

    /// How long a browser may keep it without asking.
    pub(super) fn lasts(&mut self, page: u64, object: u64, lifetime_s: u64, now_ms: u64) {
        self.learn(page, object, now_ms, |lesson| lesson.lifetime_s = lifetime_s);
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

    #[test]
    fn what_a_store_has_is_known_until_it_is_lost_or_too_long_ago() {
        let mut known = Known::default();
        assert!(known.add(1, [1; 24]) && !known.add(1, [1; 24]));
        assert!(known.add(2, [1; 24]), "another store");
        known.forget(1, &[1; 24]);
        assert!(known.add(1, [1; 24]));
        for number in 0..limits::KNOWN as u64 {
            let mut ident = [9; 24];
            ident[..8].copy_from_slice(&number.to_le_bytes());
            known.add(1, ident);
        }
        assert!(known.add(1, [1; 24]));
        for store in 10..10 + limits::STORES as u64 {
            known.add(store, [1; 24]);
        }
        assert!(known.add(2, [1; 24]), "a store that was not heard of for long");
    }

    #[test]
    fn what_two_visitors_in_a_row_did_not_use_is_skipped_until_it_is_used_or_forgotten() {
        let mut pages = Pages::default();
        pages.used(1, 5, false, 0);
        assert_eq!(pages.skips(1, 5, None), None);
        pages.used(1, 5, false, 0);
        assert_eq!(pages.skips(1, 5, None), Some(Skip::Unused));
        assert_eq!(pages.skips(2, 5, None), None, "of another page");
        pages.used(1, 5, true, 0);
        assert_eq!(pages.skips(1, 5, None), None);
        pages.unfit(1, 6, 0);
        assert_eq!(pages.skips(1, 6, None), Some(Skip::Unfit));
        pages.used(1, 7, true, PAGE_MS + 1);
        assert_eq!(pages.skips(1, 6, None), None);
    }

    #[test]
    fn what_a_returning_browser_may_still_have_is_not_sent_again() {
        let mut pages = Pages::default();
        pages.lasts(1, 5, 60, 0);
        assert_eq!(pages.skips(1, 5, Some(59)), Some(Skip::Seen));
        assert_eq!(pages.skips(1, 5, Some(60)), None);
        assert_eq!(pages.skips(1, 5, None), None);
    }

    #[test]
    fn pages_are_bounded_and_the_oldest_goes() {
        let mut pages = Pages::default();
        for page in 0..limits::PAGES as u64 + 5 {
            pages.unfit(page, 1, page);
        }
        assert_eq!(pages.0.len(), limits::PAGES);
        assert_eq!((pages.skips(0, 1, None), pages.skips(5, 1, None)), (None, Some(Skip::Unfit)));
    }
}
