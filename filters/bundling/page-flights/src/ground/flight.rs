//! One page and its objects, from the page's request to the last parcel.

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use http_semantics::Reply;

use super::fetch::Fetch;
use super::known::Known;
use super::lessons::{Page, Skip, Who};
use super::visitor::Visitor;
use crate::HELD_FIELD;
use crate::counts::{Count, Counts};
use crate::digest::{FlightId, Ident, Mark, authority, key, mark, object_mark, root};
use crate::finder::{Found, rank};
use crate::frames::{self, Frame};
use crate::limits;
use crate::object::Object;
use crate::selectors::Vocabulary;

/// The size of a parcel with several objects, in bytes. Objects share parcels if there are fewer slots than objects.
const PARCEL_BYTES: usize = 16 << 10;
/// The time that an object waits for others to share its parcel, in milliseconds.
const GATHER_MS: u64 = 25;

/// The time from the page's request for which the page's first bytes wait for the first slot, in milliseconds. An
/// origin nearby may respond before that slot has arrived. If the page arrives before the manifest, the browser's
/// requests cross the link, which takes a round trip.
const FIRST_SLOT_MS: u64 = 20;

/// The name of a sent object, and the bytes sent of its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) ident: Ident,
    pub(super) bytes: u64,
}

/// A line of the manifest.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// A hash of the object's URL, for lessons.
    pub(super) object_key: u64,
    /// True if the page does not name the object, but earlier visitors requested it.
    pub(super) is_learnt: bool,
    pub(super) sent: Option<Sent>,
}

/// The names of a remote's stores: its memory for flights, and its cache on disk, which outlives its restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stores {
    pub(super) memory: u64,
    pub(super) cache: u64,
}

/// A past flight, as far as its report needs it.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) page_key: u64,
    pub(super) stores: Stores,
    pub(super) who: Who,
    pub(super) entries: Vec<Entry>,
    /// The host of the page, with its port.
    authority: String,
    /// Hashes of the hosts, with ports, that the page and its style sheets name.
    hosts: HashSet<u64>,
}

impl Past {
    /// Returns true if a visitor may teach that the page needs this URL. It must be on the page's own site, or on a
    /// host that the page or one of its style sheets names. The reason for this bound: a client may write any
    /// `Referer`.
    pub(super) fn may_need(&self, url: &str) -> bool {
        let other = authority(url);
        self.hosts.contains(&key(other.as_bytes())) || is_at_or_below(other, &self.authority)
    }
}

/// Returns true if `host` is `page_host` or below it, apart from `www.`. No host is below an IP address.
fn is_at_or_below(host: &str, page_host: &str) -> bool {
    let site = page_host.strip_prefix("www.").unwrap_or(page_host);
    let is_name =
        site.contains('.') && !site.contains('[') && site.contains(|letter: char| letter.is_ascii_alphabetic());
    let is_below = || host.strip_suffix(site).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    host == page_host || (is_name && is_below())
}

/// The outcome for an object that the ground has fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is sent.
    Sent,
    /// The memory of the remote has it, and learns its name.
    Named,
    /// The remote's cache has it, and learns that it is valid.
    Cached,
    /// It exceeds the bytes that this flight may send.
    TooMuch,
}

/// An object that the remote has.
#[derive(Debug)]
struct Held {
    index: usize,
    /// Its name in the memory of the remote. None: it is in the cache of the remote.
    memory: Option<Ident>,
    /// The headers of this response alone, or the lines of a 304.
    says: Vec<u8>,
}

#[derive(Debug)]
struct Ready {
    rank: u8,
    index: usize,
    object: Object,
    /// The time since which it waits for a slot.
    since_ms: u64,
}

/// A slot of the remote, and the time when it arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) stream: u32,
    pub(super) since_ms: u64,
}

#[derive(Debug)]
pub(super) struct Flight {
    pub(super) visitor: Visitor,
    pub(super) page_key: u64,
    /// Lessons from the page's earlier visitors.
    pub(super) lessons: Page,
    stores: Stores,
    pub(super) started_ms: u64,
    pub(super) slots: VecDeque<Slot>,
    entries: Vec<Entry>,
    urls: HashSet<u64>,
    hosts: HashSet<u64>,
    /// The page's classes and ids.
    pub(super) vocabulary: Vocabulary,
    /// Objects that are fetched only if the page has certain classes or ids, each with the style sheet or page that
    /// names it.
    waiting: Vec<(Rc<str>, Found)>,
    /// Marks that have not been announced yet.
    marks: Vec<Mark>,
    /// The number of marks that have been announced.
    announced: usize,
    wanted: Vec<Fetch>,
    pub(super) fetching: usize,
    ready: Vec<Ready>,
    /// The time since which the oldest of these objects waits.
    ready_since_ms: u64,
    withdrawn: Vec<usize>,
    /// Objects that the remote has.
    held: Vec<Held>,
    /// The time since which the oldest of them waits.
    held_since_ms: u64,
    budget: u64,
    /// True if the whole page has passed, or the rest of it will not be read.
    pub(super) page_done: bool,
    /// True if the last parcel was sent.
    pub(super) ended: bool,
}

/// Returns the value of [`HELD_FIELD`].
fn held_ms(slot_ms: u64, oldest_ms: u64) -> i64 {
    let difference = |more: u64, less: u64| i64::try_from(more.saturating_sub(less)).unwrap_or(i64::MAX);
    difference(oldest_ms, slot_ms) - difference(slot_ms, oldest_ms)
}

/// Returns the key of a page's lessons.
pub(super) fn page_key(url: &str) -> u64 {
    key(url.as_bytes())
}

impl Flight {
    pub(super) fn new(visitor: Visitor, lessons: Page, stores: Stores, budget: u64, now_ms: u64) -> Self {
        let page_key = page_key(&visitor.url);
        Self {
            visitor,
            page_key,
            lessons,
            stores,
            started_ms: now_ms,
            slots: VecDeque::new(),
            entries: Vec::new(),
            urls: HashSet::new(),
            hosts: HashSet::new(),
            vocabulary: Vocabulary::default(),
            waiting: Vec::new(),
            marks: Vec::new(),
            announced: 0,
            wanted: Vec::new(),
            fetching: 0,
            ready: Vec::new(),
            ready_since_ms: 0,
            withdrawn: Vec::new(),
            held: Vec::new(),
            held_since_ms: 0,
            budget,
            page_done: false,
            ended: false,
        }
    }

    /// Adds objects that were found in `referrer`: the page or one of its style sheets. Returns true if there are
    /// objects to announce.
    pub(super) fn add(&mut self, id: &FlightId, referrer: &str, found: Vec<Found>, counts: &mut Counts) -> bool {
        let (site, referrer) = (mark(id, root(referrer)), Rc::<str>::from(referrer));
        for found in found {
            if found.wanted.as_ref().is_some_and(|wanted| !self.vocabulary.has(wanted)) {
                if !self.page_done && self.waiting.len() < limits::ENTRIES {
                    self.waiting.push((referrer.clone(), found));
                }
                continue;
            }
            let Found { url, usage, .. } = found;
            let object_key = key(url.as_bytes());
            if self.entries.len() >= limits::ENTRIES || url == self.visitor.url || !self.urls.insert(object_key) {
                continue;
            }
            if usage.is_some() {
                self.hosts.insert(key(authority(&url).as_bytes()));
            }
            match self.lessons.skips(object_key, self.visitor.who) {
                Some(Skip::Unused) => counts.add(Count::Skipped, 1),
                Some(Skip::Unfit) => {}
                None => {
                    self.marks.push(object_mark(id, &site, &url));
                    self.wanted.push(Fetch { index: self.entries.len(), url, usage, referrer: referrer.clone() });
                    self.entries.push(Entry { object_key, is_learnt: usage.is_none(), sent: None });
                }
            }
        }
        // The last one is fetched first: the one with the lowest rank, then the one found first.
        self.wanted.sort_by_key(|fetch| std::cmp::Reverse((rank(fetch.usage), fetch.index)));
        !self.marks.is_empty()
    }

    /// Looks again at images of style sheets for which the page had no matching element yet. Returns true if there are
    /// objects to announce.
    pub(super) fn look_again(&mut self, id: &FlightId, counts: &mut Counts) -> bool {
        let mut announces = !self.marks.is_empty();
        for (referrer, found) in std::mem::take(&mut self.waiting) {
            announces |= self.add(id, &referrer, vec![found], counts);
        }
        announces
    }

    /// Takes the next object to fetch, if the limit allows one.
    pub(super) fn next_fetch(&mut self) -> Option<Fetch> {
        if self.fetching >= limits::FETCHES {
            return None;
        }
        let fetch = self.wanted.pop()?;
        self.fetching += 1;
        Some(fetch)
    }

    /// Takes a fetched object. An object that the remote has costs no bytes of those that this flight may send. `cached` is
    /// its name in the cache of the remote, and what a 304 would say.
    pub(super) fn arrived(
        &mut self,
        fetch: &Fetch,
        object: Object,
        cached: Option<(Ident, Vec<u8>)>,
        now_ms: u64,
        known: Known<'_>,
    ) -> Arrival {
        let here = known.has(self.stores.memory, &object.ident);
        let cached = cached.filter(|(name, _)| !here && known.has(self.stores.cache, name));
        if here || cached.is_some() {
            if self.held.is_empty() {
                self.held_since_ms = now_ms;
            }
            let arrival = if here { Arrival::Named } else { Arrival::Cached };
            let (ident, says) = cached.unwrap_or((object.ident, object.moment));
            self.has_sent(fetch.index, ident, 0);
            self.held.push(Held { index: fetch.index, memory: here.then_some(ident), says });
            return arrival;
        }
        let bytes = u64::try_from(object.body.len()).unwrap_or(u64::MAX);
        let Some(left) = self.budget.checked_sub(bytes) else {
            self.withdraw(fetch.index);
            return Arrival::TooMuch;
        };
        self.budget = left;
        if self.ready.is_empty() {
            self.ready_since_ms = now_ms;
        }
        self.ready.push(Ready { rank: rank(fetch.usage), index: fetch.index, object, since_ms: now_ms });
        Arrival::Sent
    }

    fn has_sent(&mut self, index: usize, ident: Ident, bytes: u64) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.sent = Some(Sent { ident, bytes });
        }
    }

    /// Withdraws an object that will not come.
    pub(super) fn withdraw(&mut self, index: usize) {
        self.withdrawn.push(index);
    }

    /// Returns true if the flight has lasted too long. No clock of a proxy steps back. If one does anyway, the flight is
    /// over: otherwise it would hold its slots until the clock has caught up.
    pub(super) fn is_over(&self, now_ms: u64) -> bool {
        now_ms.checked_sub(self.started_ms).is_none_or(|age| age > limits::FLIGHT_MS)
    }

    /// Returns true if an announcement can leave now or in a moment. The first slots travel right behind the page's
    /// request.
    pub(super) fn is_heard(&self, now_ms: u64) -> bool {
        !self.slots.is_empty() || self.awaits_slot(now_ms)
    }

    /// Returns true if there are objects to announce and the first slot may still be on its way.
    pub(super) fn awaits_slot(&self, now_ms: u64) -> bool {
        let is_early = now_ms.checked_sub(self.started_ms).is_some_and(|age| age < FIRST_SLOT_MS);
        self.announced == 0 && !self.marks.is_empty() && self.slots.is_empty() && is_early
    }

    /// Returns true if there may be something to send in a slot.
    pub(super) fn has_something(&self) -> bool {
        self.page_done || self.has_objects() || !self.marks.is_empty() || !self.withdrawn.is_empty()
    }

    /// Returns true if objects wait for a slot, or for others to share a parcel.
    pub(super) fn has_objects(&self) -> bool {
        !self.ready.is_empty() || !self.held.is_empty()
    }

    /// Returns the next parcel and its slot, if there are both. Unless `may_send` is set, the parcel contains no
    /// objects.
    pub(super) fn parcel(
        &mut self,
        may_send: bool,
        now_ms: u64,
        known: Known<'_>,
        counts: &mut Counts,
    ) -> Option<(u32, Reply)> {
        if self.ended {
            return None;
        }
        let is_complete = self.page_done && self.wanted.is_empty() && self.fetching == 0;
        // While the page streams by, the last slot is kept for objects that the rest of it names.
        let spare = usize::from(!self.page_done);
        let coming = self.fetching + self.wanted.len();
        let is_rich = self.slots.len() > self.ready.len() + coming + spare;
        let gathered: usize = self.ready.iter().map(|ready| ready.object.body.len()).sum();
        let is_full = is_rich || gathered >= PARCEL_BYTES || coming == 0;
        let is_due = is_full || now_ms.saturating_sub(self.ready_since_ms) >= GATHER_MS;
        // What the remote has takes few bytes, and fewer if many share a parcel of text.
        let names = !self.held.is_empty() && (coming == 0 || now_ms.saturating_sub(self.held_since_ms) >= GATHER_MS);
        let says = names || !self.marks.is_empty() || !self.withdrawn.is_empty();
        let waits = says && !self.held.is_empty() && self.slots.len() > spare + 1;
        let sends = may_send && is_due && !waits && !self.ready.is_empty() && self.slots.len() > spare;
        let ends = is_complete && !self.has_objects();
        if self.slots.is_empty() || !(sends || says || ends) {
            return None;
        }
        let mut parcel = frames::begin();
        // Fields are text.
        let mut is_text = !self.held.is_empty();
        let mut oldest_ms = if is_text { self.held_since_ms.min(now_ms) } else { now_ms };
        self.say(&mut parcel);
        if sends {
            self.ready.sort_by_key(|ready| std::cmp::Reverse((ready.rank, ready.index)));
            let target = if is_rich { 1 } else { PARCEL_BYTES };
            is_text = self.ready.last().is_some_and(|ready| ready.object.is_text);
            let mut bytes = 0;
            while bytes < target && self.ready.last().is_some_and(|ready| ready.object.is_text == is_text) {
                let Some(ready) = self.ready.pop() else { break };
                oldest_ms = oldest_ms.min(ready.since_ms);
                bytes += self.send(ready, known, counts, &mut parcel);
            }
            self.ready_since_ms = now_ms;
        }
        if is_complete && self.ready.is_empty() {
            Frame::End.write(&mut parcel);
            self.ended = true;
        }
        let slot = self.slots.pop_front()?;
        let content_type = if is_text { frames::TEXT_PARCEL } else { frames::PARCEL };
        let held = held_ms(slot.since_ms, oldest_ms).to_string();
        let fields = [("content-type", content_type), (HELD_FIELD, held.as_bytes())];
        Some((slot.stream, Reply::new(200, &fields, parcel)))
    }

    pub(super) fn past(self) -> Past {
        let Self { page_key, stores, entries, visitor, hosts, .. } = self;
        let authority = authority(&visitor.url).to_owned();
        Past { page_key, stores, who: visitor.who, entries, authority, hosts }
    }

    fn say(&mut self, parcel: &mut Vec<u8>) {
        if !self.marks.is_empty() {
            let marks = std::mem::take(&mut self.marks);
            let first = self.announced;
            self.announced += marks.len();
            Frame::Announced { first, marks }.write(parcel);
        }
        for index in self.withdrawn.drain(..) {
            Frame::Withdrawn { index }.write(parcel);
        }
        for Held { index, memory, says } in self.held.drain(..) {
            match memory {
                Some(ident) => Frame::Reference { index, ident, moment: &says }.write(parcel),
                None => Frame::Valid { index, lines: &says }.write(parcel),
            }
        }
    }

    /// Adds an object to the parcel, or only its name if the remote has it. Returns the number of bytes added.
    fn send(&mut self, ready: Ready, known: Known<'_>, counts: &mut Counts, parcel: &mut Vec<u8>) -> usize {
        let Ready { index, object, .. } = ready;
        let before = parcel.len();
        let bytes = u64::try_from(object.body.len()).unwrap_or(u64::MAX);
        let is_known = !known.add(self.stores.memory, &object.ident);
        if is_known {
            Frame::Reference { index, ident: object.ident, moment: &object.moment }.write(parcel);
            counts.add(Count::References, 1);
        } else {
            let Object { ident, head, moment, body, .. } = &object;
            Frame::Object { index, ident: *ident, head, moment, body }.write(parcel);
            counts.add(Count::Objects, 1);
            counts.add(Count::ObjectBytes, bytes);
        }
        self.has_sent(index, object.ident, if is_known { 0 } else { bytes });
        parcel.len() - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_may_need_what_is_on_its_site_and_on_hosts_that_it_names() {
        for (host, page_host, is) in [
            ("www.a.test", "www.a.test", true),
            ("img.a.test", "www.a.test", true),
            ("a.test", "www.a.test", true),
            ("x.www.a.test:81", "www.a.test:81", true),
            ("eviltest.a.test.evil.test", "www.a.test", false),
            ("evila.test", "www.a.test", false),
            ("b.test", "www.a.test", false),
            ("x.test", "www.test", false),
            ("9.192.0.2.1", "192.0.2.1", false),
            ("x.a.test", "a.test:8080", false),
        ] {
            assert_eq!(is_at_or_below(host, page_host), is, "{host} {page_host}");
        }
    }
}
