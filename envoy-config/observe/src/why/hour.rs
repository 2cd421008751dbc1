//! The use of the link in the last hour, and the savings of today. Both outlive restarts, as the accounts of groups do.

use serde::{Deserialize, Serialize};

use super::reading::{Reading, Saved, grown};

/// The minutes that are remembered.
const MINUTES: u64 = 60;
const MINUTE_S: u64 = 60;
const DAY_S: u64 = 86_400;

/// Bytes over the link since the start of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Crossed {
    /// To clients.
    pub down: u64,
    /// From clients.
    pub up: u64,
}

impl Crossed {
    pub(crate) fn add(&mut self, down: u64, up: u64) {
        *self = Self { down: self.down.saturating_add(down), up: self.up.saturating_add(up) };
    }

    /// Returns what is here and not in `other`.
    pub(crate) fn beyond(self, other: Self) -> Self {
        Self { down: self.down.saturating_sub(other.down), up: self.up.saturating_sub(other.up) }
    }
}

/// The use of the link in a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Minute {
    /// The minute, in minutes since 1970.
    pub at: u64,
    /// Bytes to clients.
    pub down: u64,
    /// Bytes from clients.
    pub up: u64,
}

/// The savings of a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Today {
    /// The day, in days since 1970.
    pub day: u64,
    /// The savings since midnight (UTC).
    #[serde(flatten)]
    pub saved: Saved,
}

/// Sums of the last hour and of today.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hour {
    minutes: Vec<Minute>,
    today: Today,
    /// The use of the link since the first reading.
    #[serde(skip)]
    crossed: Crossed,
    /// The last reading. Another run may have another Envoy.
    #[serde(skip)]
    before: Option<Reading>,
}

impl Hour {
    /// Adds a reading at `now`, in seconds since 1970. A clock that was set back begins a new hour.
    pub(crate) fn add(&mut self, now: u64, reading: &Reading) {
        self.tend(now);
        let Some(before) = self.before.replace(reading.clone()) else { return };
        let saved = reading.saved.since(&before.saved);
        let today = &mut self.today.saved;
        today.round_trips = today.round_trips.saturating_add(saved.round_trips);
        today.bytes = today.bytes.saturating_add(saved.bytes);
        today.from_cache = today.from_cache.saturating_add(saved.from_cache);
        let (down, up) = (grown(reading.down, before.down), grown(reading.up, before.up));
        self.crossed.add(down, up);
        if let Some(minute) = self.minutes.last_mut() {
            minute.down = minute.down.saturating_add(down);
            minute.up = minute.up.saturating_add(up);
        }
    }

    fn tend(&mut self, now: u64) {
        let (minute, day) = (now / MINUTE_S, now / DAY_S);
        if self.today.day != day {
            self.today = Today { day, saved: Saved::default() };
        }
        self.minutes.retain(|one| one.at <= minute && one.at + MINUTES > minute);
        if self.minutes.last().is_none_or(|last| last.at != minute) {
            self.minutes.push(Minute { at: minute, ..Minute::default() });
        }
    }

    /// Returns the minutes in which this box ran.
    #[must_use]
    pub(crate) fn minutes(&self) -> &[Minute] {
        &self.minutes
    }

    /// Returns the use of the link since the first reading.
    #[must_use]
    pub(crate) fn crossed(&self) -> Crossed {
        self.crossed
    }

    /// Returns the savings of today.
    #[must_use]
    pub(crate) fn today(&self) -> Today {
        self.today
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(down: u64, round_trips: u64) -> Reading {
        Reading { down, saved: Saved { round_trips, ..Saved::default() }, ..Reading::default() }
    }

    #[test]
    fn bytes_count_in_their_minute_and_an_hour_is_remembered() {
        let mut hour = Hour::default();
        for minute in 0..200 {
            hour.add(minute * 60, &reading(minute * 100, 0));
            hour.add(minute * 60 + 30, &reading(minute * 100 + 10, 0));
        }
        assert_eq!(hour.minutes().len(), 60);
        assert!(hour.minutes().iter().all(|minute| minute.down == 100), "{:?}", hour.minutes());
        assert_eq!(hour.minutes().last().unwrap().at, 199);
    }

    #[test]
    fn another_envoy_counts_from_zero_and_another_run_goes_on() {
        let mut hour = Hour::default();
        hour.add(0, &reading(1000, 5));
        hour.add(1, &reading(1500, 9));
        hour.add(2, &reading(20, 1));
        assert_eq!((hour.minutes()[0].down, hour.today().saved.round_trips), (520, 5));
        let text = serde_json::to_string(&hour).unwrap();
        let mut next: Hour = serde_json::from_str(&text).unwrap();
        next.add(3, &reading(7, 0));
        assert_eq!(
            (next.minutes()[0].down, next.today().saved.round_trips),
            (520, 5),
            "nobody knows what came between"
        );
    }

    #[test]
    fn a_new_day_saves_anew_and_a_clock_set_back_forgets_the_future() {
        let mut hour = Hour::default();
        hour.add(DAY_S - 1, &reading(0, 0));
        hour.add(DAY_S - 1, &reading(0, 4));
        assert_eq!(hour.today().saved.round_trips, 4);
        hour.add(DAY_S, &reading(0, 6));
        assert_eq!((hour.today().day, hour.today().saved.round_trips), (1, 2));
        hour.add(60, &reading(0, 6));
        assert_eq!(hour.minutes().iter().map(|minute| minute.at).collect::<Vec<_>>(), [1]);
    }
}
