//! A request on its way through both ends, and its response on the way back.
//!
//! ```text
//! client ─► 0 bundling ─► router ─► 1 headers ═══ link ═══► 2 headers ─► 3 bundling ─► origin      (remote | ground)
//! ```
//!
//! A remote's own request, such as a slot, begins behind the router.

use std::collections::VecDeque;

use crate::fields::Field;
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
}

/// A part of a response.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Headers(Vec<Field>, bool),
    Body(Vec<u8>, bool),
    Reset,
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
