//! The share of clients that `compare` leaves alone, and the group of the same size that it is compared with.
//!
//! A hash of the client's address chooses both groups, so a client stays in its group. The packet rules of `longhaul
//! host` and the DNS plugin compute the same hash.

use std::ops::Range;

/// A share of the clients in percent, at most half of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The percents, from 1 to 50.
    pub percent: u8,
}

impl Share {
    /// The seed of the hash. Packet rules and DNS need the same one.
    pub const SEED: u32 = 0x104a;
    /// The number of values of the hash. One value stands for one percent of the clients.
    pub const BUCKETS: u8 = 100;
    /// The number of the kernel's packet log (`nfnetlink_log`) for the copies.
    pub const NFLOG_GROUP: u16 = 4170;
    /// The smallest share in percent.
    pub(crate) const LEAST: u8 = 1;
    /// The largest share in percent. The second group has the same size.
    pub(crate) const MOST: u8 = Self::BUCKETS / 2;

    /// Parses a share such as `5%`. Returns None for anything else and beyond the bounds.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let percent = text.strip_suffix('%')?.trim_end().parse().ok()?;
        (Self::LEAST..=Self::MOST).contains(&percent).then_some(Self { percent })
    }

    /// Returns the hashes of the clients of a group.
    #[must_use]
    pub fn hashes(self, group: Group) -> Range<u8> {
        match group {
            Group::Direct => 0..self.percent,
            Group::Accelerated => self.percent..2 * self.percent,
        }
    }
}

/// A group of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Clients whose packets pass untouched.
    Direct,
    /// Clients that Longhaul serves, as many as in the other group.
    Accelerated,
}

impl Group {
    /// Both groups.
    pub const BOTH: [Self; 2] = [Self::Direct, Self::Accelerated];

    /// Returns the prefix by which the packet rules mark the copies of the group.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Direct => "longhaul-direct",
            Self::Accelerated => "longhaul-accelerated",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_a_percent_sign_and_leaves_room_for_a_second_group() {
        let percent = |text| Share::parse(text).map(|share| share.percent);
        assert_eq!((percent("1%"), percent("5 %"), percent("50%")), (Some(1), Some(5), Some(50)));
        for wrong in ["", "%", "5", "0%", "51%", "-1%", "2.5%", "300%", "5%%"] {
            assert_eq!(percent(wrong), None, "{wrong}");
        }
        let most = Share::parse("50%").unwrap();
        assert_eq!((most.hashes(Group::Direct), most.hashes(Group::Accelerated)), (0..50, 50..Share::BUCKETS));
    }
}
