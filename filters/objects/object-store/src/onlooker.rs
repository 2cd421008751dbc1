//! The store as a process sees it that only reads, and never waits: a thread of Envoy serves other clients meanwhile.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::disk::found;
use crate::files::Folder;
use crate::head::Kind;
use crate::hot::Hot;
use crate::key::Key;
use crate::object::{Body, Found, Object};
use crate::read::{Broken, Wait};

/// How often the folder is opened again: somebody may have put another one in its place.
const OPEN_EVERY: Duration = Duration::from_secs(10);
/// The same for a folder that cannot be opened: its program may be about to start.
const OPEN_AGAIN: Duration = Duration::from_secs(1);

/// The result of a look.
#[derive(Debug, Clone)]
pub enum Seen {
    /// The store has this, or has nothing. The body of a response is in memory.
    Found(Found),
    /// The body exceeds the limit, or comes in blocks.
    Large,
    /// The disk would have to be waited for.
    Cold,
    /// The folder cannot be read.
    Unreadable,
}

/// Reads the folder of a [`Store`](crate::Store) that another process fills.
#[derive(Debug)]
pub struct Onlooker {
    path: PathBuf,
    opened: Mutex<Opened>,
    hot: Hot,
    most_body_bytes: u64,
}

#[derive(Debug, Default)]
struct Opened {
    folder: Option<Arc<Folder>>,
    next: Option<Instant>,
}

impl Onlooker {
    /// Looks into the folder `path`, which may come later. Keeps up to `hot_bytes` of responses in memory. Gives no body
    /// above `most_body_bytes`.
    pub fn new(path: PathBuf, hot_bytes: u64, most_body_bytes: u64) -> Self {
        Self { path, opened: Mutex::default(), hot: Hot::new(hot_bytes), most_body_bytes }
    }

    /// Looks a key up. A file whose URL is not `url` is absent. The lookup of the name may wait for the disk nevertheless: no
    /// call of Linux avoids that.
    pub fn find(&self, key: Key, url: &[u8]) -> Seen {
        let Some(folder) = self.folder() else { return Seen::Unreadable };
        let Some(version) = folder.version(key) else {
            self.hot.remove(key);
            return Seen::Found(Found::Absent);
        };
        if let Some((object, of, is_due)) = self.hot.get(key) {
            if of == version {
                if is_due {
                    folder.note_use(key);
                }
                return Seen::Found(found(Some(object), url));
            }
            self.hot.remove(key);
        }
        match self.read(&folder, key) {
            Err(Broken::Disk(error)) if error.kind() == io::ErrorKind::WouldBlock => Seen::Cold,
            Err(Broken::Disk(_)) => Seen::Unreadable,
            // The program removes a file that is torn.
            Err(Broken::Torn | Broken::Head(_)) => Seen::Found(Found::Absent),
            Ok(None) => Seen::Large,
            Ok(Some(object)) => {
                folder.note_use(key);
                Seen::Found(found(Some(object), url))
            }
        }
    }

    /// Reads a file into memory. None if its body is too large.
    fn read(&self, folder: &Folder, key: Key) -> Result<Option<Arc<Object>>, Broken> {
        let Some((file, seen, start)) = folder.peek(key, Wait::Never)? else {
            return Err(Broken::Torn);
        };
        // Blocks may be missing, and the program fetches them.
        if start.placed.head.kind == Kind::Slices || start.placed.head.length > self.most_body_bytes {
            return Ok(None);
        }
        let body = start.body(&file, Wait::Never)?;
        let object = Object::new(key, start.placed, Body::Memory(body.into()));
        self.hot.put(&object, seen.into());
        Ok(Some(object))
    }

    fn folder(&self) -> Option<Arc<Folder>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if opened.next.is_none_or(|next| next <= now) {
            opened.folder = Folder::open(&self.path).ok().map(Arc::new);
            let wait = if opened.folder.is_some() { OPEN_EVERY } else { OPEN_AGAIN };
            opened.next = now.checked_add(wait);
        }
        opened.folder.clone()
    }

    /// Returns the bytes of responses in memory.
    pub fn hot_bytes(&self) -> u64 {
        self.hot.bytes()
    }
}
