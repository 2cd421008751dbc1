//! One request and its response at the remote.

use http_semantics::{Fields, labelled};

use crate::accept::{refuses_plain, takes};
use crate::decoder::{Broken, Decoder, Windows};
use crate::fields::{Edit, edits, is_br, weakened};
use crate::{TAKES, TAKES_FIELD, limits};

labelled! {
    /// An event or an amount that is counted. The label is the metric's name without prefix; the part after `_reason_`
    /// becomes a label.
    Event {
        /// Responses that the remote decompressed for a client that does not accept br.
        Responses = "decompressed_total";
        /// Bytes of these responses as they crossed the link.
        Bytes = "decompressed_bytes_total";
        /// Responses that ended early: the bytes are not br.
        Damaged = "broken_total_reason_damaged";
        /// Responses that ended early: the origin or the ground broke off.
        CutOff = "broken_total_reason_cut_off";
        /// Responses that ended early: one piece decompresses to more than 40 MiB.
        Expansion = "broken_total_reason_expansion";
        /// Responses that ended early: no memory for another window.
        Window = "broken_total_reason_window";
    }
}

impl From<Broken> for Event {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Damaged => Self::Damaged,
            Broken::CutOff => Self::CutOff,
            Broken::Expansion => Self::Expansion,
            Broken::Window => Self::Window,
        }
    }
}

/// The treatment of a piece of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    /// The bytes pass as they came.
    Pass,
    /// These bytes replace them.
    Replace(Vec<u8>),
    /// The response ends here, and the client must see that it is incomplete.
    BreakOff,
}

/// One request that crosses the link, and its response.
#[derive(Debug)]
pub struct Exchange {
    /// True if the client accepts br itself.
    accepts_br: bool,
    /// `If-None-Match` of the request. The tag of a decompressed response is weak.
    if_none_match: Vec<u8>,
    decoder: Option<Decoder>,
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
            windows: windows.clone(),
            events: Vec::new(),
        })
    }

    /// Returns the change of the request.
    pub fn request_edit() -> Edit {
        Edit::Set(TAKES_FIELD, TAKES.as_bytes().to_vec())
    }

    /// Returns true if [`Exchange::response`] may change the response.
    pub fn changes_responses(&self) -> bool {
        !self.accepts_br
    }

    /// Returns true if [`Exchange::body`] may change the body.
    pub fn has_decoder(&self) -> bool {
        self.decoder.is_some()
    }

    /// Reads the headers of the response, and returns the changes of them.
    pub fn response(&mut self, response: &Fields<'_>) -> Vec<Edit> {
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
    pub fn body(&mut self, bytes: &[u8], is_end: bool) -> Body {
        let Some(decoder) = &mut self.decoder else { return Body::Pass };
        let mut out = Vec::new();
        let written = decoder.write(bytes, &mut out, limits::BYTES_AT_ONCE);
        self.events.push((Event::Bytes, u64::try_from(bytes.len()).unwrap_or(u64::MAX)));
        match written.and_then(|()| if is_end { decoder.finish() } else { Ok(()) }) {
            Ok(()) => Body::Replace(out),
            Err(broken) => {
                self.events.push((Event::from(broken), 1));
                Body::BreakOff
            }
        }
    }

    /// Takes the counted events.
    pub fn take_events(&mut self) -> Vec<(Event, u64)> {
        std::mem::take(&mut self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(list: &[(&'static str, &'static str)]) -> Fields<'static> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    fn exchange(request: &[(&'static str, &'static str)]) -> Option<Exchange> {
        Exchange::of(&fields(request), &Windows::default())
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
            assert_eq!(exchange.response(&fields(&IN_BR)).is_empty(), !is_plain, "{accepted}");
            assert_eq!(exchange.body(BR, true), body, "{accepted}");
            let counted = exchange.take_events();
            let expected = [(Event::Responses, 1), (Event::Bytes, 8)];
            assert_eq!(counted, if is_plain { &expected[..] } else { &[] }, "{accepted}");
        }
    }

    #[test]
    fn what_is_not_br_passes() {
        for response in [
            [(":status", "200"), ("content-encoding", "gzip")],
            [(":status", "200"), ("content-encoding", "gzip, br")],
            [(":status", "206"), ("content-encoding", "br")],
        ] {
            let mut exchange = exchange(&[]).unwrap();
            assert_eq!(exchange.response(&fields(&response)), [], "{response:?}");
            assert_eq!(exchange.body(BR, true), Body::Pass);
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
            exchange.response(&fields(&IN_BR));
            assert_eq!(exchange.body(body, is_end), Body::BreakOff);
            assert_eq!(exchange.take_events().last(), Some(&(reason, 1)));
        }
    }

    #[test]
    fn a_response_without_a_body_has_the_fields_of_one_with_it() {
        let mut exchange = exchange(&[(":method", "HEAD")]).unwrap();
        let edits =
            exchange.response(&fields(&[(":status", "200"), ("content-encoding", "br"), ("content-length", "9")]));
        assert!(edits.contains(&Edit::Remove("content-length")));
        assert_eq!(exchange.body(b"", true), Body::Replace(Vec::new()));
    }

    #[test]
    fn a_304_confirms_the_tag_that_the_client_has() {
        let response = fields(&[(":status", "304"), ("etag", "\"x\"")]);
        for (held, expected) in [("W/\"y\", W/\"x\"", vec![Edit::Set("etag", b"W/\"x\"".to_vec())]), ("\"x\"", vec![])]
        {
            let mut exchange = exchange(&[("if-none-match", held)]).unwrap();
            assert_eq!(exchange.response(&response), expected, "{held}");
        }
    }
}
