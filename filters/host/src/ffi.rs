//! The host's functions (proxy-wasm ABI 0.2.1), each behind a safe function. This is the only unsafe code of the
//! filters.
//!
//! Memory: the host allocates its results through the module's own `proxy_on_memory_allocate`. The SDK exports that
//! function as a boxed slice of exactly the size returned. Only for this reason is it sound to take a result over as a
//! `Vec`.

#![allow(unsafe_code)]

use crate::error::HostError;

#[cfg(target_arch = "wasm32")]
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

/// Outside a proxy, in native tests and tools, every call returns [`HostError::Unimplemented`].
#[cfg(not(target_arch = "wasm32"))]
#[allow(clippy::too_many_arguments)] // the ABI's
mod host {
    macro_rules! unimplemented_on_this_target {
        ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
            $(pub(super) unsafe fn $name($(_: $kind),*) -> u32 { 12 })*
        };
    }
    unimplemented_on_this_target! {
        proxy_log(level: u32, message: *const u8, size: usize);
        proxy_get_buffer_bytes(kind: u32, start: usize, max: usize, data: *mut *mut u8, size: *mut usize);
        proxy_set_buffer_bytes(kind: u32, start: usize, size: usize, data: *const u8, len: usize);
        proxy_get_header_map_pairs(map: u32, data: *mut *mut u8, size: *mut usize);
        proxy_set_header_map_pairs(map: u32, data: *const u8, size: usize);
        proxy_get_header_map_value(map: u32, key: *const u8, key_size: usize, data: *mut *mut u8, size: *mut usize);
        proxy_add_header_map_value(map: u32, key: *const u8, key_size: usize, value: *const u8, value_size: usize);
        proxy_replace_header_map_value(map: u32, key: *const u8, key_size: usize, value: *const u8, value_size: usize);
        proxy_remove_header_map_value(map: u32, key: *const u8, key_size: usize);
        proxy_send_local_response(status: u32, details: *const u8, details_size: usize, body: *const u8, body_size: usize, headers: *const u8, headers_size: usize, grpc_status: i32);
        proxy_close_stream(kind: u32);
        proxy_set_tick_period_milliseconds(period: u32);
        proxy_set_effective_context(id: u32);
        proxy_continue_stream(kind: u32);
        proxy_get_shared_data(key: *const u8, key_size: usize, data: *mut *mut u8, size: *mut usize, version: *mut u32);
        proxy_set_shared_data(key: *const u8, key_size: usize, value: *const u8, value_size: usize, version: u32);
        proxy_define_metric(kind: u32, name: *const u8, size: usize, id: *mut u32);
        proxy_increment_metric(id: u32, offset: i64);
        proxy_get_property(path: *const u8, size: usize, data: *mut *mut u8, data_size: *mut usize);
        proxy_set_property(path: *const u8, size: usize, value: *const u8, value_size: usize);
        clock_time_get(clock: u32, precision: u64, nanoseconds: *mut u64);
    }
}

/// Runs a call that returns allocated bytes through two out-pointers.
fn returned(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Result<Vec<u8>, HostError> {
    let mut data: *mut u8 = std::ptr::null_mut();
    let mut size = 0_usize;
    HostError::check(call(&raw mut data, &raw mut size))?;
    if data.is_null() || size == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: see the module head; size is that of the allocation, and nobody else holds the pointer.
    Ok(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, size)) }.into_vec())
}

pub(crate) fn log(level: u32, message: &str) {
    // SAFETY: pointer and length of one live string. The status is of no use: there is nowhere else to report to.
    let _ = unsafe { host::proxy_log(level, message.as_ptr(), message.len()) };
}

pub(crate) fn get_buffer(kind: u32, start: usize, max: usize) -> Result<Vec<u8>, HostError> {
    // SAFETY: the out-pointers are live for the call.
    returned(|data, size| unsafe { host::proxy_get_buffer_bytes(kind, start, max, data, size) })
}

pub(crate) fn set_buffer(kind: u32, start: usize, size: usize, data: &[u8]) -> Result<(), HostError> {
    // SAFETY: pointer and length of one live slice.
    HostError::check(unsafe { host::proxy_set_buffer_bytes(kind, start, size, data.as_ptr(), data.len()) })
}

pub(crate) fn get_header_pairs(map: u32) -> Result<Vec<u8>, HostError> {
    // SAFETY: the out-pointers are live for the call.
    returned(|data, size| unsafe { host::proxy_get_header_map_pairs(map, data, size) })
}

pub(crate) fn set_header_pairs(map: u32, pairs: &[u8]) -> Result<(), HostError> {
    // SAFETY: pointer and length of one live slice.
    HostError::check(unsafe { host::proxy_set_header_map_pairs(map, pairs.as_ptr(), pairs.len()) })
}

pub(crate) fn get_header(map: u32, name: &str) -> Result<Vec<u8>, HostError> {
    // SAFETY: live string, live out-pointers.
    returned(|data, size| unsafe { host::proxy_get_header_map_value(map, name.as_ptr(), name.len(), data, size) })
}

pub(crate) fn add_header(map: u32, name: &str, value: &[u8]) -> Result<(), HostError> {
    // SAFETY: pointers and lengths of live slices.
    HostError::check(unsafe {
        host::proxy_add_header_map_value(map, name.as_ptr(), name.len(), value.as_ptr(), value.len())
    })
}

pub(crate) fn replace_header(map: u32, name: &str, value: &[u8]) -> Result<(), HostError> {
    // SAFETY: pointers and lengths of live slices.
    HostError::check(unsafe {
        host::proxy_replace_header_map_value(map, name.as_ptr(), name.len(), value.as_ptr(), value.len())
    })
}

pub(crate) fn remove_header(map: u32, name: &str) -> Result<(), HostError> {
    // SAFETY: pointer and length of one live string.
    HostError::check(unsafe { host::proxy_remove_header_map_value(map, name.as_ptr(), name.len()) })
}

pub(crate) fn send_local_response(status: u32, details: &str, headers: &[u8], body: &[u8]) -> Result<(), HostError> {
    /// The ABI's status for "this is not gRPC".
    const NO_GRPC_STATUS: i32 = -1;
    // SAFETY: pointers and lengths of live slices.
    HostError::check(unsafe {
        host::proxy_send_local_response(
            status,
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

pub(crate) fn close_stream(kind: u32) -> Result<(), HostError> {
    // SAFETY: no pointers.
    HostError::check(unsafe { host::proxy_close_stream(kind) })
}

pub(crate) fn set_tick_period(millis: u32) -> Result<(), HostError> {
    // SAFETY: no pointers.
    HostError::check(unsafe { host::proxy_set_tick_period_milliseconds(millis) })
}

pub(crate) fn set_effective_context(id: u32) -> Result<(), HostError> {
    // SAFETY: no pointers.
    HostError::check(unsafe { host::proxy_set_effective_context(id) })
}

pub(crate) fn continue_stream(kind: u32) -> Result<(), HostError> {
    // SAFETY: no pointers.
    HostError::check(unsafe { host::proxy_continue_stream(kind) })
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
    HostError::check(unsafe {
        host::proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), version)
    })
}

pub(crate) fn monotonic_nanoseconds() -> Result<u64, HostError> {
    /// WASI's `clockid`: realtime is 0.
    const MONOTONIC: u32 = 1;
    let mut nanoseconds = 0_u64;
    // SAFETY: a live out-pointer.
    HostError::check(unsafe { host::clock_time_get(MONOTONIC, 1, &raw mut nanoseconds) })?;
    Ok(nanoseconds)
}

pub(crate) fn define_metric(kind: u32, name: &str) -> Result<u32, HostError> {
    let mut id = 0_u32;
    // SAFETY: live string, live out-pointer.
    HostError::check(unsafe { host::proxy_define_metric(kind, name.as_ptr(), name.len(), &raw mut id) })?;
    Ok(id)
}

pub(crate) fn increment_metric(id: u32, offset: i64) -> Result<(), HostError> {
    // SAFETY: no pointers.
    HostError::check(unsafe { host::proxy_increment_metric(id, offset) })
}

pub(crate) fn get_property(path: &[u8]) -> Result<Vec<u8>, HostError> {
    // SAFETY: live slice, live out-pointers.
    returned(|data, size| unsafe { host::proxy_get_property(path.as_ptr(), path.len(), data, size) })
}

pub(crate) fn set_property(path: &[u8], value: &[u8]) -> Result<(), HostError> {
    // SAFETY: pointers and lengths of live slices.
    HostError::check(unsafe { host::proxy_set_property(path.as_ptr(), path.len(), value.as_ptr(), value.len()) })
}
