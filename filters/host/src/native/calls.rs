//! The calls of `wasm/calls.rs`, made to the thread's host.

use std::time::Duration;

use super::{Slice, ask};
use crate::error::HostError;
use crate::kinds::{Buffer, Half, Level, Map};
use crate::pairs::Pairs;
use crate::pieces::Change;

pub(crate) fn log(level: Level, message: &str) {
    let _ = ask(|host| {
        host.log(level, message);
        Ok(())
    });
}

pub(crate) fn get_buffer(buffer: Buffer, start: usize, max: usize) -> Result<Vec<u8>, HostError> {
    ask(|host| host.buffer(buffer, start, max))
}

pub(crate) fn set_buffer(buffer: Buffer, start: usize, size: usize, data: &[u8]) -> Result<(), HostError> {
    ask(|host| host.set_buffer(buffer, start, size, data))
}

pub(crate) fn rewrite_buffer(
    buffer: Buffer,
    size: usize,
    out: &mut Vec<u8>,
    change: &mut Change<'_>,
) -> Result<(), HostError> {
    ask(|host| host.rewrite_buffer(buffer, size, out, change))
}

pub(crate) fn may_hold_body() -> bool {
    ask(|host| host.may_hold_body()).unwrap_or_default()
}

pub(crate) fn get_header_pairs(map: Map) -> Result<Pairs, HostError> {
    ask(|host| host.headers(map))
}

pub(crate) fn set_header_pairs(map: Map, pairs: &Pairs) -> Result<(), HostError> {
    ask(|host| host.set_headers(map, pairs))
}

pub(crate) fn get_header(map: Map, name: &str) -> Result<Vec<u8>, HostError> {
    ask(|host| host.header(map, name))
}

pub(crate) fn add_header(map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
    ask(|host| host.add_header(map, name, value))
}

pub(crate) fn replace_header(map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
    ask(|host| host.replace_header(map, name, value))
}

pub(crate) fn remove_header(map: Map, name: &str) -> Result<(), HostError> {
    ask(|host| host.remove_header(map, name))
}

pub(crate) fn send_local_response(status: u16, details: &str, headers: &Pairs, body: &[u8]) -> Result<(), HostError> {
    ask(|host| host.reply(status, details, headers, body))
}

pub(crate) fn respond(fields: &Pairs, body: Vec<Slice>) -> Result<(), HostError> {
    ask(|host| host.respond(fields, body))
}

pub(crate) fn close_stream(half: Half) -> Result<(), HostError> {
    ask(|host| host.close(half))
}

pub(crate) fn set_tick_period(millis: u32) -> Result<(), HostError> {
    ask(|host| host.set_tick_period(Duration::from_millis(u64::from(millis))))
}

pub(crate) fn set_effective_context(id: u32) -> Result<(), HostError> {
    ask(|host| host.set_effective_context(id))
}

pub(crate) fn continue_stream(half: Half) -> Result<(), HostError> {
    ask(|host| host.resume(half))
}

pub(crate) fn get_shared_data(key: &str) -> Result<(Vec<u8>, u32), HostError> {
    ask(|host| host.shared(key))
}

pub(crate) fn set_shared_data(key: &str, value: &[u8], version: u32) -> Result<(), HostError> {
    ask(|host| host.set_shared(key, value, version))
}

pub(crate) fn monotonic() -> Result<Duration, HostError> {
    ask(|host| host.monotonic())
}

pub(crate) fn define_counter(name: &str) -> Result<u32, HostError> {
    ask(|host| host.define_counter(name))
}

pub(crate) fn add_to_counter(id: u32, amount: i64) -> Result<(), HostError> {
    ask(|host| host.add_to_counter(id, amount))
}

pub(crate) fn get_property(path: &[u8]) -> Result<Vec<u8>, HostError> {
    ask(|host| host.property(path))
}

pub(crate) fn set_property(path: &[u8], value: &[u8]) -> Result<(), HostError> {
    ask(|host| host.set_property(path, value))
}

pub(crate) fn http_call(cluster: &str, fields: &[(&str, &str)], timeout: Duration) -> Result<u32, HostError> {
    ask(|host| host.http_call(cluster, fields, timeout))
}

pub(crate) fn random(bytes: &mut [u8]) {
    let drawn = ask(|host| {
        host.random(bytes);
        Ok(())
    });
    if drawn.is_err() {
        crate::drawn::fill(bytes);
    }
}
