//! Values that all workers of the process see, by name. They outlive a VM that is reloaded.
//!
//! A name lives as long as the process, and costs memory even when its value is empty. So names must come from a set
//! that is bounded beforehand. [`shared_board`] states the laws, and has the operations that policy crates use.

use shared_board::Board;

use crate::calls;

/// The proxy's board. A call that the host refuses looks like a missing value or a lost race.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProxyBoard;

impl Board for ProxyBoard {
    fn get(&self, name: &str) -> (Vec<u8>, u32) {
        calls::get_shared_data(name).unwrap_or_default()
    }

    fn set(&self, name: &str, value: &[u8], version: u32) -> bool {
        calls::set_shared_data(name, value, version).is_ok()
    }
}
