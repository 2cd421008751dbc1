//! A request on its way through both ends, and its response on the way back.
//!
//! ```text
//! client ─► 0 bundling ─► cache ─► router ─► 1 headers ═══ link ═══► 2 headers ─► 3 bundling ─► origin      (remote | ground)
//! ```
//!
//! A remote's own request, such as a slot, begins behind the router.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use crate::cache::Fill;
use crate::fields::Field;
use crate::piece::Piece;
use crate::place::{FILTERS, VmKey};

/// The receiver of the response.
#[derive(Debug, Clone)]
pub(crate) enum Sink {
    /// A client's browser.
    Client(Asked),
    /// A callback of a module at the remote.
    Callout { vm: VmKey, owner: u32, token: u32 },
    /// Nobody: another remote.
    Nobody,
}

/// A client's request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) client: u8,
    pub(crate) url: crate::origin::Url,
    pub(crate) cookie: Option<String>,
    pub(crate) at_ms: u64,
    /// True if the request claims to be of an end, so that no response is due.
    pub(crate) is_forged: bool,
    pub(crate) wants: Wants,
}

/// The part of a response that a client wants.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Wants {
    Whole,
    /// These bytes, for a download that it continues.
    Part(Range<usize>),
    /// Another one than this body, which its own cache has.
    Other(Vec<u8>),
}

impl fmt::Debug for Wants {
    /// Leaves bodies out of the words about a broken law.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => out.write_str("Whole"),
            Self::Part(part) => write!(out, "Part({part:?})"),
            Self::Other(body) => write!(out, "Other({} bytes)", body.len()),
        }
    }
}

/// A response as a client receives it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'r> {
    pub(crate) status: u16,
    pub(crate) fields: &'r [Field],
    pub(crate) body: &'r [u8],
    /// False for one that breaks off.
    pub(crate) is_whole: bool,
    /// True if the cache served it because the origin failed.
    pub(crate) is_stale: bool,
}

/// The state of one filter of an exchange.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The module and its stream, once the request has reached it.
    pub(crate) stream: Option<(VmKey, u32)>,
    /// True while the filter holds the request.
    pub(crate) holds_request: bool,
    /// True once the filter has seen a response.
    pub(crate) has_response: bool,
    /// While the filter holds the response's headers: true if they are the whole response.
    pub(crate) held_headers: Option<bool>,
    /// Pieces behind held headers.
    pub(crate) behind: VecDeque<Piece>,
    /// True if the part of the body that the filter holds is the last one.
    pub(crate) holds_last: bool,
}

/// A request and its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) sink: Sink,
    /// The worker of the remote.
    pub(crate) worker: u8,
    /// The connection that carries the attempt, and the ground's worker at its end.
    pub(crate) pipe: u32,
    pub(crate) ground_worker: u8,
    /// The request as the next attempt begins: as it left the filters before the router, or as it left the remote in the
    /// attempt before. Envoy runs the filters behind the router on the same fields each time.
    pub(crate) routed: Vec<Field>,
    /// The request as the last filter that saw it left it.
    pub(crate) request: Vec<Field>,
    pub(crate) places: [Place; FILTERS],
    /// The request to the origin that the cache of the remote has sent on.
    pub(crate) fill: Option<Box<Fill>>,
    /// True if the cache responds, so that nothing crosses the link.
    pub(crate) is_cached: bool,
    /// Counts up with each attempt, so that what belongs to an earlier one is recognised.
    pub(crate) attempt: u32,
    /// True once the response's headers have passed the router.
    pub(crate) has_begun: bool,
    /// The earliest arrival of the next piece at the remote: pieces stay in order.
    pub(crate) down_ms: u64,
    /// True if the ground may compress the response.
    pub(crate) takes_br: bool,
    /// The response's text so far, while the ground compresses it.
    pub(crate) to_compress: Option<Vec<u8>>,
    pub(crate) status: u16,
    pub(crate) fields: Vec<Field>,
    pub(crate) body: Vec<u8>,
}

impl Exchange {
    pub(crate) fn new(sink: Sink, worker: u8, request: Vec<Field>) -> Self {
        Self {
            sink,
            worker,
            pipe: 0,
            ground_worker: 0,
            routed: request.clone(),
            request,
            places: Default::default(),
            fill: None,
            is_cached: false,
            attempt: 0,
            has_begun: false,
            down_ms: 0,
            takes_br: false,
            to_compress: None,
            status: 0,
            fields: Vec::new(),
            body: Vec::new(),
        }
    }

    /// The place of a filter.
    pub(crate) fn place(&mut self, at: usize) -> Option<&mut Place> {
        self.places.get_mut(at)
    }
}
