use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::Board;

/// A board of one thread, with the versions of the proxy's own: for tests, fuzz targets and examples.
#[derive(Debug, Default)]
pub struct Memory(RefCell<BTreeMap<String, (Vec<u8>, u32)>>);

impl Memory {
    /// Every name, with the length of its value in bytes.
    pub fn sizes(&self) -> Vec<(String, usize)> {
        self.0.borrow().iter().map(|(name, (value, _))| (name.clone(), value.len())).collect()
    }

    /// Forgets every name but those that `keep` accepts, as a proxy that starts again does with all of them.
    pub fn retain(&self, mut keep: impl FnMut(&str) -> bool) {
        self.0.borrow_mut().retain(|name, _| keep(name));
    }
}

impl Board for Memory {
    fn get(&self, name: &str) -> (Vec<u8>, u32) {
        self.0.borrow().get(name).cloned().unwrap_or_default()
    }

    fn set(&self, name: &str, value: &[u8], version: u32) -> bool {
        let mut values = self.0.borrow_mut();
        let current = values.get(name).map_or(0, |(_, current)| *current);
        let is_current = version == 0 || current == 0 || version == current;
        if is_current {
            values.insert(name.to_owned(), (value.to_vec(), current + 1));
        }
        is_current
    }
}
