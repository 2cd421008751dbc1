//! What can happen to a run: signals, and files that change. Both come through one channel to the supervisor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::{fs, io, thread};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use sha2::{Digest, Sha256};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::config::Settings;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// Ctrl-C or SIGTERM.
    Stop,
    /// SIGHUP: look at the files now.
    Reload,
    /// Something in a watched folder changed.
    FilesChanged,
}

/// Turns signals into events for as long as the process lives.
pub(super) fn forward_signals(events: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let event = if signal == SIGHUP { Event::Reload } else { Event::Stop };
            if events.send(event).is_err() {
                break;
            }
        }
    })?;
    Ok(())
}

/// The files a configuration is made from, and what was in them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Inputs(BTreeMap<PathBuf, Option<[u8; 32]>>);

impl Inputs {
    /// Reads and hashes all of them; one that cannot be read is an input too.
    pub(super) fn of(settings: &Settings, filter: &Path) -> Self {
        Self::of_files(files(settings, filter))
    }

    fn of_files(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let hash = |path: &Path| fs::read(path).ok().map(|bytes| Sha256::digest(&bytes).into());
        Self(
            files
                .into_iter()
                .map(|path| {
                    let hashed = hash(&path);
                    (path, hashed)
                })
                .collect(),
        )
    }

    /// The same files as they are now.
    pub(super) fn again(&self) -> Self {
        Self::of_files(self.0.keys().cloned())
    }

    /// Files that differ from `before`.
    pub(super) fn changed_since(&self, before: &Self) -> Vec<&Path> {
        self.0.iter().filter(|(path, hash)| before.0.get(*path) != Some(hash)).map(|(path, _)| path.as_path()).collect()
    }

    /// Folders to watch: the files' own, and where links on the way lead to, as with mounted secrets.
    fn folders(&self) -> BTreeSet<PathBuf> {
        let parent = |path: &Path| path.parent().map(Path::to_owned);
        self.0
            .keys()
            .flat_map(|path| [parent(path), fs::canonicalize(path).ok().as_deref().and_then(parent)])
            .flatten()
            .collect()
    }
}

fn files(settings: &Settings, filter: &Path) -> Vec<PathBuf> {
    let dns = &settings.dns;
    let lists = dns.domains.iter().chain(&dns.except_files).cloned();
    let keys = settings.terminate.iter().flat_map(|entry| [entry.cert.clone(), entry.key.clone()]);
    [settings.file.clone(), filter.to_owned()].into_iter().chain(lists).chain(keys).collect()
}

/// Watches folders, not files: editors and deployments replace files, and a watch on the old one would see nothing.
pub(super) struct FileWatch {
    watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
}

impl FileWatch {
    pub(super) fn new(events: Sender<Event>) -> notify::Result<Self> {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let reading = event.as_ref().is_ok_and(|event| event.kind.is_access());
            if !reading {
                let _ = events.send(Event::FilesChanged);
            }
        })?;
        Ok(Self { watcher, folders: BTreeSet::new() })
    }

    /// Watches the folders of `inputs` and no others.
    pub(super) fn follow(&mut self, inputs: &Inputs) {
        let folders = inputs.folders();
        for folder in self.folders.difference(&folders) {
            let _ = self.watcher.unwatch(folder);
        }
        for folder in folders.difference(&self.folders) {
            if let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                super::say(&format!("cannot watch {} for changes: {error}; SIGHUP makes me look", folder.display()));
            }
        }
        self.folders = folders;
    }
}
