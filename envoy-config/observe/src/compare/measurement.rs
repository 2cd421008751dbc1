//! Reads the kernel's packet log into a comparison.

use std::io;
use std::time::{Duration, Instant};

use longhaul_config::share::Share;

use super::Compared;
use super::connections::Comparison;
use super::packet_log::PacketLog;
use super::segment::Segment;

/// The measurement of one share of the clients.
#[derive(Debug)]
pub struct Measurement {
    share: Share,
    /// The longest wait for a packet.
    patience: Duration,
    start: Instant,
    comparison: Comparison,
    log: Option<PacketLog>,
    fault: Option<String>,
}

/// The reason why nothing is measured, with its remedy.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub struct Fault {
    words: String,
    /// False for the fault of the last reading, too.
    pub is_new: bool,
}

impl Measurement {
    /// Begins without packets. A reading waits for one no longer than `patience`.
    pub fn of(share: Share, patience: Duration) -> Self {
        Self { share, patience, start: Instant::now(), comparison: Comparison::default(), log: None, fault: None }
    }

    /// Reads the packets that came, and opens the log first if it is closed.
    ///
    /// # Errors
    /// The log cannot be read. It is closed then.
    pub fn read(&mut self) -> Result<(), Fault> {
        self.read_log().map_err(|error| {
            let words = in_words(&error);
            let is_new = self.fault.replace(words.clone()).as_ref() != Some(&words);
            Fault { words, is_new }
        })
    }

    fn read_log(&mut self) -> io::Result<()> {
        let log = match self.log.take() {
            Some(log) => log,
            None => PacketLog::open(self.patience)?,
        };
        self.fault = None;
        let copies = log.read()?;
        self.log = Some(log);
        let at = self.start.elapsed();
        for copy in copies {
            if let Some(segment) = Segment::read(&copy.packet) {
                self.comparison.add(at, copy.group, &segment);
            }
        }
        Ok(())
    }

    /// Returns the figures of both groups.
    pub fn compared(&self) -> Compared {
        Compared::of(self.share.percent, self.fault.clone(), &self.comparison)
    }
}

/// Returns the error of the packet log with its remedy.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "reading the packets of clients needs CAP_NET_ADMIN. Under systemd, run `systemctl edit longhaul`, add `[Service]`, `AmbientCapabilities=CAP_NET_ADMIN` and `CapabilityBoundingSet=CAP_NET_ADMIN`, and restart the service".to_owned(),
        io::ErrorKind::ResourceBusy => format!("another process reads the kernel's packet log {}", Share::NFLOG_GROUP),
        _ => format!("the kernel's packet log {} cannot be read: {error}", Share::NFLOG_GROUP),
    }
}
