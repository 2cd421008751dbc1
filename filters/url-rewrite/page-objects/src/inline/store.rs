//! The small objects that one worker prefetched to put them into pages, and facts about their use.
//!
//! Foreign pages decide which objects come, so everything is bounded. The oldest entry makes room for the newest. The
//! store finds entries by keyed hashes, so that no site can choose URLs that stand for those of another.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use http_semantics::{Purpose, shareable};
use url_mapping::{Level, Scheme};
use url_rewriting::headers::Fields;

use super::NotInlined;
use super::content::Content;
use super::limits::{BELIEVED_MS, REMEMBERED, STORE_BYTES};
use crate::config::{Budget, Config, inlines};
use crate::prefetch::Candidate;
use crate::true_url::TrueUrl;

/// The objects of a worker.
#[derive(Debug)]
pub struct ObjectStore {
    budget: Budget,
    takes_scripts: bool,
    entries: HashMap<u64, Entry>,
    /// The objects that each page named when it last passed, as far as they are remembered.
    of_page: HashMap<u64, HashSet<u64>>,
    order: VecDeque<u64>,
    /// Bytes of all objects.
    bytes: usize,
    views: u64,
    keys: RandomState,
}

/// The place of an object whose body is still to be read.
#[derive(Debug)]
pub struct Reservation {
    key: u64,
    content_type: Vec<u8>,
    newer_pictures: bool,
    fresh_until_ms: u64,
}

/// One visit to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct View {
    page: u64,
    number: u64,
}

/// The conditions of a page for its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) fresh_until_ms: u64,
    /// Its browser knows the newer formats of pictures.
    pub(super) newer_pictures: bool,
}

/// An object at hand.
#[derive(Debug, Clone)]
pub(super) struct Object {
    /// An error if it cannot be put into any page.
    pub(super) content: Result<Content, NotInlined>,
    newer_pictures: bool,
    fresh_until_ms: u64,
}

/// The facts about an object.
#[derive(Debug)]
struct Entry {
    /// The last visit to a page that named it.
    last: View,
    uses: Uses,
    since_ms: u64,
    object: Option<Object>,
}

/// How pages use an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Uses {
    Once,
    Repeatedly,
    OnSeveralPages,
}

impl ObjectStore {
    /// Makes an empty store. `None` where inlining is off.
    pub fn of<Admission>(config: &Config<Admission>) -> Option<Self> {
        Some(Self {
            budget: inlines(config)?,
            takes_scripts: config.level == Level::Full,
            entries: HashMap::new(),
            of_page: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            views: 0,
            keys: RandomState::new(),
        })
    }

    /// Reserves a place for the response to a candidate's request, if the object may be put into pages. The response has a
    /// body of `body_bytes` and stays fresh for `fresh_ms` from now. A shared cache must be allowed to store it.
    pub fn reserve(
        &self,
        candidate: &Candidate,
        fields: &Fields<'_>,
        body_bytes: usize,
        fresh_ms: u64,
        now_ms: u64,
    ) -> Option<Reservation> {
        let key = self.key(&candidate.true_url());
        let is_small = body_bytes > 0 && body_bytes <= self.budget.object_bytes;
        // An entry may have made room since its page named it.
        let is_named = self.entries.contains_key(&key);
        // The freshness is the caller's: its clock is no calendar.
        let is_for_anybody = shareable(Purpose::Inline, &Fields::default(), fields, SystemTime::UNIX_EPOCH).is_ok();
        (is_small && is_named && is_for_anybody).then(|| Reservation {
            key,
            content_type: fields.get("content-type").unwrap_or_default().to_vec(),
            newer_pictures: candidate.knows_newer_pictures(),
            fresh_until_ms: now_ms.saturating_add(fresh_ms),
        })
    }

    /// Stores the body of an object in its place.
    pub fn put(&mut self, reservation: &Reservation, body: &[u8]) {
        let object = Object {
            content: Content::of(&reservation.content_type, body, self.takes_scripts),
            newer_pictures: reservation.newer_pictures,
            fresh_until_ms: reservation.fresh_until_ms,
        };
        let Some(entry) = self.entries.get_mut(&reservation.key) else { return };
        self.bytes += object.bytes();
        if let Some(old) = entry.object.replace(object) {
            self.bytes = self.bytes.saturating_sub(old.bytes());
        }
        while self.bytes > STORE_BYTES && self.forget_oldest() {}
    }

    /// Returns the budget of inlining.
    pub(super) fn budget(&self) -> Budget {
        self.budget
    }

    /// Records a visit to a page.
    pub(super) fn look(&mut self, scheme: Scheme, authority: &str, path: &str) -> View {
        self.views += 1;
        View { page: self.key(&TrueUrl { scheme, authority, path }), number: self.views }
    }

    /// Returns true if at least one object of the page is at hand and fits.
    pub(super) fn serves(&self, view: View, need: Need) -> bool {
        let serves = |key| self.entries.get(key).is_some_and(|entry: &Entry| entry.object(need).is_ok());
        self.of_page.get(&view.page).is_some_and(|keys| keys.iter().any(serves))
    }

    /// Records that a page names an object. Returns the object, or the reason why it does not fit this page.
    pub(super) fn named(
        &mut self,
        url: &TrueUrl<'_>,
        view: View,
        need: Need,
        now_ms: u64,
    ) -> Result<Object, NotInlined> {
        let key = self.key(url);
        if let Some(entry) = self.entries.get_mut(&key) {
            let before = entry.last.page;
            entry.is_named_in(view, now_ms);
            let object = entry.object(need).cloned();
            if before != view.page {
                self.forget_in_page(before, key);
                self.of_page.entry(view.page).or_default().insert(key);
            }
            return object;
        }
        self.entries.insert(key, Entry { last: view, uses: Uses::Once, since_ms: now_ms, object: None });
        self.of_page.entry(view.page).or_default().insert(key);
        self.order.push_back(key);
        if self.order.len() > REMEMBERED {
            self.forget_oldest();
        }
        Err(NotInlined::NotHeld)
    }

    fn forget_oldest(&mut self) -> bool {
        let Some(oldest) = self.order.pop_front() else { return false };
        if let Some(Entry { last, object, .. }) = self.entries.remove(&oldest) {
            self.forget_in_page(last.page, oldest);
            self.bytes = self.bytes.saturating_sub(object.map_or(0, |object| object.bytes()));
        }
        true
    }

    fn forget_in_page(&mut self, page: u64, key: u64) {
        let Some(keys) = self.of_page.get_mut(&page) else { return };
        keys.remove(&key);
        if keys.is_empty() {
            self.of_page.remove(&page);
        }
    }

    fn key(&self, url: &TrueUrl<'_>) -> u64 {
        self.keys.hash_one((url.scheme.as_str(), url.authority, url.path))
    }
}

impl Object {
    fn bytes(&self) -> usize {
        self.content.as_ref().map_or(0, Content::bytes)
    }

    fn is_picture(&self) -> bool {
        matches!(self.content, Ok(Content::Picture(..)))
    }
}

impl Entry {
    fn is_named_in(&mut self, view: View, now_ms: u64) {
        if now_ms.saturating_sub(self.since_ms) > BELIEVED_MS {
            self.since_ms = now_ms;
            self.uses = Uses::Once;
        } else if self.last.page != view.page {
            self.uses = Uses::OnSeveralPages;
        } else if self.last.number == view.number {
            self.uses = Uses::Repeatedly;
        }
        self.last = view;
    }

    fn object(&self, need: Need) -> Result<&Object, NotInlined> {
        match self.uses {
            Uses::Once => {}
            Uses::Repeatedly => return Err(NotInlined::Repeated),
            Uses::OnSeveralPages => return Err(NotInlined::Shared),
        }
        let object = self.object.as_ref().ok_or(NotInlined::NotHeld)?;
        if let Err(why) = &object.content {
            return Err(*why);
        }
        if object.is_picture() && object.newer_pictures != need.newer_pictures {
            return Err(NotInlined::Format);
        }
        if object.fresh_until_ms < need.fresh_until_ms {
            return Err(NotInlined::Stale);
        }
        Ok(object)
    }
}
