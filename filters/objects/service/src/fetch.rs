//! A request to the origin for a response that may be stored.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http_semantics::{FieldList, Fields};
use hyper::body::{Body as _, Incoming};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode, header};
use object_rules::groups::Groups;
use object_rules::plain::{PlainField, is_unkeyed};
use object_rules::ranges::{self, Ranges};
use object_rules::slices::{self, Blocks, Part};
use object_rules::{Past, PastFor, Private, storable, update, variant};
use object_store::{Fill, Found, Head, Key, Kind, Name, Object, Store, now_s};
use side_program::fields;
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_blocking;

use crate::asker::Asker;
use crate::fill::{self, Filling, Progress, Rest};
use crate::metrics::Metrics;
use crate::origin::{Origin, Unanswered};
use crate::reading::Lead;
use crate::receive::{self, Beginning};
use crate::request::{copy_of, fields_of, for_part, for_run, for_storage, host_of, unmarked};
use crate::sliced::{InUse, Place, is_noted};

/// The result of a request for its leader.
#[derive(Debug)]
pub(crate) enum Led {
    /// A response that is being stored, and the bytes that follow if the disk fails.
    Filling(Arc<Filling>, Rest),
    /// A response that is being stored in blocks.
    Sliced(Arc<Object>, Lead),
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

/// The extent of a request to the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Extent {
    /// The whole response, whatever part of it the client wants.
    Whole,
    /// The client's range, of an object that may be stored in blocks.
    Part,
}

/// Fetches responses into the store.
#[derive(Debug)]
pub(crate) struct Fetcher {
    pub(crate) store: Arc<Store>,
    pub(crate) origin: Arc<Origin>,
    pub(crate) private: Private<Key>,
    /// URLs whose ranges cannot be stored. Requests for them do not wait for one another.
    pub(crate) unsliced: Private<Key>,
    pub(crate) in_use: InUse,
    pub(crate) metrics: Arc<Metrics>,
    /// The largest object that is stored in one piece, in bytes.
    pub(crate) object_bytes: u64,
    /// The largest object that is stored in blocks, in bytes.
    pub(crate) sliced_bytes: u64,
    /// Groups of hosts that serve the same objects.
    pub(crate) groups: Arc<Groups>,
    /// Request fields that change no response, as the operator declares.
    pub(crate) plain_fields: Vec<PlainField>,
    /// True if clients that accept WebP get smaller variants of images.
    pub(crate) images: bool,
}

impl Fetcher {
    /// Requests a response, and stores it if it may be. Tells the leader and those who wait.
    pub(crate) async fn fetch(
        &self,
        asked: &Name,
        client: &Parts,
        extent: Extent,
        validated: Option<Arc<Object>>,
        audience: Audience,
    ) {
        let request = |stored: Option<&Fields<'_>>| match extent {
            // Envoy would compress text for the store, and not in the client's best content encoding.
            Extent::Whole if stored.is_none() && self.is_private(asked, client) => unmarked(client, None),
            Extent::Whole => for_storage(client, stored),
            Extent::Part => for_part(client, stored),
        };
        let stored = validated.as_ref().map(|object| object.head.as_fields());
        let sent_s = now_s();
        let missing = match (extent, &validated) {
            (Extent::Part, Some(object)) => self.missing(client, object).await,
            _ => None,
        };
        let first = match (&missing, &stored) {
            // The part that comes validates the object as well. So a missing range costs one round trip.
            (Some(bytes), Some(stored)) => for_run(client, bytes, slices::strong_tag(stored).unwrap_or_default()),
            (_, stored) => request(stored.as_ref()),
        };
        let led = match self.origin.ask(first).await {
            Err(error) => Led::Failed(error),
            Ok(response) => {
                let status = response.status();
                // To a request without a condition, it says nothing.
                let is_304 = status == StatusCode::NOT_MODIFIED && stored.is_some();
                let is_valid = |object: &&Object| is_304 && missing.is_none() && is_meant(object, &response);
                if let Some(object) = validated.as_deref().filter(is_valid) {
                    self.validated(asked, &without_range(client), object, &arrived(&status, &response), sent_s).await
                } else if is_304 || (missing.is_some() && has_no_part(status)) {
                    // The origin has another object. The client's part of it, or the whole, is needed.
                    match self.origin.ask(request(None)).await {
                        Ok(response) => return self.take(asked, client, extent, response, sent_s, audience).await,
                        Err(error) => Led::Failed(error),
                    }
                } else if validated.is_some() && is_failure(status) {
                    // A failure, even one with a lifetime, is no better than the stored response.
                    self.metrics.past(Past::Status);
                    Led::Own(response)
                } else {
                    return self.take(asked, client, extent, response, sent_s, audience).await;
                }
            }
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

    /// Returns the fields of a response by which it is stored: those of the origin, unless the operator overrides them.
    fn terms<'a>(&self, client: &Parts, came: Fields<'a>) -> Fields<'a> {
        self.groups.terms(host_of(client), came)
    }

    /// Returns true if the responses to such requests were not stored lately.
    pub(crate) fn is_private(&self, asked: &Name, client: &Parts) -> bool {
        self.private.includes(asked.key, client.headers.contains_key(header::COOKIE), Instant::now())
    }

    /// Stores a response that may be, and gives the others to the leader.
    async fn take(
        &self,
        asked: &Name,
        client: &Parts,
        extent: Extent,
        response: Response<Incoming>,
        sent_s: u64,
        audience: Audience,
    ) {
        let Audience { leader, told } = audience;
        let length = response.body().size_hint().exact();
        // The client's range says nothing about storage.
        let plain = without_range(client);
        match self.room(asked, &plain, extent, &response, sent_s, length).await {
            Err(why) => {
                self.metrics.past(why);
                // An origin that fails says nothing about its other responses.
                let status = response.status();
                if let Some(which) = why.foretells().filter(|_| !status.is_server_error()) {
                    self.private.add(asked.key, which, Instant::now());
                }
                if matches!(why, Past::Partial | Past::WeakTag) && status.is_success() {
                    self.unsliced.add(asked.key, PastFor::All, Instant::now());
                }
                told.send_replace(Progress::Alone);
                let _ = leader.send(Led::Own(response));
            }
            Ok(Room::Fill(room)) => {
                let (filling, writer, rest) = *room;
                let filling = Arc::new(filling);
                let selected = Arc::clone(&filling.selected);
                told.send_replace(Progress::Filling(Arc::clone(&filling)));
                let _ = leader.send(Led::Filling(filling, rest));
                match writer.write(response.into_body(), length).await {
                    Some(object) => drop(told.send_replace(Progress::Stored(object, selected))),
                    // It was too large, or the disk or the origin failed. The next clients do not share that.
                    None => self.private.add(asked.key, PastFor::All, Instant::now()),
                }
            }
            Ok(Room::Slices(object, part, selected)) => {
                let Some(sliced) = self.in_use.of(&object) else { return };
                let interest = sliced.interest(part.bytes.clone());
                let announced = sliced.announce_part(&part);
                let beginning = Beginning::Body(response.into_body());
                let run = receive::start(&sliced, &Arc::new(self.asker(&plain)), announced, beginning);
                told.send_replace(Progress::Stored(Arc::clone(&object), selected));
                let _ = leader.send(Led::Sliced(object, Lead { run, interest }));
            }
        }
    }

    /// Returns the first run of missing blocks that the range of a client needs. None if the first block is there or on its way,
    /// and for short ranges.
    async fn missing(&self, client: &Parts, object: &Object) -> Option<Range<u64>> {
        let wanted = ranges::requested(&fields_of(client), &object.head.as_fields(), object.head.length);
        let Ranges::Parts(parts) = wanted else { return None };
        let [bytes] = parts.as_slice() else { return None };
        let is_short = bytes.end.saturating_sub(bytes.start) < slices::LEAST_RANGE;
        let sliced = self.in_use.of(object).filter(|_| !is_short)?;
        let block = Blocks::of(bytes.start);
        let file = sliced.file.clone();
        let noted = spawn_blocking(move || file.noted()).await.ok()?.ok()?;
        let is_missing = |block| !is_noted(&noted, block) && matches!(sliced.place(block), Place::Unknown);
        is_missing(block).then(|| sliced.blocks().run(block, bytes.end, is_missing))
    }

    /// Returns the sender of requests for missing blocks, on behalf of a client.
    pub(crate) fn asker(&self, client: &Parts) -> Asker {
        let (origin, store) = (Arc::clone(&self.origin), Arc::clone(&self.store));
        Asker {
            origin,
            store,
            metrics: Arc::clone(&self.metrics),
            groups: Arc::clone(&self.groups),
            client: without_range(client),
        }
    }

    /// Makes room for a response in the store.
    async fn room(
        &self,
        asked: &Name,
        client: &Parts,
        extent: Extent,
        response: &Response<Incoming>,
        sent_s: u64,
        length: Option<u64>,
    ) -> Result<Room, Past> {
        let request = fields_of(client);
        let status = response.status();
        let came = self.terms(client, arrived(&status, response));
        let now_s = now_s();
        let delay_s = now_s.saturating_sub(sent_s);
        let (life, part) = match extent {
            Extent::Part => {
                slices::storable_part(&request, &came, now_s, delay_s).map(|(life, part)| (life, Some(part)))?
            }
            Extent::Whole => {
                let life = storable(&request, &came, now_s, delay_s)?;
                let total = length.filter(|_| slices::suits_whole(&came, length));
                (life, total.map(|total| Part { bytes: 0..total, total }))
            }
        };
        let most_bytes = if part.is_some() { self.sliced_bytes } else { self.object_bytes };
        if part.as_ref().map(|part| part.total).or(length).is_some_and(|length| length > most_bytes) {
            return Err(Past::TooLarge);
        }
        let vary = variant::names(&came).ok_or(Past::VaryStar)?;
        if is_unkeyed(&request, &vary, &self.plain_fields) {
            return Err(Past::Unkeyed);
        }
        let selected: Arc<[u8]> = variant::values(&request, &vary).into();
        let (kind, came, status) = match part {
            Some(_) => (Kind::Slices, slices::whole(&came), StatusCode::OK),
            None => (Kind::Object, came, status),
        };
        let head = Head {
            kind,
            url: asked.url.clone(),
            status: status.as_u16(),
            fields: kept(&came),
            life,
            vary,
            length: part.as_ref().map_or(0, |part| part.total),
        };
        let (store, stored, asked, values) =
            (Arc::clone(&self.store), head.clone(), asked.clone(), Arc::clone(&selected));
        let begun = spawn_blocking(move || {
            let key = if stored.vary.is_empty() {
                asked.key
            } else {
                let marker = store.mark(asked.key, &asked.url, &stored.vary)?;
                Key::of_variant(asked.key, marker, &values)
            };
            if stored.kind == Kind::Slices {
                begin_slices(&store, key, stored).map(Begun::Slices)
            } else {
                store.begin(key, stored).map(Box::new).map(Begun::Fill)
            }
        });
        match (begun.await, part) {
            (Ok(Ok(Begun::Slices(object))), Some(part)) => Ok(Room::Slices(object, part, selected)),
            (Ok(Ok(Begun::Fill(filling))), None) => {
                Ok(Room::Fill(Box::new(fill::begin(selected, head, length, *filling, self.object_bytes))))
            }
            _ => Err(Past::NoRoom),
        }
    }

    /// Counts a response that is not stored, and remembers its URL.
    fn not_stored(&self, asked: &Name, why: Past) {
        self.metrics.past(why);
        if let Some(which) = why.foretells() {
            self.private.add(asked.key, which, Instant::now());
        }
    }

    /// Gives a stored response the fields of a 304.
    pub(crate) async fn validated(
        &self,
        asked: &Name,
        client: &Parts,
        object: &Object,
        came: &Fields<'_>,
        sent_s: u64,
    ) -> Led {
        let came = self.terms(client, came.iter().collect());
        let new = update::updated(&object.head.as_fields(), &came);
        let fields: Fields<'_> = new.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
        let now_s = now_s();
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

/// The room for a response in the store.
enum Room {
    /// A file that is filled from its beginning.
    Fill(Box<(Filling, fill::Writer, Rest)>),
    /// A file with blocks, the part that comes, and the values of the request that selected it.
    Slices(Arc<Object>, Part, Arc<[u8]>),
}

enum Begun {
    Fill(Box<Fill>),
    Slices(Arc<Object>),
}

/// Makes a file with blocks. If there is one for the same bytes, gives that one the new fields and keeps its blocks.
fn begin_slices(store: &Store, key: Key, head: Head) -> io::Result<Arc<Object>> {
    /// Two requests that begin an object at once use one file.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Found::Object(object) = store.find(key, &head.url)
        && object.head.kind == Kind::Slices
        && object.head.length == head.length
        && slices::strong_tag(&object.head.as_fields()) == slices::strong_tag(&head.as_fields())
        && let Ok(object) = store.refresh(&object, head.fields.clone(), head.life)
    {
        return Ok(object);
    }
    store.begin_slices(key, head)
}

/// Returns true for a response that may be of another object than the stored one, and is no part.
fn has_no_part(status: StatusCode) -> bool {
    status != StatusCode::PARTIAL_CONTENT && !is_failure(status)
}

/// Returns a request for the whole body.
fn without_range(parts: &Parts) -> Parts {
    let mut copy = copy_of(parts);
    copy.headers.remove(header::RANGE);
    copy
}

/// The statuses for which `stale-if-error` is meant (RFC 5861 section 4), and those that content delivery networks added,
/// such as 522.
pub(crate) fn is_failure(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504 | 520..=599)
}

/// Returns true if a 304 is about this stored response.
fn is_meant(object: &Object, response: &Response<Incoming>) -> bool {
    update::matches(&object.head.as_fields(), &arrived(&response.status(), response))
}

fn arrived<'a>(status: &'a StatusCode, response: &'a Response<Incoming>) -> Fields<'a> {
    fields(&Method::GET, Some(status.as_str()), response.headers())
}

/// Returns the fields that are stored. The length is that of the stored body.
fn kept(came: &Fields<'_>) -> FieldList {
    let mut kept = update::without_hop_by_hop(came);
    kept.retain(|(name, _)| name != b"content-length" && name != b"age");
    if let Some(vary) = variant::of_encoded(came) {
        kept.retain(|(name, _)| name != b"vary");
        kept.push((b"vary".to_vec(), vary));
    }
    kept
}
