//! One request: what is stored, what is on its way, or the origin's response.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http_semantics::Fields;
use hyper::body::{Body as _, Incoming};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode, Version, header};
use object_config::Config;
use object_rules::ranges::{self, Ranges};
use object_rules::{Directives, Use, conditions, variant};
use object_store::{Found, Key, Object, Options, Store};
use side_program::without_hop_by_hop;
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::body::Body;
use crate::fetch::{Audience, Fetcher, Led, is_failure};
use crate::fill::{self, Filling, Progress, Rest, Waiting};
use crate::metrics::Metrics;
use crate::origin::{Origin, Unanswered};
use crate::outcome::Outcome;
use crate::private::Private;
use crate::reply;
use crate::request::{self, Asked, fields_of, key_of_variant};

/// The longest wait for the head of a response that another client's request fetches.
const JOIN_TIME: Duration = Duration::from_secs(10);

/// The parts that all requests share.
#[derive(Debug)]
pub struct Cache {
    fetcher: Arc<Fetcher>,
    /// The requests to origins whose responses others may want, with a number each.
    fetches: Mutex<HashMap<Key, (u64, Waiting)>>,
}

/// A response, and what it is.
type Answer = (Response<Body>, Outcome);

impl Cache {
    /// Opens the store.
    ///
    /// # Errors
    /// The folder of the store cannot be used.
    pub fn open(config: &Config) -> io::Result<Arc<Self>> {
        let options =
            Options { folder: config.folder.clone(), max_bytes: config.disk_bytes, hot_bytes: config.hot_bytes };
        let fetcher = Fetcher {
            store: Store::open(&options)?,
            origin: Origin::new(config.origin.clone()),
            private: Private::default(),
            metrics: Metrics::default(),
            object_bytes: config.object_bytes,
        };
        Ok(Arc::new(Self { fetcher: Arc::new(fetcher), fetches: Mutex::default() }))
    }

    /// Returns the counters as text.
    pub fn metrics(&self) -> String {
        self.fetcher.metrics.text(self.fetcher.store.counts())
    }

    /// Responds to a request of Envoy.
    ///
    /// # Errors
    /// The origin cannot be asked. Envoy then asks it without this program.
    pub async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<impl hyper::body::Body<Data = bytes::Bytes, Error = io::Error> + Send + 'static>, Unanswered>
    {
        let (mut parts, body) = request.into_parts();
        parts.version = Version::HTTP_11;
        without_hop_by_hop(&mut parts.headers);
        if !parts.method.is_safe() {
            self.changed(&parts).await;
            return Ok(reply::alone(StatusCode::NO_CONTENT));
        }
        // Envoy's routes send no request with a body here.
        let answer = if body.is_end_stream() { self.get(parts).await } else { self.past(parts).await };
        match answer {
            Ok((response, outcome)) => {
                self.fetcher.metrics.outcome(outcome);
                Ok(response)
            }
            Err(error) => {
                self.fetcher.metrics.outcome(Outcome::Unanswered);
                Err(error)
            }
        }
    }

    async fn get(self: &Arc<Self>, parts: Parts) -> Result<Answer, Unanswered> {
        let fields = fields_of(&parts);
        let asked = Asked::of(&parts);
        let (key, object) = self.find(&asked, &fields).await;
        let only_stored = Directives::of(&fields).has("only-if-cached");
        let Some(object) = object else {
            if only_stored {
                return Ok((reply::alone(StatusCode::GATEWAY_TIMEOUT), Outcome::Unavailable));
            }
            if request::goes_past(&parts, &fields) {
                return self.past(parts).await;
            }
            return self.fetched(&asked, key, &parts, None, None).await;
        };
        if !conditions::preconditions_hold(&fields, &reply::fields_of(&object.head)) {
            return self.past(parts).await;
        }
        match object.head.life.allows(&fields, reply::now_s()) {
            Use::Fresh => Ok((reply::stored(&fields, &object), Outcome::Hit)),
            Use::StaleWhileRevalidate => {
                if !self.fetches().contains_key(&key) {
                    self.lead(&asked, key, &without_client(&parts), Some(Arc::clone(&object)));
                }
                Ok((reply::stored(&fields, &object), Outcome::StaleWhileRevalidate))
            }
            Use::Unavailable => Ok((reply::alone(StatusCode::GATEWAY_TIMEOUT), Outcome::Unavailable)),
            Use::Past(_) => self.past(parts).await,
            // The conditions were true of the stored response. The origin may have another one, and must judge.
            Use::Validate { .. } if parts.method != hyper::Method::GET || request::insists(&fields) => {
                self.past(parts).await
            }
            Use::Validate { stale_on_error } => {
                let spare = stale_on_error.then(|| Arc::clone(&object));
                self.fetched(&asked, key, &parts, Some(object), spare).await
            }
        }
    }

    /// Finds the response for a request, and the key under which it would lie.
    async fn find(&self, asked: &Asked, fields: &Fields<'_>) -> (Key, Option<Arc<Object>>) {
        match self.found(asked.key, &asked.url).await {
            Found::Absent => (asked.key, None),
            Found::Object(object) => (asked.key, Some(object)),
            Found::Varies(marker) => {
                let key = key_of_variant(asked.key, marker.stamp, &variant::values(fields, &marker.names));
                match self.found(key, &asked.url).await {
                    Found::Object(object) => (key, Some(object)),
                    Found::Absent | Found::Varies(_) => (key, None),
                }
            }
        }
    }

    async fn found(&self, key: Key, url: &[u8]) -> Found {
        if let Some(found) = self.fetcher.store.find_in_memory(key, url) {
            return found;
        }
        let (store, url) = (Arc::clone(&self.fetcher.store), url.to_vec());
        spawn_blocking(move || store.find(key, &url)).await.unwrap_or(Found::Absent)
    }

    /// Sends a request to the origin as it is.
    async fn past(&self, parts: Parts) -> Result<Answer, Unanswered> {
        Ok((passed(self.fetcher.origin.ask(parts).await?), Outcome::Past))
    }

    /// Removes what is stored for the URL of a request that may change it (RFC 9111 section 4.4). Envoy sends a copy of such a
    /// request, without the scheme. Variants go with the marker of their URL: nobody finds them again, and they give way in
    /// time.
    async fn changed(&self, parts: &Parts) {
        for scheme in [&b"http"[..], b"https"] {
            let (store, key) = (Arc::clone(&self.fetcher.store), Asked::with_scheme(parts, scheme).key);
            // A disk that takes no writes has a problem of its own, which the counters show.
            let _ = spawn_blocking(move || store.remove(key)).await;
        }
    }

    /// Gets a response from the origin, or waits for the request of another client. `validated` is the stored response that
    /// is to be validated, and `spare` the one to use if the origin fails.
    async fn fetched(
        self: &Arc<Self>,
        asked: &Asked,
        key: Key,
        parts: &Parts,
        validated: Option<Arc<Object>>,
        spare: Option<Arc<Object>>,
    ) -> Result<Answer, Unanswered> {
        let fields = fields_of(parts);
        let has_cookie = fields.has("cookie");
        let coming = self.fetches().get(&key).map(|(_, waiting)| waiting.clone());
        if let Some(waiting) = coming.filter(|_| !request::reloads(&fields)) {
            // A response to a client with a cookie is often its own. Such a request does not wait for the head of another's.
            if !(has_cookie && matches!(*waiting.borrow(), Progress::Asking)) {
                return self.joined(parts, waiting, spare).await;
            }
            return self.past(request::copy_of(parts)).await;
        }
        let led = self.lead(asked, key, parts, validated).await.unwrap_or(Led::Failed(Unanswered::Leader));
        match led {
            Led::Filling(filling, rest) => Ok((growing(&fields, &filling, Some(rest)), Outcome::Stored)),
            Led::Validated(object) | Led::Marked(object) => Ok((reply::stored(&fields, &object), Outcome::Revalidated)),
            Led::Own(response) => own_or_spare(&fields, Ok(response), spare),
            Led::Failed(error) => own_or_spare(&fields, Err(error), spare),
        }
    }

    /// Waits for the response that another client's request fetches. Requests the own one if that is not for all.
    async fn joined(
        &self,
        parts: &Parts,
        mut waiting: Waiting,
        spare: Option<Arc<Object>>,
    ) -> Result<Answer, Unanswered> {
        let fields = fields_of(parts);
        let progress = timeout(JOIN_TIME, fill::known(&mut waiting)).await.unwrap_or(Progress::Alone);
        let fits = |selected: &[u8], head: &object_store::Head| {
            selected == variant::values(&fields, &head.vary) && head.life.allows(&fields, reply::now_s()) == Use::Fresh
        };
        match progress {
            Progress::Filling(filling) if fits(&filling.selected, &filling.head) => {
                Ok((growing(&fields, &filling, None), Outcome::Joined))
            }
            Progress::Stored(object, selected) if fits(&selected, &object.head) => {
                Ok((reply::stored(&fields, &object), Outcome::Joined))
            }
            _ => own_or_spare(&fields, self.fetcher.origin.ask(request::copy_of(parts)).await, spare),
        }
    }

    /// Starts a request to the origin that others may wait for. Returns what the leader gets.
    fn lead(
        self: &Arc<Self>,
        asked: &Asked,
        key: Key,
        parts: &Parts,
        validated: Option<Arc<Object>>,
    ) -> oneshot::Receiver<Led> {
        let (told, waiting) = watch::channel(Progress::Asking);
        let (answer, leading) = oneshot::channel();
        // A response that was stored is for all, whatever other requests for its URL got.
        let is_waited_for = validated.is_some() || !self.fetcher.private.includes(asked.key, Instant::now());
        let number = is_waited_for.then(|| self.announce(key, waiting));
        let (cache, asked, parts) = (Arc::clone(self), asked.clone(), request::copy_of(parts));
        tokio::spawn(async move {
            cache.fetcher.fetch(&asked, &parts, validated, Audience { leader: answer, told }).await;
            if let Some(number) = number {
                cache.withdraw(key, number);
            }
        });
        leading
    }

    fn announce(&self, key: Key, waiting: Waiting) -> u64 {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.fetches().insert(key, (number, waiting));
        number
    }

    /// Forgets a request, unless a later one has taken its place.
    fn withdraw(&self, key: Key, number: u64) {
        let mut fetches = self.fetches();
        if fetches.get(&key).is_some_and(|(last, _)| *last == number) {
            fetches.remove(&key);
        }
    }

    fn fetches(&self) -> MutexGuard<'_, HashMap<Key, (u64, Waiting)>> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a request for all clients: no client is named in it.
fn without_client(parts: &Parts) -> Parts {
    let mut copy = request::copy_of(parts);
    for name in [header::COOKIE, header::AUTHORIZATION] {
        copy.headers.remove(name);
    }
    copy
}

/// Returns a response whose body is on its way.
fn growing(request: &Fields<'_>, filling: &Arc<Filling>, rest: Option<Rest>) -> Response<Body> {
    let is_leader = rest.is_some();
    let mut response = reply::headed(&filling.head, !is_leader);
    let fields = reply::fields_of(&filling.head);
    let (mut from, mut to) = (0, filling.length);
    if let Some(length) = filling.length {
        reply::length(&mut response, length);
        if let Ranges::Parts(parts) = ranges::requested(request, &fields, length)
            && let [part] = parts.as_slice()
        {
            (from, to) = (part.start, Some(part.end));
            reply::partial(&mut response, part.start, part.end, length);
        }
    }
    *response.body_mut() = filling.body(from, to, rest);
    response
}

/// Returns the origin's response. If the origin failed, returns the stored one that may be used then.
fn own_or_spare(
    request: &Fields<'_>,
    own: Result<Response<Incoming>, Unanswered>,
    spare: Option<Arc<Object>>,
) -> Result<Answer, Unanswered> {
    let has_failed = own.as_ref().map_or(true, |response| is_failure(response.status()));
    match spare.filter(|_| has_failed) {
        Some(spare) => Ok((reply::stored(request, &spare), Outcome::StaleIfError)),
        None => own.map(|response| (passed(response), Outcome::Past)),
    }
}

/// Returns a response of the origin, as it is.
fn passed(response: Response<Incoming>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    without_hop_by_hop(&mut parts.headers);
    Response::from_parts(parts, Body::Passed(body))
}
