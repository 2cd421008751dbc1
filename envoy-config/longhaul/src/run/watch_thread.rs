//! The threads that watch while a run serves.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use longhaul_config::Settings;

/// A thread that watches. It ends when this is dropped.
pub(super) struct Watch(Sender<Settings>);

impl Watch {
    /// Starts a thread called `name`. It gets changed settings, and ends when no more can come.
    pub(super) fn start(name: &str, body: impl FnOnce(Receiver<Settings>) + Send + 'static) -> io::Result<Self> {
        let (settings, changes) = mpsc::channel();
        thread::Builder::new().name(name.to_owned()).spawn(move || body(changes))?;
        Ok(Self(settings))
    }

    /// Watches as changed settings say from now on.
    pub(super) fn follow(&self, settings: &Settings) {
        let _ = self.0.send(settings.clone());
    }
}
