//! What a worker of the far end remembers beyond a flight: what the near end holds, and which objects of a page are used.
//! Both are bounded, and forgetting costs only bytes.

use std::collections::HashMap;

use crate::board::{Board, update};
use crate::digest::{Ident, key};
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
/// Visitors in a row whose browsers asked for something that the page does not name, until it is sent like the rest.
const VISITS: u8 = 3;
/// What was learnt is forgotten so long after the page was last asked for.
const PAGE_MS: u64 = 24 * 3600 * 1000;

/// What is learnt of pages, by what their URLs hash to.
#[derive(Debug, Default)]
pub(super) struct Pages(HashMap<u64, Page>);

#[derive(Debug, Default)]
struct Page {
    changed_ms: u64,
    objects: HashMap<u64, Lesson>,
    others: Vec<Other>,
}

/// Something that the page's markup does not name and a browser asked for on its behalf.
#[derive(Debug)]
struct Other {
    url: String,
    /// Visitors in a row who asked for it; from [`VISITS`] on it is learnt, and [`Lesson::misses`] decides.
    visits: u8,
}

/// How many objects [`Pages::asked`] learnt or dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) added: u64,
    pub(super) dropped: u64,
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

    /// URLs that browsers ask for on behalf of the page although it does not name them.
    pub(super) fn learnt(&self, page: u64, now_ms: u64) -> impl Iterator<Item = &str> {
        let page = self.0.get(&page).filter(|page| now_ms.saturating_sub(page.changed_ms) <= PAGE_MS);
        let others = page.map(|page| page.others.as_slice()).unwrap_or_default();
        others.iter().filter(|other| other.visits >= VISITS).map(|other| &*other.url)
    }

    /// A browser of a new visitor asked for `urls`, none of which its flight had. Comes after [`Pages::used`], which says
    /// what became of those that are learnt already.
    pub(super) fn asked(&mut self, page: u64, urls: &[&str], now_ms: u64) -> Change {
        let mut change = Change::default();
        if urls.is_empty() && self.0.get(&page).is_none_or(|page| page.others.is_empty()) {
            return change;
        }
        let Page { objects, others, .. } = self.page(page, now_ms);
        others.retain_mut(|other| {
            let lesson = objects.get_mut(&key(other.url.as_bytes()));
            if other.visits >= VISITS {
                let is_in_vain = lesson.is_some_and(|lesson| lesson.unfit || lesson.misses >= MISSES);
                change.dropped += u64::from(is_in_vain);
                return !is_in_vain;
            }
            let is_asked = urls.contains(&&*other.url);
            other.visits += u8::from(is_asked);
            if other.visits == VISITS {
                change.added += 1;
                // It may be one that was dropped before.
                if let Some(lesson) = lesson {
                    lesson.misses = 0;
                }
            }
            is_asked
        });
        for url in urls {
            let has_room = limits::have_room(others.iter().map(|other| &*other.url), url);
            let is_unfit = objects.get(&key(url.as_bytes())).is_some_and(|lesson| lesson.unfit);
            if has_room && !is_unfit && others.iter().all(|other| other.url != *url) {
                others.push(Other { url: (*url).to_owned(), visits: 1 });
            }
        }
        change
    }

    fn learn(&mut self, page: u64, object: u64, now_ms: u64, lesson: impl FnOnce(&mut Lesson)) {
        let page = self.page(page, now_ms);
        if page.objects.len() < limits::ENTRIES || page.objects.contains_key(&object) {
            lesson(page.objects.entry(object).or_default());
        }
    }

    /// What is known of a page, which changes now.
    fn page(&mut self, page: u64, now_ms: u64) -> &mut Page {
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
            page.others.clear();
        }
        page.changed_ms = now_ms;
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::memory::Memory;
    use proptest::prelude::*;

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

    fn learnt(pages: &Pages, page: u64, now_ms: u64) -> Vec<String> {
        pages.learnt(page, now_ms).map(str::to_owned).collect()
    }

    #[test]
    fn what_three_visitors_in_a_row_ask_for_beside_the_page_is_learnt_and_dropped_when_two_do_not() {
        let mut pages = Pages::default();
        let url = "http://a.test/late.png";
        for (urls, change) in
            [(&[url][..], (0, 0)), (&[url], (0, 0)), (&[], (0, 0)), (&[url], (0, 0)), (&[url], (0, 0))]
        {
            let found = pages.asked(1, urls, 0);
            assert_eq!((found.added, found.dropped), change);
            assert_eq!(learnt(&pages, 1, 0), [""; 0], "not in a row");
        }
        assert_eq!(pages.asked(1, &[url], 0), Change { added: 1, dropped: 0 });
        assert_eq!((learnt(&pages, 1, 0), learnt(&pages, 2, 0)), (vec![url.to_owned()], vec![]));
        // It is in the flight now; whether it is used, says the report of that.
        for (was_used, change, left) in [(true, 0, 1), (false, 0, 1), (true, 0, 1), (false, 0, 1), (false, 1, 0)] {
            pages.used(1, key(url.as_bytes()), was_used, 0);
            assert_eq!(pages.asked(1, &[], 0), Change { added: 0, dropped: change });
            assert_eq!(learnt(&pages, 1, 0).len(), left);
        }
        for _ in 0..3 {
            pages.asked(1, &[url], 0);
        }
        assert_eq!(learnt(&pages, 1, PAGE_MS), [url]);
        assert_eq!(pages.skips(1, key(url.as_bytes())), None, "learnt anew");
        assert_eq!(learnt(&pages, 1, PAGE_MS + 1), [""; 0], "too long ago");
    }

    #[test]
    fn what_cannot_be_sent_is_not_learnt() {
        let mut pages = Pages::default();
        let url = "http://a.test/mine";
        for _ in 0..3 {
            pages.asked(1, &[url], 0);
        }
        pages.unfit(1, key(url.as_bytes()), 0);
        assert_eq!(pages.asked(1, &[url], 0), Change { added: 0, dropped: 1 });
        for _ in 0..3 {
            pages.asked(1, &[url], 0);
        }
        assert_eq!(learnt(&pages, 1, 0), [""; 0]);
    }

    proptest! {
        /// Which of nine URLs each visitor asks for, over and over, and nobody uses what is sent.
        #[test]
        fn what_is_learnt_is_what_the_last_visitors_asked_for_and_never_too_much(visits in proptest::collection::vec(any::<[bool; 9]>(), 0..24), length in 1_usize..400) {
            let mut pages = Pages::default();
            let urls: Vec<String> = (0..9).map(|number| format!("http://a.test/{number}/{}", "x".repeat(length))).collect();
            let mut in_a_row = [0; 9];
            for visit in visits {
                let before = learnt(&pages, 1, 0);
                let asked: Vec<&str> = urls.iter().zip(visit).filter(|(_, is)| *is).map(|(url, _)| &**url).collect();
                pages.asked(1, &asked, 0);
                for (count, is) in in_a_row.iter_mut().zip(visit) {
                    *count = if is { *count + 1 } else { 0 };
                }
                let now = learnt(&pages, 1, 0);
                prop_assert!(before.iter().all(|url| now.contains(url)), "nothing said that it is of no use");
                for new in now.iter().filter(|url| !before.contains(url)) {
                    let at = urls.iter().position(|url| url == new).unwrap();
                    prop_assert!(in_a_row[at] >= usize::from(VISITS));
                }
                let others = &pages.0.get(&1).map(|page| &page.others).into_iter().flatten().collect::<Vec<_>>();
                prop_assert!(others.len() <= limits::OTHERS);
                prop_assert!(others.iter().map(|other| other.url.len()).sum::<usize>() <= limits::OTHERS_BYTES);
            }
        }
    }
}
