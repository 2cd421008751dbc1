//! Envoy's processes, with the rules of hot restart that `lineage.rs` lists, and the way in which they read files.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::envoy::{BOOTSTRAP, is_watched};
use super::super::lineage::Id;
use super::disk::SimDisk;
use super::files::{REFUSED, cluster_of, clusters_of};
use super::laws::Broken;
use super::orders::{Fate, SetUp};

/// An Envoy whose parent has died waits so long for it, and aborts.
const ORPHAN: Duration = Duration::from_secs(30);
/// The time after the drain time at which a child ends its parent.
const PARENT_MARGIN: Duration = Duration::from_secs(5);
/// The time from SIGTERM to the end.
const TERM: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    Serving,
    Draining,
    Ended,
}

/// One process.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct SimEnvoy {
    pub(super) phase: Phase,
    pub(super) epoch: u32,
    parent: Option<Id>,
    pub(super) bootstrap: String,
    /// The files that it uses.
    pub(super) files: BTreeMap<String, String>,
    counters: BTreeMap<&'static str, u64>,
    /// The files that it will read, and when.
    unread: Vec<(Instant, String)>,
    ready_at: Option<Instant>,
    pub(super) ends_at: Option<Instant>,
    dies_ready: bool,
    /// The time at which its child ends it.
    drains_until: Option<Instant>,
    /// The time before which nobody may end it.
    pub(super) may_drain_until: Option<Instant>,
    /// It ignores signals and its child.
    pub(super) frozen: bool,
    /// A child died before it was ready, and took its admin interface.
    lost_admin: bool,
    /// It started with listeners or clusters that it refuses, and has none.
    pub(super) is_deaf: bool,
}

/// All processes, and the memory that they share.
#[derive(Debug)]
pub(super) struct Envoys {
    pub(super) all: BTreeMap<Id, SimEnvoy>,
    /// The flag of a generation that starts.
    says_starting: bool,
    pub(super) fate: Option<Fate>,
    /// Until then, they read and respond to nothing.
    pub(super) busy_until: Option<Instant>,
    /// The run said that they did not confirm the last change.
    pub(super) unconfirmed: bool,
    read: Duration,
    start: Duration,
    /// `transport.drain_time`.
    drain: Duration,
}

impl Envoys {
    pub(super) fn new(set_up: &SetUp) -> Self {
        let SetUp { read, start, drain, .. } = *set_up;
        Self {
            all: BTreeMap::new(),
            says_starting: false,
            fate: None,
            busy_until: None,
            unconfirmed: false,
            read,
            start,
            drain,
        }
    }

    pub(super) fn drain_of(&self) -> Duration {
        self.drain + PARENT_MARGIN
    }

    /// Starts a process. `parent` is None for the first of a line.
    pub(super) fn begin(
        &mut self,
        id: Id,
        epoch: u32,
        disk: &SimDisk,
        now: Instant,
    ) -> Result<Result<(), std::io::Error>, Broken> {
        let fate = self.fate.take();
        if fate == Some(Fate::NoStart) {
            return Ok(Err(std::io::ErrorKind::OutOfMemory.into()));
        }
        if self.find(Phase::Starting).is_some() {
            return Err(Broken::TwoTakeovers(format!("{id:?} starts while another one does")));
        }
        let parent = if epoch == 0 { None } else { self.find(Phase::Serving) };
        if parent.is_some() {
            self.end_grandparents(now)?;
        }
        let bootstrap = disk.text(BOOTSTRAP).unwrap_or_default().to_owned();
        let dies = fate == Some(Fate::DiesEarly) || bootstrap.contains(REFUSED);
        let never = fate == Some(Fate::Hangs) || dies || (epoch > 0 && parent.is_none());
        let envoy = SimEnvoy {
            phase: Phase::Starting,
            epoch,
            parent,
            bootstrap,
            files: BTreeMap::new(),
            counters: BTreeMap::new(),
            unread: Vec::new(),
            ready_at: (!never).then(|| now + self.start),
            ends_at: dies.then(|| now + self.start / 2),
            dies_ready: fate == Some(Fate::DiesReady),
            drains_until: None,
            may_drain_until: None,
            frozen: fate == Some(Fate::Hangs),
            lost_admin: false,
            is_deaf: false,
        };
        self.says_starting = true;
        self.all.insert(id, envoy);
        Ok(Ok(()))
    }

    /// A process that starts makes its parent end its own parent.
    fn end_grandparents(&mut self, now: Instant) -> Result<(), Broken> {
        for old in self.all.values_mut().filter(|old| old.phase == Phase::Draining) {
            if old.may_drain_until.is_some_and(|until| now < until) {
                return Err(Broken::DrainCut("a takeover began while an earlier Envoy drained".to_owned()));
            }
            old.ends_at.get_or_insert(now);
        }
        Ok(())
    }

    pub(super) fn find(&self, phase: Phase) -> Option<Id> {
        self.all.iter().find(|(_, envoy)| envoy.phase == phase).map(|(id, _)| *id)
    }

    pub(super) fn serving(&self) -> Option<&SimEnvoy> {
        self.all.values().find(|envoy| envoy.phase == Phase::Serving)
    }

    pub(super) fn starts(&self) -> bool {
        self.says_starting
    }

    /// Clears the shared memory, as a new line and a takeover do before they start a process.
    pub(super) fn forget_dead_successor(&mut self) {
        self.says_starting = false;
    }

    /// Returns the process that responds to the admin interface.
    pub(super) fn admin(&self, now: Instant) -> Option<&SimEnvoy> {
        if self.find(Phase::Starting).is_some() || self.busy_until.is_some_and(|until| now < until) {
            return None;
        }
        self.serving().filter(|envoy| !envoy.lost_admin)
    }

    /// Returns the counters of the process that responds.
    pub(super) fn counters(&self, now: Instant) -> Option<String> {
        let counters = self.admin(now)?.counters.iter();
        Some(counters.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n"))
    }

    /// Tells the processes of files that were put in place.
    pub(super) fn notice(&mut self, renamed: &[String], now: Instant) {
        let at = now + self.read;
        for envoy in self.all.values_mut().filter(|envoy| matches!(envoy.phase, Phase::Serving | Phase::Draining)) {
            envoy.unread.extend(renamed.iter().filter(|path| is_watched(path)).map(|path| (at, path.clone())));
        }
    }

    /// Lets happen what is due.
    pub(super) fn happen(&mut self, disk: &SimDisk, now: Instant) -> Result<(), Broken> {
        let busy = self.busy_until.is_some_and(|until| now < until);
        let ids: Vec<Id> = self.all.keys().copied().collect();
        for id in ids {
            let Some(envoy) = self.all.get_mut(&id) else { continue };
            if !busy && !envoy.frozen {
                envoy.read_files(disk, now, self.unconfirmed)?;
            }
            let is_ready = envoy.ready_at.is_some_and(|at| at <= now) && !busy && !envoy.frozen;
            if is_ready && envoy.phase == Phase::Starting {
                self.become_ready(id, disk, now)?;
            }
            let Some(envoy) = self.all.get_mut(&id) else { continue };
            let ends = envoy.ends_at.is_some_and(|at| at <= now) && envoy.phase != Phase::Ended;
            let ended_by_child = envoy.drains_until.is_some_and(|until| until <= now) && !envoy.frozen;
            if ends || (envoy.phase == Phase::Draining && ended_by_child && self.serving().is_some()) {
                self.end(id, now);
            }
        }
        Ok(())
    }

    fn become_ready(&mut self, id: Id, disk: &SimDisk, now: Instant) -> Result<(), Broken> {
        self.says_starting = false;
        let drain = self.drain;
        let Some(envoy) = self.all.get_mut(&id) else { return Ok(()) };
        envoy.phase = Phase::Serving;
        if std::mem::take(&mut envoy.dies_ready) {
            envoy.ends_at = Some(now + Duration::from_millis(10));
        }
        let parent = envoy.parent;
        for path in disk.texts().map(|(path, _)| path.to_owned()).filter(|path| is_watched(path)) {
            envoy.read(&path, disk);
        }
        envoy.is_deaf = envoy.counters.iter().any(|(name, count)| name.ends_with("update_rejected") && *count > 0);
        if let Some(parent) = parent.and_then(|parent| self.all.get_mut(&parent))
            && parent.phase == Phase::Serving
        {
            parent.phase = Phase::Draining;
            parent.drains_until = Some(now + drain + PARENT_MARGIN);
            parent.may_drain_until = Some(now + drain);
        }
        self.all.get(&id).filter(|_| !self.unconfirmed).map_or(Ok(()), SimEnvoy::has_its_clusters)
    }

    /// Ends a process, by itself or by a signal.
    pub(super) fn end(&mut self, id: Id, now: Instant) {
        let Some(envoy) = self.all.get_mut(&id) else { return };
        let (phase, parent) = (envoy.phase, envoy.parent);
        envoy.phase = Phase::Ended;
        if phase == Phase::Starting
            && let Some(parent) = parent.and_then(|parent| self.all.get_mut(&parent))
        {
            parent.lost_admin = true;
        }
        for child in self.all.values_mut().filter(|child| child.parent == Some(id) && child.phase == Phase::Starting) {
            child.ready_at = None;
            child.ends_at.get_or_insert(now + ORPHAN);
        }
    }

    /// SIGTERM.
    pub(super) fn terminate(&mut self, id: Id, now: Instant) {
        if let Some(envoy) = self.all.get_mut(&id).filter(|envoy| !envoy.frozen) {
            envoy.ends_at.get_or_insert(now + TERM);
        }
    }
}

impl SimEnvoy {
    fn read_files(&mut self, disk: &SimDisk, now: Instant, is_excused: bool) -> Result<(), Broken> {
        while let Some(due) = self.unread.iter().position(|(at, _)| *at <= now) {
            let (_, path) = self.unread.remove(due);
            self.read(&path, disk);
            if !is_excused {
                self.has_its_clusters()?;
            }
        }
        Ok(())
    }

    fn read(&mut self, path: &str, disk: &SimDisk) {
        let (success, rejected) = match path {
            "cds.yaml" => ("cluster_manager.cds.update_success", "cluster_manager.cds.update_rejected"),
            "lds.yaml" => ("listener_manager.lds.update_success", "listener_manager.lds.update_rejected"),
            _ => ("http.edge_http.rds.routes.update_success", "http.edge_http.rds.routes.update_rejected"),
        };
        let Some(text) = disk.text(path) else { return };
        if text.contains(REFUSED) {
            *self.counters.entry(rejected).or_default() += 1;
        } else {
            *self.counters.entry(success).or_default() += 1;
            self.files.insert(path.to_owned(), text.to_owned());
            self.is_deaf &= !["cds.yaml", "lds.yaml"].iter().all(|path| self.files.contains_key(*path));
        }
    }

    /// Routes are read one after the other, and each needs its cluster.
    fn has_its_clusters(&self) -> Result<(), Broken> {
        if self.is_deaf || self.phase != Phase::Serving {
            return Ok(());
        }
        let clusters = self.files.get("cds.yaml").map(String::as_str).unwrap_or_default();
        let routes = self.files.iter().filter(|(path, _)| path.starts_with("rds/"));
        for cluster in routes.filter_map(|(_, text)| cluster_of(text)) {
            if !clusters_of(clusters).any(|one| one == cluster) {
                return Err(Broken::NoCluster(format!("the route to {cluster}, with the clusters {clusters:?}")));
            }
        }
        Ok(())
    }
}
