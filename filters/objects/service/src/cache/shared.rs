//! Requests to origins that clients share: one leads, and the others wait for its response.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use http_semantics::Fields;
use hyper::Response;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use object_rules::ranges::{self, Ranges};
use object_rules::{Outcome, Use, conditions, plain, variant};
use object_store::{Head, Kind, Name, Object, now_s};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::{Answer, Cache, Wanted, passed};
use crate::body::Body;
use crate::fetch::{Audience, Extent, Led, is_failure};
use crate::fill::{self, Filling, Progress, Rest, Waiting};
use crate::origin::Unanswered;
use crate::reply;
use crate::request::{self, fields_of};

/// The longest wait for the head of a response that another client's request fetches.
const JOIN_TIME: Duration = Duration::from_secs(10);

/// The response that a client wants from an origin.
pub(super) struct Ask<'a> {
    pub(super) name: &'a Name,
    pub(super) wanted: Wanted,
    pub(super) parts: &'a Parts,
    /// The stored response that the origin validates.
    pub(super) validated: Option<Arc<Object>>,
    /// The stored response to use if the origin fails.
    pub(super) spare: Option<Arc<Object>>,
}

impl Cache {
    /// Gets a response from the origin, or waits for the request of another client.
    pub(super) async fn fetched(self: &Arc<Self>, ask: Ask<'_>) -> Result<Answer, Unanswered> {
        let fields = fields_of(ask.parts);
        let has_cookie = fields.has("cookie");
        let coming = self.fetches().get(&ask.wanted).map(|(_, waiting)| waiting.clone());
        if let Some(waiting) = coming.filter(|_| !request::reloads(&fields)) {
            // A response to a client with a cookie is often its own. Such a request does not wait for the head of another's.
            if !(has_cookie && matches!(*waiting.borrow(), Progress::Asking)) {
                return self.joined(ask, waiting).await;
            }
            return self.past(request::copy_of(ask.parts)).await;
        }
        self.led(ask).await
    }

    /// Gets a response from the origin, which others may wait for.
    async fn led(self: &Arc<Self>, ask: Ask<'_>) -> Result<Answer, Unanswered> {
        let Ask { name, wanted, parts, validated, spare } = ask;
        let fields = fields_of(parts);
        let result = self.lead(name, wanted, parts, validated).await.unwrap_or(Led::Failed(Unanswered::Leader));
        match result {
            Led::Filling(filling, rest) => Ok((growing(&fields, &filling, Some(rest)), Outcome::Stored)),
            // The origin was asked without the client's conditions.
            Led::Sliced(object, _) if !conditions::preconditions_hold(&fields, &object.head.as_fields()) => {
                self.past(request::copy_of(parts)).await
            }
            Led::Own(_) if wanted.1 == Extent::Part && conditions::is_conditional(&fields) => {
                self.past(request::copy_of(parts)).await
            }
            Led::Sliced(object, lead) => self.stored_or_past(parts, &object, Some(lead), Outcome::Stored).await,
            Led::Validated(object) | Led::Marked(object) => {
                self.stored_or_past(parts, &object, None, Outcome::Revalidated).await
            }
            Led::Own(response) => self.own_or_spare(parts, Ok(response), spare).await,
            Led::Failed(error) => self.own_or_spare(parts, Err(error), spare).await,
        }
    }

    /// Waits for the response that another client's request fetches. Requests the own one if that is not for all.
    async fn joined(self: &Arc<Self>, ask: Ask<'_>, mut waiting: Waiting) -> Result<Answer, Unanswered> {
        let parts = ask.parts;
        let fields = fields_of(parts);
        let progress = timeout(JOIN_TIME, fill::known(&mut waiting)).await.unwrap_or(Progress::Alone);
        let is_selected = |selected: &[u8], head: &Head| selected == variant::values(&fields, &head.vary);
        let use_of = |object| self.use_of(&fields, object);
        match progress {
            Progress::Filling(filling)
                if is_selected(&filling.selected, &filling.head) && self.fits(&fields, &filling) =>
            {
                Ok((growing(&fields, &filling, None), Outcome::Joined))
            }
            Progress::Stored(object, selected)
                if is_selected(&selected, &object.head) && use_of(&object) == Some(Use::Fresh) =>
            {
                self.stored_or_past(parts, &object, None, Outcome::Joined).await
            }
            // The origin validates each use. The clients share the blocks nevertheless.
            Progress::Stored(object, selected)
                if is_selected(&selected, &object.head)
                    && object.head.kind == Kind::Slices
                    && !request::insists(&fields)
                    && matches!(use_of(&object), Some(Use::Validate { .. })) =>
            {
                self.led(Ask { validated: Some(object), ..ask }).await
            }
            _ => self.own_or_spare(parts, self.fetcher.origin.ask(request::copy_of(parts)).await, ask.spare).await,
        }
    }

    /// Returns true if a request may have a response whose body is on its way. The head does not have its length.
    fn fits(&self, request: &Fields<'_>, filling: &Filling) -> bool {
        let head = &filling.head;
        let is_origins = |length| ranges::requested(request, &head.as_fields(), length) == Ranges::Origins;
        !variant::is_unread_br(request, &head.as_fields())
            && !plain::is_unkeyed(request, &head.vary, &self.fetcher.plain_fields)
            && head.life.allows(request, now_s()) == Use::Fresh
            && !filling.length.is_some_and(is_origins)
    }

    /// Returns the origin's response. If the origin failed, returns the stored one that may be used then.
    async fn own_or_spare(
        &self,
        parts: &Parts,
        own: Result<Response<Incoming>, Unanswered>,
        spare: Option<Arc<Object>>,
    ) -> Result<Answer, Unanswered> {
        let has_failed = own.as_ref().map_or(true, |response| is_failure(response.status()));
        if let Some(spare) = spare.filter(|_| has_failed)
            && let Some(answer) = self.stored(parts, &spare, None, Outcome::StaleIfError).await
        {
            return Ok(answer);
        }
        own.map(|response| (passed(response), Outcome::Past))
    }

    /// Starts a request to the origin that others may wait for. Returns what the leader gets.
    pub(super) fn lead(
        self: &Arc<Self>,
        name: &Name,
        wanted: Wanted,
        parts: &Parts,
        validated: Option<Arc<Object>>,
    ) -> oneshot::Receiver<Led> {
        let (told, waiting) = watch::channel(Progress::Asking);
        let (answer, leading) = oneshot::channel();
        // A response that was stored is for all, whatever other requests for its URL got.
        let is_waited_for = validated.is_some() || !self.fetcher.is_private(name, parts);
        let number = is_waited_for.then(|| self.announce(wanted, waiting));
        let (cache, name, parts) = (Arc::clone(self), name.clone(), request::copy_of(parts));
        tokio::spawn(async move {
            cache.fetcher.fetch(&name, &parts, wanted.1, validated, Audience { leader: answer, told }).await;
            if let Some(number) = number {
                cache.withdraw(wanted, number);
            }
        });
        leading
    }

    /// Returns true if a response is on its way that others may have.
    pub(super) fn is_coming(&self, wanted: Wanted) -> bool {
        self.fetches().contains_key(&wanted)
    }

    fn announce(&self, wanted: Wanted, waiting: Waiting) -> u64 {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.fetches().insert(wanted, (number, waiting));
        number
    }

    /// Forgets a request, unless a later one has taken its place.
    fn withdraw(&self, wanted: Wanted, number: u64) {
        let mut fetches = self.fetches();
        if fetches.get(&wanted).is_some_and(|(last, _)| *last == number) {
            fetches.remove(&wanted);
        }
    }

    fn fetches(&self) -> MutexGuard<'_, HashMap<Wanted, (u64, Waiting)>> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a response whose body is on its way.
fn growing(request: &Fields<'_>, filling: &Arc<Filling>, rest: Option<Rest>) -> Response<Body> {
    let is_leader = rest.is_some();
    let mut response = reply::headed(&filling.head, !is_leader);
    let fields = filling.head.as_fields();
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
