//! The interface of Envoy's dynamic modules: the functions that Envoy exports, and safe calls of them.
//!
//! The names, types and numbers are those of Envoy 1.40's interface, version [`VERSION`]. They were written down by hand, as
//! facts of an interface; no text of Envoy's header is here. Envoy is Apache-2.0, as this crate is. A test
//! looks for every name in the pinned Envoy. Envoy refuses a module with a name that it does not export, but for another
//! version it only writes a warning, so `longhaul run` and `check` compare the versions.
//!
//! Envoy lends pointers to headers and bodies until the next call that changes them, so every reader here copies at once.
//!
//! **Calls that lead back into the module.** [`Stream::reply`], [`Stream::send_headers`], [`Stream::send_data`],
//! [`Stream::resume_request`], [`Stream::resume_response`] and [`Stream::reset`] may call hooks before they return, also the one
//! that destroys the stream. `worker.rs` and `outgoing.rs` make them when no filter code runs.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::ptr;
use std::time::Duration;

use filter_host::headers::Pairs;

/// The version of the interface, as Envoy reads it.
pub(crate) const VERSION: &CStr = c"v0.2.0";

/// A pointer that only its owner can follow.
pub(crate) type Ptr = *mut c_void;

/// Bytes that one side lends to the other.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lent {
    start: *const u8,
    length: usize,
}

/// A header that one side lends to the other.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct LentField {
    name: Lent,
    value: Lent,
}

macro_rules! callbacks {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        mod envoy {
            use super::{Lent, LentField, Ptr};

            unsafe extern "C" {
                $(pub(super) fn $name($($argument: $kind),*) $(-> $result)?;)*
            }
        }

        /// The name of every function of Envoy that the module calls.
        #[cfg(test)]
        pub(crate) const CALLBACKS: &[&str] = &[$(stringify!($name)),*];
    };
}

callbacks! {
    fn envoy_dynamic_module_callback_get_concurrency() -> u32;
    fn envoy_dynamic_module_callback_get_shared_data(key: Lent, data: *mut Ptr) -> bool;
    fn envoy_dynamic_module_callback_register_shared_data(key: Lent, data: Ptr) -> bool;
    fn envoy_dynamic_module_callback_log_v2(level: u32, message: Lent, file: Lent, line: u32);
    fn envoy_dynamic_module_callback_http_filter_config_define_counter(
        config: Ptr, name: Lent, labels: *mut Lent, label_count: usize, id: *mut usize,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_increment_counter(
        config: Ptr, id: usize, labels: *mut Lent, label_count: usize, amount: u64,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_http_callout(
        config: Ptr, id: *mut u64, cluster: Lent, fields: *mut LentField, count: usize, body: Lent, timeout_ms: u64,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_scheduler_new(config: Ptr) -> Ptr;
    fn envoy_dynamic_module_callback_http_filter_config_scheduler_commit(scheduler: Ptr, event: u64);
    fn envoy_dynamic_module_callback_http_filter_config_scheduler_delete(scheduler: Ptr);
    fn envoy_dynamic_module_callback_http_filter_get_worker_index(stream: Ptr) -> u32;
    fn envoy_dynamic_module_callback_http_filter_scheduler_new(stream: Ptr) -> Ptr;
    fn envoy_dynamic_module_callback_http_filter_scheduler_commit(scheduler: Ptr, event: u64);
    fn envoy_dynamic_module_callback_http_filter_scheduler_delete(scheduler: Ptr);
    fn envoy_dynamic_module_callback_http_get_header(
        stream: Ptr, map: u32, name: Lent, value: *mut Lent, index: usize, count: *mut usize,
    ) -> bool;
    fn envoy_dynamic_module_callback_http_get_headers_size(stream: Ptr, map: u32) -> usize;
    fn envoy_dynamic_module_callback_http_get_headers(stream: Ptr, map: u32, fields: *mut LentField) -> bool;
    fn envoy_dynamic_module_callback_http_add_header(stream: Ptr, map: u32, name: Lent, value: Lent) -> bool;
    fn envoy_dynamic_module_callback_http_set_header(stream: Ptr, map: u32, name: Lent, value: Lent) -> bool;
    fn envoy_dynamic_module_callback_http_get_buffer_limit(stream: Ptr) -> u64;
    fn envoy_dynamic_module_callback_http_set_buffer_limit(stream: Ptr, bytes: u64);
    fn envoy_dynamic_module_callback_http_get_body_size(stream: Ptr, body: u32) -> usize;
    fn envoy_dynamic_module_callback_http_get_body_chunks_size(stream: Ptr, body: u32) -> usize;
    fn envoy_dynamic_module_callback_http_get_body_chunks(stream: Ptr, body: u32, chunks: *mut Lent) -> bool;
    fn envoy_dynamic_module_callback_http_append_body(stream: Ptr, body: u32, bytes: Lent) -> bool;
    fn envoy_dynamic_module_callback_http_drain_body(stream: Ptr, body: u32, count: usize) -> bool;
    fn envoy_dynamic_module_callback_http_filter_get_attribute_string(stream: Ptr, id: u32, value: *mut Lent) -> bool;
    fn envoy_dynamic_module_callback_http_filter_get_attribute_int(stream: Ptr, id: u32, value: *mut u64) -> bool;
    fn envoy_dynamic_module_callback_http_set_socket_option_bytes(
        stream: Ptr, level: i64, name: i64, state: u32, direction: u32, value: Lent,
    ) -> bool;
    fn envoy_dynamic_module_callback_http_set_filter_state_bytes(stream: Ptr, key: Lent, value: Lent) -> bool;
    fn envoy_dynamic_module_callback_http_filter_http_callout(
        stream: Ptr, id: *mut u64, cluster: Lent, fields: *mut LentField, count: usize, body: Lent, timeout_ms: u64,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_clear_route_cache(stream: Ptr);
    fn envoy_dynamic_module_callback_http_send_response(
        stream: Ptr, status: u32, fields: *mut LentField, count: usize, body: Lent, details: Lent,
    );
    fn envoy_dynamic_module_callback_http_send_response_headers(
        stream: Ptr, fields: *mut LentField, count: usize, end: bool,
    );
    fn envoy_dynamic_module_callback_http_send_response_data(stream: Ptr, bytes: Lent, end: bool);
    fn envoy_dynamic_module_callback_http_filter_continue_decoding(stream: Ptr);
    fn envoy_dynamic_module_callback_http_filter_continue_encoding(stream: Ptr);
    fn envoy_dynamic_module_callback_http_filter_reset_stream(stream: Ptr, reason: u32, details: Lent);
}

/// A header map of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Map {
    /// Of the request.
    Request = 0,
    /// Behind the request.
    RequestTrailers = 1,
    /// Of the response.
    Response = 2,
    /// Behind the response.
    ResponseTrailers = 3,
}

/// A part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Body {
    /// The bytes of a request in this hook.
    RequestReceived = 0,
    /// The bytes of a request that Envoy holds, from earlier hooks, for whichever filter.
    RequestHeld = 1,
    /// The bytes of a response in this hook.
    Received = 2,
    /// The bytes of a response that Envoy holds, from earlier hooks.
    Held = 3,
}

/// An attribute of a stream that is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Text {
    /// The address and port of the client.
    Source = 24,
    /// The address and port that the client has connected to.
    Destination = 26,
    /// The address and port of our end of the connection to the server.
    UpstreamLocal = 51,
}

/// An attribute of a stream that is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Number {
    /// The connection of the client.
    ConnectionId = 28,
}

/// Envoy has not taken a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) u32);

impl Lent {
    pub(crate) const NOTHING: Self = Self { start: ptr::null(), length: 0 };

    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { start: bytes.as_ptr(), length: bytes.len() }
    }

    #[cfg(test)]
    pub(crate) fn is_nothing(self) -> bool {
        self.start.is_null()
    }

    /// # Safety
    /// The lender still lends the bytes, and nothing changes them while the result lives.
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.start.is_null() {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl LentField {
    const NOTHING: Self = Self { name: Lent::NOTHING, value: Lent::NOTHING };

    pub(crate) fn of(name: &[u8], value: &[u8]) -> Self {
        Self { name: Lent::of(name), value: Lent::of(value) }
    }
}

/// Lends fields for a call.
fn lend<'f>(fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> Vec<LentField> {
    fields.map(|(name, value)| LentField::of(name, value)).collect()
}

/// Copies `count` fields.
///
/// # Safety
/// `fields` points to that many, or is null, and Envoy still lends them.
pub(crate) unsafe fn copy_fields(fields: *const LentField, count: usize) -> Pairs {
    if fields.is_null() {
        return Pairs::default();
    }
    // SAFETY: the caller's promise.
    let pairs: Vec<(&[u8], &[u8])> = unsafe {
        std::slice::from_raw_parts(fields, count)
            .iter()
            .map(|field| (field.name.bytes(), field.value.bytes()))
            .collect()
    };
    Pairs::of(&pairs)
}

/// Copies `count` pieces into one.
///
/// # Safety
/// `pieces` points to that many, or is null, and Envoy still lends them.
pub(crate) unsafe fn copy_pieces(pieces: *const Lent, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !pieces.is_null() {
        // SAFETY: the caller's promise.
        unsafe { append(std::slice::from_raw_parts(pieces, count), &mut bytes) };
    }
    bytes
}

/// Copies pieces to the end of `bytes`.
///
/// # Safety
/// Envoy still lends them.
unsafe fn append(pieces: &[Lent], bytes: &mut Vec<u8>) {
    for piece in pieces {
        // SAFETY: the caller's promise.
        bytes.extend_from_slice(unsafe { piece.bytes() });
    }
}

/// A function of Envoy that sends a request.
type Callout = unsafe extern "C" fn(Ptr, *mut u64, Lent, *mut LentField, usize, Lent, u64) -> u32;

/// Sends a request without a body, for `sender`. Returns its number.
///
/// # Safety
/// `callout` takes such a sender, which lives.
unsafe fn call(
    callout: Callout,
    sender: Ptr,
    cluster: &str,
    fields: &[(&str, &str)],
    timeout: Duration,
) -> Result<u64, Refused> {
    let mut id = 0;
    let mut fields = lend(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let cluster = Lent::of(cluster.as_bytes());
    // SAFETY: the caller's promise; live slices and a live out-pointer. Envoy copies what it keeps.
    let outcome =
        unsafe { callout(sender, &raw mut id, cluster, fields.as_mut_ptr(), fields.len(), Lent::NOTHING, timeout_ms) };
    if outcome == 0 { Ok(id) } else { Err(Refused(outcome)) }
}

/// Returns the number of workers. Only the main thread may call it.
pub(crate) fn workers() -> usize {
    // SAFETY: no pointers.
    let count = unsafe { envoy::envoy_dynamic_module_callback_get_concurrency() };
    usize::try_from(count).unwrap_or(1).max(1)
}

/// Writes one line to Envoy's log. The levels are 0 (trace) to 5 (critical).
pub(crate) fn log(level: u32, line: &str) {
    // SAFETY: live strings.
    unsafe { envoy::envoy_dynamic_module_callback_log_v2(level, Lent::of(line.as_bytes()), Lent::of(b"longhaul"), 0) }
}

/// Returns the pointer that a module of this process left under `key`.
pub(crate) fn shared(key: &str) -> Option<Ptr> {
    let mut data = ptr::null_mut();
    // SAFETY: a live string and a live out-pointer.
    let known =
        unsafe { envoy::envoy_dynamic_module_callback_get_shared_data(Lent::of(key.as_bytes()), &raw mut data) };
    (known && !data.is_null()).then_some(data)
}

/// Leaves a pointer for the modules of this process.
pub(crate) fn share(key: &str, data: Ptr) {
    // SAFETY: a live string. Envoy never follows the pointer.
    unsafe { envoy::envoy_dynamic_module_callback_register_shared_data(Lent::of(key.as_bytes()), data) };
}

/// The configuration of a filter, as Envoy knows it. It lives from the hook that creates it to the one that destroys it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config(Ptr);

// SAFETY: the calls below say which thread may make them. The pointer itself is only a number.
unsafe impl Send for Config {}
// SAFETY: as above.
unsafe impl Sync for Config {}

impl Config {
    /// # Safety
    /// Envoy gave the pointer to a hook, and the value is used until Envoy destroys the configuration.
    pub(crate) unsafe fn of(pointer: Ptr) -> Self {
        Self(pointer)
    }

    /// Defines a counter. Envoy allows it only in the hook that creates the configuration.
    pub(crate) fn define_counter(self, name: &str) -> Result<usize, Refused> {
        let mut id = 0;
        // SAFETY: a live string and a live out-pointer; there are no labels.
        let outcome = unsafe {
            envoy::envoy_dynamic_module_callback_http_filter_config_define_counter(
                self.0,
                Lent::of(name.as_bytes()),
                ptr::null_mut(),
                0,
                &raw mut id,
            )
        };
        if outcome == 0 { Ok(id) } else { Err(Refused(outcome)) }
    }

    /// Adds to a counter, on any thread.
    pub(crate) fn add_to_counter(self, id: usize, amount: u64) -> Result<(), Refused> {
        // SAFETY: there are no labels. Envoy keeps counters in atomic numbers.
        let outcome = unsafe {
            envoy::envoy_dynamic_module_callback_http_filter_config_increment_counter(
                self.0,
                id,
                ptr::null_mut(),
                0,
                amount,
            )
        };
        if outcome == 0 { Ok(()) } else { Err(Refused(outcome)) }
    }

    /// Sends a request without a body. Only the main thread may call it.
    pub(crate) fn call(self, cluster: &str, fields: &[(&str, &str)], timeout: Duration) -> Result<u64, Refused> {
        // SAFETY: the configuration lives.
        unsafe {
            call(envoy::envoy_dynamic_module_callback_http_filter_config_http_callout, self.0, cluster, fields, timeout)
        }
    }

    /// Returns a way to wake the main thread. Only the main thread may call it.
    pub(crate) fn bell(self) -> MainBell {
        // SAFETY: the configuration lives.
        MainBell(unsafe { envoy::envoy_dynamic_module_callback_http_filter_config_scheduler_new(self.0) })
    }
}

/// Wakes the main thread for a configuration.
#[derive(Debug)]
pub(crate) struct MainBell(Ptr);

// SAFETY: Envoy lets any thread commit events.
unsafe impl Send for MainBell {}

impl MainBell {
    /// Makes Envoy call the hook for scheduled events with `event`, on the main thread.
    pub(crate) fn ring(&self, event: u64) {
        // SAFETY: the scheduler lives as long as this value.
        unsafe { envoy::envoy_dynamic_module_callback_http_filter_config_scheduler_commit(self.0, event) }
    }
}

impl Drop for MainBell {
    fn drop(&mut self) {
        // SAFETY: this value is the only one with the pointer.
        unsafe { envoy::envoy_dynamic_module_callback_http_filter_config_scheduler_delete(self.0) }
    }
}

/// Wakes a worker for one of its streams.
#[derive(Debug)]
pub(crate) struct StreamBell(Ptr);

// SAFETY: Envoy lets any thread commit events.
unsafe impl Send for StreamBell {}

impl StreamBell {
    /// Makes Envoy call the hook for scheduled events of the stream, on its worker. It does nothing once the stream has ended.
    pub(crate) fn ring(&self) {
        // SAFETY: the scheduler lives as long as this value.
        unsafe { envoy::envoy_dynamic_module_callback_http_filter_scheduler_commit(self.0, 0) }
    }
}

impl Drop for StreamBell {
    fn drop(&mut self) {
        // SAFETY: this value is the only one with the pointer.
        unsafe { envoy::envoy_dynamic_module_callback_http_filter_scheduler_delete(self.0) }
    }
}

/// A stream, as Envoy knows it, in one of its hooks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream(Ptr);

impl Stream {
    /// # Safety
    /// Envoy gave the pointer to a hook, and the value is used in that hook alone.
    pub(crate) unsafe fn of(pointer: Ptr) -> Self {
        Self(pointer)
    }

    /// Returns the number of the worker that serves the stream.
    pub(crate) fn worker(self) -> usize {
        // SAFETY: the stream lives.
        let index = unsafe { envoy::envoy_dynamic_module_callback_http_filter_get_worker_index(self.0) };
        usize::try_from(index).unwrap_or(0)
    }

    /// Returns a way to wake the worker for this stream.
    pub(crate) fn bell(self) -> StreamBell {
        // SAFETY: the stream lives.
        StreamBell(unsafe { envoy::envoy_dynamic_module_callback_http_filter_scheduler_new(self.0) })
    }

    /// Returns the first value of a header.
    pub(crate) fn header(self, map: Map, name: &[u8]) -> Option<Vec<u8>> {
        let (mut value, mut count) = (Lent::NOTHING, 0);
        // SAFETY: a live string and live out-pointers.
        let known = unsafe {
            envoy::envoy_dynamic_module_callback_http_get_header(
                self.0,
                map as u32,
                Lent::of(name),
                &raw mut value,
                0,
                &raw mut count,
            )
        };
        // SAFETY: Envoy lends the value until a header changes.
        (known && count > 0).then(|| unsafe { value.bytes() }.to_vec())
    }

    /// Returns every header, in order. None: the map does not exist in this phase.
    pub(crate) fn headers(self, map: Map) -> Option<Pairs> {
        // SAFETY: the stream lives.
        let count = unsafe { envoy::envoy_dynamic_module_callback_http_get_headers_size(self.0, map as u32) };
        let mut fields = vec![LentField::NOTHING; count];
        // SAFETY: the vector has the length that Envoy named.
        let known =
            unsafe { envoy::envoy_dynamic_module_callback_http_get_headers(self.0, map as u32, fields.as_mut_ptr()) };
        // SAFETY: Envoy lends the fields until a header changes.
        known.then(|| unsafe { copy_fields(fields.as_ptr(), fields.len()) })
    }

    /// Adds a value of a header. False: the map does not exist in this phase.
    ///
    /// Envoy takes an empty value for none. A space means the same: readers remove white space around values (RFC 9110
    /// section 5.5).
    pub(crate) fn add_header(self, map: Map, name: &[u8], value: &[u8]) -> bool {
        let value = if value.is_empty() { b" " } else { value };
        // SAFETY: live slices; Envoy copies them.
        unsafe {
            envoy::envoy_dynamic_module_callback_http_add_header(self.0, map as u32, Lent::of(name), Lent::of(value))
        }
    }

    /// Sets the only value of a header, or removes all. False: the map does not exist in this phase. An empty value
    /// becomes a space, as in [`Self::add_header`].
    pub(crate) fn set_header(self, map: Map, name: &[u8], value: Option<&[u8]>) -> bool {
        let value = value.map_or(Lent::NOTHING, |value| Lent::of(if value.is_empty() { b" " } else { value }));
        // SAFETY: live slices; Envoy copies them.
        unsafe { envoy::envoy_dynamic_module_callback_http_set_header(self.0, map as u32, Lent::of(name), value) }
    }

    /// Makes Envoy choose the route again, by the headers that the request has now.
    pub(crate) fn route_again(self) {
        // SAFETY: the stream lives.
        unsafe { envoy::envoy_dynamic_module_callback_http_clear_route_cache(self.0) }
    }

    /// Returns the number of bytes that Envoy holds of a request or a response before it reads no more.
    pub(crate) fn buffer_limit(self) -> u64 {
        // SAFETY: the stream lives.
        unsafe { envoy::envoy_dynamic_module_callback_http_get_buffer_limit(self.0) }
    }

    /// Changes that number, for both directions.
    pub(crate) fn set_buffer_limit(self, bytes: u64) {
        // SAFETY: the stream lives.
        unsafe { envoy::envoy_dynamic_module_callback_http_set_buffer_limit(self.0, bytes) }
    }

    /// Returns the size of a part of the body.
    pub(crate) fn body_size(self, body: Body) -> usize {
        // SAFETY: the stream lives.
        unsafe { envoy::envoy_dynamic_module_callback_http_get_body_size(self.0, body as u32) }
    }

    /// Appends a part of the body to `bytes`.
    pub(crate) fn read_body(self, body: Body, bytes: &mut Vec<u8>) {
        self.with_chunks(body, |chunk| bytes.extend_from_slice(chunk));
    }

    /// Shows the chunks of a part of the body. `read` must call nothing that changes it.
    fn with_chunks(self, body: Body, mut read: impl FnMut(&[u8])) {
        // SAFETY: the stream lives.
        let count = unsafe { envoy::envoy_dynamic_module_callback_http_get_body_chunks_size(self.0, body as u32) };
        let mut chunks = vec![Lent::NOTHING; count];
        // SAFETY: the vector has the length that Envoy named.
        let known = unsafe {
            envoy::envoy_dynamic_module_callback_http_get_body_chunks(self.0, body as u32, chunks.as_mut_ptr())
        };
        if known {
            for chunk in &chunks {
                // SAFETY: Envoy lends the chunks until the body changes.
                read(unsafe { chunk.bytes() });
            }
        }
    }

    /// Appends the first `most` bytes of a part of the body to `bytes`.
    pub(crate) fn read_front(self, body: Body, most: usize, bytes: &mut Vec<u8>) {
        let mut left = most;
        self.with_chunks(body, |chunk| {
            let front = chunk.get(..left.min(chunk.len())).unwrap_or_default();
            bytes.extend_from_slice(front);
            left = left.saturating_sub(front.len());
        });
    }

    /// Removes the first `count` bytes of a part of the body.
    pub(crate) fn drain_body(self, body: Body, count: usize) -> bool {
        // SAFETY: the stream lives.
        unsafe { envoy::envoy_dynamic_module_callback_http_drain_body(self.0, body as u32, count) }
    }

    /// Appends to a part of the body.
    pub(crate) fn append_body(self, body: Body, bytes: &[u8]) -> bool {
        // SAFETY: a live slice; Envoy copies it.
        unsafe { envoy::envoy_dynamic_module_callback_http_append_body(self.0, body as u32, Lent::of(bytes)) }
    }

    /// Returns an attribute.
    pub(crate) fn text(self, attribute: Text) -> Option<Vec<u8>> {
        let mut value = Lent::NOTHING;
        // SAFETY: a live out-pointer.
        let known = unsafe {
            envoy::envoy_dynamic_module_callback_http_filter_get_attribute_string(
                self.0,
                attribute as u32,
                &raw mut value,
            )
        };
        // SAFETY: Envoy lends the value for the length of the hook.
        known.then(|| unsafe { value.bytes() }.to_vec())
    }

    /// Returns an attribute.
    pub(crate) fn number(self, attribute: Number) -> Option<u64> {
        let mut value = 0;
        // SAFETY: a live out-pointer.
        unsafe {
            envoy::envoy_dynamic_module_callback_http_filter_get_attribute_int(self.0, attribute as u32, &raw mut value)
        }
        .then_some(value)
    }

    /// Leaves a value in the stream's filter state.
    pub(crate) fn set_state(self, key: &[u8], value: &[u8]) -> bool {
        // SAFETY: live slices; Envoy copies them.
        unsafe {
            envoy::envoy_dynamic_module_callback_http_set_filter_state_bytes(self.0, Lent::of(key), Lent::of(value))
        }
    }

    /// Gives the connection of the client another congestion control, which starts at once. False: the kernel has none of that
    /// name, or does not allow it.
    ///
    /// Envoy remembers each call until the stream ends.
    pub(crate) fn set_congestion_control(self, name: &[u8]) -> bool {
        // IPPROTO_TCP and TCP_CONGESTION (tcp(7)), and Envoy's numbers of a listening socket's state and of the client's side. With
        // the client's side, Envoy sets the option on the open connection.
        const LEVEL: i64 = 6;
        const NAME: i64 = 13;
        const LISTENING: u32 = 2;
        const DOWNSTREAM: u32 = 1;
        // SAFETY: a live slice; Envoy copies it.
        unsafe {
            envoy::envoy_dynamic_module_callback_http_set_socket_option_bytes(
                self.0,
                LEVEL,
                NAME,
                LISTENING,
                DOWNSTREAM,
                Lent::of(name),
            )
        }
    }

    /// Sends a request without a body, which ends with the stream.
    pub(crate) fn call(self, cluster: &str, fields: &[(&str, &str)], timeout: Duration) -> Result<u64, Refused> {
        // SAFETY: the stream lives.
        unsafe { call(envoy::envoy_dynamic_module_callback_http_filter_http_callout, self.0, cluster, fields, timeout) }
    }

    /// Responds instead of the server.
    pub(crate) fn reply(self, status: u16, details: &str, headers: &Pairs, body: &[u8]) {
        let mut fields = lend(headers.iter());
        // SAFETY: live slices. Envoy copies what it keeps.
        unsafe {
            envoy::envoy_dynamic_module_callback_http_send_response(
                self.0,
                u32::from(status),
                fields.as_mut_ptr(),
                fields.len(),
                Lent::of(body),
                Lent::of(details.as_bytes()),
            );
        }
    }

    /// Begins a response instead of the server's. `fields` begin with `:status`.
    pub(crate) fn send_headers(self, fields: &Pairs, end: bool) {
        let mut fields = lend(fields.iter());
        // SAFETY: live slices. Envoy copies what it keeps.
        unsafe {
            envoy::envoy_dynamic_module_callback_http_send_response_headers(
                self.0,
                fields.as_mut_ptr(),
                fields.len(),
                end,
            );
        }
    }

    /// Goes on with a response that [`Self::send_headers`] began.
    pub(crate) fn send_data(self, bytes: &[u8], end: bool) {
        // SAFETY: a live slice; Envoy copies it.
        unsafe { envoy::envoy_dynamic_module_callback_http_send_response_data(self.0, Lent::of(bytes), end) };
    }

    /// Releases a held request.
    pub(crate) fn resume_request(self) {
        // SAFETY: the stream lives.
        unsafe { envoy::envoy_dynamic_module_callback_http_filter_continue_decoding(self.0) }
    }

    /// Releases a held response.
    pub(crate) fn resume_response(self) {
        // SAFETY: the stream lives.
        unsafe { envoy::envoy_dynamic_module_callback_http_filter_continue_encoding(self.0) }
    }

    /// Resets the stream.
    pub(crate) fn reset(self, details: &str) {
        // SAFETY: a live string. The reason is a reset by this end.
        unsafe {
            envoy::envoy_dynamic_module_callback_http_filter_reset_stream(self.0, 0, Lent::of(details.as_bytes()));
        }
    }
}
