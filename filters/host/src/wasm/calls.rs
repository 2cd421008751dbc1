//! The calls of a proxy-wasm host (ABI 0.2.1), each behind a safe function. `native/calls.rs` has the same functions.
//!
//! Memory: the host allocates its results through the module's own `proxy_on_memory_allocate`. The SDK exports that
//! function as a boxed slice of exactly the size returned. Only for this reason is it sound to take a result over as a
//! `Vec`.

#![allow(unsafe_code)]

use std::time::Duration;

use proxy_wasm::hostcalls;
use proxy_wasm::types::Status;

use crate::error::HostError;
use crate::kinds::{Buffer, Half, Level, Map};
use crate::pairs::Pairs;
use crate::pieces::{Change, rewrite_whole, whole};

pub(crate) use crate::drawn::fill as random;

mod host {
    #[link(wasm_import_module = "env")]
    unsafe extern "C" {
        pub(super) fn proxy_log(level: u32, message: *const u8, size: usize) -> u32;
        pub(super) fn proxy_get_buffer_bytes(
            kind: u32,
            start: usize,
            max: usize,
            data: *mut *mut u8,
            size: *mut usize,
        ) -> u32;
        pub(super) fn proxy_set_buffer_bytes(kind: u32, start: usize, size: usize, data: *const u8, len: usize) -> u32;
        pub(super) fn proxy_get_header_map_pairs(map: u32, data: *mut *mut u8, size: *mut usize) -> u32;
        pub(super) fn proxy_set_header_map_pairs(map: u32, data: *const u8, size: usize) -> u32;
        pub(super) fn proxy_get_header_map_value(
            map: u32,
            key: *const u8,
            key_size: usize,
            data: *mut *mut u8,
            size: *mut usize,
        ) -> u32;
        pub(super) fn proxy_add_header_map_value(
            map: u32,
            key: *const u8,
            key_size: usize,
            value: *const u8,
            value_size: usize,
        ) -> u32;
        pub(super) fn proxy_replace_header_map_value(
            map: u32,
            key: *const u8,
            key_size: usize,
            value: *const u8,
            value_size: usize,
        ) -> u32;
        pub(super) fn proxy_remove_header_map_value(map: u32, key: *const u8, key_size: usize) -> u32;
        pub(super) fn proxy_send_local_response(
            status: u32,
            details: *const u8,
            details_size: usize,
            body: *const u8,
            body_size: usize,
            headers: *const u8,
            headers_size: usize,
            grpc_status: i32,
        ) -> u32;
        pub(super) fn proxy_close_stream(kind: u32) -> u32;
        pub(super) fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
        pub(super) fn proxy_set_effective_context(id: u32) -> u32;
        pub(super) fn proxy_continue_stream(kind: u32) -> u32;
        pub(super) fn proxy_get_shared_data(
            key: *const u8,
            key_size: usize,
            data: *mut *mut u8,
            size: *mut usize,
            version: *mut u32,
        ) -> u32;
        pub(super) fn proxy_set_shared_data(
            key: *const u8,
            key_size: usize,
            value: *const u8,
            value_size: usize,
            version: u32,
        ) -> u32;
        pub(super) fn proxy_define_metric(kind: u32, name: *const u8, size: usize, id: *mut u32) -> u32;
        pub(super) fn proxy_increment_metric(id: u32, offset: i64) -> u32;
        pub(super) fn proxy_get_property(
            path: *const u8,
            path_size: usize,
            data: *mut *mut u8,
            size: *mut usize,
        ) -> u32;
        pub(super) fn proxy_set_property(path: *const u8, path_size: usize, value: *const u8, value_size: usize)
        -> u32;
    }

    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    unsafe extern "C" {
        pub(super) fn clock_time_get(clock: u32, precision: u64, nanoseconds: *mut u64) -> u32;
    }
}

/// Maps a status of the ABI to its outcome.
fn checked(status: u32) -> Result<(), HostError> {
    match status {
        0 => Ok(()),
        1 => Err(HostError::NotFound),
        2 => Err(HostError::BadArgument),
        3 => Err(HostError::Serialization),
        7 => Err(HostError::Empty),
        8 => Err(HostError::CasMismatch),
        12 => Err(HostError::Unimplemented),
        other => Err(HostError::Internal(other)),
    }
}

/// Runs a call that returns allocated bytes through two out-pointers.
fn returned(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Result<Vec<u8>, HostError> {
    let mut data: *mut u8 = std::ptr::null_mut();
    let mut size = 0_usize;
    checked(call(&raw mut data, &raw mut size))?;
    if data.is_null() || size == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: see the module head; size is that of the allocation, and nobody else holds the pointer.
    Ok(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, size)) }.into_vec())
}

pub(crate) fn log(level: Level, message: &str) {
    // SAFETY: pointer and length of one live string. The status is of no use: there is nowhere else to report to.
    let _ = unsafe { host::proxy_log(level as u32, message.as_ptr(), message.len()) };
}

pub(crate) fn get_buffer(kind: Buffer, start: usize, max: usize) -> Result<Vec<u8>, HostError> {
    // SAFETY: the out-pointers are live for the call.
    returned(|data, size| unsafe { host::proxy_get_buffer_bytes(kind as u32, start, max, data, size) })
}

pub(crate) fn set_buffer(kind: Buffer, start: usize, size: usize, data: &[u8]) -> Result<(), HostError> {
    // SAFETY: pointer and length of one live slice.
    checked(unsafe { host::proxy_set_buffer_bytes(kind as u32, start, size, data.as_ptr(), data.len()) })
}

pub(crate) fn rewrite_buffer(
    kind: Buffer,
    size: usize,
    out: &mut Vec<u8>,
    change: &mut Change<'_>,
) -> Result<(), HostError> {
    let bytes = whole(size, || get_buffer(kind, 0, size))?;
    rewrite_whole(&bytes, out, change, |output| set_buffer(kind, 0, size, output))
}

pub(crate) fn get_header_pairs(map: Map) -> Result<Pairs, HostError> {
    // SAFETY: the out-pointers are live for the call.
    returned(|data, size| unsafe { host::proxy_get_header_map_pairs(map as u32, data, size) }).map(Pairs::of_host)
}

pub(crate) fn set_header_pairs(map: Map, pairs: &Pairs) -> Result<(), HostError> {
    let pairs = pairs.as_bytes();
    // SAFETY: pointer and length of one live slice.
    checked(unsafe { host::proxy_set_header_map_pairs(map as u32, pairs.as_ptr(), pairs.len()) })
}

pub(crate) fn get_header(map: Map, name: &str) -> Result<Vec<u8>, HostError> {
    // SAFETY: live string, live out-pointers.
    returned(|data, size| unsafe {
        host::proxy_get_header_map_value(map as u32, name.as_ptr(), name.len(), data, size)
    })
}

pub(crate) fn add_header(map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
    // SAFETY: pointers and lengths of live slices.
    checked(unsafe {
        host::proxy_add_header_map_value(map as u32, name.as_ptr(), name.len(), value.as_ptr(), value.len())
    })
}

pub(crate) fn replace_header(map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
    // SAFETY: pointers and lengths of live slices.
    checked(unsafe {
        host::proxy_replace_header_map_value(map as u32, name.as_ptr(), name.len(), value.as_ptr(), value.len())
    })
}

pub(crate) fn remove_header(map: Map, name: &str) -> Result<(), HostError> {
    // SAFETY: pointer and length of one live string.
    checked(unsafe { host::proxy_remove_header_map_value(map as u32, name.as_ptr(), name.len()) })
}

pub(crate) fn send_local_response(status: u16, details: &str, headers: &Pairs, body: &[u8]) -> Result<(), HostError> {
    /// The ABI's status for "this is not gRPC".
    const NO_GRPC_STATUS: i32 = -1;
    let headers = headers.as_bytes();
    // SAFETY: pointers and lengths of live slices.
    checked(unsafe {
        host::proxy_send_local_response(
            u32::from(status),
            details.as_ptr(),
            details.len(),
            body.as_ptr(),
            body.len(),
            headers.as_ptr(),
            headers.len(),
            NO_GRPC_STATUS,
        )
    })
}

/// The filters that follow have buffers of their own.
pub(crate) fn may_hold_body() -> bool {
    true
}

pub(crate) fn close_stream(half: Half) -> Result<(), HostError> {
    // SAFETY: no pointers.
    checked(unsafe { host::proxy_close_stream(half as u32) })
}

pub(crate) fn set_tick_period(millis: u32) -> Result<(), HostError> {
    // SAFETY: no pointers.
    checked(unsafe { host::proxy_set_tick_period_milliseconds(millis) })
}

pub(crate) fn set_effective_context(id: u32) -> Result<(), HostError> {
    // SAFETY: no pointers.
    checked(unsafe { host::proxy_set_effective_context(id) })
}

pub(crate) fn continue_stream(half: Half) -> Result<(), HostError> {
    // SAFETY: no pointers.
    checked(unsafe { host::proxy_continue_stream(half as u32) })
}

pub(crate) fn get_shared_data(key: &str) -> Result<(Vec<u8>, u32), HostError> {
    let mut version = 0_u32;
    // SAFETY: live string, live out-pointers.
    let value = returned(|data, size| unsafe {
        host::proxy_get_shared_data(key.as_ptr(), key.len(), data, size, &raw mut version)
    })?;
    Ok((value, version))
}

pub(crate) fn set_shared_data(key: &str, value: &[u8], version: u32) -> Result<(), HostError> {
    // SAFETY: pointers and lengths of live slices.
    checked(unsafe { host::proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), version) })
}

pub(crate) fn monotonic() -> Result<Duration, HostError> {
    /// WASI's `clockid`: realtime is 0.
    const MONOTONIC: u32 = 1;
    let mut nanoseconds = 0_u64;
    // SAFETY: a live out-pointer.
    checked(unsafe { host::clock_time_get(MONOTONIC, 1, &raw mut nanoseconds) })?;
    Ok(Duration::from_nanos(nanoseconds))
}

pub(crate) fn define_counter(name: &str) -> Result<u32, HostError> {
    /// The ABI's type `counter`.
    const COUNTER: u32 = 0;
    let mut id = 0_u32;
    // SAFETY: live string, live out-pointer.
    checked(unsafe { host::proxy_define_metric(COUNTER, name.as_ptr(), name.len(), &raw mut id) })?;
    Ok(id)
}

pub(crate) fn add_to_counter(id: u32, offset: i64) -> Result<(), HostError> {
    // SAFETY: no pointers.
    checked(unsafe { host::proxy_increment_metric(id, offset) })
}

pub(crate) fn get_property(path: &[u8]) -> Result<Vec<u8>, HostError> {
    // SAFETY: live slice, live out-pointers.
    returned(|data, size| unsafe { host::proxy_get_property(path.as_ptr(), path.len(), data, size) })
}

pub(crate) fn set_property(path: &[u8], value: &[u8]) -> Result<(), HostError> {
    // SAFETY: pointers and lengths of live slices.
    checked(unsafe { host::proxy_set_property(path.as_ptr(), path.len(), value.as_ptr(), value.len()) })
}

/// Sends a request. This is the one call that goes through the SDK, because the SDK's dispatcher panics at the response to
/// a request that it has not sent. Its own panic needs a status that this call does not have: `proxy_http_call` returns
/// ok, bad argument or internal failure, even where it is forbidden.
pub(crate) fn http_call(cluster: &str, fields: &[(&str, &str)], timeout: Duration) -> Result<u32, HostError> {
    hostcalls::dispatch_http_call(cluster, fields.to_vec(), None, Vec::new(), timeout).map_err(|status| match status {
        Status::BadArgument => HostError::BadArgument,
        other => HostError::Internal(other as u32),
    })
}
