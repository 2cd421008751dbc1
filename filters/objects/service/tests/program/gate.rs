//! A gate that holds an origin up until the test opens it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub(crate) fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        let _open = self.0.1.wait_timeout_while(open, Duration::from_secs(30), |open| !*open).unwrap();
    }
}
