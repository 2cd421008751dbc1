//! The share of clients that `compare` leaves alone, and the group of the same size that it is compared with.
//!
//! A hash of the client's address chooses both groups, so a client stays in its group. The packet rules of `longhaul
//! host` and the DNS plugin compute the same hash.

use std::ops::Range;

/// The seed of the hash. Packet rules and DNS need the same one.
pub const SEED: u32 = 0x104a;
/// The number of values of the hash. One value stands for one percent of the clients.
pub const BUCKETS: u8 = 100;

/// A share of the clients in percent, at most half of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    percent: u8,
}

impl Share {
    /// The smallest share in percent.
    pub(crate) const LEAST: u8 = 1;
    /// The largest share in percent. The second group has the same size.
    pub(crate) const MOST: u8 = BUCKETS / 2;

    /// Parses a share such as `5%`. Returns None for anything else and beyond the bounds.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let percent = text.strip_suffix('%')?.trim_end().parse().ok()?;
        (Self::LEAST..=Self::MOST).contains(&percent).then_some(Self { percent })
    }

    /// Returns the share in percent.
    #[must_use]
    pub fn percent(self) -> u8 {
        self.percent
    }

    /// Returns the hashes of clients that pass untouched.
    #[must_use]
    pub fn direct(self) -> Range<u8> {
        0..self.percent
    }

    /// Returns the hashes of clients that Longhaul serves and that are measured beside the others.
    #[must_use]
    pub fn accelerated(self) -> Range<u8> {
        self.percent..2 * self.percent
    }
}

/// The number of the kernel's packet log (`nfnetlink_log`) for the copies.
pub const NFLOG_GROUP: u16 = 4170;

/// A group of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Clients whose packets pass untouched.
    Direct,
    /// Clients that Longhaul serves, as many as in the other group.
    Accelerated,
}

impl Group {
    /// Returns the prefix by which the packet rules mark the copies of the group.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Direct => "longhaul-direct",
            Self::Accelerated => "longhaul-accelerated",
        }
    }

    /// Returns the group whose copies have this prefix.
    #[must_use]
    pub fn of_prefix(prefix: &[u8]) -> Option<Self> {
        [Self::Direct, Self::Accelerated].into_iter().find(|group| group.prefix().as_bytes() == prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_a_percent_sign_and_leaves_room_for_a_second_group() {
        let percent = |text| Share::parse(text).map(Share::percent);
        assert_eq!((percent("1%"), percent("5 %"), percent("50%")), (Some(1), Some(5), Some(50)));
        for wrong in ["", "%", "5", "0%", "51%", "-1%", "2.5%", "300%", "5%%"] {
            assert_eq!(percent(wrong), None, "{wrong}");
        }
        let most = Share::parse("50%").unwrap();
        assert_eq!((most.direct(), most.accelerated()), (0..50, 50..BUCKETS));
    }
}
