//! The hop `fetch`: requests that fill the cache, and Longhaul's own requests.

use std::rc::Rc;
use std::time::SystemTime;

use cache_admission::lesson::{self, Fetched, learn_fetched};
use filter_host::HostError;
use filter_host::headers::{self, Map, apply};
use filter_host::log::{self, Level};
use filter_host::stream::{Action, HttpStream};

use crate::worker::Worker;

#[derive(Debug)]
pub(crate) struct FetchStream {
    worker: Rc<Worker>,
    images: bool,
    fetched: Option<Fetched>,
}

impl FetchStream {
    pub(crate) fn new(worker: Rc<Worker>, images: bool) -> Self {
        Self { worker, images, fetched: None }
    }

    fn request(&mut self) -> Result<(), HostError> {
        let pairs = headers::list(Map::Request)?;
        let now_s = lesson::unix(SystemTime::now());
        let (fetched, edits) = Fetched::of(&pairs.iter().collect(), self.images, &self.worker.table, now_s);
        self.fetched = Some(fetched);
        apply(Map::Request, &edits)
    }

    fn response(&self, fetched: &Fetched) -> Result<(), HostError> {
        let pairs = headers::list(Map::Response)?;
        let edits = learn_fetched(fetched, &pairs.iter().collect(), &self.worker.table, SystemTime::now());
        apply(Map::Response, &edits)
    }
}

impl HttpStream for FetchStream {
    fn request_headers(&mut self, _: bool) -> Action {
        if let Err(error) = self.request() {
            log::write(Level::Warn, &format!("cache-admission: cannot process request headers of a fetch: {error}"));
        }
        Action::Continue
    }

    fn response_headers(&mut self, _: bool) -> Action {
        if let Some(fetched) = self.fetched.take()
            && let Err(error) = self.response(&fetched)
        {
            log::write(Level::Warn, &format!("cache-admission: cannot process response headers of a fetch: {error}"));
        }
        Action::Continue
    }
}
