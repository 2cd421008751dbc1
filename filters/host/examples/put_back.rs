//! A filter without work of its own, for `make bench ONLY=url-rewrite`: the fastest that a filter of pages can be in the
//! same engine.
//!
//! It reads both lists of headers. It puts every piece of an HTML response back as it came. It removes `content-length`,
//! as a filter must that may change the length.

#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code))] // Natively the entry point is empty.

use std::rc::Rc;

use filter_host::HostError;
use filter_host::body::{self, Buffer};
use filter_host::headers::{self, Map};
use filter_host::log::{self, Level};
use filter_host::metrics::Metrics;
use filter_host::root::Filter;
use filter_host::stream::{Action, HttpStream};

struct PutBack;

#[derive(Default)]
struct Stream {
    is_page: bool,
}

impl Filter for PutBack {
    const NAME: &'static str = "put-back";

    fn configure(_: &[u8], _: &Metrics, _: u32) -> Result<Self, String> {
        Ok(Self)
    }

    fn stream(self: &Rc<Self>, _: u32) -> Box<dyn HttpStream> {
        Box::<Stream>::default()
    }
}

impl Stream {
    fn response(&mut self) -> Result<(), HostError> {
        let is_html = |(name, value): (&[u8], &[u8])| name == b"content-type" && value.starts_with(b"text/html");
        self.is_page = headers::list(Map::Response)?.iter().any(is_html);
        if self.is_page { headers::remove(Map::Response, "content-length") } else { Ok(()) }
    }
}

impl HttpStream for Stream {
    fn request_headers(&mut self, _: bool) -> Action {
        report(headers::list(Map::Request).map(|_| ()));
        Action::Continue
    }

    fn response_headers(&mut self, _: bool) -> Action {
        report(self.response());
        Action::Continue
    }

    fn response_body(&mut self, size: usize, _: bool) -> Action {
        if self.is_page {
            let put_back = |bytes: Vec<u8>| body::replace(Buffer::ResponseBody, size, &bytes);
            report(body::read(Buffer::ResponseBody, size).and_then(put_back));
        }
        Action::Continue
    }
}

fn report(outcome: Result<(), HostError>) {
    if let Err(error) = outcome {
        log::write(Level::Error, &format!("put-back: {error}"));
    }
}

filter_host::entry_point!(crate::PutBack);
