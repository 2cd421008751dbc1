//! The look into the store. All workers and all configurations of a process share it, so that its memory is bounded once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use http_semantics::Fields;
use object_bypass::Bypass;
use object_config::ReaderConfig;
use object_rules::Use;
use object_store::{Body, Found, Key, Name, Object, Onlooker, Seen};

use crate::glance::Glance;

/// The shelves of this process. They hold bytes and numbers, and nothing of a filter.
static SHELVES: Mutex<Vec<Weak<Shelf>>> = Mutex::new(Vec::new());

/// A store, as this process sees it.
#[derive(Debug)]
pub(crate) struct Shelf {
    config: ReaderConfig,
    onlooker: Onlooker,
    pub(crate) bypass: Bypass<Key>,
    sent_bytes: AtomicU64,
}

/// A stored response that a request may have.
#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) object: Arc<Object>,
    pub(crate) body: Arc<[u8]>,
    /// The bytes are on their way for as long as this lives.
    pub(crate) sent: Sent,
}

/// Bytes on their way to a client.
#[derive(Debug)]
pub(crate) struct Sent {
    shelf: Arc<Shelf>,
    bytes: u64,
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.shelf.sent_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Shelf {
    /// Returns the shelf for a configuration.
    pub(crate) fn of(config: ReaderConfig) -> Arc<Self> {
        let mut shelves = SHELVES.lock().unwrap_or_else(PoisonError::into_inner);
        shelves.retain(|shelf| shelf.strong_count() > 0);
        if let Some(shelf) = shelves.iter().filter_map(Weak::upgrade).find(|shelf| shelf.config == config) {
            return shelf;
        }
        let shelf = Arc::new(Self::new(config));
        shelves.push(Arc::downgrade(&shelf));
        shelf
    }

    fn new(config: ReaderConfig) -> Self {
        let onlooker = Onlooker::new(config.folder.clone(), config.hot_bytes, config.object_bytes);
        Self { config, onlooker, bypass: Bypass::default(), sent_bytes: AtomicU64::new(0) }
    }

    /// Looks for the response to a request.
    ///
    /// # Errors
    /// The reason why the reader does not serve it.
    pub(crate) fn look(self: &Arc<Self>, name: &Name, request: &Fields<'_>, now_s: u64) -> Result<Hit, Glance> {
        let object = self.find(name, request)?;
        if object.head.use_for(request, &self.config.plain_fields, now_s) != Some(Use::Fresh) {
            return Err(Glance::Origin);
        }
        let Body::Memory(body) = object.body.clone() else { return Err(Glance::Large) };
        let sent = self.send(body.len() as u64).ok_or(Glance::Busy)?;
        Ok(Hit { object, body, sent })
    }

    /// Returns true if clients that accept WebP get smaller variants of images.
    pub(crate) fn has_images(&self) -> bool {
        self.config.images
    }

    fn find(&self, name: &Name, request: &Fields<'_>) -> Result<Arc<Object>, Glance> {
        match self.found(name.key, &name.url)? {
            Found::Object(object) => Ok(object),
            Found::Absent => Err(Glance::Absent),
            Found::Varies(marker) => match self.found(marker.select(name.key, request), &name.url)? {
                Found::Object(object) => Ok(object),
                Found::Absent | Found::Varies(_) => Err(Glance::Absent),
            },
        }
    }

    fn found(&self, key: Key, url: &[u8]) -> Result<Found, Glance> {
        match self.onlooker.find(key, url) {
            Seen::Found(found) => Ok(found),
            Seen::Large => Err(Glance::Large),
            Seen::Cold => Err(Glance::Cold),
            Seen::Unreadable => Err(Glance::Unreadable),
        }
    }

    /// Counts bytes as on their way, if they are not too many.
    fn send(self: &Arc<Self>, bytes: u64) -> Option<Sent> {
        let before = self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        let sent = Sent { shelf: Arc::clone(self), bytes };
        (before.saturating_add(bytes) <= self.config.sent_bytes).then_some(sent)
    }
}
