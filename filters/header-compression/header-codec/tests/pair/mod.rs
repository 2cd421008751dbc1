//! A remote, a ground and the two proxies around them, without a network: the tests pass messages by value.
#![allow(dead_code)] // each test binary uses its own part

use std::rc::Rc;
use std::time::Duration;

use header_codec::{
    Count, Dictionary, FIELD, FieldList, GroundEnd, GroundStream, RETRY, Refusal, RemoteEnd, RemoteRequest,
    RemoteStream, Treatment,
};
use http_semantics::Reply;

/// Name and value pairs, as a test writes them.
pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

/// Returns dictionary 1, which each thread reads once.
pub(crate) fn dictionary() -> Rc<Dictionary> {
    thread_local! {
        static DICTIONARY: Rc<Dictionary> = Rc::new(Dictionary::first().expect("the first dictionary is one"));
    }
    DICTIONARY.with(Rc::clone)
}

/// Returns headers as bytes.
pub(crate) fn fields(headers: Headers<'_>) -> FieldList {
    headers.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// Returns headers in the form that the ends accept.
pub(crate) fn borrowed(fields: &FieldList) -> Vec<(&[u8], &[u8])> {
    fields.iter().map(|(name, value)| (&**name, &**value)).collect()
}

/// Returns the first value of a name.
pub(crate) fn value<'a>(fields: &'a FieldList, name: &str) -> Option<&'a [u8]> {
    fields.iter().find(|(known, _)| known == name.as_bytes()).map(|(_, value)| &**value)
}

/// Returns a typical GET request of a browser.
pub(crate) fn get(authority: &str, path: &str) -> FieldList {
    fields(&[
        (":authority", authority),
        (":path", path),
        (":method", "GET"),
        (":scheme", "http"),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"),
        ("accept", "*/*"),
        ("accept-language", "en-US,en;q=0.5"),
        ("accept-encoding", "gzip, deflate"),
        ("x-forwarded-proto", "http"),
    ])
}

/// Returns a typical response.
pub(crate) fn ok() -> FieldList {
    fields(&[
        (":status", "200"),
        ("server", "nginx"),
        ("date", "Sat, 14 Nov 2026 09:12:41 GMT"),
        ("content-type", "text/html; charset=UTF-8"),
        ("content-length", "512"),
    ])
}

/// The messages that crossed the pipe for one request and its response.
#[derive(Debug, Default)]
pub(crate) struct Crossing {
    /// Fields of every attempt on the pipe.
    pub(crate) requests: Vec<FieldList>,
    /// Fields of every response on the pipe.
    pub(crate) responses: Vec<FieldList>,
    /// The requests that reached the origin.
    pub(crate) at_origin: Vec<FieldList>,
    /// The response that reached the client.
    pub(crate) at_client: FieldList,
}

impl Crossing {
    /// Returns the compressed field of the last attempt.
    pub(crate) fn packed_request(&self) -> Option<&[u8]> {
        self.requests.last().and_then(|fields| value(fields, FIELD))
    }

    /// Returns the compressed field of the last response.
    pub(crate) fn packed_response(&self) -> Option<&[u8]> {
        self.responses.last().and_then(|fields| value(fields, FIELD))
    }
}

/// Two ends with one connection between them.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The remote.
    pub(crate) remote: RemoteEnd,
    /// The ground, or `None` for a ground without the filter.
    pub(crate) ground: Option<GroundEnd>,
    /// True if a ground without the filter refuses compressed requests. A ground of version 1.0 does not.
    pub(crate) says_so: bool,
    /// The connection, as both ends name it.
    pub(crate) pipe: Option<&'static str>,
    /// The time.
    pub(crate) now: Duration,
    /// The client that sends the requests.
    pub(crate) client: &'static str,
}

impl Pair {
    /// Returns a pair that has just started.
    pub(crate) fn new() -> Self {
        Self {
            remote: RemoteEnd::new(dictionary(), 0x5eed_5eed, 16),
            ground: Some(GroundEnd::new(dictionary(), 16)),
            says_so: false,
            pipe: Some("127.0.0.1:40001"),
            now: Duration::from_secs(1000),
            client: "192.0.2.1",
        }
    }

    /// Sends a request without a body and its response through both ends, and retries as the proxy would.
    pub(crate) fn exchange(&mut self, request: &FieldList, response: &FieldList) -> Crossing {
        self.exchange_with_body(request, false, response)
    }

    /// Does the same as `exchange`, with or without a body.
    pub(crate) fn exchange_with_body(&mut self, request: &FieldList, body: bool, response: &FieldList) -> Crossing {
        let mut crossing = Crossing::default();
        let mut headers = request.clone();
        for _ in 0..3 {
            let stream = self.send(&mut headers, body);
            crossing.requests.push(headers.clone());
            let (answer, origin) = self.answer(&headers, response);
            crossing.at_origin.extend(origin);
            crossing.responses.push(answer.clone());
            crossing.at_client = self.receive(stream, answer);
            if value(&crossing.at_client, RETRY).is_none() {
                break;
            }
        }
        crossing
    }

    /// Sends a request through the remote's proxy, and replaces `headers` with those on the pipe.
    pub(crate) fn send(&mut self, headers: &mut FieldList, body: bool) -> RemoteStream {
        let request = RemoteRequest {
            client: self.client.as_bytes(),
            pipe: self.pipe.map(str::as_bytes),
            headers: &borrowed(headers),
            body,
            now: self.now,
        };
        let (treatment, stream) = self.remote.request(&request);
        match treatment {
            Treatment::Keep => {}
            Treatment::Replace(fields) => *headers = fields,
            Treatment::Reply(_) => panic!("the remote answers no requests itself"),
        }
        stream
    }

    /// Returns the response of the ground's proxy and of the origin behind it, and the request that the origin
    /// received.
    pub(crate) fn answer(&mut self, headers: &FieldList, response: &FieldList) -> (FieldList, Option<FieldList>) {
        let pipe = self.pipe.unwrap_or("a new connection");
        let Some(ground) = &mut self.ground else {
            let not_found = value(headers, ":authority") == Some(b"-");
            return if not_found && self.says_so {
                (vec![(b":status".to_vec(), b"421".to_vec()), (FIELD.into(), Refusal::Format.field())], None)
            } else if not_found {
                (fields(&[(":status", "404")]), None)
            } else {
                (response.clone(), Some(headers.clone()))
            };
        };
        let (treatment, stream) = ground.request(pipe.as_bytes(), &borrowed(headers));
        let at_origin = match treatment {
            Treatment::Keep => headers.clone(),
            Treatment::Replace(fields) => fields,
            Treatment::Reply(Reply { status, mut fields, .. }) => {
                fields.insert(0, (b":status".to_vec(), status.to_string().into_bytes()));
                assert_eq!(ground.response(GroundStream::Refused, &borrowed(&fields)), Treatment::Keep);
                return (fields, None);
            }
        };
        let answer = match ground.response(stream, &borrowed(response)) {
            Treatment::Keep => response.clone(),
            Treatment::Replace(fields) => fields,
            Treatment::Reply(_) => panic!("the ground replaces no responses"),
        };
        (answer, Some(at_origin))
    }

    /// Passes the response through the remote's proxy.
    pub(crate) fn receive(&mut self, stream: RemoteStream, answer: FieldList) -> FieldList {
        let pipe = self.pipe.unwrap_or("a new connection");
        match self.remote.response(stream, pipe.as_bytes(), &borrowed(&answer), self.now) {
            Treatment::Keep => answer,
            Treatment::Replace(fields) => fields,
            Treatment::Reply(Reply { status, .. }) => vec![(b":status".to_vec(), status.to_string().into_bytes())],
        }
    }

    /// Returns a counter of the remote and of the ground.
    pub(crate) fn counted(&self, count: Count) -> (u64, u64) {
        (self.remote.counts.get(count), self.ground.as_ref().map_or(0, |ground| ground.counts.get(count)))
    }
}
