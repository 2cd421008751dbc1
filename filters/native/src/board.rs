//! The values that all workers see. They live in this process's memory and outlive a module that is replaced.
//!
//! A new module is a new file in the same process, with statics of its own. So the first module leaves a table of two functions in
//! Envoy's registry, and later ones call them. Envoy never unloads a module (`do_not_close`), so the functions stay. The
//! table's layout is part of its key in the registry: another layout gets another key, and starts with an empty board.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::sync::{Mutex, OnceLock, PoisonError};

use filter_host::HostError;

use crate::abi;

/// The registry's key. Change it with the layout of [`Table`].
const KEY: &str = "longhaul.board.1";

/// Receives a value: the reader's own pointer, the start of the bytes and their number.
type Receive = unsafe extern "C" fn(*mut c_void, *const u8, usize);

/// The functions of the board's owner.
#[repr(C)]
struct Table {
    /// Calls the receiver with the value of a name. Returns its version, or 0 where there is none.
    get: unsafe extern "C" fn(*const u8, usize, Receive, *mut c_void) -> u32,
    /// Sets a name to a value if the version is current. Returns 1 if it was.
    set: unsafe extern "C" fn(*const u8, usize, *const u8, usize, u32) -> u32,
}

static OWN: Table = Table { get, set };

type Values = Mutex<HashMap<Vec<u8>, (Vec<u8>, u32)>>;

fn values() -> &'static Values {
    static VALUES: OnceLock<Values> = OnceLock::new();
    VALUES.get_or_init(Mutex::default)
}

/// A board of this process: names that no other board has.
#[derive(Debug, Clone)]
pub(crate) struct SharedBoard {
    prefix: String,
}

impl SharedBoard {
    /// Returns the board `name`. Only the main thread may call it.
    pub(crate) fn named(name: &str) -> Self {
        let _ = table();
        Self { prefix: format!("{name}\0") }
    }

    fn key(&self, name: &str) -> String {
        [self.prefix.as_str(), name].concat()
    }

    /// Returns a value and its version.
    pub(crate) fn get(&self, name: &str) -> Result<(Vec<u8>, u32), HostError> {
        let key = self.key(name);
        let mut value: Vec<u8> = Vec::new();
        // SAFETY: a live string. `receive` gets the pointer of a live vector.
        let version = unsafe { (table().get)(key.as_ptr(), key.len(), receive, (&raw mut value).cast()) };
        if version == 0 { Err(HostError::NotFound) } else { Ok((value, version)) }
    }

    /// Sets a value, by the laws of [`filter_host::Host::set_shared`].
    pub(crate) fn set(&self, name: &str, value: &[u8], version: u32) -> Result<(), HostError> {
        let key = self.key(name);
        // SAFETY: live slices.
        let is_set = unsafe { (table().set)(key.as_ptr(), key.len(), value.as_ptr(), value.len(), version) };
        if is_set == 1 { Ok(()) } else { Err(HostError::CasMismatch) }
    }
}

/// Returns the table of the process's first module.
fn table() -> &'static Table {
    static TABLE: OnceLock<&'static Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        if let Some(data) = abi::shared(KEY) {
            // SAFETY: only this function leaves pointers under the key, and all of them point to a static of this layout in a
            // module that is never unloaded.
            unsafe { &*data.cast::<Table>() }
        } else {
            abi::share(KEY, (&raw const OWN).cast_mut().cast());
            &OWN
        }
    })
}

unsafe extern "C" fn receive(vector: *mut c_void, start: *const u8, length: usize) {
    // SAFETY: `SharedBoard::get` passes its own vector, and the owner lends the bytes for this call.
    let (vector, bytes) = unsafe { (&mut *vector.cast::<Vec<u8>>(), std::slice::from_raw_parts(start, length)) };
    vector.extend_from_slice(bytes);
}

unsafe extern "C" fn get(name: *const u8, length: usize, receive: Receive, reader: *mut c_void) -> u32 {
    // SAFETY: the reader lends the name.
    let name = unsafe { std::slice::from_raw_parts(name, length) };
    catch_unwind(|| {
        let values = values().lock().unwrap_or_else(PoisonError::into_inner);
        values.get(name).map_or(0, |(value, version)| {
            // SAFETY: the reader gave both, and the value lives until the lock is released.
            unsafe { receive(reader, value.as_ptr(), value.len()) };
            *version
        })
    })
    .unwrap_or(0)
}

unsafe extern "C" fn set(name: *const u8, name_length: usize, value: *const u8, length: usize, version: u32) -> u32 {
    // SAFETY: the writer lends both.
    let (name, value) =
        unsafe { (std::slice::from_raw_parts(name, name_length), std::slice::from_raw_parts(value, length)) };
    catch_unwind(|| {
        let mut values = values().lock().unwrap_or_else(PoisonError::into_inner);
        let current = values.get(name).map_or(0, |(_, current)| *current);
        let is_current = version == 0 || current == 0 || version == current;
        if is_current {
            // Version 0 means that there is no value, and the last one means that there must be none.
            let next = if current >= u32::MAX - 1 { 1 } else { current + 1 };
            values.insert(name.to_vec(), (value.to_vec(), next));
        }
        u32::from(is_current)
    })
    .unwrap_or(0)
}
