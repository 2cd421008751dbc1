//! Measures the parts of a request's way while a run serves, for `longhaul status --why`, and sums the use of the link.
//!
//! It takes the counters of a state that the watch for problems has read anyway, and the kernel's figures of connections. It
//! sends nothing. The sums of the last hour and of today outlive restarts in a file, as the accounts of groups do.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use longhaul_config::Settings;
use longhaul_observe::measure::{Connection, Kernel, Watched};
use longhaul_observe::status::Status;
use longhaul_observe::why::{CostReport, Hour, Measured, Moment, Sampler};

use super::locate::local_addresses;
use super::log::Level;
use super::say;
use crate::replaced_file;

/// The file of the sums, in the folder that outlives restarts.
const HOUR: &str = "hour.json";
/// The interval of reports and of writing, in states. A report changes `run.json`.
const STATES: u32 = 5;
/// The interval of readings of the kernel, in states. A box may have tens of thousands of connections.
const HEARD: u32 = 2;

/// The figures of a run.
pub(super) struct Costs {
    kept: PathBuf,
    hour: Hour,
    start: Instant,
    watched: Watched,
    clients: Option<Watched>,
    sampler: Sampler,
    kernel: Option<Kernel>,
    /// False if the kernel gives no figures. The reason has been said.
    hears: bool,
    states: u32,
}

impl Costs {
    /// Begins without figures. The sums of earlier runs are in `kept`.
    pub(super) fn open(settings: &Settings, kept: &Path) -> Self {
        let kept = kept.join(HOUR);
        Self {
            hour: fs::read(&kept).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default(),
            kept,
            start: Instant::now(),
            watched: Watched::of(settings),
            clients: Watched::clients_of(settings),
            sampler: Sampler::new(settings.role.is_alone()),
            kernel: None,
            hears: true,
            states: 0,
        }
    }

    /// Measures as changed settings say from now on. The last minute counts no more if its connections are others.
    pub(super) fn follow(&mut self, settings: &Settings) {
        let (watched, clients) = (Watched::of(settings), Watched::clients_of(settings));
        if (&watched, &clients) != (&self.watched, &self.clients) {
            self.sampler = Sampler::new(settings.role.is_alone());
            (self.watched, self.clients) = (watched, clients);
        }
    }

    /// Adds a state at `now`, in seconds since 1970. Returns a report from time to time.
    pub(super) fn add(&mut self, now: u64, status: &Status) -> Option<CostReport> {
        let at = self.start.elapsed();
        if let Some(reading) = status.reading() {
            self.hour.add(now, &reading);
            self.sampler.read(at, reading);
        }
        self.states += 1;
        if self.states.is_multiple_of(HEARD) {
            self.hear();
        }
        // The first report has the sums of earlier runs.
        if self.states % STATES != 1 {
            return None;
        }
        self.save();
        let measured = self.sampler.measured();
        Some(CostReport { measured, hour: self.hour.minutes().to_vec(), today: self.hour.today() })
    }

    /// Returns the figures of the last minute.
    pub(super) fn measured(&self) -> Measured {
        self.sampler.measured()
    }

    fn hear(&mut self) {
        if !self.hears {
            return;
        }
        let connections = match self.kernel.take().map_or_else(Kernel::open, Ok) {
            Ok(kernel) => {
                let connections = kernel.connections();
                self.kernel = Some(kernel);
                connections
            }
            Err(error) => Err(error),
        };
        match connections {
            Ok(connections) => self.heard(&connections, &local_addresses()),
            Err(error) => {
                self.hears = false;
                let words = "`longhaul status --why` knows neither the link nor clients: the kernel gives no figures";
                say(Level::Info, &format!("{words}: {error}"));
            }
        }
    }

    fn heard(&mut self, connections: &[Connection], local: &[IpAddr]) {
        let of = |watched: &Watched| -> Vec<Connection> {
            connections.iter().filter(|one| watched.includes(&one.id, local)).copied().collect()
        };
        let (link, clients) = (of(&self.watched), self.clients.as_ref().map(of).unwrap_or_default());
        self.sampler.hear(self.start.elapsed(), Moment { link: &link, clients: &clients });
    }

    /// Writes the sums. A full disk costs the last hour after a restart.
    fn save(&self) {
        if let Ok(text) = serde_json::to_vec(&self.hour) {
            let _ = replaced_file::replace(&self.kept, &text, 0o600);
        }
    }
}
