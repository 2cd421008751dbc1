//! What is learnt of pages from the visitors they had: which of their objects are not worth sending, and what browsers ask for
//! that they do not name.
//!
//! It is on the board, for all workers: a page's visitors come on any of a near end's connections. The value `lessons/N`, for N
//! from 0 to a limit, holds some pages, and forgets the one that was longest not asked for.

use crate::board::{Board, update};
use crate::digest::key;
use crate::limits;
use crate::wire::{Malformed, Reader, put_bytes, put_length, put_number};

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

/// What is learnt of one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// What its URL hashes to.
    url_key: u64,
    changed_ms: u64,
    objects: Vec<Lesson>,
    others: Vec<Other>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Lesson {
    /// What the object's URL hashes to.
    object: u64,
    /// Visitors in a row who did not ask for it; no more than [`MISSES`] are counted.
    misses: u8,
    unfit: bool,
}

/// Something that the page's markup does not name and a browser asked for on its behalf.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Other {
    url: String,
    /// Visitors in a row who asked for it; from [`VISITS`] on it is learnt, and [`Lesson::misses`] decides.
    visits: u8,
}

/// How many objects [`Page::asked`] learnt or dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) added: u64,
    pub(super) dropped: u64,
}

/// What is known of a page.
pub(super) fn of(board: &dyn Board, page: u64, now_ms: u64) -> Page {
    let mut pages = read(&board.get(&name(page)).0).unwrap_or_default();
    take(&mut pages, page, now_ms)
}

/// A visitor has taught something about a page. `change` may be called more than once, each time with what others have made
/// of it meanwhile. What too many change at one time is not learnt, and one of two who write a value at its very first.
pub(super) fn learn(board: &dyn Board, page: u64, now_ms: u64, mut change: impl FnMut(&mut Page)) {
    update(board, &name(page), |value| {
        let mut pages = read(value).unwrap_or_default();
        let mut learnt = take(&mut pages, page, now_ms);
        change(&mut learnt);
        learnt.changed_ms = now_ms;
        // The longest not asked for comes first.
        let too_many = (pages.len() + 1).saturating_sub(limits::PAGES_PER_LESSONS);
        pages.drain(..too_many.min(pages.len()));
        if !(learnt.objects.is_empty() && learnt.others.is_empty()) {
            pages.push(learnt);
        }
        Some(write(&pages))
    });
}

fn name(page: u64) -> String {
    format!("lessons/{}", page % limits::LESSONS)
}

/// Takes a page from those that are kept together; those that nobody has asked for in a long time go.
fn take(pages: &mut Vec<Page>, page: u64, now_ms: u64) -> Page {
    pages.retain(|one| now_ms.saturating_sub(one.changed_ms) <= PAGE_MS);
    let at = pages.iter().position(|one| one.url_key == page);
    at.map_or_else(|| Page { url_key: page, changed_ms: now_ms, ..Page::default() }, |at| pages.remove(at))
}

impl Page {
    /// Whether, and why, an object is not worth fetching.
    pub(super) fn skips(&self, object: u64) -> Option<Skip> {
        let lesson = self.objects.iter().find(|lesson| lesson.object == object)?;
        if lesson.unfit {
            Some(Skip::Unfit)
        } else if lesson.misses >= MISSES {
            Some(Skip::Unused)
        } else {
            None
        }
    }

    /// URLs that browsers ask for on behalf of the page although it does not name them.
    pub(super) fn learnt(&self) -> impl Iterator<Item = &str> {
        self.others.iter().filter(|other| other.visits >= VISITS).map(|other| &*other.url)
    }

    /// A browser of a new visitor did or did not ask for it.
    pub(super) fn used(&mut self, object: u64, was_used: bool) {
        if let Some(lesson) = self.lesson(object) {
            lesson.misses = if was_used { 0 } else { lesson.misses.saturating_add(1).min(MISSES) };
        }
    }

    /// It cannot be sent.
    pub(super) fn unfit(&mut self, object: u64) {
        if let Some(lesson) = self.lesson(object) {
            lesson.unfit = true;
        }
    }

    /// A browser of a new visitor asked for `urls`, none of which its flight had. Comes after [`Page::used`], which says what
    /// became of those that are learnt already.
    pub(super) fn asked(&mut self, urls: &[&str]) -> Change {
        let mut change = Change::default();
        let Self { objects, others, .. } = self;
        others.retain_mut(|other| {
            let lesson = lesson_on(objects, &other.url);
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
            let is_unfit = lesson_on(objects, url).is_some_and(|lesson| lesson.unfit);
            if has_room && !is_unfit && others.iter().all(|other| other.url != *url) {
                others.push(Other { url: (*url).to_owned(), visits: 1 });
            }
        }
        change
    }

    /// What is learnt of an object; none where there is no room for another.
    fn lesson(&mut self, object: u64) -> Option<&mut Lesson> {
        let at = self.objects.iter().position(|lesson| lesson.object == object);
        if at.is_none() && self.objects.len() < limits::ENTRIES {
            self.objects.push(Lesson { object, ..Lesson::default() });
            return self.objects.last_mut();
        }
        self.objects.get_mut(at?)
    }
}

fn lesson_on<'o>(objects: &'o mut [Lesson], url: &str) -> Option<&'o mut Lesson> {
    let object = key(url.as_bytes());
    objects.iter_mut().find(|lesson| lesson.object == object)
}

fn read(value: &[u8]) -> Result<Vec<Page>, Malformed> {
    let mut reader = Reader(value);
    let mut pages = Vec::new();
    while !reader.is_empty() {
        let (url_key, changed_ms) = (u64::from_le_bytes(reader.array()?), reader.number()?);
        let mut objects = Vec::new();
        for _ in 0..reader.length()?.min(limits::ENTRIES) {
            let object = u64::from_le_bytes(reader.array()?);
            objects.push(Lesson { object, misses: reader.byte()?, unfit: reader.byte()? != 0 });
        }
        let mut others = Vec::new();
        for _ in 0..reader.length()?.min(limits::OTHERS) {
            let url = String::from_utf8(reader.bytes()?.to_vec()).map_err(|_| Malformed)?;
            others.push(Other { url, visits: reader.byte()? });
        }
        pages.push(Page { url_key, changed_ms, objects, others });
    }
    Ok(pages)
}

fn write(pages: &[Page]) -> Vec<u8> {
    let mut out = Vec::new();
    for Page { url_key, changed_ms, objects, others } in pages {
        out.extend_from_slice(&url_key.to_le_bytes());
        put_number(&mut out, *changed_ms);
        put_length(&mut out, objects.len());
        for lesson in objects {
            out.extend_from_slice(&lesson.object.to_le_bytes());
            out.extend_from_slice(&[lesson.misses, u8::from(lesson.unfit)]);
        }
        put_length(&mut out, others.len());
        for other in others {
            put_bytes(&mut out, other.url.as_bytes());
            out.push(other.visits);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::memory::Memory;
    use proptest::prelude::*;

    /// What the next worker reads is what the last one wrote.
    fn after(board: &Memory, page: u64, now_ms: u64, change: impl FnMut(&mut Page)) -> Page {
        learn(board, page, now_ms, change);
        of(board, page, now_ms)
    }

    fn learnt(page: &Page) -> Vec<&str> {
        page.learnt().collect()
    }

    #[test]
    fn what_two_visitors_in_a_row_did_not_use_is_skipped_until_it_is_used_or_forgotten() {
        let board = Memory::default();
        assert_eq!(after(&board, 1, 0, |page| page.used(5, false)).skips(5), None);
        assert_eq!(after(&board, 1, 0, |page| page.used(5, false)).skips(5), Some(Skip::Unused));
        assert_eq!(of(&board, 2, 0).skips(5), None, "of another page");
        assert_eq!(of(&board, 1 + limits::LESSONS, 0).skips(5), None, "of another page in the same value");
        assert_eq!(after(&board, 1, 0, |page| page.used(5, true)).skips(5), None);
        assert_eq!(after(&board, 1, 0, |page| page.unfit(6)).skips(6), Some(Skip::Unfit));
        assert_eq!(of(&board, 1, PAGE_MS).skips(6), Some(Skip::Unfit));
        assert_eq!(of(&board, 1, PAGE_MS + 1).skips(6), None);
        assert_eq!(after(&board, 1, PAGE_MS + 1, |page| page.used(7, true)).skips(6), None);
    }

    #[test]
    fn pages_are_bounded_and_the_one_longest_not_asked_for_goes() {
        let board = Memory::default();
        let pages = limits::LESSONS * (limits::PAGES_PER_LESSONS as u64 + 1);
        for page in 0..pages {
            learn(&board, page, page, |page| page.unfit(1));
        }
        let known = |page| of(&board, page, pages).skips(1);
        assert_eq!((known(0), known(limits::LESSONS)), (None, Some(Skip::Unfit)));
        assert_eq!(board.0.borrow().len() as u64, limits::LESSONS);
        learn(&board, 0, pages, |_| {});
        assert_eq!(known(2 * limits::LESSONS), Some(Skip::Unfit));
    }

    #[test]
    fn what_two_workers_learn_at_one_time_is_both_kept() {
        let board = Memory::default();
        learn(&board, 1, 0, |page| page.used(1, true));
        let mut is_first = true;
        learn(&board, 1, 0, |page| {
            if std::mem::take(&mut is_first) {
                learn(&board, 1, 0, |page| page.unfit(2));
            }
            page.unfit(3);
        });
        let page = of(&board, 1, 0);
        assert_eq!((page.skips(2), page.skips(3)), (Some(Skip::Unfit), Some(Skip::Unfit)));
    }

    #[test]
    fn what_three_visitors_in_a_row_ask_for_beside_the_page_is_learnt_and_dropped_when_two_do_not() {
        let board = Memory::default();
        let url = "http://a.test/late.png";
        let asked = |urls: &[&str]| {
            let mut change = Change::default();
            let page = after(&board, 1, 0, |page| change = page.asked(urls));
            (change.added, change.dropped, page)
        };
        for urls in [&[url][..], &[url], &[], &[url], &[url]] {
            let (added, dropped, page) = asked(urls);
            assert_eq!((added, dropped, learnt(&page)), (0, 0, vec![]), "not in a row");
        }
        let (added, dropped, page) = asked(&[url]);
        assert_eq!((added, dropped, learnt(&page)), (1, 0, vec![url]));
        assert_eq!(learnt(&of(&board, 2, 0)), [""; 0]);
        // It is in the flight now; whether it is used, says the report of that.
        for (was_used, change, left) in [(true, 0, 1), (false, 0, 1), (true, 0, 1), (false, 0, 1), (false, 1, 0)] {
            learn(&board, 1, 0, |page| page.used(key(url.as_bytes()), was_used));
            let (added, dropped, page) = asked(&[]);
            assert_eq!((added, dropped, learnt(&page).len()), (0, change, left));
        }
        for _ in 0..3 {
            asked(&[url]);
        }
        let page = of(&board, 1, PAGE_MS);
        assert_eq!((learnt(&page), page.skips(key(url.as_bytes()))), (vec![url], None), "learnt anew");
        assert_eq!(learnt(&of(&board, 1, PAGE_MS + 1)), [""; 0], "too long ago");
    }

    #[test]
    fn what_cannot_be_sent_is_not_learnt() {
        let mut page = Page::default();
        let url = "http://a.test/mine";
        for _ in 0..3 {
            page.asked(&[url]);
        }
        page.unfit(key(url.as_bytes()));
        assert_eq!(page.asked(&[url]), Change { added: 0, dropped: 1 });
        for _ in 0..3 {
            page.asked(&[url]);
        }
        assert_eq!(learnt(&page), [""; 0]);
    }

    proptest! {
        #[test]
        fn hostile_values_are_refused_or_bounded(value: Vec<u8>) {
            for page in read(&value).unwrap_or_default() {
                prop_assert!(page.objects.len() <= limits::ENTRIES && page.others.len() <= limits::OTHERS);
            }
        }

        /// Which of nine URLs each visitor asks for, over and over, and nobody uses what is sent.
        #[test]
        fn what_is_learnt_is_what_the_last_visitors_asked_for_and_never_too_much(
            visits in proptest::collection::vec(any::<[bool; 9]>(), 0..24),
            length in 1_usize..400,
        ) {
            let board = Memory::default();
            let urls: Vec<String> = (0..9).map(|number| format!("http://a.test/{number}/{}", "x".repeat(length))).collect();
            let mut in_a_row = [0; 9];
            for visit in visits {
                let before = of(&board, 1, 0);
                let asked: Vec<&str> = urls.iter().zip(visit).filter(|(_, is)| *is).map(|(url, _)| &**url).collect();
                let after = after(&board, 1, 0, |page| {
                    page.asked(&asked);
                });
                for (count, is) in in_a_row.iter_mut().zip(visit) {
                    *count = if is { *count + 1 } else { 0 };
                }
                let (before, now) = (learnt(&before), learnt(&after));
                prop_assert!(before.iter().all(|url| now.contains(url)), "nothing said that it is of no use");
                for new in now.iter().filter(|url| !before.contains(url)) {
                    let at = urls.iter().position(|url| url == new).unwrap();
                    prop_assert!(in_a_row[at] >= usize::from(VISITS));
                }
                prop_assert!(after.others.len() <= limits::OTHERS);
                prop_assert!(after.others.iter().map(|other| other.url.len()).sum::<usize>() <= limits::OTHERS_BYTES);
            }
        }
    }
}
