//! The treatment of pages and their objects: URLs that move, caching, compression, prefetching and images.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use object_rules::groups::{Group, Groups};
use object_rules::plain::PlainField;

use crate::names::HostName;
use crate::units::Bytes;

/// The URLs that move, and their target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// The URLs that may move.
    pub level: Level,
    /// The target in the file. The chosen one is [`crate::derive::Derived::target`].
    pub target: TargetWish,
    /// Names that are never rewritten, each with everything below it.
    pub exclude: Vec<HostName>,
}

/// The extent of the changes to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Nothing.
    Off,
    /// URLs that can move without a change in the page's behaviour.
    Safe,
    /// The same, and objects of the page's own host.
    Full,
}

/// The target of moved URLs that the operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetWish {
    /// The kind with a gain by the link model. No URL moves if moving would slow a page.
    Auto,
    /// The secure names.
    Https,
    /// The proxy addresses.
    Http,
}

/// The cache of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cache {
    /// No cache.
    Off,
    /// A cache of this box on disk: the program `longhaul-objects`.
    Disk {
        /// The folder, absolute.
        dir: PathBuf,
        /// The size.
        size: Bytes,
        /// Request fields that change no response. They keep no request from the cache.
        plain_fields: Vec<PlainField>,
        /// Groups of hosts that serve the same objects.
        groups: Vec<CacheGroup>,
        /// True if the file of a remote does not mention a cache. Then a machine without room for it has none, which is no
        /// fault, and the size is at most a tenth of the disk.
        is_assumed: bool,
    },
    /// Existing caching proxies replace the origin, at least one and each once. Each URL has its own among them. They
    /// have addresses, because Envoy connects to them for every object.
    Parents(Vec<SocketAddr>),
}

/// A group of hosts that serve the same objects, as the operator declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheGroup {
    /// The file with the names of its hosts.
    pub file: PathBuf,
    /// The group.
    pub group: Group,
}

impl Cache {
    /// Returns the groups of hosts that serve the same objects, for questions about hosts.
    pub fn host_groups(&self) -> Groups {
        Groups::new(self.groups().iter().map(|one| one.group.clone()).collect())
    }

    /// Returns the groups of hosts that serve the same objects, as the file has them.
    pub fn groups(&self) -> &[CacheGroup] {
        match self {
            Self::Disk { groups, .. } => groups,
            Self::Off | Self::Parents(_) => &[],
        }
    }

    /// Returns true if this box caches objects itself, in the program `longhaul-objects`.
    pub fn is_on_disk(&self) -> bool {
        matches!(self, Self::Disk { .. })
    }

    /// Returns true if the file does not mention this cache.
    pub fn is_assumed(&self) -> bool {
        matches!(self, Self::Disk { is_assumed: true, .. })
    }
}

/// Compression of responses to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compress {
    /// The quality of brotli, 0-11.
    pub brotli: CompressionLevel,
    /// The level of gzip, 1-9.
    pub gzip: CompressionLevel,
}

/// The effort of a compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionLevel {
    /// Responses do not get this content encoding.
    Off,
    /// The level is derived from the link.
    Auto,
    /// The level in the file.
    Set(u8),
}

/// Prefetching and bundling of a page's objects, and the encoding of pages on a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// True if its moved objects are prefetched into the cache while the page passes.
    pub prefetch: bool,
    /// True if its objects are sent to the remote of a pair behind the page.
    pub bundle: bool,
    /// The way of pages over a pair's link, as differences from other pages of their sites.
    pub(crate) delta: Delta,
}

/// The cases in which pages cross a pair's link as differences from other pages of their sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delta {
    /// If the link model expects a gain.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Smaller variants of images (`page.images`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// The cases in which clients get variants.
    pub wish: ImagesWish,
    /// The quality of variants of JPEG images, 1 to 100.
    pub quality: u8,
    /// The quality of variants of PNG images. None: lossless.
    pub png_quality: Option<u8>,
    /// Smaller images are left.
    pub min: Bytes,
    /// Larger images are left.
    pub max: Bytes,
    /// Hosts whose images are left, each with everything below it.
    pub exclude: Vec<HostName>,
}

/// The cases in which clients get smaller variants of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagesWish {
    /// If the link model expects a gain.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Bounds on the cost of variants of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    /// The number of images that are recoded at a time.
    pub workers: u32,
    /// The address space of the process that recodes one image.
    pub memory: Bytes,
    /// The pixels of the largest image that is recoded.
    pub pixels: u32,
    /// The longest time for one image.
    pub time: Duration,
}
