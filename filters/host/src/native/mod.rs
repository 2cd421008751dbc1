//! The back end of native programs: calls go to the [`Host`] that serves the thread.
//!
//! Without one, as in unit tests, every call returns [`HostError::Unimplemented`]. The simulation is such a host.

pub(crate) mod calls;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::error::HostError;
use crate::kinds::{Buffer, Half, Level, Map};
use crate::pairs::Pairs;

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

    /// Returns all headers.
    fn headers(&self, map: Map) -> Result<Pairs, HostError> {
        Err(HostError::Unimplemented)
    }

    /// Replaces all headers.
    fn set_headers(&self, map: Map, headers: &Pairs) -> Result<(), HostError> {
        Err(HostError::Unimplemented)
    }

    /// Ends the stream with a local response.
    fn reply(&self, status: u16, details: &str, headers: &Pairs, body: &[u8]) -> Result<(), HostError> {
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
