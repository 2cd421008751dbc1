//! The functions that Envoy calls. Each turns pointers into values, makes one safe call, and lets no panic out.
//!
//! Envoy promises that every pointer lives for the length of the hook, and that hooks of one stream run on one thread.
//! The pointers that it gives back to the module are the boxes that `config_new` and `filter_new` gave it.

#![allow(unsafe_code)]

#[cfg(test)]
mod orders;

use std::cell::OnceCell;
use std::ffi::c_char;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use link_share::Direction;

use crate::abi::{self, Lent, LentField, Ptr};
use crate::config::Config;
use crate::door::{self, Arrival, Door};
use crate::outgoing::Outgoing;
use crate::panics;
use crate::share::{Share, Shared};
use crate::worker::{After, Event, Finished, Then, Worker};

/// A configuration, as Envoy gives it back.
enum Loaded {
    Filter(Box<Config>),
    Share(Arc<Share>),
    Door(Arc<Door>),
}

/// A stream, as Envoy gives it back.
enum Handle {
    Filter(Filtered),
    Share(Shared),
    Arrival(Arrival),
}

/// A stream of a filter.
struct Filtered {
    config: *const Config,
    worker: Arc<Worker>,
    id: u32,
    /// The response that the filter gives instead of the server.
    response: OnceCell<Rc<Outgoing>>,
}

impl Filtered {
    /// Does what a hook has left to do. The stream and the handle may be gone afterwards.
    fn finish(&self, after: After, stream: abi::Stream) -> Then {
        let Finished { then, response } = after.finish(stream);
        if let Some(response) = response {
            let response = Rc::clone(self.response.get_or_init(|| Rc::from(response)));
            response.start(stream);
        }
        then
    }
}

/// Runs a hook. Panics of filter code are caught closer to it, so this is for a fault of the module itself.
fn hook<T>(otherwise: T, run: impl FnOnce() -> T) -> T {
    panics::caught("longhaul", run).unwrap_or(otherwise)
}

/// Runs a hook of a stream.
///
/// # Safety
/// `stream` and `handle` are those of one stream.
unsafe fn on_stream(stream: Ptr, handle: Ptr, event: Event) -> Then {
    hook(Then::PassOn, || {
        // SAFETY: `filter_new` made the box, and Envoy has not destroyed the filter.
        let Some(handle) = (unsafe { handle.cast::<Handle>().as_ref() }) else { return Then::PassOn };
        // SAFETY: the stream lives for the length of the hook.
        let stream = unsafe { abi::Stream::of(stream) };
        let handle = match handle {
            Handle::Filter(handle) => handle,
            Handle::Share(shared) => return shared.hear(stream, &event),
            Handle::Arrival(arrival) => return arrival.hear(stream, &event),
        };
        let after = handle.worker.hook(handle.id, stream, event);
        if after.panicked {
            // SAFETY: Envoy keeps the configuration for as long as it has streams.
            unsafe { &*handle.config }.count_panic();
        }
        handle.finish(after, stream)
    })
}

/// Runs a hook for what follows the headers of a request. Only the shares of a link need those.
///
/// # Safety
/// `handle` is that of a stream.
unsafe fn on_request(handle: Ptr, act: impl FnOnce(&Shared) -> Then) -> Then {
    hook(Then::PassOn, || {
        // SAFETY: `filter_new` made the box, and Envoy has not destroyed the filter.
        match unsafe { handle.cast::<Handle>().as_ref() } {
            Some(Handle::Share(shared)) => act(shared),
            Some(Handle::Filter(_) | Handle::Arrival(_)) | None => Then::PassOn,
        }
    })
}

/// The status of a hook for headers. The proxy-wasm host holds headers in the same way: it reads no more than its buffers take.
fn headers_status(then: Then) -> u32 {
    const CONTINUE: u32 = 0;
    const STOP_ITERATION: u32 = 1;
    const STOP_ALL_AND_WATERMARK: u32 = 4;
    match then {
        Then::PassOn => CONTINUE,
        Then::Hold | Then::Wait => STOP_ALL_AND_WATERMARK,
        Then::Drop => STOP_ITERATION,
    }
}

/// The status of a hook for a body.
fn body_status(then: Then) -> u32 {
    const CONTINUE: u32 = 0;
    const STOP_AND_BUFFER: u32 = 1;
    const STOP_AND_WATERMARK: u32 = 2;
    const STOP_WITHOUT_BUFFER: u32 = 3;
    match then {
        Then::PassOn => CONTINUE,
        Then::Hold => STOP_AND_BUFFER,
        Then::Wait => STOP_AND_WATERMARK,
        Then::Drop => STOP_WITHOUT_BUFFER,
    }
}

/// The status of a hook for trailers.
fn trailers_status(then: Then) -> u32 {
    u32::from(then != Then::PassOn)
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
    panics::keep_reasons();
    abi::VERSION.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_config_new(config: Ptr, name: Lent, json: Lent) -> Ptr {
    hook(ptr::null_mut(), || {
        // SAFETY: Envoy lends both, and keeps the configuration until it calls `config_destroy`.
        let (config, name, json) = unsafe { (abi::Config::of(config), name.bytes(), json.bytes()) };
        let name = String::from_utf8_lossy(name);
        let loaded = match name.split('@').next() {
            Some(link_share::NAME) => Share::load(config, json).map(|share| Loaded::Share(Arc::new(share))),
            Some(door::NAME) => Ok(Loaded::Door(Arc::new(Door::load(config)))),
            _ => Config::load(config, &name, json).map(Loaded::Filter),
        };
        match loaded {
            Ok(loaded) => Box::into_raw(Box::new(loaded)).cast(),
            Err(reason) => {
                abi::log(4, &reason);
                ptr::null_mut()
            }
        }
    })
}

/// Returns the configuration of a filter.
///
/// # Safety
/// `config_new` made the box, and Envoy has not destroyed the configuration.
unsafe fn filter<'c>(config: Ptr) -> Option<&'c Config> {
    // SAFETY: the caller's promise.
    match unsafe { config.cast::<Loaded>().as_ref() } {
        Some(Loaded::Filter(config)) => Some(config),
        Some(Loaded::Share(_) | Loaded::Door(_)) | None => None,
    }
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_config_destroy(config: Ptr) {
    if !config.is_null() {
        // SAFETY: `config_new` made the box, and Envoy destroys it once, after its streams.
        hook((), || drop(unsafe { Box::from_raw(config.cast::<Loaded>()) }));
    }
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_new(config: Ptr, stream: Ptr) -> Ptr {
    hook(ptr::null_mut(), || {
        // SAFETY: `config_new` made the box, and the stream lives for the length of the hook.
        let (config, stream) = unsafe { (&*config.cast::<Loaded>(), abi::Stream::of(stream)) };
        let boxed = |handle: Handle| Box::into_raw(Box::new(handle)).cast();
        let config = match config {
            Loaded::Filter(config) => config,
            Loaded::Share(share) => return boxed(Handle::Share(Shared::new(Arc::clone(share)))),
            Loaded::Door(door) => return boxed(Handle::Arrival(Arrival::new(Arc::clone(door)))),
        };
        let Some(worker) = config.worker(stream.worker()) else { return ptr::null_mut() };
        let (id, panicked) = worker.open();
        if panicked {
            config.count_panic();
        }
        let filtered = Filtered { config: ptr::from_ref::<Config>(config), worker, id, response: OnceCell::new() };
        boxed(Handle::Filter(filtered))
    })
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_destroy(handle: Ptr) {
    if handle.is_null() {
        return;
    }
    hook((), || {
        // SAFETY: `filter_new` made the box, and Envoy destroys it once.
        let handle = unsafe { Box::from_raw(handle.cast::<Handle>()) };
        let Handle::Filter(handle) = *handle else { return };
        if let Some(response) = handle.response.get() {
            response.end();
        }
        if handle.worker.close(handle.id) {
            // SAFETY: Envoy keeps the configuration for as long as it has streams.
            unsafe { &*handle.config }.count_panic();
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_request_headers(stream: Ptr, handle: Ptr, end: bool) -> u32 {
    // SAFETY: Envoy's pointers.
    headers_status(unsafe { on_stream(stream, handle, Event::RequestHeaders(end)) })
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_request_body(stream: Ptr, handle: Ptr, _: bool) -> u32 {
    // SAFETY: Envoy's pointers.
    body_status(unsafe { on_request(handle, |shared| shared.piece(abi::Stream::of(stream), Direction::Request)) })
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_request_trailers(_: Ptr, handle: Ptr) -> u32 {
    // SAFETY: Envoy's pointers.
    trailers_status(unsafe { on_request(handle, |shared| shared.end(Direction::Request)) })
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_response_headers(stream: Ptr, handle: Ptr, end: bool) -> u32 {
    // SAFETY: Envoy's pointers.
    headers_status(unsafe { on_stream(stream, handle, Event::ResponseHeaders(end)) })
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_response_body(stream: Ptr, handle: Ptr, end: bool) -> u32 {
    // SAFETY: Envoy's pointers.
    body_status(unsafe { on_stream(stream, handle, Event::ResponseBody(end)) })
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_response_trailers(stream: Ptr, handle: Ptr) -> u32 {
    // SAFETY: Envoy's pointers.
    trailers_status(unsafe { on_stream(stream, handle, Event::ResponseTrailers) })
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_scheduled(stream: Ptr, handle: Ptr, _: u64) {
    hook((), || {
        // SAFETY: as in `on_stream`.
        let Some(handle) = (unsafe { handle.cast::<Handle>().as_ref() }) else { return };
        // SAFETY: the stream lives for the length of the hook.
        let stream = unsafe { abi::Stream::of(stream) };
        let handle = match handle {
            Handle::Filter(handle) => handle,
            Handle::Share(shared) => return shared.turn(stream),
            Handle::Arrival(_) => return,
        };
        match handle.response.get().cloned() {
            Some(response) => response.go_on(stream),
            None => drop(handle.finish(handle.worker.mail(handle.id), stream)),
        }
    });
}

/// Tells what sends a response that a buffer on the way to the client is full, or has room again.
///
/// # Safety
/// `handle` is that of a stream.
unsafe fn on_response(handle: Ptr, own: impl FnOnce(&Outgoing), shared: impl FnOnce(&Shared)) {
    hook((), || {
        // SAFETY: as in `on_stream`. The copy outlives a handle that goes meanwhile.
        match unsafe { handle.cast::<Handle>().as_ref() } {
            Some(Handle::Filter(handle)) => {
                if let Some(response) = handle.response.get().cloned() {
                    own(&response);
                }
            }
            Some(Handle::Share(share)) => shared(share),
            Some(Handle::Arrival(_)) | None => {}
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(
    stream: Ptr,
    handle: Ptr,
) {
    // SAFETY: Envoy's pointers.
    unsafe { on_response(handle, Outgoing::hold_back, |shared| shared.hold_up(abi::Stream::of(stream))) };
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(
    stream: Ptr,
    handle: Ptr,
) {
    // SAFETY: Envoy's pointers.
    let stream = unsafe { abi::Stream::of(stream) };
    // SAFETY: Envoy's pointers.
    unsafe { on_response(handle, |response| response.release(stream), |shared| shared.release(stream)) };
}

/// Copies the response to a request. None: there was none.
///
/// # Safety
/// The pointers are those of a hook for the end of a request.
unsafe fn answer(
    outcome: u32,
    fields: *const LentField,
    field_count: usize,
    pieces: *const Lent,
    piece_count: usize,
) -> Option<(filter_host::headers::Pairs, Vec<u8>)> {
    const SUCCESS: u32 = 0;
    // SAFETY: the caller's promise.
    (outcome == SUCCESS)
        .then(|| unsafe { (abi::copy_fields(fields, field_count), abi::copy_pieces(pieces, piece_count)) })
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_http_callout_done(
    stream: Ptr,
    handle: Ptr,
    _: u64,
    outcome: u32,
    fields: *const LentField,
    field_count: usize,
    pieces: *const Lent,
    piece_count: usize,
) {
    // SAFETY: Envoy's pointers.
    unsafe {
        let answer = answer(outcome, fields, field_count, pieces, piece_count);
        on_stream(stream, handle, Event::CallEnded(answer));
    }
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_config_http_callout_done(
    _: Ptr,
    config: Ptr,
    call: u64,
    outcome: u32,
    fields: *const LentField,
    field_count: usize,
    pieces: *const Lent,
    piece_count: usize,
) {
    hook((), || {
        // SAFETY: `config_new` made the box, and Envoy lends the response.
        let (config, answer) = unsafe { (filter(config), answer(outcome, fields, field_count, pieces, piece_count)) };
        if let Some(config) = config {
            config.ended(call, answer);
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_config_scheduled(_: Ptr, config: Ptr, event: u64) {
    hook((), || {
        // SAFETY: `config_new` made the box, and Envoy has not destroyed the configuration.
        match unsafe { config.cast::<Loaded>().as_ref() } {
            Some(Loaded::Filter(config)) => config.tick(event),
            Some(Loaded::Door(door)) => door.tick(),
            Some(Loaded::Share(_)) | None => {}
        }
    });
}

/// Hooks that the filters do not need.
macro_rules! unused {
    ($($name:ident($($kind:ty),*) $(-> $result:ty = $value:expr)?;)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name($(_: $kind),*) $(-> $result)? {
                $($value)?
            }
        )*
    };
}

unused! {
    envoy_dynamic_module_on_http_filter_stream_complete(Ptr, Ptr);
    envoy_dynamic_module_on_http_filter_local_reply(Ptr, Ptr, u32, Lent, bool) -> u32 = 0;
    envoy_dynamic_module_on_http_filter_http_stream_headers(Ptr, Ptr, u64, Ptr, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_data(Ptr, Ptr, u64, Ptr, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_trailers(Ptr, Ptr, u64, Ptr, usize);
    envoy_dynamic_module_on_http_filter_http_stream_complete(Ptr, Ptr, u64);
    envoy_dynamic_module_on_http_filter_http_stream_reset(Ptr, Ptr, u64, u32);
    envoy_dynamic_module_on_http_filter_config_http_stream_headers(Ptr, Ptr, u64, Ptr, usize, bool);
    envoy_dynamic_module_on_http_filter_config_http_stream_data(Ptr, Ptr, u64, Ptr, usize, bool);
    envoy_dynamic_module_on_http_filter_config_http_stream_trailers(Ptr, Ptr, u64, Ptr, usize);
    envoy_dynamic_module_on_http_filter_config_http_stream_complete(Ptr, Ptr, u64);
    envoy_dynamic_module_on_http_filter_config_http_stream_reset(Ptr, Ptr, u64, u32);
    envoy_dynamic_module_on_http_filter_per_route_config_new(Lent, Lent) -> Ptr = ptr::null_mut();
    envoy_dynamic_module_on_http_filter_per_route_config_destroy(Ptr);
}
