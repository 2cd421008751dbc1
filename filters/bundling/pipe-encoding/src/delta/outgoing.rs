//! One page request and its response at the ground.

use std::borrow::Cow;

use http_semantics::{Edit, Fields};
use page_scanner::Unpacker;
use shared_board::Board;

use super::bases::{self, Name, Place};
use super::fields::{BASE_FIELD, CODING, Short, TAKES_DELTA, Told, offered, short};
use super::kept::{Kept, unpacked};
use super::policy::{self, Asked, Left};
use super::stream::Sender;
use crate::TAKES_FIELD;
use crate::decoder::Windows;
use crate::events::{Body, Event, byte_count};
use crate::fields::{edits, is_gzip};

/// One page request of a remote that reads deltas, and its response.
#[derive(Debug)]
pub struct Outgoing {
    place: Place,
    asked: Asked,
    offered: Vec<Short>,
    windows: Windows,
    /// Decodes a page that the origin sends in gzip.
    gzip: Option<Box<Unpacker>>,
    sender: Option<Sender>,
    kept: Option<Kept>,
    events: Vec<(Event, u64)>,
}

impl Outgoing {
    /// Reads the request. None if the remote reads no deltas, or if the request loads no page.
    pub fn of(request: &Fields<'_>, windows: &Windows) -> Option<Self> {
        let is_page = request.lists(TAKES_FIELD, TAKES_DELTA) && policy::is_page_request(request);
        is_page.then(|| Self {
            place: Place::of(request.get(":authority").unwrap_or_default()),
            asked: Asked::of(request),
            offered: offered(request),
            windows: windows.clone(),
            gzip: None,
            sender: None,
            kept: None,
            events: Vec::new(),
        })
    }

    /// Returns the change of every request of a remote: no origin sees the names of bases.
    pub fn request_edit() -> Edit {
        Edit::remove(BASE_FIELD)
    }

    /// Reads the headers of the response, and returns the changes of them. `has_body` is false if the headers end the
    /// response.
    pub fn response(&mut self, board: &dyn Board, response: &Fields<'_>, has_body: bool) -> Vec<Edit> {
        let judged = self.asked.may_be_delta(response, has_body);
        self.kept = (judged.is_ok() && self.asked.may_be_base(response)).then(Kept::default);
        let base = judged.and_then(|()| self.encode(board));
        self.events.push((base.map_or_else(Event::from, |_| Event::Deltas), 1));
        let told = Told { keep: self.kept.is_some(), base: base.ok() };
        let mut changes = Vec::new();
        if is_gzip(response) && self.reads_body() {
            self.gzip = Some(Box::default());
            changes = edits(response);
        }
        changes.extend(told.value().map(|value| Edit::Set(BASE_FIELD, value)));
        if self.sender.is_some() {
            changes.push(Edit::Set("content-encoding", CODING.as_bytes().to_vec()));
            changes.push(Edit::remove("content-length"));
        }
        changes
    }

    /// Starts to encode the page. Returns the name of its base.
    fn encode(&mut self, board: &dyn Board) -> Result<Name, Left> {
        let own = bases::names(board, self.place);
        let common = self.offered.iter().find_map(|offered| own.iter().find(|name| short(name) == *offered));
        let (name, base) = common.and_then(|name| Some((*name, bases::take(board, name)?))).ok_or(Left::NoBase)?;
        self.sender = Some(Sender::new(&base, &self.windows).ok_or(Left::Memory)?);
        Ok(name)
    }

    /// Returns true if [`Outgoing::body`] must see the body.
    pub fn reads_body(&self) -> bool {
        self.gzip.is_some() || self.sender.is_some() || self.kept.is_some()
    }

    /// Reads a piece of the body. `is_end` is true for the last one, which may be empty.
    pub fn body(&mut self, board: &dyn Board, bytes: &[u8], is_end: bool) -> Body {
        let plain: Cow<'_, [u8]> = match &mut self.gzip {
            None => bytes.into(),
            Some(gzip) => match unpacked(gzip, bytes, is_end) {
                Ok(plain) => plain.into(),
                Err(broken) => {
                    self.events.push((Event::from(broken), 1));
                    return Body::BreakOff;
                }
            },
        };
        if let Some(kept) = &mut self.kept {
            kept.push(&plain);
        }
        let mut out = Vec::new();
        let is_delta = self.sender.is_some();
        if let Some(sender) = &mut self.sender {
            sender.write(&plain, &mut out);
        }
        if is_end {
            let name = self.sender.take().map(|sender| sender.finish(&mut out));
            if self.kept.take().is_some_and(|kept| kept.put(board, self.place, name)) {
                self.events.push((Event::Bases, 1));
            }
        }
        if is_delta {
            self.events.push((Event::DeltaPageBytes, byte_count(plain.len())));
            self.events.push((Event::DeltaBytes, byte_count(out.len())));
            return Body::Replace(out);
        }
        if self.gzip.is_some() { Body::Replace(plain.into_owned()) } else { Body::Pass }
    }

    /// Ends the body at its trailers, where nothing can be added to it any more. A delta would need that.
    pub fn trailers(&mut self, board: &dyn Board) -> Body {
        match self.body(board, &[], true) {
            Body::Replace(end) if end.is_empty() => Body::Pass,
            Body::Replace(_) | Body::BreakOff => Body::BreakOff,
            Body::Pass => Body::Pass,
        }
    }

    /// Takes the counted events.
    pub fn take_events(&mut self) -> Vec<(Event, u64)> {
        std::mem::take(&mut self.events)
    }
}

impl From<Left> for Event {
    fn from(why: Left) -> Self {
        match why {
            Left::Status => Self::LeftStatus,
            Left::Type => Self::LeftType,
            Left::NoTransform => Self::LeftNoTransform,
            Left::Encoded => Self::LeftEncoded,
            Left::Private => Self::LeftPrivate,
            Left::NoBase => Self::LeftNoBase,
            Left::Memory => Self::LeftMemory,
        }
    }
}
