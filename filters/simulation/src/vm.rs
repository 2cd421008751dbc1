//! One filter in one worker: its streams, and the host that serves them.
//!
//! The host follows Envoy 1.40. A local response, a resumed stream and a reset take effect when the callback has returned.
//! A response that has begun cannot be replaced.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use filter_host::body::Buffer;
use filter_host::callout::Token;
use filter_host::headers::{Map, Pairs};
use filter_host::metrics::Metrics;
use filter_host::root::Filter;
use filter_host::stream::{Action, HttpStream};
use filter_host::{Half, Host, HostError};
use shared_board::Board;

use crate::board::EndBoard;
use crate::fields::Field;

/// The root context of every module.
const ROOT: u32 = 1;

/// The time and the chance of a run, for all modules.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// Milliseconds since the simulation began.
    pub(crate) now_ms: Rc<Cell<u64>>,
    pub(crate) random: Rc<RefCell<fastrand::Rng>>,
}

/// An effect that a module wants after its callback.
#[derive(Debug)]
pub(crate) enum Effect {
    Reply { stream: u32, fields: Vec<Field>, body: Vec<u8> },
    Resume { stream: u32, half: Half },
    Reset { stream: u32 },
    Call { token: u32, owner: u32, cluster: String, fields: Vec<Field>, timeout_ms: u64 },
}

/// A filter, whatever its type.
trait AnyFilter {
    fn stream(&self, id: u32) -> Box<dyn HttpStream>;
    fn tick(&self);
    fn ended(&self, token: u32, header_count: usize, body_bytes: usize);
}

struct Loaded<F>(Rc<F>);

impl<F: Filter> AnyFilter for Loaded<F> {
    fn stream(&self, id: u32) -> Box<dyn HttpStream> {
        self.0.stream(id)
    }

    fn tick(&self) {
        self.0.tick();
    }

    fn ended(&self, token: u32, header_count: usize, body_bytes: usize) {
        self.0.ended(Token::of_callback(token), header_count, body_bytes);
    }
}

/// A stream as the host holds it.
#[derive(Debug, Default)]
struct Held {
    request: Vec<Field>,
    response: Option<Vec<Field>>,
    /// True once the response's headers have passed this filter.
    has_begun: bool,
    body: Vec<u8>,
    properties: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<u32, Held>,
    /// The context that calls mean.
    effective: u32,
    /// The context whose callback runs.
    calling: u32,
    effects: Vec<Effect>,
    tick_ms: Option<u64>,
    callout: Option<(Vec<Field>, Vec<u8>)>,
    next_token: u32,
    counters: BTreeMap<String, u32>,
    counts: Vec<i64>,
}

struct VmHost {
    surroundings: Surroundings,
    board: Rc<EndBoard>,
    state: RefCell<State>,
}

/// A module in one worker.
pub(crate) struct Vm {
    filter: Box<dyn AnyFilter>,
    host: Rc<VmHost>,
    streams: BTreeMap<u32, Box<dyn HttpStream>>,
}

impl Vm {
    /// Loads `F` with `config`.
    ///
    /// # Errors
    /// The filter's reason to refuse it.
    pub(crate) fn load<F: Filter>(config: &[u8], around: &Surroundings, board: &Rc<EndBoard>) -> Result<Self, String> {
        let state = RefCell::new(State { next_token: 1, ..State::default() });
        let host = Rc::new(VmHost { surroundings: around.clone(), board: Rc::clone(board), state });
        host.enter(ROOT);
        let filter = F::configure(config, &Metrics::of(F::NAME), ROOT);
        Ok(Self { filter: Box::new(Loaded(Rc::new(filter?))), host, streams: BTreeMap::new() })
    }

    /// Opens a stream.
    pub(crate) fn open(&mut self, id: u32, request: Vec<Field>, properties: &[(&str, &str)]) {
        let properties = properties.iter().map(|(path, value)| (path.as_bytes().to_vec(), value.as_bytes().to_vec()));
        let held = Held { request, properties: properties.collect(), ..Held::default() };
        self.host.state.borrow_mut().streams.insert(id, held);
        self.host.enter(id);
        let stream = self.filter.stream(id);
        self.streams.insert(id, stream);
    }

    /// Passes the request's headers. Also returns them as the filter left them.
    pub(crate) fn request_headers(&mut self, id: u32, end: bool) -> (Action, Vec<Field>) {
        self.host.enter(id);
        let action = self.streams.get_mut(&id).map_or(Action::Continue, |stream| stream.request_headers(end));
        (action, self.host.of(id, |held| held.request.clone()))
    }

    /// Passes the response's headers. Also returns them as the filter left them.
    pub(crate) fn response_headers(&mut self, id: u32, fields: Vec<Field>, end: bool) -> (Action, Vec<Field>) {
        self.host.with(id, |held| held.response = Some(fields));
        self.host.enter(id);
        let action = self.streams.get_mut(&id).map_or(Action::Continue, |stream| stream.response_headers(end));
        self.host.with(id, |held| held.has_begun = action == Action::Continue);
        (action, self.host.of(id, |held| held.response.clone().unwrap_or_default()))
    }

    /// Takes the response's headers that the filter held, as it left them.
    pub(crate) fn release_headers(&mut self, id: u32) -> Vec<Field> {
        self.host.with(id, |held| held.has_begun = true);
        self.host.of(id, |held| held.response.clone().unwrap_or_default())
    }

    /// Passes a piece of the response's body, behind what the filter holds. Returns what may go on.
    pub(crate) fn response_body(&mut self, id: u32, piece: &[u8], end: bool) -> Option<Vec<u8>> {
        let size = self.host.of(id, |held| {
            held.body.extend_from_slice(piece);
            held.body.len()
        });
        self.host.enter(id);
        let action = self.streams.get_mut(&id).map_or(Action::Continue, |stream| stream.response_body(size, end));
        (action == Action::Continue).then(|| self.take_body(id))
    }

    /// Takes the part of the body that the filter holds.
    pub(crate) fn take_body(&mut self, id: u32) -> Vec<u8> {
        self.host.of(id, |held| std::mem::take(&mut held.body))
    }

    /// Ends a stream, in whatever way.
    pub(crate) fn close(&mut self, id: u32) {
        self.host.enter(id);
        let stream = self.streams.remove(&id);
        self.host.state.borrow_mut().streams.remove(&id);
        drop(stream);
    }

    /// Calls the root context's tick.
    pub(crate) fn tick(&mut self) {
        self.host.enter(ROOT);
        self.filter.tick();
    }

    /// Ends a request of the module; `owner` is the context that sent it.
    pub(crate) fn answered(&mut self, owner: u32, token: u32, answer: Option<(Vec<Field>, Vec<u8>)>) {
        let (count, size) = answer.as_ref().map_or((0, 0), |(fields, body)| (fields.len(), body.len()));
        self.host.state.borrow_mut().callout = answer;
        self.host.enter(owner);
        if owner == ROOT {
            self.filter.ended(token, count, size);
        } else if let Some(stream) = self.streams.get_mut(&owner) {
            stream.callout_ended(count, size);
        }
        self.host.state.borrow_mut().callout = None;
    }

    /// Takes what the callbacks so far want done.
    pub(crate) fn take_effects(&self) -> Vec<Effect> {
        std::mem::take(&mut self.host.state.borrow_mut().effects)
    }

    /// The period of ticks, if there are any.
    pub(crate) fn tick_ms(&self) -> Option<u64> {
        self.host.state.borrow().tick_ms
    }

    /// The number of streams.
    pub(crate) fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// The value of a counter, by its full name.
    pub(crate) fn count(&self, name: &str) -> i64 {
        let state = self.host.state.borrow();
        let id = state.counters.get(name).copied().unwrap_or(u32::MAX);
        usize::try_from(id).ok().and_then(|id| state.counts.get(id)).copied().unwrap_or(0)
    }
}

impl Drop for Vm {
    /// A stream's destructor calls the host, so this module's host must serve it.
    fn drop(&mut self) {
        self.host.enter(ROOT);
        self.streams.clear();
    }
}

impl VmHost {
    /// Makes this host serve the thread, in a callback of `context`.
    fn enter(self: &Rc<Self>, context: u32) {
        let mut state = self.state.borrow_mut();
        (state.effective, state.calling) = (context, context);
        drop(state);
        filter_host::serve(Some(Rc::clone(self) as Rc<dyn Host>));
    }

    fn with(&self, id: u32, change: impl FnOnce(&mut Held)) {
        if let Some(held) = self.state.borrow_mut().streams.get_mut(&id) {
            change(held);
        }
    }

    fn of<T: Default>(&self, id: u32, read: impl FnOnce(&mut Held) -> T) -> T {
        self.state.borrow_mut().streams.get_mut(&id).map(read).unwrap_or_default()
    }

    /// Calls `act` with the stream of the effective context.
    fn effective<T>(&self, act: impl FnOnce(&mut Held) -> Result<T, HostError>) -> Result<T, HostError> {
        let mut state = self.state.borrow_mut();
        let id = state.effective;
        state.streams.get_mut(&id).ok_or(HostError::BadArgument).and_then(act)
    }

    fn wants(&self, effect: impl FnOnce(u32) -> Effect) {
        let mut state = self.state.borrow_mut();
        let effect = effect(state.effective);
        state.effects.push(effect);
    }
}

impl Host for VmHost {
    fn buffer(&self, buffer: Buffer, start: usize, max: usize) -> Result<Vec<u8>, HostError> {
        let part = |bytes: &[u8]| bytes.iter().skip(start).take(max).copied().collect();
        match buffer {
            Buffer::ResponseBody => self.effective(|held| Ok(part(&held.body))),
            Buffer::CalloutResponseBody => {
                self.state.borrow().callout.as_ref().map(|(_, body)| part(body)).ok_or(HostError::NotFound)
            }
            Buffer::RequestBody | Buffer::PluginConfiguration => Err(HostError::NotFound),
        }
    }

    fn set_buffer(&self, buffer: Buffer, start: usize, size: usize, bytes: &[u8]) -> Result<(), HostError> {
        if buffer != Buffer::ResponseBody {
            return Err(HostError::BadArgument);
        }
        self.effective(|held| {
            let rest = held.body.get(start.saturating_add(size)..).unwrap_or_default().to_vec();
            held.body.truncate(start);
            held.body.extend_from_slice(bytes);
            held.body.extend_from_slice(&rest);
            Ok(())
        })
    }

    fn headers(&self, map: Map) -> Result<Pairs, HostError> {
        match map {
            Map::Request => self.effective(|held| Ok(Pairs::of(&held.request))),
            Map::Response => self.effective(|held| held.response.as_deref().map(Pairs::of).ok_or(HostError::NotFound)),
            Map::CalloutResponse => {
                let state = self.state.borrow();
                state.callout.as_ref().map(|(fields, _)| Pairs::of(fields)).ok_or(HostError::NotFound)
            }
            Map::RequestTrailers | Map::ResponseTrailers => Err(HostError::NotFound),
        }
    }

    fn set_headers(&self, map: Map, headers: &Pairs) -> Result<(), HostError> {
        let fields: Vec<Field> = headers.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        self.effective(|held| match map {
            Map::Request => {
                held.request = fields;
                Ok(())
            }
            Map::Response if !held.has_begun && held.response.is_some() => {
                held.response = Some(fields);
                Ok(())
            }
            _ => Err(HostError::BadArgument),
        })
    }

    fn reply(&self, status: u16, _: &str, headers: &Pairs, body: &[u8]) -> Result<(), HostError> {
        if self.effective(|held| Ok(held.has_begun))? {
            return Err(HostError::BadArgument);
        }
        let mut fields: Vec<Field> = vec![(b":status".to_vec(), status.to_string().into_bytes())];
        fields.extend(headers.iter().map(|(name, value)| (name.to_vec(), value.to_vec())));
        self.wants(|stream| Effect::Reply { stream, fields, body: body.to_vec() });
        Ok(())
    }

    fn close(&self, _: Half) -> Result<(), HostError> {
        self.effective(|_| Ok(()))?;
        self.wants(|stream| Effect::Reset { stream });
        Ok(())
    }

    fn resume(&self, half: Half) -> Result<(), HostError> {
        self.effective(|_| Ok(()))?;
        self.wants(|stream| Effect::Resume { stream, half });
        Ok(())
    }

    fn set_tick_period(&self, period: Duration) -> Result<(), HostError> {
        let millis = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        self.state.borrow_mut().tick_ms = (millis > 0).then_some(millis);
        Ok(())
    }

    fn set_effective_context(&self, id: u32) -> Result<(), HostError> {
        let mut state = self.state.borrow_mut();
        if id != ROOT && id != state.calling && !state.streams.contains_key(&id) {
            return Err(HostError::BadArgument);
        }
        state.effective = id;
        Ok(())
    }

    fn http_call(&self, cluster: &str, fields: &[(&str, &str)], timeout: Duration) -> Result<u32, HostError> {
        let mut state = self.state.borrow_mut();
        let (token, owner) = (state.next_token, state.calling);
        state.next_token += 1;
        let fields = fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let cluster = cluster.to_owned();
        state.effects.push(Effect::Call { token, owner, cluster, fields, timeout_ms });
        Ok(token)
    }

    fn shared(&self, key: &str) -> Result<(Vec<u8>, u32), HostError> {
        let (value, version) = self.board.get(key);
        if version == 0 { Err(HostError::NotFound) } else { Ok((value, version)) }
    }

    fn set_shared(&self, key: &str, value: &[u8], version: u32) -> Result<(), HostError> {
        if self.board.set(key, value, version) { Ok(()) } else { Err(HostError::CasMismatch) }
    }

    fn define_counter(&self, name: &str) -> Result<u32, HostError> {
        let mut state = self.state.borrow_mut();
        let next = u32::try_from(state.counts.len()).map_err(|_| HostError::BadArgument)?;
        let id = *state.counters.entry(name.to_owned()).or_insert(next);
        if id == next {
            state.counts.push(0);
        }
        Ok(id)
    }

    fn add_to_counter(&self, id: u32, amount: i64) -> Result<(), HostError> {
        let mut state = self.state.borrow_mut();
        let count = usize::try_from(id).ok().and_then(|id| state.counts.get_mut(id)).ok_or(HostError::NotFound)?;
        *count += amount;
        Ok(())
    }

    fn property(&self, path: &[u8]) -> Result<Vec<u8>, HostError> {
        self.effective(|held| held.properties.get(path).cloned().ok_or(HostError::NotFound))
    }

    fn set_property(&self, _: &[u8], _: &[u8]) -> Result<(), HostError> {
        Ok(())
    }

    fn monotonic(&self) -> Result<Duration, HostError> {
        Ok(Duration::from_millis(self.board.clock_ms(self.surroundings.now_ms.get())))
    }

    fn random(&self, bytes: &mut [u8]) {
        self.surroundings.random.borrow_mut().fill(bytes);
    }
}
