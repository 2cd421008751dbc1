//! One request and its response at the remote.

use http_semantics::{Edit, Fields, Reply, edited};
use shared_board::Board;

use crate::accept::{refuses_plain, takes};
use crate::decoder::{Decoder, Windows, decode};
use crate::delta::{BASE_FIELD, Form, Incoming, RequestFields};
use crate::events::{Body, Event, byte_count};
use crate::fields::{edits, is_br, of_decoded_delta, weakened};
use crate::{TAKES, TAKES_FIELD, limits};

/// The treatment of a response.
#[derive(Debug, PartialEq, Eq)]
pub enum Response {
    /// These changes of its headers. The body goes to [`Exchange::body`].
    Edit(Vec<Edit>),
    /// The response waits and is dropped. The response to this request takes its place, by [`Exchange::asked_again`].
    AskAgain(RequestFields),
}

/// One request that crosses the link, and its response.
#[derive(Debug)]
pub struct Exchange {
    /// True if the client accepts br itself.
    accepts_br: bool,
    /// `If-None-Match` of the request. The tag of a decompressed response is weak.
    if_none_match: Vec<u8>,
    decoder: Option<Decoder>,
    /// None if the request loads no page, or if pages are no deltas.
    page: Option<Incoming>,
    windows: Windows,
    /// Counted since [`Exchange::take_events`].
    events: Vec<(Event, u64)>,
}

impl Exchange {
    /// Reads the request. None if its response must cross the link as the client itself accepts it:
    ///
    /// | request | reason |
    /// |---|---|
    /// | with `Range` | a part of a compressed body cannot be decompressed |
    /// | `CONNECT`, or with `Upgrade` | its bytes are no body |
    /// | of a client that refuses a plain response | it could not read the decompressed one |
    /// | while the worker holds many windows | memory |
    pub fn of(request: &Fields<'_>, windows: &Windows) -> Option<Self> {
        let accepted: Vec<u8> = request.all("accept-encoding").collect::<Vec<_>>().join(&b","[..]);
        let is_other = request.has("range")
            || request.has("upgrade")
            || request.get(":method") == Some(b"CONNECT")
            || refuses_plain(&accepted)
            || windows.are_many();
        (!is_other).then(|| Self {
            accepts_br: takes(&accepted, TAKES.as_bytes()),
            if_none_match: request.all("if-none-match").collect::<Vec<_>>().join(&b","[..]),
            decoder: None,
            page: None,
            windows: windows.clone(),
            events: Vec::new(),
        })
    }

    /// Lets the response be a delta if the request loads a page. `has_body` is true if the request has a body. The client
    /// gets a plain page then, even if it accepts br: this end must read the page to keep it.
    pub fn allow_delta(&mut self, board: &dyn Board, request: &Fields<'_>, has_body: bool) {
        self.page = Incoming::of(board, request, has_body);
        self.accepts_br &= self.page.is_none();
    }

    /// Returns the changes of the request.
    pub fn request_edits(&self) -> Vec<Edit> {
        let br = || vec![Edit::Set(TAKES_FIELD, TAKES.as_bytes().to_vec())];
        self.page.as_ref().map_or_else(br, Incoming::request_edits)
    }

    /// Returns true if [`Exchange::response`] may change the response.
    pub fn changes_responses(&self) -> bool {
        !self.accepts_br
    }

    /// Returns true if [`Exchange::body`] must see the body.
    pub fn reads_body(&self) -> bool {
        self.decoder.is_some() || self.page.as_ref().is_some_and(|page| page.is_delta() || page.keeps())
    }

    /// Reads the headers of the response.
    pub fn response(&mut self, board: &dyn Board, response: &Fields<'_>) -> Response {
        let mut changes = Vec::new();
        if response.has(BASE_FIELD) {
            changes.push(Edit::remove(BASE_FIELD));
        }
        let form = self.page.as_mut().map_or(Form::Other, |page| page.response(board, response, &self.windows));
        match (form, &mut self.page) {
            (Form::Delta, _) => {
                self.events.push((Event::Deltas, 1));
                changes.extend(of_decoded_delta(response));
                return Response::Edit(changes);
            }
            (Form::BaseLost, Some(page)) => {
                self.events.push((Event::BaseLost, 1));
                return Response::AskAgain(page.take_plain_request());
            }
            _ => {}
        }
        changes.extend(self.decompressed(response));
        Response::Edit(changes)
    }

    /// Returns the changes of a response that may be in br.
    fn decompressed(&mut self, response: &Fields<'_>) -> Vec<Edit> {
        if response.status() == 304 && !is_br(response) {
            return self.confirmed(response).into_iter().collect();
        }
        // A part of a body comes only if the origin misunderstood the request.
        if self.accepts_br || !is_br(response) || response.status() == 206 {
            return Vec::new();
        }
        self.decoder = Some(Decoder::new(&self.windows));
        self.events.push((Event::Responses, 1));
        edits(response)
    }

    /// Returns the change that makes a validated tag the one that the client has.
    fn confirmed(&self, response: &Fields<'_>) -> Option<Edit> {
        let tag = response.get("etag")?;
        let weak = [b"W/", tag].concat();
        let is_held = self.if_none_match.split(|&byte| byte == b',').any(|item| item.trim_ascii() == weak);
        if is_held { weakened(tag) } else { None }
    }

    /// Reads a piece of the body. `is_end` is true for the last one, which may be empty.
    pub fn body(&mut self, board: &dyn Board, bytes: &[u8], is_end: bool) -> Body {
        let (mut plain, mut name) = (Vec::new(), None);
        let decoded = if let Some(page) = self.page.as_mut().filter(|page| page.is_delta()) {
            let decoded = page.decode(bytes, &mut plain, is_end, limits::BYTES_AT_ONCE);
            self.events.push((Event::DeltaBytes, byte_count(bytes.len())));
            self.events.push((Event::DeltaPageBytes, byte_count(plain.len())));
            Some(decoded.map(|found| name = found))
        } else if let Some(decoder) = &mut self.decoder {
            let written = decoder.write(bytes, &mut plain, limits::BYTES_AT_ONCE);
            self.events.push((Event::Bytes, byte_count(bytes.len())));
            Some(written.and_then(|_| if is_end { decoder.finish() } else { Ok(()) }))
        } else {
            None
        };
        if let Some(Err(broken)) = decoded {
            self.events.push((Event::from(broken), 1));
            return Body::BreakOff;
        }
        let page = if decoded.is_some() { &plain[..] } else { bytes };
        if self.page.as_mut().is_some_and(|kept| kept.keep(board, page, name, is_end)) {
            self.events.push((Event::Bases, 1));
        }
        if decoded.is_some() { Body::Replace(plain) } else { Body::Pass }
    }

    /// Returns the response for the client from the response to [`Response::AskAgain`]. None means that no response came.
    pub fn asked_again(&mut self, came: Option<(&Fields<'_>, &[u8])>) -> Reply {
        let Some((response, body)) = came else { return failed("the link broke while a page was requested again") };
        let is_other =
            |name: &[u8]| name.starts_with(b":") || name.starts_with(b"x-longhaul-") || name == b"content-length";
        let fields: Fields<'_> = response.iter().filter(|(name, _)| !is_other(name)).collect();
        let status = response.status();
        if !is_br(response) {
            return Reply { status, fields: fields.to_list(), body: body.to_vec() };
        }
        self.events.extend([(Event::Responses, 1), (Event::Bytes, byte_count(body.len()))]);
        match decode(body, limits::BYTES_AT_ONCE) {
            Ok(body) => Reply { status, fields: edited(fields, &edits(response)).to_list(), body },
            Err(broken) => {
                self.events.push((Event::from(broken), 1));
                failed("a page that was requested again is damaged")
            }
        }
    }

    /// Takes the counted events.
    pub fn take_events(&mut self) -> Vec<(Event, u64)> {
        std::mem::take(&mut self.events)
    }
}

/// Returns the response for a client whose page did not come.
fn failed(why: &str) -> Reply {
    let fields: [(&str, &[u8]); 2] = [("content-type", b"text/plain"), ("cache-control", b"no-store")];
    Reply::new(502, &fields, format!("502 {why}. Try again\n"))
}

#[cfg(test)]
mod tests {
    use shared_board::Memory;

    use super::*;

    fn fields(list: &[(&'static str, &'static str)]) -> Fields<'static> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    fn exchange(request: &[(&'static str, &'static str)]) -> Option<Exchange> {
        Exchange::of(&fields(request), &Windows::default())
    }

    fn changes(exchange: &mut Exchange, response: &[(&'static str, &'static str)]) -> Vec<Edit> {
        match exchange.response(&Memory::default(), &fields(response)) {
            Response::Edit(edits) => edits,
            Response::AskAgain(request) => panic!("{request:?}"),
        }
    }

    /// "text" in br, without compression.
    const BR: &[u8] = b"\x8b\x01\x80text\x03";
    const IN_BR: [(&str, &str); 2] = [(":status", "200"), ("content-encoding", "br")];

    #[test]
    fn the_pipe_takes_br_for_every_request_but_those_of_the_table() {
        for request in [&[][..], &[("accept-encoding", "gzip, deflate")], &[("accept-encoding", "identity")]] {
            assert!(exchange(request).is_some(), "{request:?}");
        }
        for request in [
            ("range", "bytes=0-"),
            ("upgrade", "websocket"),
            (":method", "CONNECT"),
            ("accept-encoding", "gzip, *;q=0"),
        ] {
            assert!(exchange(&[request]).is_none(), "{request:?}");
        }
    }

    #[test]
    fn a_client_gets_the_plain_body_unless_it_accepts_br() {
        for (accepted, body) in [
            ("gzip", Body::Replace(b"text".to_vec())),
            ("identity", Body::Replace(b"text".to_vec())),
            ("br;q=0", Body::Replace(b"text".to_vec())),
            ("gzip, br", Body::Pass),
        ] {
            let mut exchange = exchange(&[("accept-encoding", accepted)]).unwrap();
            let is_plain = body != Body::Pass;
            assert_eq!(changes(&mut exchange, &IN_BR).is_empty(), !is_plain, "{accepted}");
            assert_eq!(exchange.body(&Memory::default(), BR, true), body, "{accepted}");
            let counted = exchange.take_events();
            let expected = [(Event::Responses, 1), (Event::Bytes, 8)];
            assert_eq!(counted, if is_plain { &expected[..] } else { &[] }, "{accepted}");
        }
    }

    #[test]
    fn bodies_in_other_content_encodings_than_br_pass() {
        for response in [
            [(":status", "200"), ("content-encoding", "gzip")],
            [(":status", "200"), ("content-encoding", "gzip, br")],
            [(":status", "206"), ("content-encoding", "br")],
        ] {
            let mut exchange = exchange(&[]).unwrap();
            assert_eq!(changes(&mut exchange, &response), [], "{response:?}");
            assert_eq!(exchange.body(&Memory::default(), BR, true), Body::Pass);
        }
    }

    #[test]
    fn a_broken_body_breaks_off_with_its_reason() {
        for (body, is_end, reason) in [
            (&BR[..5], true, Event::CutOff),
            (b"junk, not br", false, Event::Damaged),
            (b"\x11\x11", false, Event::Window),
        ] {
            let mut exchange = exchange(&[]).unwrap();
            changes(&mut exchange, &IN_BR);
            assert_eq!(exchange.body(&Memory::default(), body, is_end), Body::BreakOff);
            assert_eq!(exchange.take_events().last(), Some(&(reason, 1)));
        }
    }

    #[test]
    fn a_response_without_a_body_has_the_fields_of_one_with_it() {
        let mut exchange = exchange(&[(":method", "HEAD")]).unwrap();
        let edits = changes(&mut exchange, &[(":status", "200"), ("content-encoding", "br"), ("content-length", "9")]);
        assert!(edits.contains(&Edit::remove("content-length")));
        assert_eq!(exchange.body(&Memory::default(), b"", true), Body::Replace(Vec::new()));
    }

    #[test]
    fn a_304_confirms_the_tag_that_the_client_has() {
        let response = [(":status", "304"), ("etag", "\"x\"")];
        for (held, expected) in [("W/\"y\", W/\"x\"", vec![Edit::Set("etag", b"W/\"x\"".to_vec())]), ("\"x\"", vec![])]
        {
            let mut exchange = exchange(&[("if-none-match", held)]).unwrap();
            assert_eq!(changes(&mut exchange, &response), expected, "{held}");
        }
    }
}
