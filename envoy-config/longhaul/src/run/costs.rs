//! Measures the parts of a request's way while a run serves, for `longhaul status --why`, and sums the use of the link.
//!
//! It takes the counters of a state that the watch for problems has read anyway, and the kernel's figures of connections. It
//! sends nothing. The sums of the last hour and of today outlive restarts in a file, as the accounts of groups do.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use longhaul_config::Settings;
use longhaul_observe::measure::Kernel;
use longhaul_observe::status::Status;
use longhaul_observe::why::{CostReport, Measured, Meter};

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
    start: Instant,
    meter: Meter,
    kernel: Option<Kernel>,
    /// False if the kernel gives no figures. The reason has been said.
    hears: bool,
    states: u32,
}

impl Costs {
    /// Begins without figures. The sums of earlier runs are in `kept`.
    pub(super) fn open(settings: &Settings, kept: &Path) -> Self {
        let kept = kept.join(HOUR);
        let meter = Meter::of(settings, fs::read(&kept).ok().as_deref());
        Self { kept, start: Instant::now(), meter, kernel: None, hears: true, states: 0 }
    }

    /// Measures as changed settings say from now on.
    pub(super) fn follow(&mut self, settings: &Settings) {
        self.meter.follow(settings);
    }

    /// Adds a state at `now`, in seconds since 1970. Returns a report from time to time.
    pub(super) fn add(&mut self, now: u64, status: &Status) -> Option<CostReport> {
        if let Some(reading) = status.reading() {
            self.meter.add(now, self.start.elapsed(), reading);
        }
        self.states += 1;
        if self.states.is_multiple_of(HEARD) {
            self.hear();
        }
        // The first report has the sums of earlier runs.
        if self.states % STATES != 1 {
            return None;
        }
        // A full disk costs the last hour after a restart.
        let _ = replaced_file::replace(&self.kept, &self.meter.sums(), 0o600);
        Some(self.meter.report())
    }

    /// Returns the figures of the last minute.
    pub(super) fn measured(&self) -> Measured {
        self.meter.measured()
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
            Ok(connections) => self.meter.hear(self.start.elapsed(), &connections, &local_addresses()),
            Err(error) => {
                self.hears = false;
                let words = "`longhaul status --why` knows neither the link nor clients: the kernel gives no figures";
                say(Level::Info, &format!("{words}: {error}"));
            }
        }
    }
}
