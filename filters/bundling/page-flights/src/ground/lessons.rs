//! Lessons about pages from their earlier visitors: which objects are not worth sending, and which objects browsers
//! request although the page does not name them.
//!
//! Lessons are on the board for all workers, because a page's visitors arrive on any of a remote's connections. The
//! value `lessons/N`, for N from 0 to a limit, holds some pages. It drops the page whose last visit was the longest
//! ago.
//!
//! A client may teach nonsense, by accident or on purpose. So a lesson from one client applies to that client alone. It
//! applies to others when several distinct clients agree. A lesson that an object is not worth sending has its own age,
//! which no visit renews.

use crate::digest::key;
use crate::limits;
use crate::wire::{Malformed, Reader, put_bytes, put_length, put_number};
use shared_board::{Board, update};

/// The reason why an object is not fetched for a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    /// The browsers of earlier visitors did not request it.
    Unused,
    /// The last response of its origin was not for everybody, too large or not an object.
    Unfit,
}

/// A client of one remote, as the ground distinguishes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Who {
    /// The remote.
    pub(super) remote: u32,
    /// The remote's client.
    pub(super) client: u32,
}

/// The number of distinct clients in a row whose browsers did not request an object, until it is no longer sent. As
/// many misses in a row of one client stop it for that client alone.
const MISSES: u8 = 2;
/// The number of distinct clients who requested an object that the page does not name, until it is sent to every
/// client. All clients of another remote count as one, so that the users of one box cannot decide for another box.
const CLIENTS: usize = 3;
/// The number of visits in a row on which one client requested such an object, until it is sent to that client alone.
const VISITS: u8 = 3;
/// Distinct clients that are remembered for each such object.
const WITNESSES: usize = 12;
/// The time from its last visit until a page is forgotten, in milliseconds.
const PAGE_MS: u64 = 24 * 3600 * 1000;
/// The time after which an unused object is tried again, in milliseconds.
const UNUSED_MS: u64 = 24 * 3600 * 1000;
/// The time after which an unfit object is tried again, in milliseconds. Origins change their minds.
const UNFIT_MS: u64 = 3600 * 1000;

/// The lessons of one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// A hash of the page's URL.
    url_key: u64,
    changed_ms: u64,
    objects: Vec<Lesson>,
    others: Vec<Other>,
}

/// The lesson that an object is not worth sending. Objects that are worth it have no lesson.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Lesson {
    /// A hash of the object's URL.
    object: u64,
    /// The time when it was learnt.
    since_ms: u64,
    unfit: bool,
    /// The number of distinct clients in a row who did not request the object, at most [`MISSES`].
    misses: u8,
    /// The last of these clients.
    last: Who,
    /// The misses in a row of this client alone.
    last_misses: u8,
}

/// An object that browsers request on the page's behalf although the page does not name it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Other {
    url: String,
    /// The latest visit of each client, the newest last.
    witnesses: Vec<Witness>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Witness {
    who: Who,
    /// The number of visits in a row on which it requested the object, at most [`VISITS`]. 0 means that it did not on
    /// its latest visit.
    asked: u8,
}

/// The numbers of objects that [`Page::visited`] began to send to anybody, and ceased to send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) added: u64,
    pub(super) dropped: u64,
}

/// One visit, as far as it teaches about objects that the page does not name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit<'v> {
    pub(super) who: Who,
    /// Objects that were sent because earlier visitors requested them: a hash of the URL, and true if this visitor
    /// requested it.
    pub(super) sent: &'v [(u64, bool)],
    /// URLs that the browser requested and did not get from the flight.
    pub(super) asked: &'v [&'v str],
    /// True if it requested most of what the page names. Then it had little of the page before.
    pub(super) is_new_here: bool,
}

/// Returns the lessons of a page.
pub(super) fn of(board: &dyn Board, page: u64, now_ms: u64) -> Page {
    let mut pages = read(&board.get(&name(page)).0).unwrap_or_default();
    take(&mut pages, page, now_ms)
}

/// Changes the lessons of a page. If another worker changes them at the same time, `change` runs again on the result.
/// Under too many changes at one time, the lesson is lost.
pub(super) fn learn(board: &dyn Board, page: u64, now_ms: u64, mut change: impl FnMut(&mut Page)) {
    update(board, &name(page), |value| {
        let mut pages = read(value).unwrap_or_default();
        let mut learnt = take(&mut pages, page, now_ms);
        change(&mut learnt);
        learnt.changed_ms = now_ms;
        // The page whose last visit was the longest ago comes first.
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

/// Takes a page from those of one value. Drops lessons and pages that are too old.
fn take(pages: &mut Vec<Page>, page: u64, now_ms: u64) -> Page {
    pages.retain(|one| now_ms.saturating_sub(one.changed_ms) <= PAGE_MS);
    let at = pages.iter().position(|one| one.url_key == page);
    let mut page =
        at.map_or_else(|| Page { url_key: page, changed_ms: now_ms, ..Page::default() }, |at| pages.remove(at));
    page.objects.retain(|lesson| {
        let most_ms = if lesson.unfit { UNFIT_MS } else { UNUSED_MS };
        now_ms.saturating_sub(lesson.since_ms) <= most_ms
    });
    page
}

impl Page {
    /// Returns the reason if an object is not worth fetching for a visitor.
    pub(super) fn skips(&self, object: u64, who: Who) -> Option<Skip> {
        let lesson = self.objects.iter().find(|lesson| lesson.object == object)?;
        let own_misses = if lesson.last == who { lesson.last_misses } else { 0 };
        if lesson.unfit {
            Some(Skip::Unfit)
        } else if lesson.misses.max(own_misses) >= MISSES {
            Some(Skip::Unused)
        } else {
            None
        }
    }

    /// Returns the URLs to send to a visitor although the page does not name them.
    pub(super) fn learnt(&self, who: Who) -> impl Iterator<Item = &str> {
        self.others.iter().filter(move |other| other.is_for(who)).map(|other| &*other.url)
    }

    /// Learns if a browser requested an object that the page names.
    pub(super) fn used(&mut self, object: u64, was_used: bool, who: Who, now_ms: u64) {
        if was_used {
            return self.forget(object);
        }
        let Some(lesson) = self.lesson(object, now_ms) else { return };
        if lesson.last_misses > 0 && lesson.last == who {
            lesson.last_misses = lesson.last_misses.saturating_add(1).min(MISSES);
        } else {
            lesson.misses = lesson.misses.saturating_add(1).min(MISSES);
            (lesson.last, lesson.last_misses) = (who, 1);
        }
    }

    /// Learns that an object's origin does not allow it to be sent.
    pub(super) fn unfit(&mut self, object: u64, now_ms: u64) {
        if let Some(lesson) = self.lesson(object, now_ms) {
            (lesson.unfit, lesson.since_ms) = (true, now_ms);
        }
    }

    /// Learns from a visit that is over.
    pub(super) fn visited(&mut self, visit: &Visit<'_>) -> Change {
        // A browser requests an object that was no longer sent: its lesson ends.
        for url in visit.asked {
            let object = key(url.as_bytes());
            if self.objects.iter().any(|lesson| lesson.object == object && !lesson.unfit) {
                self.forget(object);
            }
        }
        let mut change = Change::default();
        let Self { objects, others, .. } = self;
        for other in &mut *others {
            let was_sent = other.is_learnt();
            let object = key(other.url.as_bytes());
            match visit.sent.iter().find(|(sent, _)| *sent == object) {
                Some((_, was_used)) => other.witness(visit.who, *was_used, visit.is_new_here),
                None if visit.asked.contains(&&*other.url) => other.witness(visit.who, true, true),
                // The object was not sent. A browser that has it in its cache does not request it.
                None if visit.is_new_here => other.witness(visit.who, false, true),
                None => {}
            }
            change.added += u64::from(other.is_learnt() && !was_sent);
            change.dropped += u64::from(was_sent && !other.is_learnt());
        }
        let is_unfit = |url: &str| {
            let object = key(url.as_bytes());
            objects.iter().any(|lesson| lesson.object == object && lesson.unfit)
        };
        others.retain(|other| other.witnesses.iter().any(|one| one.asked > 0) && !is_unfit(&other.url));
        for url in visit.asked {
            if is_unfit(url) || others.iter().any(|other| other.url == *url) {
                continue;
            }
            // URLs that only one client requests make room, so that nobody can keep out the URLs of others.
            while !limits::have_room(others.iter().map(|other| &*other.url), url)
                && let Some(least) = others.iter().position(|other| other.has_one_client() && !other.is_learnt())
            {
                others.remove(least);
            }
            if limits::have_room(others.iter().map(|other| &*other.url), url) {
                let witnesses = vec![Witness { who: visit.who, asked: 1 }];
                others.push(Other { url: (*url).to_owned(), witnesses });
            }
        }
        change
    }

    fn forget(&mut self, object: u64) {
        self.objects.retain(|lesson| lesson.object != object);
    }

    /// Returns the lesson on an object, or a new one. `None` if there is no room for a new one.
    fn lesson(&mut self, object: u64, now_ms: u64) -> Option<&mut Lesson> {
        let at = self.objects.iter().position(|lesson| lesson.object == object);
        if at.is_none() && self.objects.len() < limits::ENTRIES {
            self.objects.push(Lesson { object, since_ms: now_ms, ..Lesson::default() });
            return self.objects.last_mut();
        }
        self.objects.get_mut(at?)
    }
}

impl Other {
    /// Returns true if the object is sent to this visitor.
    fn is_for(&self, visitor: Who) -> bool {
        let own = self.witnesses.iter().find(|one| one.who == visitor);
        own.is_some_and(|one| one.asked >= VISITS) || self.is_common(visitor.remote)
    }

    /// Returns true if the object is sent to every client of a remote. At least [`CLIENTS`] clients must have requested
    /// it, at least half of those who could, and one of the last two.
    fn is_common(&self, remote: u32) -> bool {
        let mut votes: Vec<(Who, bool)> = Vec::new();
        for one in self.witnesses.iter().rev() {
            // The newest visit stands for all clients of another remote.
            let party = if one.who.remote == remote { one.who } else { Who { client: 0, ..one.who } };
            if votes.iter().all(|(known, _)| *known != party) {
                votes.push((party, one.asked > 0));
            }
        }
        let used = votes.iter().filter(|(_, asked)| *asked).count();
        let lately = votes.iter().take(usize::from(MISSES)).any(|(_, asked)| *asked);
        used >= CLIENTS && 2 * used >= votes.len() && lately
    }

    fn has_one_client(&self) -> bool {
        self.witnesses.iter().filter(|one| one.asked > 0).count() < 2
    }

    /// Returns true if the object is sent to anybody.
    fn is_learnt(&self) -> bool {
        self.witnesses.iter().any(|one| self.is_for(one.who))
    }

    /// Notes the latest visit of a client, in place of its earlier one.
    fn witness(&mut self, who: Who, was_used: bool, is_new_here: bool) {
        let at = self.witnesses.iter().position(|one| one.who == who);
        let before = at.and_then(|at| self.witnesses.get(at)).map_or(0, |one| one.asked);
        // A browser that had most of the page may have this object as well, if it has requested it before.
        if !was_used && !is_new_here && before > 0 {
            return;
        }
        if let Some(at) = at {
            self.witnesses.remove(at);
        } else if self.witnesses.len() >= WITNESSES {
            self.witnesses.remove(0);
        }
        let asked = if was_used { before.saturating_add(1).min(VISITS) } else { 0 };
        self.witnesses.push(Witness { who, asked });
    }
}

fn read_who(reader: &mut Reader<'_>) -> Result<Who, Malformed> {
    Ok(Who { remote: u32::from_le_bytes(reader.array()?), client: u32::from_le_bytes(reader.array()?) })
}

fn put_who(out: &mut Vec<u8>, who: Who) {
    out.extend_from_slice(&who.remote.to_le_bytes());
    out.extend_from_slice(&who.client.to_le_bytes());
}

fn read(value: &[u8]) -> Result<Vec<Page>, Malformed> {
    let mut reader = Reader(value);
    let mut pages = Vec::new();
    while !reader.is_empty() {
        let (url_key, changed_ms) = (u64::from_le_bytes(reader.array()?), reader.number()?);
        let mut objects = Vec::new();
        for _ in 0..reader.length()?.min(limits::ENTRIES) {
            let (object, since_ms) = (u64::from_le_bytes(reader.array()?), reader.number()?);
            let [unfit, misses, last_misses] = reader.array()?;
            objects.push(Lesson {
                object,
                since_ms,
                unfit: unfit != 0,
                misses,
                last: read_who(&mut reader)?,
                last_misses,
            });
        }
        let mut others = Vec::new();
        for _ in 0..reader.length()?.min(limits::OTHERS) {
            let url = String::from_utf8(reader.bytes()?.to_vec()).map_err(|_| Malformed)?;
            let mut witnesses = Vec::new();
            for _ in 0..reader.length()?.min(WITNESSES) {
                witnesses.push(Witness { who: read_who(&mut reader)?, asked: reader.byte()? });
            }
            others.push(Other { url, witnesses });
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
            put_number(&mut out, lesson.since_ms);
            out.extend_from_slice(&[u8::from(lesson.unfit), lesson.misses, lesson.last_misses]);
            put_who(&mut out, lesson.last);
        }
        put_length(&mut out, others.len());
        for other in others {
            put_bytes(&mut out, other.url.as_bytes());
            put_length(&mut out, other.witnesses.len());
            for one in &other.witnesses {
                put_who(&mut out, one.who);
                out.push(one.asked);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shared_board::Memory;

    const URL: &str = "http://a.test/late.png";

    /// Returns what the next worker reads after this change.
    fn after(board: &Memory, page: u64, now_ms: u64, change: impl FnMut(&mut Page)) -> Page {
        learn(board, page, now_ms, change);
        of(board, page, now_ms)
    }

    fn who(remote: u32, client: u32) -> Who {
        Who { remote, client }
    }

    fn learnt(page: &Page, who: Who) -> Vec<&str> {
        page.learnt(who).collect()
    }

    /// A visitor who was not sent the URL requests it, or does not.
    fn asks(board: &Memory, who: Who, urls: &[&str]) -> (Change, Page) {
        let mut change = Change::default();
        let visit = Visit { who, sent: &[], asked: urls, is_new_here: true };
        let page = after(board, 1, 0, |page| change = page.visited(&visit));
        (change, page)
    }

    /// A visitor who was sent the URL uses it, or does not.
    fn gets(board: &Memory, who: Who, was_used: bool, is_new_here: bool) -> (Change, Page) {
        let mut change = Change::default();
        let visit = Visit { who, sent: &[(key(URL.as_bytes()), was_used)], asked: &[], is_new_here };
        let page = after(board, 1, 0, |page| change = page.visited(&visit));
        (change, page)
    }

    const ADDED: Change = Change { added: 1, dropped: 0 };
    const DROPPED: Change = Change { added: 0, dropped: 1 };

    #[test]
    fn an_object_unused_by_two_clients_in_a_row_is_skipped_until_it_is_used_or_forgotten() {
        let board = Memory::default();
        let (a, b, c) = (who(1, 1), who(1, 2), who(1, 3));
        let missed = |by, now| after(&board, 1, now, |page| page.used(5, false, by, now));
        assert_eq!(missed(a, 0).skips(5, c), None);
        let page = missed(a, 0);
        assert_eq!((page.skips(5, a), page.skips(5, c)), (Some(Skip::Unused), None), "one client speaks for itself");
        assert_eq!(missed(b, 9).skips(5, c), Some(Skip::Unused));
        assert_eq!(of(&board, 2, 0).skips(5, c), None, "of another page");
        assert_eq!(of(&board, 1 + limits::LESSONS, 0).skips(5, c), None, "of another page in the same value");
        assert_eq!(after(&board, 1, 0, |page| page.used(5, true, c, 0)).skips(5, a), None);
    }

    #[test]
    fn every_lesson_expires_however_often_the_page_is_visited() {
        let board = Memory::default();
        learn(&board, 1, 0, |page| {
            page.unfit(6, 0);
            page.used(7, false, who(1, 1), 0);
            page.used(7, false, who(1, 2), 0);
        });
        for hour in 0..30 {
            let now = hour * 3600 * 1000;
            let page = after(&board, 1, now, |page| page.used(8, false, who(1, 3), now));
            assert_eq!(page.skips(6, who(1, 9)), (now <= UNFIT_MS).then_some(Skip::Unfit), "{hour}");
            assert_eq!(page.skips(7, who(1, 9)), (now <= UNUSED_MS).then_some(Skip::Unused), "{hour}");
        }
    }

    #[test]
    fn pages_are_bounded_and_the_one_longest_not_requested_goes() {
        let board = Memory::default();
        let pages = limits::LESSONS * (limits::PAGES_PER_LESSONS as u64 + 1);
        for page in 0..pages {
            learn(&board, page, page, |page| page.unfit(1, 0));
        }
        let known = |page| of(&board, page, pages).skips(1, Who::default());
        assert_eq!((known(0), known(limits::LESSONS)), (None, Some(Skip::Unfit)));
        assert_eq!(board.sizes().len() as u64, limits::LESSONS);
        learn(&board, 0, pages, |_| {});
        assert_eq!(known(2 * limits::LESSONS), Some(Skip::Unfit));
    }

    #[test]
    fn lessons_of_two_workers_at_one_time_are_both_stored_even_the_first() {
        let board = Memory::default();
        let mut is_first = true;
        learn(&board, 1, 0, |page| {
            if std::mem::take(&mut is_first) {
                learn(&board, 1, 0, |page| page.unfit(2, 0));
            }
            page.unfit(3, 0);
        });
        let page = of(&board, 1, 0);
        let skips = |object| page.skips(object, Who::default());
        assert_eq!((skips(2), skips(3)), (Some(Skip::Unfit), Some(Skip::Unfit)));
    }

    #[test]
    fn an_object_that_three_clients_request_is_learnt_and_dropped_when_two_in_a_row_do_not() {
        let board = Memory::default();
        let visitor = who(1, 99);
        for client in 1..3 {
            let (change, page) = asks(&board, who(1, client), &[URL]);
            assert_eq!((change, learnt(&page, visitor)), (Change::default(), vec![]));
        }
        let (change, page) = asks(&board, who(1, 3), &[URL]);
        assert_eq!((change, learnt(&page, visitor)), (ADDED, vec![URL]));
        assert_eq!(learnt(&of(&board, 2, 0), visitor), [""; 0]);
        assert_eq!(gets(&board, who(1, 4), false, true).0, Change::default());
        assert_eq!(gets(&board, who(1, 5), true, true).0, Change::default());
        assert_eq!(gets(&board, who(1, 6), false, false).0, Change::default(), "its cache was empty of it");
        assert_eq!(gets(&board, who(1, 7), false, true).0, DROPPED);
        assert_eq!(asks(&board, visitor, &[URL]).0, ADDED);
        let page = of(&board, 1, PAGE_MS);
        assert_eq!(learnt(&page, who(1, 50)), vec![URL]);
        assert_eq!(learnt(&of(&board, 1, PAGE_MS + 1), visitor), [""; 0], "too long ago");
    }

    #[test]
    fn an_object_that_one_client_requests_at_every_visit_is_sent_to_that_client_alone() {
        let board = Memory::default();
        for _ in 0..20 {
            asks(&board, who(1, 1), &[URL]);
        }
        let page = of(&board, 1, 0);
        assert_eq!((learnt(&page, who(1, 1)), learnt(&page, who(1, 2))), (vec![URL], vec![]));
        assert_eq!(gets(&board, who(1, 1), false, false).0, Change::default(), "its cache has it");
        assert_eq!(gets(&board, who(1, 1), false, true).0, DROPPED);
    }

    #[test]
    fn clients_of_one_remote_do_not_decide_for_those_of_another() {
        let board = Memory::default();
        for client in 1..9 {
            asks(&board, who(1, client), &[URL]);
        }
        let page = of(&board, 1, 0);
        assert_eq!((learnt(&page, who(1, 99)), learnt(&page, who(2, 99))), (vec![URL], vec![]));
        asks(&board, who(3, 1), &[URL]);
        assert_eq!(learnt(&of(&board, 1, 0), who(2, 99)), [""; 0]);
        asks(&board, who(4, 1), &[URL]);
        assert_eq!(learnt(&of(&board, 1, 0), who(2, 99)), [URL]);
    }

    #[test]
    fn urls_that_one_client_asks_for_do_not_keep_out_what_others_ask_for() {
        let board = Memory::default();
        let junk: Vec<String> = (0..limits::OTHERS).map(|number| format!("http://a.test/{number}")).collect();
        let junk: Vec<&str> = junk.iter().map(String::as_str).collect();
        for _ in 0..2 {
            asks(&board, who(1, 1), &junk);
        }
        for client in 2..5 {
            asks(&board, who(1, client), &[URL]);
        }
        assert_eq!(learnt(&of(&board, 1, 0), who(1, 9)), [URL]);
    }

    #[test]
    fn objects_that_cannot_be_sent_are_not_learnt() {
        let board = Memory::default();
        for client in 1..4 {
            asks(&board, who(1, client), &[URL]);
        }
        learn(&board, 1, 0, |page| page.unfit(key(URL.as_bytes()), 0));
        for client in 1..4 {
            asks(&board, who(1, client), &[URL]);
        }
        assert_eq!(learnt(&of(&board, 1, 0), who(1, 9)), [""; 0]);
    }

    proptest! {
        #[test]
        fn hostile_values_are_refused_or_bounded(value: Vec<u8>) {
            for page in read(&value).unwrap_or_default() {
                prop_assert!(page.objects.len() <= limits::ENTRIES && page.others.len() <= limits::OTHERS);
                prop_assert!(page.others.iter().all(|other| other.witnesses.len() <= WITNESSES));
            }
        }

        /// Random visits of ten clients, who request any of nine URLs and use any of the objects that they are sent.
        #[test]
        fn every_lesson_can_be_unlearnt_and_pages_stay_bounded(
            visits in proptest::collection::vec((0_u32..10, any::<[bool; 9]>(), any::<bool>()), 0..40),
            length in 1_usize..400,
        ) {
            let board = Memory::default();
            let urls: Vec<String> = (0..9).map(|number| format!("http://a.test/{number}/{}", "x".repeat(length))).collect();
            let visit = |client: u32, wants: &[bool; 9], is_new_here: bool| {
                let who = who(1, client);
                let before = of(&board, 1, 0);
                let sent = learnt(&before, who);
                let wanted = |url: &str| urls.iter().zip(wants).any(|(one, is)| *is && one == url);
                let used: Vec<(u64, bool)> = sent.iter().map(|url| (key(url.as_bytes()), wanted(url))).collect();
                let asked: Vec<&str> =
                    urls.iter().map(String::as_str).filter(|url| wanted(url) && !sent.contains(url)).collect();
                after(&board, 1, 0, |page| {
                    page.visited(&Visit { who, sent: &used, asked: &asked, is_new_here });
                })
            };
            for (client, wants, is_new_here) in visits {
                let page = visit(client, &wants, is_new_here);
                prop_assert!(page.others.len() <= limits::OTHERS);
                prop_assert!(page.others.iter().map(|other| other.url.len()).sum::<usize>() <= limits::OTHERS_BYTES);
            }
            // Nobody requests anything any more: two clients who were never here suffice.
            for client in [100, 101] {
                visit(client, &[false; 9], false);
            }
            prop_assert!(learnt(&of(&board, 1, 0), who(1, 102)).is_empty());
        }
    }
}
