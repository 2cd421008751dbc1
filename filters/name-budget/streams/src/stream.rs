//! One request, before Envoy looks up its name.

use std::rc::Rc;

use filter_host::headers::{self, Map};
use filter_host::log::{self, Level};
use filter_host::stream::{Action, HttpStream};
use filter_host::{HostError, clock, reply};
use http_semantics::Reply;
use name_budget::{Client, Name, Outcome, marks};

use crate::worker::Worker;

#[derive(Debug)]
pub(crate) struct Stream {
    worker: Rc<Worker>,
}

impl Stream {
    pub(crate) fn new(worker: Rc<Worker>) -> Self {
        Self { worker }
    }

    fn request(&self) -> Result<Action, HostError> {
        let field = |name: &str| headers::get(Map::Request, name).map(Option::unwrap_or_default);
        let client = Client::of(&field(marks::CLIENT)?);
        let outcome = self.worker.budgets.ask(&Name::of(field)?, client, clock::monotonic()?);
        self.worker.count(outcome.reason());
        let Outcome::Refused { retry_after_s } = outcome else { return Ok(Action::Continue) };
        let seconds = retry_after_s.to_string();
        let refusal = Reply::new(429, &[("retry-after", seconds.as_bytes())], []);
        reply::send(&refusal, "longhaul_too_many_new_names")?;
        Ok(Action::Pause)
    }
}

impl HttpStream for Stream {
    fn request_headers(&mut self, _: bool) -> Action {
        self.request().unwrap_or_else(|error| {
            // A name too many costs less than a failed page.
            log::write(Level::Warn, &format!("name-budget: a request passes unchecked: {error}"));
            Action::Continue
        })
    }
}
