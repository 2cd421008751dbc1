//! CoreDNS, and a program beside Envoy.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::generation::COREFILE;
use super::disk::SimDisk;
use super::files::{REFUSED, SIDE, port_of};

/// The time from the start of CoreDNS until it responds.
const NAMES_START: Duration = Duration::from_millis(150);
/// The time from SIGTERM to its end.
const NAMES_END: Duration = Duration::from_millis(300);

/// A process of CoreDNS.
#[derive(Debug)]
pub(super) struct SimNames {
    /// The file that it uses.
    pub(super) text: String,
    pub(super) started: Instant,
    reads_at: Option<Instant>,
    pub(super) ends_at: Option<Instant>,
    pub(super) ended: bool,
    pub(super) frozen: bool,
}

impl SimNames {
    pub(super) fn start(disk: &SimDisk, now: Instant) -> Self {
        let text = disk.text(COREFILE).unwrap_or_default().to_owned();
        let ends_at = text.contains(REFUSED).then_some(now);
        Self { text, started: now, reads_at: None, ends_at, ended: false, frozen: false }
    }

    /// SIGUSR1.
    pub(super) fn reload(&mut self, at: Instant) {
        self.reads_at = Some(at);
    }

    pub(super) fn ask_to_end(&mut self, now: Instant) {
        if !self.frozen {
            self.ends_at.get_or_insert(now + NAMES_END);
        }
    }

    pub(super) fn responds_at(&self, port: u32, now: Instant) -> bool {
        !self.ended && !self.frozen && now >= self.started + NAMES_START && port_of(&self.text) == Some(port)
    }

    pub(super) fn happen(&mut self, disk: &SimDisk, now: Instant) {
        self.ended |= self.ends_at.is_some_and(|at| at <= now);
        if !self.ended && !self.frozen && self.reads_at.take_if(|at| *at <= now).is_some() {
            let text = disk.text(COREFILE).unwrap_or_default();
            if !text.contains(REFUSED) {
                text.clone_into(&mut self.text);
            }
        }
    }
}

/// A process of the program beside Envoy.
#[derive(Debug)]
pub(super) struct SimSide {
    pub(super) text: String,
    pub(super) started: Instant,
    pub(super) ends_at: Option<Instant>,
    pub(super) ended: bool,
    pub(super) frozen: bool,
}

/// All processes of the program, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Sides {
    pub(super) all: BTreeMap<u32, SimSide>,
    last: u32,
}

impl Sides {
    pub(super) fn start(&mut self, disk: &SimDisk, now: Instant) -> u32 {
        self.last += 1;
        let text = disk.text(SIDE).unwrap_or_default().to_owned();
        self.all.insert(self.last, SimSide { text, started: now, ends_at: None, ended: false, frozen: false });
        self.last
    }

    pub(super) fn get(&mut self, pid: u32) -> Option<&mut SimSide> {
        self.all.get_mut(&pid)
    }

    pub(super) fn ask_to_end(&mut self, pid: u32, at: Instant) {
        if let Some(side) = self.all.get_mut(&pid).filter(|side| !side.frozen) {
            side.ends_at.get_or_insert(at);
        }
    }

    pub(super) fn has_ended(&self, pid: u32) -> bool {
        self.all.get(&pid).is_none_or(|side| side.ended)
    }

    pub(super) fn happen(&mut self, now: Instant) {
        for side in self.all.values_mut() {
            side.ended |= side.ends_at.is_some_and(|at| at <= now);
        }
    }
}
