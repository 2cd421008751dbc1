//! The outer hop: chooses the way of a client's request, and learns from its response.

use std::rc::Rc;
use std::time::SystemTime;

use cache_admission::lesson::{self, Lesson, learn};
use cache_admission::request::{Asked, Decision, decide};
use filter_host::headers::{self, Map, apply};
use filter_host::log::{self, Level};
use filter_host::{HostError, reply};
use http_semantics::Reply;
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;

use crate::worker::Worker;

#[derive(Debug)]
pub(crate) struct ClientStream {
    worker: Rc<Worker>,
    asked: Option<Asked>,
    lesson: Option<Lesson>,
}

impl ClientStream {
    pub(crate) fn new(worker: Rc<Worker>) -> Self {
        Self { worker, asked: None, lesson: None }
    }

    fn request(&mut self) -> Result<Action, HostError> {
        let worker = &self.worker;
        let pairs = headers::list(Map::Request)?;
        let fields = pairs.iter().collect();
        let now_s = lesson::unix(SystemTime::now());
        let Decision { asked, edits, refused } =
            decide(worker.config.rules(), &fields, |url| worker.table.look(url, now_s));
        worker.counters.request(asked.reason);
        if refused {
            reply::send(&Reply::empty(504), "longhaul_only_if_cached")?;
            return Ok(Action::Pause);
        }
        apply(Map::Request, &edits)?;
        self.asked = Some(asked);
        Ok(Action::Continue)
    }

    fn response(&mut self, asked: &Asked) -> Result<(), HostError> {
        let worker = &self.worker;
        let pairs = headers::list(Map::Response)?;
        let learnt =
            learn(asked, &pairs.iter().collect(), worker.config.object_bytes, &worker.table, SystemTime::now());
        if let Some(taught) = learnt.taught {
            worker.counters.taught(taught);
        }
        self.lesson = learnt.lesson;
        apply(Map::Response, &learnt.edits)
    }

    fn end(&mut self) {
        if let Some(lesson) = self.lesson.take() {
            self.worker.counters.taught(lesson.end(&self.worker.table, SystemTime::now()));
        }
    }
}

impl Context for ClientStream {}

impl HttpContext for ClientStream {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        self.request().unwrap_or_else(|error| {
            // Without a mark the request bypasses the cache, which is always correct.
            log::write(Level::Warn, &format!("cache-admission: cannot process request headers: {error}"));
            Action::Continue
        })
    }

    fn on_http_response_headers(&mut self, _: usize, end_of_stream: bool) -> Action {
        let Some(asked) = self.asked.take() else { return Action::Continue };
        if let Err(error) = self.response(&asked) {
            log::write(Level::Warn, &format!("cache-admission: cannot process response headers: {error}"));
        }
        if end_of_stream {
            self.end();
        }
        Action::Continue
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        if let Some(lesson) = &mut self.lesson {
            lesson.piece(size);
        }
        if end_of_stream {
            self.end();
        }
        Action::Continue
    }

    fn on_http_response_trailers(&mut self, _: usize) -> Action {
        self.end();
        Action::Continue
    }
}
