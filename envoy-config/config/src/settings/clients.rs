//! `clients`: groups of those who share the link.

use ipnet::IpNet;

use crate::units::Bytes;

/// A group of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientGroup {
    /// Its name. No two groups have the same.
    pub name: String,
    /// Its clients.
    pub ranges: Vec<IpNet>,
    /// The weight of each of its clients, from 1 to 100. A client in no group has 1.
    pub weight: u32,
    /// The bytes that all of them have together. None: `off`.
    pub quota: Option<Quota>,
}

impl ClientGroup {
    /// The name by which clients in no group are shown. No group has it.
    pub const OTHERS: &str = "others";
}

/// Bytes for a time. Beyond them, the clients of a group have a tenth of their weight (`clients.beyond`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The bytes, of both directions together.
    pub size: Bytes,
    /// The time.
    pub per: Period,
}

/// A time that begins at midnight in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Period {
    /// A day.
    Day,
    /// A week, from Monday on.
    Week,
    /// A month of the calendar.
    Month,
}

impl Period {
    /// Every period with its word in the file.
    pub(crate) const ALL: [(&str, Self); 3] = [("day", Self::Day), ("week", Self::Week), ("month", Self::Month)];

    /// Returns the word in the file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }
}
