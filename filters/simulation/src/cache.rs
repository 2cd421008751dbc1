//! The cache of the remote, between bundling and the router: `longhaul-objects` without its files and sockets.
//!
//! The decisions are shipped (`object-rules`). This file follows `cache.rs` and `fetch.rs` of the program for whole objects.
//! Every client gets a response of its own: nobody waits for the request of another.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use http_semantics::Fields;
use object_config::{CACHES, OUTCOME, PAST, PRIVATE, VALID};
use object_rules::reply::{Piece as Part, reply};
use object_rules::{Directives, Outcome, Private, Use, conditions, plain, storable, update, validation, variant};
use object_store::{Head, Kind};

use crate::fields::{Field, field, pair};
use crate::piece::Piece;

/// Stored responses. The oldest gives way, so the ground also takes for stored what is not.
const MOST: usize = 48;
/// The statuses for which a stored response is served (`fetch.rs`).
const FAILURES: [u16; 4] = [500, 502, 503, 504];

/// A stored response.
#[derive(Debug, Clone)]
struct Stored {
    head: Head,
    /// The values of the request that selected it, by the names in `Vary`.
    selected: Vec<u8>,
    body: Vec<u8>,
}

/// The cache of one remote. It outlives a restart, as files do.
#[derive(Debug)]
pub(crate) struct Cache {
    stored: VecDeque<Stored>,
    /// The names in the latest `Vary` of a URL.
    markers: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    private: Private<u64>,
    began: Instant,
    /// Requests by their outcome, for [`crate::Done`].
    pub(crate) hits: u64,
    pub(crate) revalidated: u64,
    pub(crate) validated_before: u64,
    pub(crate) spares: u64,
}

/// The way of a request.
#[derive(Debug)]
pub(crate) enum Way {
    /// The cache responds.
    Here(Vec<Piece>),
    /// The request goes on, with these fields. Its response comes back to the cache.
    On(Vec<Field>, Box<Fill>),
}

/// A request that the cache has sent on.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Fill {
    /// The client's request.
    request: Vec<Field>,
    url: Vec<u8>,
    sent_s: u64,
    /// The stored response that the request validates.
    validated: Option<Stored>,
    /// True if that one may be served if the origin fails.
    is_spare: bool,
    /// True if the response is not for the store.
    is_past: bool,
    /// The response while its body comes.
    filling: Option<Stored>,
    /// True if the rest of the response is not for the client.
    is_done: bool,
    /// True if the origin failed, and the client got the stored response.
    pub(crate) is_stale: bool,
}

fn view(fields: &[Field]) -> Fields<'_> {
    fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect()
}

/// Returns true if Envoy leads a request to the cache (`objects_route.yaml.j2`).
pub(crate) fn is_led_here(request: &[Field]) -> bool {
    let has = |name: &str| field(request, name).is_some();
    let is_delta =
        field(request, "x-longhaul-takes").is_some_and(|takes| takes.windows(5).any(|part| part == b"delta"));
    let excluded = ["authorization", "upgrade", page_flights::FLIGHT_FIELD, PAST];
    field(request, ":method") == Some(b"GET") && !is_delta && !excluded.into_iter().any(has)
}

/// Removes the fields that are for the cache alone from a request that goes round it.
pub(crate) fn go_round(request: &mut Vec<Field>) {
    request.retain(|(name, _)| name != PAST.as_bytes() && name != VALID.as_bytes());
}

impl Cache {
    pub(crate) fn new() -> Self {
        Self {
            stored: VecDeque::new(),
            markers: BTreeMap::new(),
            private: Private::default(),
            began: Instant::now(),
            hits: 0,
            revalidated: 0,
            validated_before: 0,
            spares: 0,
        }
    }

    /// Drops half of the stored responses.
    pub(crate) fn forget(&mut self) {
        let mut is_kept = false;
        self.stored.retain(|_| {
            is_kept = !is_kept;
            is_kept
        });
    }

    fn at(&self, now_ms: u64) -> Instant {
        self.began.checked_add(Duration::from_millis(now_ms)).unwrap_or(self.began)
    }

    fn url(request: &[Field]) -> Vec<u8> {
        [":authority", ":path"].map(|name| field(request, name).unwrap_or_default()).concat()
    }

    fn find(&self, url: &[u8], request: &Fields<'_>) -> Option<Stored> {
        let names = self.markers.get(url).map_or(&[][..], Vec::as_slice);
        let selected = variant::values(request, names);
        self.stored
            .iter()
            .rfind(|one| one.head.url == url && one.head.vary == names && one.selected == selected)
            .cloned()
    }

    /// Decides on a request, as `Cache::found_or_fetched` of the program.
    pub(crate) fn request(&mut self, mut request: Vec<Field>, at_ms: u64) -> Way {
        let valid = field(&request, VALID).and_then(|lines| hex::decode(lines).ok());
        go_round(&mut request);
        let (now_s, url) = (at_ms / 1000, Self::url(&request));
        let fields = view(&request);
        let fill = |is_past, validated, is_spare| {
            let (request, url) = (request.clone(), url.clone());
            let (filling, is_done, is_stale) = (None, false, false);
            Box::new(Fill { request, url, sent_s: now_s, validated, is_spare, is_past, filling, is_done, is_stale })
        };
        let past = || {
            let mut sent = request.clone();
            sent.retain(|(name, _)| name != CACHES.as_bytes());
            Way::On(sent, fill(true, None, false))
        };
        let goes_past = ["authorization", "range"].iter().any(|name| fields.has(name))
            || conditions::is_conditional(&fields)
            || Directives::of(&fields).has("no-store");
        let Some(stored) = self.find(&url, &fields) else {
            return if goes_past { past() } else { Way::On(unmarked(&request, None), fill(false, None, false)) };
        };
        let was = stored.head.as_fields();
        let Some(allowed) = stored.head.use_for(&fields, &[], now_s) else { return past() };
        let reloads = Directives::of(&fields).no_cache();
        if let (Some(lines), Use::Validate { .. } | Use::StaleWhileRevalidate, false) = (valid, allowed, reloads) {
            let came = validation::fields(&lines);
            let came = view(&came);
            let has_validator = came.has("etag") || came.has("last-modified");
            if has_validator && update::matches(&was, &came) {
                self.validated_before += 1;
                let renewed = self.renewed(&request, &stored, &came, now_s, now_s);
                return Way::Here(served(&fields, &renewed, now_s, Outcome::Revalidated));
            }
        }
        match allowed {
            Use::Fresh => {
                self.hits += 1;
                Way::Here(served(&fields, &stored, now_s, Outcome::Hit))
            }
            Use::Unavailable => Way::Here(vec![Piece::Headers(vec![pair(":status", "504")], true)]),
            Use::Past(_) => past(),
            Use::Validate { .. } if fields.has("if-match") || fields.has("if-unmodified-since") => past(),
            Use::StaleWhileRevalidate => {
                Way::On(unmarked(&request, Some(&was)), fill(false, Some(stored.clone()), true))
            }
            Use::Validate { stale_on_error } => {
                Way::On(unmarked(&request, Some(&was)), fill(false, Some(stored.clone()), stale_on_error))
            }
        }
    }

    /// Reads a piece of a response, and returns what goes on to the client, as `Fetcher::fetch` of the program.
    pub(crate) fn response(&mut self, fill: &mut Fill, piece: Piece, at_ms: u64) -> Vec<Piece> {
        if fill.is_done {
            return Vec::new();
        }
        match piece {
            Piece::Headers(fields, end) if !fill.is_past => self.headers(fill, &fields, end, at_ms),
            Piece::Body(bytes, end) => {
                if let Some(filling) = &mut fill.filling {
                    filling.body.extend_from_slice(&bytes);
                }
                if end && let Some(whole) = fill.filling.take() {
                    self.keep(whole);
                }
                vec![Piece::Body(bytes, end)]
            }
            other => {
                fill.filling = None;
                vec![other]
            }
        }
    }

    fn headers(&mut self, fill: &mut Fill, came: &[Field], end: bool, at_ms: u64) -> Vec<Piece> {
        let now_s = at_ms / 1000;
        let fields = view(came);
        let status = fields.status();
        let request = fill.request.clone();
        if let Some(stored) = fill.validated.clone() {
            if status == 304 && update::matches(&stored.head.as_fields(), &fields) {
                self.revalidated += 1;
                let renewed = self.renewed(&request, &stored, &fields, fill.sent_s, now_s);
                fill.is_done = true;
                return served(&view(&request), &renewed, now_s, Outcome::Revalidated);
            }
            if fill.is_spare && FAILURES.contains(&status) {
                self.spares += 1;
                (fill.is_done, fill.is_stale) = (true, true);
                return served(&view(&request), &stored, now_s, Outcome::StaleIfError);
            }
        }
        let plain: Vec<Field> = request.iter().filter(|(name, _)| name != b"range").cloned().collect();
        let asked = view(&plain);
        let vary = variant::names(&fields);
        let life = storable(&asked, &fields, now_s, now_s.saturating_sub(fill.sent_s));
        let key = object_bypass::key(b"http", &fill.url, b"");
        let mut passed = came.to_vec();
        match (life, vary) {
            (Ok(life), Some(vary)) if !plain::is_unkeyed(&asked, &vary, &[]) => {
                let mut kept = update::without_hop_by_hop(&fields);
                kept.retain(|(name, _)| name != b"content-length" && name != b"age");
                if let Some(vary) = variant::of_encoded(&fields) {
                    kept.retain(|(name, _)| name != b"vary");
                    kept.push((b"vary".to_vec(), vary));
                }
                let (url, selected) = (fill.url.clone(), variant::values(&asked, &vary));
                let head = Head { kind: Kind::Object, url, status, fields: kept, life, vary, length: 0 };
                let stored = Stored { head, selected, body: Vec::new() };
                passed.push(pair(OUTCOME, Outcome::Stored.as_str()));
                if end { self.keep(stored) } else { fill.filling = Some(stored) }
            }
            (life, _) => {
                passed.push(pair(OUTCOME, Outcome::Past.as_str()));
                if let Some(which) = life.err().and_then(object_rules::Past::foretells).filter(|_| status < 500) {
                    self.private.add(key, which, self.at(at_ms));
                }
                if let Some(which) = self.private.of(key, self.at(at_ms)) {
                    passed.push(pair(PRIVATE, which.as_str()));
                }
            }
        }
        vec![Piece::Headers(passed, end)]
    }

    fn keep(&mut self, mut stored: Stored) {
        stored.head.length = stored.body.len() as u64;
        self.markers.insert(stored.head.url.clone(), stored.head.vary.clone());
        self.remove(&stored);
        self.stored.push_back(stored);
        if self.stored.len() > MOST {
            self.stored.pop_front();
        }
    }

    fn remove(&mut self, stored: &Stored) {
        self.stored.retain(|one| one.head.url != stored.head.url || one.selected != stored.selected);
    }

    /// Gives a stored response the fields of a 304.
    fn renewed(&mut self, request: &[Field], stored: &Stored, came: &Fields<'_>, sent_s: u64, now_s: u64) -> Stored {
        let mut renewed = stored.clone();
        renewed.head.fields = update::updated(&stored.head.as_fields(), came);
        match storable(&view(request), &renewed.head.as_fields(), now_s, now_s.saturating_sub(sent_s)) {
            Ok(life) => {
                renewed.head.life = life;
                self.keep(renewed.clone());
            }
            // From now on, it belongs to the client whose request this was.
            Err(_) => self.remove(stored),
        }
        renewed
    }
}

/// Returns a request for a whole response, with the validators of the stored one, as `request::unmarked` of the program.
fn unmarked(request: &[Field], stored: Option<&Fields<'_>>) -> Vec<Field> {
    let mut sent = request.to_vec();
    sent.retain(|(name, _)| name != b"range" && !conditions::CONDITIONS.iter().any(|known| known.as_bytes() == name));
    if let Some(coding) = variant::coding(&view(request)) {
        sent.retain(|(name, _)| name != b"accept-encoding");
        sent.push(pair("accept-encoding", coding.as_str()));
    }
    sent.extend(stored.map(conditions::validators).unwrap_or_default());
    sent
}

/// Returns the response to a request that may have the stored one.
fn served(request: &Fields<'_>, stored: &Stored, now_s: u64, outcome: Outcome) -> Vec<Piece> {
    let was = stored.head.as_fields();
    let planned = reply(request, &was, stored.head.length, stored.head.life.age_at_s(now_s), || 7);
    let mut fields = vec![pair(":status", &planned.status.to_string())];
    fields.extend(planned.fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())));
    fields.push(pair(OUTCOME, outcome.as_str()));
    let body: Vec<u8> = planned
        .body
        .into_iter()
        .flat_map(|part| match part {
            Part::Bytes(bytes) => bytes,
            Part::Stored(range) => {
                let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                stored.body.get(place(range.start)..place(range.end)).unwrap_or_default().to_vec()
            }
        })
        .collect();
    if body.is_empty() {
        return vec![Piece::Headers(fields, true)];
    }
    vec![Piece::Headers(fields, false), Piece::Body(body, true)]
}
