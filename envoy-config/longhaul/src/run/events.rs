//! The events of a run: signals, and files that change. Both come through one channel to the supervisor.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use std::{fs, io, thread};

use longhaul_config::{Role, Settings};
use longhaul_observe::compare::Compared;
use longhaul_observe::measure::Noticed;
use longhaul_observe::report::{DnsReport, GroundReport, ProblemRecord, Silence};
use longhaul_observe::why::CostReport;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use sha2::{Digest, Sha256};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use super::locate::local_addresses;
use super::lost_connections::Lost;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// SIGTERM or Ctrl-C: stop.
    Stop(Stop),
    /// SIGHUP: check the files now.
    Reload,
    /// SIGUSR1: open the access log again, because it was moved.
    ReopenLogs,
    /// Something in a watched folder changed.
    FilesChanged,
    /// The state of the resolvers changed.
    Dns(DnsReport),
    /// The measured link changed.
    Link(Noticed),
    /// Another limit fits what a link carries now, in percent of the stated one. `link` is its name for the filter `link-share`.
    Carried { link: String, percent: u32 },
    /// The ground stopped responding, or responds again.
    Silence(Option<Silence>),
    /// No connection to the ground is established (true), or one is again.
    Unconnected(bool),
    /// Envoy has connections over the link that are gone.
    Lost(Lost),
    /// The size of packets that vanish on the way to the other end changed. None: none do.
    Vanishing(Option<u32>),
    /// The report of the ground changed.
    GroundReports(GroundReport),
    /// A problem began or ended. All that stand and the last ones that ended.
    Problems(Vec<ProblemRecord>),
    /// The figures of a request's way and of the link's use.
    Costs(Box<CostReport>),
    /// The figures of `compare` changed. None: it is off.
    Compared(Option<Compared>),
}

/// How a run is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// SIGTERM: first end what is under way.
    Drain,
    /// SIGINT.
    AtOnce,
}

/// The events that came.
#[derive(Debug)]
pub(super) struct Inbox {
    events: Receiver<Event>,
    /// Those that were seen and not taken.
    seen: VecDeque<Event>,
}

impl Inbox {
    pub(super) fn new(events: Receiver<Event>) -> Self {
        Self { events, seen: VecDeque::new() }
    }

    /// Takes the next event. Waits for one for `time` at most.
    pub(super) fn recv_timeout(&mut self, time: Duration) -> Result<Event, RecvTimeoutError> {
        self.seen.pop_front().map_or_else(|| self.events.recv_timeout(time), Ok)
    }

    /// Takes the next event, if one came.
    pub(super) fn try_recv(&mut self) -> Option<Event> {
        self.seen.pop_front().or_else(|| self.events.try_recv().ok())
    }

    /// Returns true if a signal that ends the run came. It stays.
    pub(super) fn has_stop(&mut self) -> bool {
        self.seen.extend(self.events.try_iter());
        self.seen.iter().any(|event| matches!(event, Event::Stop(_)))
    }
}

/// Turns signals into events for as long as the process lives.
pub(super) fn forward_signals(events: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let event = match signal {
                SIGHUP => Event::Reload,
                SIGUSR1 => Event::ReopenLogs,
                SIGTERM => Event::Stop(Stop::Drain),
                _ => Event::Stop(Stop::AtOnce),
            };
            if events.send(event).is_err() {
                break;
            }
        }
    })?;
    Ok(())
}

/// The inputs of a configuration at one time: the content of files, and the machine's addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Inputs {
    files: BTreeMap<PathBuf, Option<Content>>,
    addresses: Vec<IpAddr>,
}

/// A file's content, and the metadata that shows without another reading that it is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    hash: [u8; 32],
    /// Change time, inode and length. None if only the content is known.
    stamp: Option<(i64, i64, u64, u64)>,
}

impl Content {
    fn of(path: &Path, before: Option<&Self>) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        let stamp = Some((metadata.ctime(), metadata.ctime_nsec(), metadata.ino(), metadata.len()));
        if let Some(before) = before.filter(|before| before.stamp == stamp) {
            return Some(before.clone());
        }
        fs::read(path).ok().map(|bytes| Self { hash: Sha256::digest(&bytes).into(), stamp })
    }
}

impl Inputs {
    /// Returns the inputs of `settings`. A file in `read` has the content that it had then, so that a later edit is a
    /// change. Reads all others now. A file that cannot be read is an input too.
    pub(super) fn of<'a>(
        settings: &Settings,
        read: &BTreeMap<PathBuf, [u8; 32]>,
        filters: impl Iterator<Item = &'a Path>,
    ) -> Self {
        let content = |path: &Path| match read.get(path) {
            Some(hash) => Some(Content { hash: *hash, stamp: None }),
            None => Content::of(path, None),
        };
        let files = files(settings, filters).into_iter().map(|path| (path.clone(), content(&path))).collect();
        Self { files, addresses: local_addresses() }
    }

    /// Reads the same inputs again.
    pub(super) fn again(&self) -> Self {
        let read = |(path, before): (&PathBuf, &Option<Content>)| (path.clone(), Content::of(path, before.as_ref()));
        Self { files: self.files.iter().map(read).collect(), addresses: local_addresses() }
    }

    /// Returns every address of this machine.
    pub(super) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Returns SHA-256 of the content of `path`, in hex. Empty if the file could not be read.
    pub(super) fn hash_of(&self, path: &Path) -> String {
        let content = self.files.get(path).and_then(Option::as_ref);
        content.map(|content| hex::encode(content.hash)).unwrap_or_default()
    }

    /// Returns the hash of each of `paths`, one on a line. None if there are no paths.
    pub(super) fn hashes_of(&self, paths: &[PathBuf]) -> Option<String> {
        let lines = paths.iter().map(|path| format!("{}  {}\n", self.hash_of(path), path.display()));
        Some(lines.collect()).filter(|text: &String| !text.is_empty())
    }

    /// Returns the names of the inputs that differ from `before`.
    pub(super) fn changed_since(&self, before: &Self) -> Vec<String> {
        let hash = |content: &Option<Content>| content.as_ref().map(|content| content.hash);
        let differs = |(path, now): &(&PathBuf, &Option<Content>)| {
            before.files.get(*path).is_none_or(|then| hash(then) != hash(now))
        };
        let files = self.files.iter().filter(differs).map(|(path, _)| path.display().to_string());
        let addresses = (self.addresses != before.addresses).then(|| "this machine's addresses".to_owned());
        files.chain(addresses).collect()
    }

    /// Returns the folders to watch: those of the files and those of their symbolic links' targets, as with mounted
    /// secrets. For a folder that does not exist, returns the one in which it would appear.
    fn folders(&self) -> BTreeSet<PathBuf> {
        let parent = |path: &Path| path.ancestors().skip(1).find(|folder| folder.is_dir()).map(Path::to_owned);
        let folders =
            self.files.keys().flat_map(|path| [parent(path), fs::canonicalize(path).ok().as_deref().and_then(parent)]);
        folders.flatten().collect()
    }
}

fn files<'a>(settings: &Settings, filters: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let dns = &settings.dns;
    let lists = dns.domains.iter().chain(&dns.except_files).cloned();
    let filters = filters.map(Path::to_owned);
    let awaited = settings.acme.iter().flat_map(|acme| acme.awaited.values());
    let awaited = awaited.flat_map(|entry| [entry.cert.clone(), entry.key.clone()]);
    let remotes = match &settings.role {
        Role::Ground(ground) => ground.remote_files.clone(),
        Role::Edge | Role::Remote(_) => Vec::new(),
    };
    [settings.file.clone()]
        .into_iter()
        .chain(filters)
        .chain(remotes)
        .chain(lists)
        .chain(settings.cache.groups().iter().map(|group| group.file.clone()))
        .chain(certificate_files(settings))
        .chain(awaited)
        .collect()
}

/// Returns the certificates, keys and authorities that Envoy reads by itself.
pub(super) fn certificate_files(settings: &Settings) -> Vec<PathBuf> {
    let keys = settings.terminate.iter().flat_map(|entry| [entry.cert.clone(), entry.key.clone()]);
    let pair = settings.role.identity().map(|own| [own.cert.clone(), own.key.clone(), own.ca.clone()]);
    keys.chain(pair.into_iter().flatten()).collect()
}

/// Watches folders, not files: editors and deployments replace files, and a watch on the old file would not notice.
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

    /// Watches the folders of `inputs` and no others. Returns true if some are new: earlier changes in those were not
    /// seen.
    pub(super) fn follow(&mut self, inputs: &Inputs) -> bool {
        let folders = inputs.folders();
        for folder in self.folders.difference(&folders) {
            let _ = self.watcher.unwatch(folder);
        }
        for folder in folders.difference(&self.folders) {
            if let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                super::say(
                    super::Level::Warning,
                    &format!("cannot watch {} for changes: {error}. Send SIGHUP after a change", folder.display()),
                );
            }
        }
        let more = !folders.is_subset(&self.folders);
        self.folders = folders;
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_as_changed_by_its_content_and_not_by_being_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.txt");
        fs::write(&path, "a").unwrap();
        let before = Inputs { files: BTreeMap::from([(path.clone(), None)]), addresses: Vec::new() }.again();
        fs::write(&path, "a").unwrap();
        assert_eq!(before.again().changed_since(&before), Vec::<String>::new());
        fs::write(&path, "b").unwrap();
        assert_eq!(before.again().changed_since(&before), [path.display().to_string()]);
        fs::remove_file(&path).unwrap();
        assert_eq!(before.again().changed_since(&before), [path.display().to_string()]);
    }

    #[test]
    fn the_folder_in_which_an_awaited_one_would_appear_is_watched() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("live/pep.example.net/fullchain.pem");
        let inputs = Inputs { files: BTreeMap::from([(path.clone(), None)]), addresses: Vec::new() };
        assert_eq!(inputs.folders(), BTreeSet::from([root.path().to_owned()]));
        let folder = path.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        assert_eq!(inputs.folders(), BTreeSet::from([folder.to_owned()]));
    }

    #[test]
    fn an_address_that_came_or_went_is_a_change() {
        let now = Inputs::default().again();
        let before = Inputs { addresses: vec!["192.0.2.1".parse().unwrap()], ..now.clone() };
        assert_eq!(now.changed_since(&before), ["this machine's addresses"]);
    }
}
