//! The use of the link by a group, and whether it is beyond its quota.

use longhaul_config::{ClientGroup, Period};
use serde::{Deserialize, Serialize};

use super::calendar::number;

/// Time is counted in pieces of so many seconds: those in which a group moved bytes.
const PIECE_S: u64 = 60;
/// A box without a clock wakes up in the past. Its counts go on then, unless they are of a future beyond these periods.
const AHEAD: u64 = 60;

/// The use of the link by one group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Account {
    day: Use,
    week: Use,
    month: Use,
    /// The last minute in which bytes moved.
    minute: u64,
    /// The sums since the start of the run, for counters that never fall but then.
    #[serde(skip)]
    since_start: Use,
}

/// Bytes and time of one day, week or month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Use {
    number: u64,
    down: u64,
    up: u64,
    seconds: u64,
}

impl Use {
    fn add(&mut self, down: u64, up: u64, seconds: u64) {
        self.down = self.down.saturating_add(down);
        self.up = self.up.saturating_add(up);
        self.seconds = self.seconds.saturating_add(seconds);
    }

    /// Begins again if the period has turned.
    fn turn(&mut self, now: u64) {
        if now > self.number || now + AHEAD < self.number {
            *self = Self { number: now, ..Self::default() };
        }
    }
}

impl Account {
    /// Adds bytes that moved at a time, in seconds since 1970.
    pub(super) fn add(&mut self, down: u64, up: u64, at_s: u64) {
        self.turn(at_s);
        if down == 0 && up == 0 {
            return;
        }
        let minute = at_s / PIECE_S;
        let seconds = if minute == self.minute { 0 } else { PIECE_S };
        self.minute = minute;
        for of in [&mut self.day, &mut self.week, &mut self.month, &mut self.since_start] {
            of.add(down, up, seconds);
        }
    }

    /// Begins each period again that has turned.
    pub(super) fn turn(&mut self, at_s: u64) {
        for (period, of) in
            [(Period::Day, &mut self.day), (Period::Week, &mut self.week), (Period::Month, &mut self.month)]
        {
            of.turn(number(period, at_s));
        }
    }

    /// Returns the bytes of a period so far.
    fn of(&self, period: Period) -> Use {
        match period {
            Period::Day => self.day,
            Period::Week => self.week,
            Period::Month => self.month,
        }
    }

    /// Returns true if the group has used its quota up.
    pub(super) fn is_beyond(&self, group: &ClientGroup) -> bool {
        group.quota.is_some_and(|quota| {
            let used = self.of(quota.per);
            used.down.saturating_add(used.up) >= quota.size.0
        })
    }

    /// Returns the account for `longhaul status`. None for `group`: the clients of no group.
    pub(super) fn report(&self, group: Option<&ClientGroup>) -> GroupReport {
        let quota = group.and_then(|group| group.quota);
        let used = quota.map(|quota| self.of(quota.per));
        GroupReport {
            name: group.map_or(ClientGroup::OTHERS, |group| &group.name).to_owned(),
            weight: Some(group.map_or(1, |group| group.weight)),
            today: Sum::of(self.day),
            this_month: Sum::of(self.month),
            since_start: Sum::of(self.since_start),
            quota: quota.map(|quota| QuotaReport {
                bytes: quota.size.0,
                per: quota.per.as_str().to_owned(),
                used: used.map_or(0, |used| used.down.saturating_add(used.up)),
                slow: group.is_some_and(|group| self.is_beyond(group)),
            }),
        }
    }

    /// Returns the account of bytes that no client has.
    pub(super) fn report_of_no_client(&self) -> GroupReport {
        GroupReport { name: GroupReport::NO_CLIENT.to_owned(), weight: None, ..self.report(None) }
    }
}

/// The use of the link by one group, for `longhaul status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReport {
    /// The name of the group, `others`, or [`Self::NO_CLIENT`].
    pub name: String,
    /// The weight of each client, while the group is within its quota. None: there is no client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<u32>,
    /// Since midnight in UTC.
    pub(crate) today: Sum,
    /// Since the first of the month.
    pub(crate) this_month: Sum,
    /// Since the start of the run, for metrics.
    pub since_start: Sum,
    /// None: the group has no quota.
    pub quota: Option<QuotaReport>,
}

impl GroupReport {
    /// The name of the bytes that no client has. A group's name has no space.
    pub(crate) const NO_CLIENT: &str = "no client";
}

/// Bytes and time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// The bytes to clients.
    pub down: u64,
    /// The bytes from clients.
    pub up: u64,
    /// The minutes in which bytes moved, in seconds.
    pub seconds: u64,
}

impl Sum {
    fn of(used: Use) -> Self {
        Self { down: used.down, up: used.up, seconds: used.seconds }
    }
}

/// The state of a quota.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaReport {
    /// The bytes that the group has.
    pub bytes: u64,
    /// `day`, `week` or `month`.
    pub(crate) per: String,
    /// The bytes of the present one, in both directions.
    pub used: u64,
    /// True if they are used up, and each client has a tenth of its weight.
    pub slow: bool,
}

#[cfg(test)]
mod tests {
    use longhaul_config::{Bytes, Quota};

    use super::*;

    const NOON: u64 = 20_000 * 86_400 + 43_200;

    fn crew(size: u64, per: Period) -> ClientGroup {
        let quota = Some(Quota { size: Bytes(size), per });
        ClientGroup { name: "crew".to_owned(), ranges: Vec::new(), weight: 1, quota }
    }

    #[test]
    fn a_quota_counts_both_directions_and_ends_with_its_period() {
        let (daily, monthly) = (crew(1000, Period::Day), crew(1000, Period::Month));
        let mut account = Account::default();
        account.add(600, 399, NOON);
        assert!(!account.is_beyond(&daily));
        account.add(0, 1, NOON);
        assert!(account.is_beyond(&daily) && account.is_beyond(&monthly));
        assert!(!account.is_beyond(&ClientGroup { quota: None, ..daily.clone() }));
        account.turn(NOON + 86_400);
        assert!(!account.is_beyond(&daily) && account.is_beyond(&monthly));
        account.turn(NOON + 31 * 86_400);
        assert!(!account.is_beyond(&monthly));
        assert_eq!(account.report(Some(&daily)).since_start, Sum { down: 600, up: 400, seconds: 60 });
    }

    #[test]
    fn a_clock_of_the_past_gives_no_second_quota_and_one_of_the_future_takes_none_for_ever() {
        let daily = crew(1000, Period::Day);
        let mut account = Account::default();
        account.add(2000, 0, NOON);
        account.turn(NOON - 5 * 86_400);
        assert!(account.is_beyond(&daily), "a box without a clock woke up");
        account.add(2000, 0, NOON + 10_000 * 86_400);
        account.turn(NOON);
        assert!(!account.is_beyond(&daily));
    }

    #[test]
    fn time_is_the_minutes_in_which_bytes_moved() {
        let mut account = Account::default();
        for (bytes, at) in [(1, 0), (1, 59), (0, 60), (1, 150), (1, 179)] {
            account.add(bytes, 0, NOON + at);
        }
        assert_eq!(account.report(None).today, Sum { down: 4, up: 0, seconds: 120 });
    }
}
