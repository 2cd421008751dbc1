//! The filter of one worker, and its streams.
//!
//! Hooks of streams run on the worker's thread. Ticks and responses to the filter's own requests run on Envoy's main thread.
//! Both take the same lock, which nobody else wants but for a moment. Under it, filter code runs and makes calls that
//! return at once. Calls that may lead back into the module are left to the caller, for after the lock ([`After`]).

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use filter_host::Half;
use filter_host::callout::Token;
use filter_host::headers::Pairs;
use filter_host::stream::{Action, HttpStream};

use crate::abi::{self, Body};
use crate::confined::Confined;
use crate::filters::{Kind, Served};
use crate::host::{Act, Earlier, EnvoyHost, LocalReply, Phase, Piece, Place, ROOT, token};
use crate::outgoing::Outgoing;
use crate::panics::caught;

thread_local! {
    /// True while filter code runs on this thread. No call of it leads back here; if one ever did, the hook would change
    /// nothing.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// A hook of a stream.
#[derive(Debug)]
pub(crate) enum Event {
    /// The request's headers arrived, and its end if it has no body.
    RequestHeaders(bool),
    /// The response's headers arrived, and its end if it has no body.
    ResponseHeaders(bool),
    /// A piece of the response's body arrived; true for the last one.
    ResponseBody(bool),
    /// The response's trailers arrived.
    ResponseTrailers,
    /// A request that the stream sent has ended.
    CallEnded(Option<(Pairs, Vec<u8>)>),
}

/// The consequence of a hook.
#[derive(Debug)]
pub(crate) struct After {
    /// The treatment of what the hook has seen.
    pub(crate) action: Action,
    /// The acts on the stream before the hook returns.
    acts: Vec<Act>,
    /// True if the filter panicked.
    pub(crate) panicked: bool,
}

/// A stream.
struct Entry {
    /// None once its filter has panicked.
    stream: Option<Box<dyn HttpStream>>,
    /// True if Envoy holds a part of the body for it.
    holds_body: bool,
    /// True if the filter has changed the response.
    changed: bool,
}

/// The values behind the lock.
struct Inside {
    filter: Box<dyn Served>,
    streams: HashMap<u32, Entry>,
    host: Rc<EnvoyHost>,
    last_id: u32,
}

/// The filter of one worker.
pub(crate) struct Worker {
    name: String,
    inside: Confined<Inside>,
    panicked: AtomicBool,
}

impl fmt::Debug for Worker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs filter code with `host` as the thread's host. None: it panicked.
fn serving<T>(name: &str, host: &Rc<EnvoyHost>, run: impl FnOnce() -> T) -> Option<T> {
    BUSY.set(true);
    filter_host::serve(Some(Rc::clone(host) as Rc<dyn filter_host::Host>));
    let outcome = caught(name, run);
    filter_host::serve(None);
    BUSY.set(false);
    outcome
}

impl Worker {
    /// Configures a filter.
    ///
    /// # Errors
    /// The reason for a refusal, in one line.
    pub(crate) fn new(host: EnvoyHost, kind: Kind, name: &str, json: &[u8], place: Place) -> Result<Self, String> {
        let host = Rc::new(host);
        host.arrive(place, None);
        let filter = serving(name, &host, || (kind.configure)(json, ROOT));
        host.leave();
        let filter = filter.ok_or_else(|| format!("{name}: the filter panicked at its configuration"))??;
        let inside = Inside { filter, streams: HashMap::new(), host, last_id: ROOT };
        Ok(Self { name: name.to_owned(), inside: Confined::new(inside), panicked: AtomicBool::new(false) })
    }

    /// Returns true if the filter has panicked. Its streams go on, and new ones get another worker.
    pub(crate) fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    /// Runs filter code at `place`, under the lock. None: it panicked.
    fn enter<T>(
        &self,
        inside: &mut Inside,
        place: Place,
        answer: Option<(Pairs, Vec<u8>)>,
        run: impl FnOnce(&mut Inside) -> T,
    ) -> Option<T> {
        let host = Rc::clone(&inside.host);
        host.arrive(place, answer);
        let outcome = serving(&self.name, &host, || run(inside));
        if outcome.is_none() {
            self.panicked.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Starts a stream. Returns its id, and whether the filter panicked.
    pub(crate) fn open(&self) -> (u32, bool) {
        if BUSY.get() {
            return (ROOT, false);
        }
        let mut inside = self.inside.lock();
        let mut id = inside.last_id.wrapping_add(1);
        while id == ROOT || inside.streams.contains_key(&id) {
            id = id.wrapping_add(1);
        }
        inside.last_id = id;
        let stream = self.enter(&mut inside, Place::Nowhere, None, |inside| inside.filter.stream(id));
        inside.host.leave();
        let panicked = stream.is_none();
        inside.streams.insert(id, Entry { stream, holds_body: false, changed: false });
        (id, panicked)
    }

    /// Ends a stream. Returns true if the filter panicked.
    pub(crate) fn close(&self, id: u32) -> bool {
        if BUSY.get() {
            return false;
        }
        let mut inside = self.inside.lock();
        let Some(entry) = inside.streams.remove(&id) else { return false };
        inside.host.forget(id);
        let closed = self.enter(&mut inside, Place::Nowhere, None, |_| drop(entry));
        inside.host.leave();
        closed.is_none()
    }

    /// Runs a hook of a stream.
    pub(crate) fn hook(&self, id: u32, stream: abi::Stream, mut event: Event) -> After {
        let nothing = |action| After { action, acts: Vec::new(), panicked: false };
        if BUSY.get() {
            return nothing(Action::Continue);
        }
        let mut guard = self.inside.lock();
        let inside = &mut *guard;
        let Some(mut entry) = inside.streams.remove(&id) else { return nothing(Action::Continue) };
        let Some(state) = &mut entry.stream else {
            let is_request = matches!(event, Event::RequestHeaders(_));
            inside.streams.insert(id, entry);
            return if is_request { lost(&event, false) } else { nothing(Action::Continue) };
        };
        let phase = if matches!(event, Event::ResponseBody(_)) {
            let (held, earlier) = match entry.holds_body {
                false => (0, Earlier::Passed),
                true if inside.host.is_released(id) => (0, Earlier::Released),
                true => (stream.body_size(Body::Held), Earlier::Held),
            };
            Phase::Body(Piece { held, received: stream.body_size(Body::Received), earlier })
        } else {
            Phase::Other
        };
        let answer = if let Event::CallEnded(answer) = &mut event { answer.take() } else { None };
        let (count, length) = sizes(answer.as_ref());
        let place = Place::Stream(id, stream, phase);
        let outcome = self.enter(inside, place, answer, |_| match (&event, phase) {
            (Event::RequestHeaders(end), _) => state.request_headers(*end),
            (Event::ResponseHeaders(end), _) => state.response_headers(*end),
            (Event::ResponseBody(end), Phase::Body(piece)) => state.response_body(piece.total(), *end),
            (Event::ResponseBody(_), Phase::Other) => Action::Continue,
            (Event::ResponseTrailers, _) => state.response_trailers(),
            (Event::CallEnded(_), _) => {
                state.callout_ended(count, length);
                Action::Continue
            }
        });
        let (mut acts, changed) = inside.host.leave();
        entry.changed |= changed;
        let after = if let Some(mut action) = outcome {
            let half = if matches!(event, Event::RequestHeaders(_)) { Half::Request } else { Half::Response };
            if matches!(event, Event::CallEnded(_)) {
                acts = inside.host.releases(id, acts);
            } else {
                action = settle(&mut acts, half, action);
            }
            if let Phase::Body(piece) = phase {
                let has_held = std::mem::replace(&mut entry.holds_body, action == Action::Pause);
                match action {
                    Action::Continue if has_held => inside.host.goes_on(id),
                    // A body that ends early is better than one of mixed bytes.
                    Action::Pause if !piece.may_be_held(stream) => acts.push(Act::Reset),
                    Action::Continue | Action::Pause => {}
                }
            }
            let ends = acts.iter().any(|act| matches!(act, Act::Reply(_) | Act::Respond(_) | Act::Reset));
            if action == Action::Pause && !ends {
                inside.host.hold(id, stream, half);
            }
            After { action, acts, panicked: false }
        } else {
            let state = entry.stream.take();
            // The filter may have broken its own rules, so its state may panic once more.
            let _ = serving(&self.name, &inside.host, || drop(state));
            lost(&event, entry.changed)
        };
        inside.streams.insert(id, entry);
        after
    }

    /// Takes what others left to do for a stream.
    pub(crate) fn mail(&self, id: u32) -> After {
        let mut acts = Vec::new();
        if !BUSY.get() {
            let mut inside = self.inside.lock();
            acts = inside.host.mail(id);
            if acts.iter().any(|act| matches!(act, Act::Resume(Half::Response)))
                && let Some(entry) = inside.streams.get_mut(&id)
            {
                entry.holds_body = false;
            }
        }
        After { action: Action::Continue, acts, panicked: false }
    }

    /// Handles a tick. Returns false if the filter panicked.
    pub(crate) fn tick(&self) -> bool {
        self.at_root(None, |filter| filter.tick())
    }

    /// Handles the end of a request of the filter. Returns false if the filter panicked.
    pub(crate) fn ended(&self, call: u64, answer: Option<(Pairs, Vec<u8>)>) -> bool {
        let (count, length) = sizes(answer.as_ref());
        self.at_root(answer, |filter| filter.ended(Token::of_callback(token(call)), count, length))
    }

    fn at_root(&self, answer: Option<(Pairs, Vec<u8>)>, run: impl FnOnce(&dyn Served)) -> bool {
        if BUSY.get() {
            return true;
        }
        let mut inside = self.inside.lock();
        let outcome = self.enter(&mut inside, Place::Root, answer, |inside| run(&*inside.filter));
        inside.host.leave();
        outcome.is_some()
    }
}

/// Returns the number of headers and the size of the body of a response, as filters hear them. A failure has no headers.
fn sizes(answer: Option<&(Pairs, Vec<u8>)>) -> (usize, usize) {
    answer.map_or((0, 0), |(headers, body)| (headers.iter().count(), body.len()))
}

/// A filter that releases the half whose hook runs does not want it held.
fn settle(acts: &mut Vec<Act>, half: Half, action: Action) -> Action {
    let before = acts.len();
    acts.retain(|act| !matches!(act, Act::Resume(released) if *released == half));
    if acts.len() < before { Action::Continue } else { action }
}

/// Returns what follows a panic.
///
/// A request or a response whose headers the filter has not finished might lend a credential, or be
/// a page of the proxy's own origin. The client gets an error. A body passes as it comes if the filter left the response as it was.
/// Otherwise nobody could read the rest of it, and the stream is reset.
fn lost(event: &Event, changed: bool) -> After {
    let error = LocalReply {
        status: 500,
        details: "longhaul_filter_panicked".to_owned(),
        headers: Pairs::default(),
        body: Vec::new(),
    };
    let acts = match event {
        Event::RequestHeaders(_) | Event::ResponseHeaders(_) | Event::CallEnded(_) => vec![Act::Reply(Box::new(error))],
        Event::ResponseBody(_) | Event::ResponseTrailers if changed => vec![Act::Reset],
        Event::ResponseBody(_) | Event::ResponseTrailers => Vec::new(),
    };
    After { action: Action::Continue, acts, panicked: true }
}

/// The next step of Envoy after a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It passes on what the hook has seen.
    PassOn,
    /// It holds it.
    Hold,
    /// It holds it, and reads no more from the sender than its buffer takes.
    Wait,
    /// It drops it: the stream has another response, or none.
    Drop,
}

/// The consequences of a hook.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The next step of Envoy.
    pub(crate) then: Then,
    /// The response that is to be sent.
    pub(crate) response: Option<Box<Outgoing>>,
}

impl After {
    /// Does what is left to do. The stream may be gone afterwards, unless there is a response to send.
    pub(crate) fn finish(self, stream: abi::Stream) -> Finished {
        let just = |then| Finished { then, response: None };
        for act in self.acts {
            match act {
                Act::Resume(Half::Request) => stream.resume_request(),
                Act::Resume(Half::Response) => stream.resume_response(),
                Act::Respond(response) => return Finished { then: Then::Drop, response: Some(response) },
                Act::Reply(reply) => {
                    stream.reply(reply.status, &reply.details, &reply.headers, &reply.body);
                    return just(Then::Drop);
                }
                Act::Reset => {
                    stream.reset("longhaul_broken_off");
                    return just(Then::Drop);
                }
            }
        }
        just(match self.action {
            Action::Continue => Then::PassOn,
            Action::Pause => Then::Hold,
        })
    }
}
