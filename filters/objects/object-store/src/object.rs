//! Stored responses, as lookups give them.

use std::sync::Arc;

use http_semantics::Fields;
use object_rules::variant;

use crate::head::{Head, Placed};
use crate::key::Key;
use crate::reader::Reader;
use crate::slices::Slices;

/// Bodies up to this length in bytes are given in memory.
pub const MAX_MEMORY_BODY: u64 = 64 * 1024;

/// A stored response.
#[derive(Debug, Clone)]
pub struct Object {
    /// The status, the fields and the life of the response.
    pub head: Head,
    /// The body.
    pub body: Body,
    pub(crate) key: Key,
    pub(crate) stamp: u64,
}

impl Object {
    pub(crate) fn new(key: Key, placed: Placed, body: Body) -> Arc<Self> {
        let Placed { head, stamp, .. } = placed;
        Arc::new(Self { head, body, key, stamp })
    }

    /// Returns the key under which the response lies.
    pub fn key(&self) -> Key {
        self.key
    }
}

/// The body of a stored response.
#[derive(Debug, Clone)]
pub enum Body {
    /// The whole body, of [`MAX_MEMORY_BODY`] at most.
    Memory(Arc<[u8]>),
    /// A body that lies in an open file.
    File(Reader),
    /// A body of which some blocks may be missing.
    Slices(Slices),
}

/// The marker of a URL whose responses vary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The names of the fields.
    pub names: Vec<Vec<u8>>,
    /// A number that no other marker has. It belongs into [`Key::of_variant`]: once the marker is removed, nobody finds the
    /// variants of its time again.
    pub stamp: u64,
}

impl Marker {
    /// Returns the key of the response to `request`. `url` is that of the URL.
    pub fn select(&self, url: Key, request: &Fields<'_>) -> Key {
        Key::of_variant(url, self.stamp, &variant::values(request, &self.names))
    }
}

/// The result of a lookup.
#[derive(Debug, Clone)]
pub enum Found {
    /// Nothing that can be used.
    Absent,
    /// A marker: responses of this URL depend on fields of the request, and lie under [`Key::of_variant`].
    Varies(Marker),
    /// A response.
    Object(Arc<Object>),
}
