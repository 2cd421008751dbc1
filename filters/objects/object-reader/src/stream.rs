//! One request, behind the filters that change it, and before the route to the program.

use std::rc::Rc;

use filter_host::headers::{self, Map};
use filter_host::log::{self, Level};
use filter_host::stream::{Action, HttpStream};
use filter_host::{HostError, Slice, reply};
use http_semantics::Fields;
use image_variants::{key, request::variant_path, response::varies};
use name_budget::marks;
use object_bypass::Way;
use object_config::{OUTCOME, PRIVATE};
use object_rules::reply::Piece;
use object_rules::{Outcome, variant};
use object_store::{Key, Name, now_s};

use crate::glance::Glance;
use crate::shelf::{Hit, Sent};
use crate::worker::Worker;

#[derive(Debug)]
pub(crate) struct Stream {
    worker: Rc<Worker>,
    /// The way of a request that passes.
    way: Option<Way<Key>>,
    /// The bytes of a hit, until the stream ends.
    sent: Option<Sent>,
}

impl Stream {
    pub(crate) fn new(worker: Rc<Worker>) -> Self {
        Self { worker, way: None, sent: None }
    }

    fn request(&mut self, end_of_stream: bool) -> Result<Action, HostError> {
        let pairs = headers::list(Map::Request)?;
        let request: Fields<'_> = pairs.iter().collect();
        if !end_of_stream || !may_be_stored(&request) {
            return Ok(Action::Continue);
        }
        let field = |name: &str| request.get(name).unwrap_or_default();
        let variant = if self.worker.shelf.has_images() { variant_path(&request) } else { None };
        let path = variant.as_deref().unwrap_or(field(":path"));
        let name = Name::of_url(field(marks::SCHEME), field(":authority"), path);
        let mut glance = match self.worker.shelf.look(&name, &request, now_s()) {
            Ok(hit) => {
                let depends =
                    self.worker.shelf.has_images() && (variant.is_some() || varies(&hit.object.head.as_fields()));
                respond(&request, &hit, depends)?;
                self.sent = Some(hit.sent);
                self.worker.counters.request(Glance::Hit);
                return Ok(Action::Pause);
            }
            Err(why) => why,
        };
        let mut way = Way::Through(name.key);
        if glance == Glance::Absent {
            way = self.worker.shelf.bypass.request(name.key, request.has("cookie"))?;
        }
        if way == Way::Past {
            glance = Glance::Past;
        }
        self.way = Some(way);
        self.worker.counters.request(glance);
        Ok(Action::Continue)
    }

    fn response(&mut self) -> Result<(), HostError> {
        let Some(way) = self.way.take() else { return Ok(()) };
        let private = headers::get(Map::Response, PRIVATE)?;
        self.worker.shelf.bypass.response(way, private.as_deref())
    }
}

impl HttpStream for Stream {
    fn request_headers(&mut self, end_of_stream: bool) -> Action {
        self.request(end_of_stream).unwrap_or_else(pass)
    }

    fn response_headers(&mut self, _: bool) -> Action {
        self.response().map_or_else(pass, |()| Action::Continue)
    }
}

/// The program does what the reader cannot.
fn pass(error: HostError) -> Action {
    log::write(Level::Warn, &format!("object-reader: a request passes: {error}"));
    Action::Continue
}

/// Returns true for the requests that Envoy sends to the program (`part/objects_route.yaml`).
fn may_be_stored(request: &Fields<'_>) -> bool {
    let is_read = matches!(request.get(":method"), Some(b"GET" | b"HEAD"));
    let is_reserved = request.get(":path").is_some_and(key::is_reserved);
    is_read
        && !is_reserved
        && !["authorization", "content-length", "transfer-encoding"].iter().any(|name| request.has(name))
}

fn respond(request: &Fields<'_>, hit: &Hit, depends_on_accept: bool) -> Result<(), HostError> {
    let head = &hit.object.head;
    let stored = head.as_fields();
    let vary = if depends_on_accept { variant::with_name(&stored, b"Accept") } else { None };
    let fields: Fields<'_> = match &vary {
        None => stored,
        Some(vary) => stored.iter().filter(|(name, _)| *name != b"vary").chain([(&b"vary"[..], &vary[..])]).collect(),
    };
    let reply = head.reply(request, &fields);
    let status = reply.status.to_string();
    let own = reply.fields.iter().map(|(name, value)| (*name, value.as_ref()));
    let outcome = (OUTCOME.as_bytes(), Outcome::Hit.as_str().as_bytes());
    let fields: Vec<(&[u8], &[u8])> = [(&b":status"[..], status.as_bytes()), outcome].into_iter().chain(own).collect();
    let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
    let body = reply.body.iter().map(|piece| match piece {
        Piece::Bytes(bytes) => Slice::of(&bytes.as_slice().into(), 0..bytes.len()),
        Piece::Stored(range) => Slice::of(&hit.body, at(range.start)..at(range.end)),
    });
    reply::respond(&fields, body.collect())
}
