//! One request: what is stored, what is on its way, or the origin's response.

mod shared;

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use http_semantics::{FieldList, Fields};
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode, Version, header};
use object_config::{CACHES, Config, OUTCOME, OWN, PRIVATE};
use object_rules::groups::Groups;
use object_rules::reply::Piece;
use object_rules::{Directives, Outcome, Private, Use, slices, update};
use object_store::{Folder, Found, Key, Kind, Name, Object, Store, now_s};
use side_program::without_hop_by_hop;
use tokio::task::spawn_blocking;

use shared::Ask;

use crate::body::Body;
use crate::fetch::{Extent, Fetcher, Led};
use crate::fill::Waiting;
use crate::metrics::Metrics;
use crate::origin::{Origin, Unanswered};
use crate::reading::{self, Lead, Reading, Supply};
use crate::reply;
use crate::request::{self, fields_of, name_of};
use crate::sliced::InUse;

/// The parts that all requests share.
#[derive(Debug)]
pub struct Cache {
    fetcher: Arc<Fetcher>,
    /// The requests to origins whose responses others may want, with a number each.
    fetches: Mutex<HashMap<Wanted, (u64, Waiting)>>,
}

/// The key and the extent of a request to an origin. A request for the whole does not wait for one for a part, and the other way round.
type Wanted = (Key, Extent);

/// A response, and what it is.
type Answer = (Response<Body>, Outcome);

impl Cache {
    /// Opens the store in its folder, and starts threads.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn open(config: &Config, folder: Folder) -> io::Result<Arc<Self>> {
        let fetcher = Fetcher {
            store: Store::within(folder, config.disk_bytes, config.hot_bytes)?,
            origin: Origin::new(config.origin.clone()),
            private: Private::default(),
            unsliced: Private::default(),
            in_use: InUse::default(),
            metrics: Arc::new(Metrics::default()),
            object_bytes: config.object_bytes,
            // Others must have room beside the largest object.
            sliced_bytes: config.disk_bytes / 2,
            groups: Arc::new(Groups::new(config.groups.clone())),
            plain_fields: config.plain_fields.clone(),
            images: config.images,
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
            Ok((mut response, outcome)) => {
                self.fetcher.metrics.outcome(outcome);
                response.headers_mut().insert(OUTCOME, HeaderValue::from_static(outcome.as_str()));
                Ok(response)
            }
            Err(error) => {
                self.fetcher.metrics.outcome(Outcome::Unanswered);
                Err(error)
            }
        }
    }

    /// Responds to GET and HEAD. Tells Envoy if the next such request may bypass this program.
    async fn get(self: &Arc<Self>, mut parts: Parts) -> Result<Answer, Unanswered> {
        if image_variants::key::is_reserved(parts.uri.path().as_bytes()) {
            return self.past(parts).await;
        }
        let is_own = parts.headers.remove(OWN).is_some();
        let valid = request::take_validation(&mut parts.headers);
        let is_variant = self.fetcher.images && request::as_variant(&mut parts);
        let asked = name_of(&parts, &self.fetcher.groups);
        let (mut response, outcome) = self.found_or_fetched(&asked, parts, valid).await?;
        reply::varies_if_encoded(&mut response);
        if self.fetcher.images && !is_own {
            reply::varies_if_image(&mut response, is_variant);
        }
        if is_variant {
            return Ok((response, outcome));
        }
        if outcome == Outcome::Past
            && let Some(which) = self.fetcher.private.of(asked.key, Instant::now())
        {
            response.headers_mut().insert(PRIVATE, HeaderValue::from_static(which.as_str()));
        }
        Ok((response, outcome))
    }

    /// `valid` says what the origin would say of the stored response.
    async fn found_or_fetched(
        self: &Arc<Self>,
        asked: &Name,
        parts: Parts,
        valid: Option<FieldList>,
    ) -> Result<Answer, Unanswered> {
        let fields = fields_of(&parts);
        let (key, object) = self.find(asked, &fields).await;
        let only_stored = Directives::of(&fields).has("only-if-cached");
        let Some(object) = object else {
            if only_stored {
                return Ok((reply::alone(StatusCode::GATEWAY_TIMEOUT), Outcome::Unavailable));
            }
            let absent = |wanted| Ask { name: asked, wanted, parts: &parts, validated: None, spare: None };
            if slices::may_begin(&fields) && self.fetcher.unsliced.of(asked.key, Instant::now()).is_none() {
                return self.fetched(absent((key, Extent::Part))).await;
            }
            if request::goes_past(&parts, &fields) {
                return self.past(parts).await;
            }
            return self.fetched(absent((key, Extent::Whole))).await;
        };
        let Some(allowed) = self.use_of(&fields, &object) else { return self.past(parts).await };
        if let (Some(valid), Use::Validate { .. } | Use::StaleWhileRevalidate) = (valid, allowed)
            && let Some(answer) = self.validated_before(asked, &parts, &object, &valid).await
        {
            return Ok(answer);
        }
        // A range of a large object must not fetch all of it.
        let is_part = fields.has("range") && object.head.kind == Kind::Slices;
        let wanted = (key, if is_part { Extent::Part } else { Extent::Whole });
        match allowed {
            Use::Fresh => self.stored_or_past(&parts, &object, None, Outcome::Hit).await,
            Use::StaleWhileRevalidate => {
                if !self.is_coming(wanted) {
                    self.lead(asked, wanted, &without_client(&parts), Some(Arc::clone(&object)));
                }
                self.stored_or_past(&parts, &object, None, Outcome::StaleWhileRevalidate).await
            }
            Use::Unavailable => Ok((reply::alone(StatusCode::GATEWAY_TIMEOUT), Outcome::Unavailable)),
            Use::Past(_) => self.past(parts).await,
            // The conditions were true of the stored response. The origin may have another one, and must judge. For a part, they are
            // compared again with what comes.
            Use::Validate { .. } if parts.method != hyper::Method::GET || (request::insists(&fields) && !is_part) => {
                self.past(parts).await
            }
            Use::Validate { stale_on_error } => {
                let spare = stale_on_error.then(|| Arc::clone(&object));
                self.fetched(Ask { name: asked, wanted, parts: &parts, validated: Some(object), spare }).await
            }
        }
    }

    /// Renews a stored response by the validation that came with the request, and responds with it. None if the validation is
    /// of another one, or if the client wants the origin's response.
    async fn validated_before(
        &self,
        asked: &Name,
        parts: &Parts,
        object: &Arc<Object>,
        valid: &FieldList,
    ) -> Option<Answer> {
        let fields = fields_of(parts);
        if request::reloads(&fields) || request::insists(&fields) || parts.method != hyper::Method::GET {
            return None;
        }
        let came: Fields<'_> = valid.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
        let has_validator = came.has("etag") || came.has("last-modified");
        if !has_validator || !update::matches(&object.head.as_fields(), &came) {
            return None;
        }
        let (Led::Validated(object) | Led::Marked(object)) =
            self.fetcher.validated(asked, parts, object, &came, now_s()).await
        else {
            return None;
        };
        self.stored(parts, &object, None, Outcome::Revalidated).await
    }

    /// Decides the use that a request may make of a stored response. None: the origin must judge.
    fn use_of(&self, request: &Fields<'_>, object: &Object) -> Option<Use> {
        object.head.use_for(request, &self.fetcher.plain_fields, now_s())
    }

    /// Responds with a stored response. Sends the request to the origin if the stored one lacks bytes that cannot be had.
    async fn stored_or_past(
        &self,
        parts: &Parts,
        object: &Arc<Object>,
        lead: Option<Lead>,
        outcome: Outcome,
    ) -> Result<Answer, Unanswered> {
        match self.stored(parts, object, lead, outcome).await {
            Some(answer) => Ok(answer),
            None => self.past(request::copy_of(parts)).await,
        }
    }

    /// Responds with a stored response. None if it lacks bytes that cannot be had.
    async fn stored(
        &self,
        parts: &Parts,
        object: &Arc<Object>,
        lead: Option<Lead>,
        outcome: Outcome,
    ) -> Option<Answer> {
        let fields = fields_of(parts);
        let Some(sliced) = self.fetcher.in_use.of(object) else {
            return Some((reply::stored(&fields, object), outcome));
        };
        let (mut response, body) = reply::planned(&fields, &object.head);
        // The origin was asked for ranges alone, and may send the whole itself.
        if response.status() == StatusCode::OK && fields.has("range") && parts.method == hyper::Method::GET {
            return None;
        }
        let ranges: Vec<_> = body.iter().filter_map(stored_range).collect();
        if Directives::of(&fields).has("only-if-cached") && !reading::has_checked(&sliced, &ranges).await {
            return Some((reply::alone(StatusCode::GATEWAY_TIMEOUT), Outcome::Unavailable));
        }
        let [bytes] = ranges.as_slice() else {
            let is_there = reading::has_checked(&sliced, &ranges).await;
            *response.body_mut() = reply::pieces(object, body);
            return is_there.then_some((response, outcome));
        };
        let mut reading = Reading::new(&sliced, self.fetcher.asker(parts), bytes.clone(), lead);
        let outcome = match (reading.begun().await?, outcome) {
            (Supply::Origin, Outcome::Hit) => Outcome::Stored,
            (Supply::Other, Outcome::Hit) => Outcome::Joined,
            (_, outcome) => outcome,
        };
        *response.body_mut() = reading.body();
        Some((response, outcome))
    }

    /// Finds the response for a request, and the key under which it would lie.
    async fn find(&self, asked: &Name, fields: &Fields<'_>) -> (Key, Option<Arc<Object>>) {
        match self.found(asked.key, &asked.url).await {
            Found::Absent => (asked.key, None),
            Found::Object(object) => (asked.key, Some(object)),
            Found::Varies(marker) => {
                let key = marker.select(asked.key, fields);
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

    /// Sends a request to the origin as it is. The response is not stored.
    async fn past(&self, mut parts: Parts) -> Result<Answer, Unanswered> {
        parts.headers.remove(CACHES);
        Ok((passed(self.fetcher.origin.ask(parts).await?), Outcome::Past))
    }

    /// Removes the stored responses of a URL that a successful request may have changed (RFC 9111 section 4.4). Envoy names the URL,
    /// without the scheme. Variants go with the marker of their URL: nobody finds them again, and they give way in time.
    async fn changed(&self, parts: &Parts) {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).as_bytes();
        let variant = image_variants::key::of(path);
        for scheme in [&b"http"[..], b"https"] {
            for path in [Some(path), variant.as_deref()].into_iter().flatten() {
                let (store, key) =
                    (Arc::clone(&self.fetcher.store), request::name_at(parts, &self.fetcher.groups, scheme, path).key);
                // A disk that takes no writes has a problem of its own, which the counters show.
                let _ = spawn_blocking(move || store.remove(key)).await;
            }
        }
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

/// Returns the bytes of the stored body that a piece has.
fn stored_range(piece: &Piece) -> Option<Range<u64>> {
    match piece {
        Piece::Bytes(_) => None,
        Piece::Stored(range) => Some(range.clone()).filter(|range| !range.is_empty()),
    }
}

/// Returns a response of the origin, as it is.
fn passed(response: Response<Incoming>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    without_hop_by_hop(&mut parts.headers);
    Response::from_parts(parts, Body::Passed(body))
}
