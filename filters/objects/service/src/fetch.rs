//! A request to the origin for a response that may be stored.

use std::sync::Arc;
use std::time::Instant;

use http_semantics::{FieldList, Fields};
use hyper::body::{Body as _, Incoming};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode, header};
use object_rules::{Past, storable, update, variant};
use object_store::{Head, Kind, Object, Store};
use side_program::fields;
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_blocking;

use crate::fill::{self, Filling, Progress, Rest};
use crate::metrics::Metrics;
use crate::origin::{Origin, Unanswered};
use crate::private::Private;
use crate::reply;
use crate::request::{Asked, copy_of, fields_of, for_storage, key_of_variant};

/// The result of a request for its leader.
#[derive(Debug)]
pub(crate) enum Led {
    /// A response that is being stored, and the bytes that follow if the disk fails.
    Filling(Arc<Filling>, Rest),
    /// The stored response, which the origin has validated.
    Validated(Arc<Object>),
    /// The stored response with the fields of a 304 that is for the leader alone, for example with a cookie.
    Marked(Arc<Object>),
    /// The origin's response, for the leader alone.
    Own(Response<Incoming>),
    /// No response.
    Failed(Unanswered),
}

/// Those who learn the result of a request.
#[derive(Debug)]
pub(crate) struct Audience {
    pub(crate) leader: oneshot::Sender<Led>,
    /// The clients that wait for the response, too.
    pub(crate) told: watch::Sender<Progress>,
}

/// Fetches responses into the store.
#[derive(Debug)]
pub(crate) struct Fetcher {
    pub(crate) store: Arc<Store>,
    pub(crate) origin: Arc<Origin>,
    pub(crate) private: Private,
    pub(crate) metrics: Metrics,
    /// The largest object that is stored, in bytes.
    pub(crate) object_bytes: u64,
}

impl Fetcher {
    /// Requests a response, and stores it if it may be. Tells the leader and those who wait.
    pub(crate) async fn fetch(
        &self,
        asked: &Asked,
        client: &Parts,
        validated: Option<Arc<Object>>,
        audience: Audience,
    ) {
        // The origin is asked for the whole body, so the client's range says nothing about storage.
        let mut client = copy_of(client);
        client.headers.remove(header::RANGE);
        let client = &client;
        let stored = validated.as_ref().map(|object| reply::fields_of(&object.head));
        let request = for_storage(client, stored.as_ref());
        let sent_s = reply::now_s();
        let led = match self.origin.ask(request).await {
            Err(error) => Led::Failed(error),
            Ok(response) if response.status() == StatusCode::NOT_MODIFIED => {
                match validated.as_deref().filter(|object| is_meant(object, &response)) {
                    Some(object) => self.validated(asked, client, object, &response, sent_s).await,
                    // The origin validates another response. A whole one is needed.
                    None => match self.origin.ask(for_storage(client, None)).await {
                        Ok(response) => return self.take(asked, client, response, sent_s, audience).await,
                        Err(error) => Led::Failed(error),
                    },
                }
            }
            Ok(response) if validated.is_some() && is_failure(response.status()) => {
                // A failure, even one with a lifetime, is no better than the stored response.
                self.metrics.past(Past::Status);
                Led::Own(response)
            }
            Ok(response) => return self.take(asked, client, response, sent_s, audience).await,
        };
        audience.told.send_replace(match &led {
            Led::Validated(object) => {
                let selected = variant::values(&fields_of(client), &object.head.vary);
                Progress::Stored(Arc::clone(object), selected.into())
            }
            _ => Progress::Alone,
        });
        let _ = audience.leader.send(led);
    }

    /// Stores a response that may be, and gives the others to the leader.
    async fn take(&self, asked: &Asked, client: &Parts, response: Response<Incoming>, sent_s: u64, audience: Audience) {
        let Audience { leader, told } = audience;
        let length = response.body().size_hint().exact();
        match self.room(asked, client, &response, sent_s, length).await {
            Err(why) => {
                self.metrics.past(why);
                // An origin that fails says nothing about its other responses.
                if !response.status().is_server_error() {
                    self.private.add(asked.key, Instant::now());
                }
                told.send_replace(Progress::Alone);
                let _ = leader.send(Led::Own(response));
            }
            Ok((filling, writer, rest)) => {
                let filling = Arc::new(filling);
                let selected = Arc::clone(&filling.selected);
                told.send_replace(Progress::Filling(Arc::clone(&filling)));
                let _ = leader.send(Led::Filling(filling, rest));
                match writer.write(response.into_body(), length).await {
                    Some(object) => drop(told.send_replace(Progress::Stored(object, selected))),
                    // It was too large, or the disk or the origin failed. The next clients do not share that.
                    None => self.private.add(asked.key, Instant::now()),
                }
            }
        }
    }

    /// Makes room for a response in the store.
    async fn room(
        &self,
        asked: &Asked,
        client: &Parts,
        response: &Response<Incoming>,
        sent_s: u64,
        length: Option<u64>,
    ) -> Result<(Filling, fill::Writer, Rest), Past> {
        let request = fields_of(client);
        let status = response.status();
        let came = arrived(&status, response);
        let now_s = reply::now_s();
        let life = storable(&request, &came, now_s, now_s.saturating_sub(sent_s))?;
        if length.is_some_and(|length| length > self.object_bytes) {
            return Err(Past::TooLarge);
        }
        let vary = variant::names(&came).ok_or(Past::VaryStar)?;
        let selected: Arc<[u8]> = variant::values(&request, &vary).into();
        let head = Head {
            kind: Kind::Object,
            url: asked.url.clone(),
            status: response.status().as_u16(),
            fields: kept(&came),
            life,
            vary,
            length: 0,
        };
        let (store, stored, asked, values) =
            (Arc::clone(&self.store), head.clone(), asked.clone(), Arc::clone(&selected));
        let begun = spawn_blocking(move || {
            let key = if stored.vary.is_empty() {
                asked.key
            } else {
                let marker = store.mark(asked.key, &asked.url, &stored.vary)?;
                key_of_variant(asked.key, marker, &values)
            };
            store.begin(key, stored)
        });
        match begun.await {
            Ok(Ok(filling)) => Ok(fill::begin(selected, head, length, filling, self.object_bytes)),
            Ok(Err(_)) | Err(_) => Err(Past::NoRoom),
        }
    }

    /// Counts a response that is not stored, and remembers its URL.
    fn not_stored(&self, asked: &Asked, why: Past) {
        self.metrics.past(why);
        self.private.add(asked.key, Instant::now());
    }

    /// Gives a stored response the fields of a 304.
    async fn validated(
        &self,
        asked: &Asked,
        client: &Parts,
        object: &Object,
        response: &Response<Incoming>,
        sent_s: u64,
    ) -> Led {
        let new = update::updated(&reply::fields_of(&object.head), &arrived(&response.status(), response));
        let fields: Fields<'_> = new.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
        let now_s = reply::now_s();
        let life = storable(&fields_of(client), &fields, now_s, now_s.saturating_sub(sent_s));
        let mut updated = object.clone();
        updated.head.fields.clone_from(&new);
        let store = Arc::clone(&self.store);
        let life = match life {
            Ok(life) => life,
            Err(why) => {
                // From now on, it belongs to the client whose request this was.
                self.not_stored(asked, why);
                let key = object.key();
                let _ = spawn_blocking(move || store.remove(key)).await;
                return Led::Marked(Arc::new(updated));
            }
        };
        updated.head.life = life;
        let before = object.clone();
        match spawn_blocking(move || store.refresh(&before, new, life)).await {
            Ok(Ok(object)) => Led::Validated(object),
            // The disk failed. The response is as true as on a disk that works.
            Ok(Err(_)) | Err(_) => Led::Validated(Arc::new(updated)),
        }
    }
}

/// The statuses for which `stale-if-error` is meant (RFC 5861 section 4).
pub(crate) fn is_failure(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

/// Returns true if a 304 is about this stored response.
fn is_meant(object: &Object, response: &Response<Incoming>) -> bool {
    update::matches(&reply::fields_of(&object.head), &arrived(&response.status(), response))
}

fn arrived<'a>(status: &'a StatusCode, response: &'a Response<Incoming>) -> Fields<'a> {
    fields(&Method::GET, Some(status.as_str()), response.headers())
}

/// Returns the fields that are stored. The length is that of the stored body.
fn kept(came: &Fields<'_>) -> FieldList {
    let mut kept = update::without_hop_by_hop(came);
    kept.retain(|(name, _)| name != b"content-length" && name != b"age");
    kept
}
