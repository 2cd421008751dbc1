//! One page request and its response at the remote.

use http_semantics::{Edit, Fields};
use page_scanner::Unpacker;
use shared_board::Board;

use super::bases::{self, Name, Place};
use super::fields::{BASE_FIELD, NO_BASE, TAKES_DELTA, Told, is_delta, offer};
use super::kept::{Kept, unpacked};
use super::limits;
use super::policy::{self, Asked};
use super::stream::Receiver;
use crate::decoder::{Broken, Windows};
use crate::fields::is_gzip;
use crate::{TAKES, TAKES_FIELD};

/// The header list of a request, in text.
pub type RequestFields = Vec<(String, String)>;

/// One page request that may have a delta as its response.
#[derive(Debug)]
pub(crate) struct Incoming {
    place: Place,
    asked: Asked,
    /// The bases that the request names.
    names: Vec<Name>,
    /// The request without them. It is sent if a base is lost.
    plain_request: RequestFields,
    receiver: Option<Receiver>,
    /// Decodes a page that passes in gzip, to keep it.
    gzip: Option<Box<Unpacker>>,
    kept: Option<Kept>,
}

/// The form in which a page comes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// No delta.
    Other,
    /// A delta, which [`Incoming`] decodes.
    Delta,
    /// A delta of a page that is no longer here.
    BaseLost,
}

impl Incoming {
    /// Reads the request. None if it loads no page. A request with a body names no bases, because it cannot be sent
    /// again. Nor does one with a field that is no text.
    pub(crate) fn of(board: &dyn Board, request: &Fields<'_>, has_body: bool) -> Option<Self> {
        if !policy::is_page_request(request) {
            return None;
        }
        let place = Place::of(request.get(":authority").unwrap_or_default());
        let mut names = bases::names(board, place);
        names.truncate(limits::PAGES);
        let plain_request = if names.is_empty() || has_body { None } else { plain(request) };
        if plain_request.is_none() {
            names.clear();
        }
        Some(Self {
            place,
            asked: Asked::of(request),
            names,
            plain_request: plain_request.unwrap_or_default(),
            receiver: None,
            gzip: None,
            kept: None,
        })
    }

    /// Returns the changes of the request.
    pub(crate) fn request_edits(&self) -> Vec<Edit> {
        let mut edits = vec![Edit::Set(TAKES_FIELD, format!("{TAKES}, {TAKES_DELTA}").into_bytes())];
        if !self.names.is_empty() {
            edits.push(Edit::Set(BASE_FIELD, offer(&self.names)));
        }
        edits
    }

    /// Reads the headers of the response.
    pub(crate) fn response(&mut self, board: &dyn Board, response: &Fields<'_>, windows: &Windows) -> Form {
        let told = Told::of(response);
        if told.keep && self.asked.may_be_base(response) {
            self.kept = Some(Kept::default());
            self.gzip = is_gzip(response).then(Box::default);
        }
        if !is_delta(response) || self.names.is_empty() {
            return Form::Other;
        }
        let base = told.base.and_then(|name| bases::take(board, &name));
        self.receiver = base.map(|base| Receiver::new(base, windows));
        if self.receiver.is_some() { Form::Delta } else { Form::BaseLost }
    }

    /// Takes the request that brings the page without a base.
    pub(crate) fn take_plain_request(&mut self) -> RequestFields {
        self.kept = None;
        std::mem::take(&mut self.plain_request)
    }

    /// Returns true if [`Incoming::decode`] decodes the body.
    pub(crate) fn is_delta(&self) -> bool {
        self.receiver.is_some()
    }

    /// Returns true if [`Incoming::keep`] must see the page.
    pub(crate) fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    /// Decodes a piece of a delta.
    pub(crate) fn decode(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        is_end: bool,
        most: usize,
    ) -> Result<Option<Name>, Broken> {
        let Some(receiver) = &mut self.receiver else { return Ok(None) };
        receiver.write(bytes, out, most)?;
        if !is_end {
            return Ok(None);
        }
        self.receiver.take().map(Receiver::finish).transpose()
    }

    /// Reads a piece of the page. Returns true if the page has become a base.
    pub(crate) fn keep(&mut self, board: &dyn Board, page: &[u8], name: Option<Name>, is_end: bool) -> bool {
        let Some(kept) = &mut self.kept else { return false };
        match self.gzip.as_mut().map(|gzip| unpacked(gzip, page, is_end)) {
            None => kept.push(page),
            Some(Ok(plain)) => kept.push(&plain),
            Some(Err(_)) => self.kept = None,
        }
        is_end && self.kept.take().is_some_and(|kept| kept.put(board, self.place, name))
    }
}

/// Fields that belong to the first attempt of a request, and the length, which Envoy writes.
const NOT_AGAIN: [&[u8]; 4] = [b"x-longhaul-flight", b"x-longhaul-base", b"x-longhaul-takes", b"content-length"];

/// Returns the request that names no bases. None if a field is no text.
fn plain(request: &Fields<'_>) -> Option<RequestFields> {
    let text = |(name, value): (&[u8], &[u8])| {
        Some((std::str::from_utf8(name).ok()?.to_owned(), std::str::from_utf8(value).ok()?.to_owned()))
    };
    let again = request.iter().filter(|(name, _)| !NOT_AGAIN.contains(name));
    let mut fields: RequestFields = again.map(text).collect::<Option<_>>()?;
    fields.push((TAKES_FIELD.to_owned(), TAKES.to_owned()));
    fields.push((BASE_FIELD.to_owned(), NO_BASE.to_owned()));
    Some(fields)
}
