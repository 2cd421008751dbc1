//! Measures the parts of a request's way while a run serves, and sums the use of the link.

use std::net::IpAddr;
use std::time::Duration;

use longhaul_config::Settings;

use super::hour::Hour;
use super::measured::{CostReport, Measured};
use super::reading::Reading;
use super::sampler::{Moment, Sampler};
use crate::measure::{Connection, Watched};

/// The figures of the last minute, and the sums of the last hour and of today.
#[derive(Debug)]
pub struct Meter {
    hour: Hour,
    watched: Watched,
    clients: Option<Watched>,
    sampler: Sampler,
}

impl Meter {
    /// Begins without figures. The sums of earlier runs are those of [`Self::sums`].
    #[must_use]
    pub fn of(settings: &Settings, sums: Option<&[u8]>) -> Self {
        Self {
            hour: sums.and_then(|text| serde_json::from_slice(text).ok()).unwrap_or_default(),
            watched: Watched::of(settings),
            clients: Watched::clients_of(settings),
            sampler: Sampler::new(settings.role.is_alone()),
        }
    }

    /// Measures as changed settings say from now on. The last minute counts no more if its connections are others.
    pub fn follow(&mut self, settings: &Settings) {
        let (watched, clients) = (Watched::of(settings), Watched::clients_of(settings));
        if (&watched, &clients) != (&self.watched, &self.clients) {
            self.sampler = Sampler::new(settings.role.is_alone());
            (self.watched, self.clients) = (watched, clients);
        }
    }

    /// Adds a reading at `now`, in seconds since 1970, and at the time `at` since the start.
    pub fn add(&mut self, now: u64, at: Duration, reading: Reading) {
        self.hour.add(now, &reading);
        self.sampler.read(at, reading);
    }

    /// Adds all connections of this host at the time `at` since the start. `local` holds the addresses of the host.
    pub fn hear(&mut self, at: Duration, connections: &[Connection], local: &[IpAddr]) {
        let of = |watched: &Watched| -> Vec<Connection> {
            connections.iter().filter(|one| watched.includes(&one.id, local)).copied().collect()
        };
        let (link, clients) = (of(&self.watched), self.clients.as_ref().map(of).unwrap_or_default());
        self.sampler.hear(at, Moment { link: &link, clients: &clients });
    }

    /// Returns the figures of the last minute.
    #[must_use]
    pub fn measured(&self) -> Measured {
        self.sampler.measured()
    }

    /// Returns what a run reports.
    #[must_use]
    pub fn report(&self) -> CostReport {
        CostReport {
            measured: self.measured(),
            hour: self.hour.minutes().to_vec(),
            today: self.hour.today(),
            crossed: self.hour.crossed(),
        }
    }

    /// Returns the sums for the next run.
    #[must_use]
    pub fn sums(&self) -> Vec<u8> {
        serde_json::to_vec(&self.hour).unwrap_or_default()
    }
}
