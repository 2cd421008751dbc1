//! The back end of native programs: calls go to the [`Host`] that serves the thread.
//!
//! Without one, as in unit tests, every call returns [`HostError::Unimplemented`]. The simulation is such a host.

pub(crate) mod calls;

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::error::HostError;
use crate::kinds::{Buffer, Half, Level, Map};
use crate::pairs::Pairs;
use crate::pieces::{Change, rewrite_whole, whole};

/// Bytes that several responses share.
#[derive(Debug, Clone)]
pub struct Slice {
    bytes: Arc<[u8]>,
    range: Range<usize>,
}

impl Slice {
    /// Takes a part of `bytes`. A range that exceeds them is cut.
    pub fn of(bytes: &Arc<[u8]>, range: Range<usize>) -> Self {
        let end = range.end.min(bytes.len());
        Self { bytes: Arc::clone(bytes), range: range.start.min(end)..end }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(self.range.clone()).unwrap_or_default()
    }

    /// Takes up to `most` bytes from the front. None if none are left.
    pub fn take_front(&mut self, most: usize) -> Option<Self> {
        let end = self.range.start.saturating_add(most).min(self.range.end);
        let front = Self::of(&self.bytes, self.range.start..end);
        self.range.start = end;
        (!front.range.is_empty()).then_some(front)
    }
}

/// The calls that filters make. A call means the stream whose callback runs, or the context that
/// [`Host::set_effective_context`] named since.
///
/// A host must expect calls during the callbacks that it makes, so it takes `&self`.
#[allow(unused_variables)] // the defaults of a host that lacks the call
pub trait Host {
    /// Writes one line.
    fn log(&self, level: Level, line: &str) {}

    /// Returns at most `max` bytes of a buffer from `start` on.
    fn buffer(&self, buffer: Buffer, start: usize, max: usize) -> Result<Vec<u8>, HostError> {
        Err(HostError::Unimplemented)
    }

    /// Replaces `size` bytes of a buffer from `start` on.
    fn set_buffer(&self, buffer: Buffer, start: usize, size: usize, bytes: &[u8]) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Rewrites the `size` bytes of a buffer, as [`crate::body::rewrite`] says.
    fn rewrite_buffer(
        &self,
        buffer: Buffer,
        size: usize,
        out: &mut Vec<u8>,
        change: &mut Change<'_>,
    ) -> Result<(), HostError> {
        let bytes = whole(size, || self.buffer(buffer, 0, size))?;
        rewrite_whole(&bytes, out, change, |output| self.set_buffer(buffer, 0, size, output))
    }

    /// Returns true if the filter may hold the piece of the body, as [`crate::body::may_hold`] says.
    fn may_hold_body(&self) -> Result<bool, HostError> {
        Ok(true)
    }

    /// Returns all headers.
    fn headers(&self, map: Map) -> Result<Pairs, HostError> {
        Err(HostError::Unimplemented)
    }

    /// Replaces all headers.
    fn set_headers(&self, map: Map, headers: &Pairs) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Returns the first value of a header, or [`HostError::NotFound`].
    fn header(&self, map: Map, name: &str) -> Result<Vec<u8>, HostError> {
        self.headers(map)?.first(name).map(<[u8]>::to_vec).ok_or(HostError::NotFound)
    }

    /// Adds a value of a header to those that exist.
    fn add_header(&self, map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
        edit(self, map, |headers| headers.push((name.as_bytes().to_vec(), value.to_vec())))
    }

    /// Sets the first value of a header, and removes the others.
    fn replace_header(&self, map: Map, name: &str, value: &[u8]) -> Result<(), HostError> {
        edit(self, map, |headers| {
            let place = headers.iter().position(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name.as_bytes()));
            let place = place.unwrap_or(headers.len()).min(headers.len());
            headers.insert(place, (name.as_bytes().to_vec(), value.to_vec()));
        })
    }

    /// Removes every value of a header.
    fn remove_header(&self, map: Map, name: &str) -> Result<(), HostError> {
        edit(self, map, |headers| headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name.as_bytes())))
    }

    /// Ends the stream with a local response.
    fn reply(&self, status: u16, details: &str, headers: &Pairs, body: &[u8]) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Ends the stream with a response that is complete. `fields` begin with `:status`.
    fn respond(&self, fields: &Pairs, body: Vec<Slice>) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Resets the stream.
    fn close(&self, half: Half) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Releases a held half.
    fn resume(&self, half: Half) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Sets the period of the root context's ticks; zero stops them.
    fn set_tick_period(&self, period: Duration) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Makes later calls mean the context `id`.
    fn set_effective_context(&self, id: u32) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Sends a request without a body. Returns the number of its callback.
    fn http_call(&self, cluster: &str, fields: &[(&str, &str)], timeout: Duration) -> Result<u32, HostError> {
        Err(HostError::Unimplemented)
    }

    /// Returns a value that all workers see, and its version.
    fn shared(&self, key: &str) -> Result<(Vec<u8>, u32), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Sets a value that all workers see, by the laws of [`shared_board::Board::set`].
    fn set_shared(&self, key: &str, value: &[u8], version: u32) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Defines a counter, and returns its number.
    fn define_counter(&self, name: &str) -> Result<u32, HostError> {
        Err(HostError::Unimplemented)
    }

    /// Adds to a counter.
    fn add_to_counter(&self, id: u32, amount: i64) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Returns a property. The parts of its path are separated by zero bytes.
    fn property(&self, path: &[u8]) -> Result<Vec<u8>, HostError> {
        Err(HostError::Unimplemented)
    }

    /// Leaves a value with the stream.
    fn set_property(&self, path: &[u8], value: &[u8]) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Returns the time since a fixed moment, on a clock that does not step.
    fn monotonic(&self) -> Result<Duration, HostError> {
        Err(HostError::Unimplemented)
    }

    /// Fills `bytes` with random ones.
    fn random(&self, bytes: &mut [u8]) {
        crate::drawn::fill(bytes);
    }
}

/// Changes a copy of all headers, and puts it back.
fn edit<H: Host + ?Sized>(
    host: &H,
    map: Map,
    change: impl FnOnce(&mut Vec<(Vec<u8>, Vec<u8>)>),
) -> Result<(), HostError> {
    let headers = host.headers(map)?;
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    change(&mut headers);
    host.set_headers(map, &Pairs::of(&headers))
}

thread_local! {
    static HOST: RefCell<Option<Rc<dyn Host>>> = const { RefCell::new(None) };
}

/// Makes `host` serve this thread until another one does. None ends that.
pub fn serve(host: Option<Rc<dyn Host>>) {
    HOST.with_borrow_mut(|served| *served = host);
}

/// Asks the host of this thread. The borrow ends before the call, which may lead to further ones.
fn ask<T>(call: impl FnOnce(&dyn Host) -> Result<T, HostError>) -> Result<T, HostError> {
    let host = HOST.with_borrow(Option::clone).ok_or(HostError::Unimplemented)?;
    call(&*host)
}

/// Native builds of a module's crate export nothing.
#[macro_export]
macro_rules! entry_point {
    ($filter:ty) => {};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_taken_from_its_front_until_it_is_empty() {
        let bytes: Arc<[u8]> = b"abcdef".as_slice().into();
        let mut slice = Slice::of(&bytes, 1..9);
        assert_eq!(slice.bytes(), b"bcdef");
        let taken: Vec<_> = std::iter::from_fn(|| slice.take_front(2)).map(|part| part.bytes().to_vec()).collect();
        assert_eq!(taken, [b"bc".to_vec(), b"de".to_vec(), b"f".to_vec()]);
        assert!(Slice::of(&bytes, 7..9).take_front(1).is_none());
    }
}
