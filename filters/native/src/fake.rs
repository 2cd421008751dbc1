//! An Envoy made of tables, for tests: the functions of `abi.rs`, on data of the thread.

#![allow(unsafe_code, clippy::missing_safety_doc)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{Lent, LentField, Ptr};

/// The stream and the configuration of this thread.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    /// The four header maps.
    pub(crate) maps: [Vec<(Vec<u8>, Vec<u8>)>; 4],
    /// The bytes of the hook.
    pub(crate) received: Vec<u8>,
    /// The bytes of earlier hooks.
    pub(crate) held: Vec<u8>,
    /// The bytes of earlier hooks of a request.
    pub(crate) request_held: Vec<u8>,
    /// The calls that change the course of a stream, in order.
    pub(crate) calls: Vec<String>,
    /// The counters, by name.
    pub(crate) counters: Vec<(String, u64)>,
    /// The filter state.
    pub(crate) state: Vec<(Vec<u8>, Vec<u8>)>,
    /// The last bell of a stream.
    pub(crate) bell: usize,
    /// Runs while a part of a response is sent.
    pub(crate) while_sending: Option<Callback>,
}

/// The bytes that the fake holds of a request before it reads no more.
pub(crate) const BUFFER_LIMIT: u64 = 32_768;

/// A function that prints as nothing.
#[derive(Clone)]
pub(crate) struct Callback(pub(crate) Rc<dyn Fn()>);

impl fmt::Debug for Callback {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Callback")
    }
}

/// The bells of streams that have rung, on whatever thread.
static RUNG: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// Returns true once a bell has rung.
pub(crate) fn has_rung(bell: usize) -> bool {
    RUNG.lock().unwrap().contains(&bell)
}

/// The links of `link-share` are one set for all threads. A test holds this while it configures all links, or while another one
/// must not.
static LINKS: Mutex<()> = Mutex::new(());

/// Waits until no other test holds the links.
pub(crate) fn hold_links() -> MutexGuard<'static, ()> {
    LINKS.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static FAKE: RefCell<Fake> = RefCell::default();
}

/// Reads or changes the data of this thread.
pub(crate) fn fake<T>(act: impl FnOnce(&mut Fake) -> T) -> T {
    FAKE.with_borrow_mut(act)
}

/// A pointer that nobody follows.
pub(crate) fn token() -> Ptr {
    ptr::dangling_mut::<u8>().cast()
}

fn say(call: impl Into<String>) {
    fake(|fake| fake.calls.push(call.into()));
}

unsafe fn text(lent: Lent) -> String {
    String::from_utf8_lossy(unsafe { lent.bytes() }).into_owned()
}

fn at<T>(map: u32, act: impl FnOnce(&mut Vec<(Vec<u8>, Vec<u8>)>) -> T) -> T {
    fake(|fake| act(fake.maps.get_mut(map as usize).unwrap()))
}

fn body<T>(kind: u32, act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    fake(|fake| {
        act(match kind {
            1 => &mut fake.request_held,
            3 => &mut fake.held,
            _ => &mut fake.received,
        })
    })
}

macro_rules! envoy {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? $code:block)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? { unsafe { $code } }
        )*
    };
}

#[allow(unused_unsafe, unused_variables)]
mod functions {
    use super::*;

    envoy! {
        fn envoy_dynamic_module_callback_get_concurrency() -> u32 { 2 }
        fn envoy_dynamic_module_callback_get_shared_data(key: Lent, data: *mut Ptr) -> bool { false }
        fn envoy_dynamic_module_callback_register_shared_data(key: Lent, data: Ptr) -> bool { true }
        fn envoy_dynamic_module_callback_log_v2(level: u32, message: Lent, file: Lent, line: u32) {
            say(format!("log {level} {}", text(message)));
        }
        fn envoy_dynamic_module_callback_http_filter_config_define_counter(
            config: Ptr, name: Lent, labels: *mut Lent, label_count: usize, id: *mut usize,
        ) -> u32 {
            let name = text(name);
            *id = fake(|fake| { fake.counters.push((name, 0)); fake.counters.len() - 1 });
            0
        }
        fn envoy_dynamic_module_callback_http_filter_config_increment_counter(
            config: Ptr, id: usize, labels: *mut Lent, label_count: usize, amount: u64,
        ) -> u32 {
            fake(|fake| fake.counters.get_mut(id).map_or(1, |counter| { counter.1 += amount; 0 }))
        }
        fn envoy_dynamic_module_callback_http_filter_config_http_callout(
            config: Ptr, id: *mut u64, cluster: Lent, fields: *mut LentField, count: usize, body: Lent, timeout_ms: u64,
        ) -> u32 {
            *id = 7;
            say(format!("main thread calls {}", text(cluster)));
            0
        }
        fn envoy_dynamic_module_callback_http_filter_config_scheduler_new(config: Ptr) -> Ptr { token() }
        fn envoy_dynamic_module_callback_http_filter_config_scheduler_commit(scheduler: Ptr, event: u64) {}
        fn envoy_dynamic_module_callback_http_filter_config_scheduler_delete(scheduler: Ptr) {}
        fn envoy_dynamic_module_callback_http_filter_get_worker_index(stream: Ptr) -> u32 { 0 }
        fn envoy_dynamic_module_callback_http_filter_scheduler_new(stream: Ptr) -> Ptr {
            static LAST: AtomicUsize = AtomicUsize::new(1);
            let bell = LAST.fetch_add(1, Ordering::Relaxed);
            fake(|fake| fake.bell = bell);
            ptr::without_provenance_mut(bell)
        }
        fn envoy_dynamic_module_callback_http_filter_scheduler_commit(scheduler: Ptr, event: u64) {
            RUNG.lock().unwrap().insert(scheduler.addr());
            say("ring");
        }
        fn envoy_dynamic_module_callback_http_filter_scheduler_delete(scheduler: Ptr) {}
        fn envoy_dynamic_module_callback_http_get_header(
            stream: Ptr, map: u32, name: Lent, value: *mut Lent, index: usize, count: *mut usize,
        ) -> bool {
            let name = name.bytes();
            at(map, |map| {
                *count = map.iter().filter(|(known, _)| known == name).count();
                *value = map.iter().find(|(known, _)| known == name).map_or(Lent::NOTHING, |(_, value)| Lent::of(value));
            });
            true
        }
        fn envoy_dynamic_module_callback_http_get_headers_size(stream: Ptr, map: u32) -> usize { at(map, |map| map.len()) }
        fn envoy_dynamic_module_callback_http_get_headers(stream: Ptr, map: u32, fields: *mut LentField) -> bool {
            at(map, |map| for (place, (name, value)) in map.iter().enumerate() {
                *fields.add(place) = LentField::of(name, value);
            });
            true
        }
        fn envoy_dynamic_module_callback_http_add_header(stream: Ptr, map: u32, name: Lent, value: Lent) -> bool {
            let is_empty = value.bytes().is_empty();
            at(map, |map| (!is_empty).then(|| map.push((name.bytes().to_vec(), value.bytes().to_vec())))).is_some()
        }
        fn envoy_dynamic_module_callback_http_set_header(stream: Ptr, map: u32, name: Lent, value: Lent) -> bool {
            let removes = value.is_nothing();
            at(map, |map| {
                map.retain(|(known, _)| known != name.bytes());
                if !removes {
                    map.push((name.bytes().to_vec(), value.bytes().to_vec()));
                }
            });
            true
        }
        fn envoy_dynamic_module_callback_http_get_buffer_limit(stream: Ptr) -> u64 { BUFFER_LIMIT }
        fn envoy_dynamic_module_callback_http_set_buffer_limit(stream: Ptr, bytes: u64) {
            say(format!("buffer limit {bytes}"));
        }
        fn envoy_dynamic_module_callback_http_get_body_size(stream: Ptr, kind: u32) -> usize { body(kind, |body| body.len()) }
        fn envoy_dynamic_module_callback_http_get_body_chunks_size(stream: Ptr, kind: u32) -> usize {
            body(kind, |body| body.chunks(3).count())
        }
        fn envoy_dynamic_module_callback_http_get_body_chunks(stream: Ptr, kind: u32, chunks: *mut Lent) -> bool {
            body(kind, |body| for (place, chunk) in body.chunks(3).enumerate() {
                *chunks.add(place) = Lent::of(chunk);
            });
            true
        }
        fn envoy_dynamic_module_callback_http_append_body(stream: Ptr, kind: u32, bytes: Lent) -> bool {
            body(kind, |body| body.extend_from_slice(bytes.bytes()));
            true
        }
        fn envoy_dynamic_module_callback_http_drain_body(stream: Ptr, kind: u32, count: usize) -> bool {
            body(kind, |body| drop(body.drain(..count.min(body.len()))));
            true
        }
        fn envoy_dynamic_module_callback_http_filter_get_attribute_string(stream: Ptr, id: u32, value: *mut Lent) -> bool {
            *value = Lent::of(b"192.0.2.7:4711");
            true
        }
        fn envoy_dynamic_module_callback_http_filter_get_attribute_int(stream: Ptr, id: u32, value: *mut u64) -> bool {
            *value = 258;
            true
        }
        fn envoy_dynamic_module_callback_http_set_socket_option_bytes(
            stream: Ptr, level: i64, name: i64, state: u32, direction: u32, value: Lent,
        ) -> bool {
            say(format!("socket option {level}/{name} {}", text(value)));
            text(value) != "unknown"
        }
        fn envoy_dynamic_module_callback_http_set_filter_state_bytes(stream: Ptr, key: Lent, value: Lent) -> bool {
            fake(|fake| fake.state.push((key.bytes().to_vec(), value.bytes().to_vec())));
            true
        }
        fn envoy_dynamic_module_callback_http_filter_http_callout(
            stream: Ptr, id: *mut u64, cluster: Lent, fields: *mut LentField, count: usize, body: Lent, timeout_ms: u64,
        ) -> u32 {
            *id = 9;
            say(format!("the stream calls {}", text(cluster)));
            0
        }
        fn envoy_dynamic_module_callback_http_clear_route_cache(stream: Ptr) { say("route again"); }
        fn envoy_dynamic_module_callback_http_send_response(
            stream: Ptr, status: u32, fields: *mut LentField, count: usize, body: Lent, details: Lent,
        ) {
            say(format!("reply {status} {}", text(details)));
        }
        fn envoy_dynamic_module_callback_http_send_response_headers(
            stream: Ptr, fields: *mut LentField, count: usize, end: bool,
        ) {
            say(format!("response with {count} fields{}", if end { ", end" } else { "" }));
        }
        fn envoy_dynamic_module_callback_http_send_response_data(stream: Ptr, bytes: Lent, end: bool) {
            say(format!("{} bytes{}", bytes.bytes().len(), if end { ", end" } else { "" }));
            if let Some(then) = fake(|fake| fake.while_sending.clone()) {
                (then.0)();
            }
        }
        fn envoy_dynamic_module_callback_http_filter_continue_decoding(stream: Ptr) { say("resume request"); }
        fn envoy_dynamic_module_callback_http_filter_continue_encoding(stream: Ptr) { say("resume response"); }
        fn envoy_dynamic_module_callback_http_filter_reset_stream(stream: Ptr, reason: u32, details: Lent) {
            say(format!("reset {}", text(details)));
        }
    }
}
