//! Admission to the cache, by the rules of cache-admission. A filter of its own would copy both header lists from the host
//! once more.
//!
//! An error here never refuses a request. Without a mark, the request bypasses the cache, which is always correct.

use std::rc::Rc;
use std::time::SystemTime;

use cache_admission::lesson::{self, Lesson, Taught, learn};
use cache_admission::request::{Asked, Decision, Reason, decide};
use cache_admission::{Config, Table};
use filter_host::headers::{Map, apply};
use filter_host::log::{self, Level};
use filter_host::metrics::Metrics;
use filter_host::shared::ProxyBoard;
use filter_host::stream::Action;
use filter_host::{HostError, counters, random, reply};
use url_rewriting::headers::{Edit, Fields, Reply};

/// The filter under whose name the counters stand. Its positions share the table.
const FILTER: &str = "cache-admission";

/// The rules, the table and the counters, which all streams of a configuration share.
#[derive(Debug)]
pub(crate) struct Admission {
    config: Config,
    table: Table<ProxyBoard>,
    counters: Counters,
}

counters! {
    /// The counters of what happens before the cache.
    Counters {
        requests "requests_total" by reason Reason, "clients' requests by their way around or into the cache ([reasons](../filters/cache-admission/README.md#ways))";
        taught "lessons_total" by reason Taught, "lessons about URLs from responses ([reasons](../filters/cache-admission/README.md#what-is-learnt))";
    }
}

/// The admission of one request.
#[derive(Debug)]
pub(crate) struct Applicant {
    admission: Rc<Admission>,
    asked: Option<Asked>,
    lesson: Option<Lesson>,
}

impl Admission {
    pub(crate) fn new(config: Config) -> Self {
        let counters = Counters::define(&Metrics::of(FILTER));
        Self { config, table: Table::new(ProxyBoard, random::bytes()), counters }
    }

    fn count(&self, taught: Taught) {
        self.counters.taught.at(taught.index()).add(1);
    }
}

impl Applicant {
    pub(crate) fn new(admission: Rc<Admission>) -> Self {
        Self { admission, asked: None, lesson: None }
    }

    /// Chooses the way of a request. `fields` are its headers as the cache and the origin will see them.
    pub(crate) fn request(&mut self, fields: &Fields<'_>) -> Action {
        self.choose(fields).unwrap_or_else(|error| {
            warn("request", error);
            Action::Continue
        })
    }

    fn choose(&mut self, fields: &Fields<'_>) -> Result<Action, HostError> {
        let admission = &self.admission;
        let now_s = lesson::unix(SystemTime::now());
        let Decision { asked, edits, refused } =
            decide(admission.config.rules(), fields, |url| admission.table.look(url, now_s));
        admission.counters.requests.at(asked.reason.index()).add(1);
        if refused {
            reply::send(&Reply::empty(504), "longhaul_only_if_cached")?;
            return Ok(Action::Pause);
        }
        apply(Map::Request, &edits)?;
        self.asked = Some(asked);
        Ok(Action::Continue)
    }

    /// Learns from a response as the cache or the origin sent it. Returns the edits that the response now has.
    pub(crate) fn response(&mut self, fields: &Fields<'_>, end_of_stream: bool) -> Vec<Edit> {
        let Some(asked) = self.asked.take() else { return Vec::new() };
        let admission = &self.admission;
        let learnt = learn(&asked, fields, admission.config.object_bytes, &admission.table, SystemTime::now());
        if let Some(taught) = learnt.taught {
            admission.count(taught);
        }
        self.lesson = learnt.lesson;
        let applied = apply(Map::Response, &learnt.edits);
        if end_of_stream {
            self.end();
        }
        match applied {
            Ok(()) => learnt.edits,
            Err(error) => {
                warn("response", error);
                Vec::new()
            }
        }
    }

    /// Counts a piece of the body as the cache or the origin sent it.
    pub(crate) fn body(&mut self, size: usize, end_of_stream: bool) {
        if let Some(lesson) = &mut self.lesson {
            lesson.piece(size);
        }
        if end_of_stream {
            self.end();
        }
    }

    /// Learns from a complete body.
    pub(crate) fn end(&mut self) {
        if let Some(lesson) = self.lesson.take() {
            self.admission.count(lesson.end(&self.admission.table, SystemTime::now()));
        }
    }
}

fn warn(phase: &str, error: HostError) {
    log::write(Level::Warn, &format!("{FILTER}: cannot process {phase} headers: {error}"));
}

#[cfg(test)]
mod tests {
    use filter_host::tables;

    use super::Counters;

    #[test]
    fn the_table_of_the_document_has_every_counter() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../envoy-config/METRICS.md");
        let table = Counters::table("longhaul_cache_admission_");
        tables::check(path, "counters before the cache", &table).unwrap();
    }
}
