//! The effect of a link on a page: the time for its bytes, the time for its request rounds, and the gain of smaller
//! pages.
//!
//! The reference page has the 58 objects and 197 KB of the 2004 page that the papers measured. Pages today are larger,
//! so a link that is slow for it is slow for any page.

use std::time::Duration;

use crate::{CompressionLevel, Delta, Link, Price, Settings, units};

/// Bytes of the reference page.
const PAGE_BYTES: u64 = 197_000;
/// Objects of the reference page.
const PAGE_OBJECTS: u32 = 58;
/// Connections that a browser opens to one name over HTTP/1.1.
const CONNECTIONS_PER_NAME: u32 = 6;
/// The ratio of byte time to round time above which a page gains nothing from fewer rounds. Objects sent before a
/// request made pages 12 % faster on UMTS, at a ratio of 1.4, and 4 % slower on a cell, at 4.8.
const ROUNDS_DO_NOT_MATTER: u32 = 4;
/// The round-trip time from which merging connections over several addresses is a gain. Measured: a gain at 600 and 700
/// ms, none at 80 ms, a loss at 40 ms. Nothing in between was measured.
const LONG_RTT: Duration = Duration::from_millis(300);

/// The link's effect on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkModel {
    /// The time that the link needs for the page's bytes.
    pub(crate) bytes_time: Duration,
    /// The time that the page's requests need on one HTTP/1.1 name: six objects per round trip.
    pub(crate) rounds_time: Duration,
    /// The class of the link.
    pub class: LinkClass,
}

/// The bottleneck of a page on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkClass {
    /// The rate is the bottleneck: fewer and smaller packets help. Bytes take longer than request rounds by a factor of
    /// 4.8 and 5.2 on the measured cells, and of 1.4 on UMTS. On the slow satellites the factor is 1.0 and 0.5, and
    /// either target was as good.
    ByteBound,
    /// Round trips are the bottleneck, and are long.
    LongRoundTrips,
    /// Round trips are the bottleneck, and are short.
    ShortRoundTrips,
}

impl LinkClass {
    /// Describes the class in a few words, for `longhaul check`.
    pub fn verdict(self) -> &'static str {
        match self {
            Self::ByteBound => "pages wait for bytes",
            Self::LongRoundTrips => "pages wait for round trips",
            Self::ShortRoundTrips => "pages wait for short round trips",
        }
    }
}

impl LinkModel {
    /// Models `link`.
    pub fn of(link: &Link) -> Self {
        let bytes_time = link.down.time_for(PAGE_BYTES);
        let rounds_time = link.rtt * PAGE_OBJECTS.div_ceil(CONNECTIONS_PER_NAME);
        let class = if bytes_time > rounds_time {
            LinkClass::ByteBound
        } else if link.rtt >= LONG_RTT {
            LinkClass::LongRoundTrips
        } else {
            LinkClass::ShortRoundTrips
        };
        Self { bytes_time, rounds_time, class }
    }

    /// Returns true if a page gains from fewer request rounds, at the price of some unused bytes.
    pub fn saving_rounds_pays(&self) -> bool {
        self.bytes_time <= self.rounds_time * ROUNDS_DO_NOT_MATTER
    }

    /// Describes the link in one sentence, for `longhaul check`.
    pub fn sentence(&self) -> String {
        let bytes = units::show_duration(round_to_millis(self.bytes_time));
        let rounds = units::show_duration(round_to_millis(self.rounds_time));
        let verdict = self.class.verdict();
        format!(
            "a page of {PAGE_OBJECTS} objects and 197 kB needs {bytes} for its bytes and {rounds} for its request rounds on one HTTP/1.1 name: {verdict}"
        )
    }
}

/// Bytes that a page saves as a difference from another page of its site. The median page of 2025 has 22 kB of HTML in
/// br, and a difference takes 0.29 of that.
const DELTA_SAVES_BYTES: u64 = 15_600;
/// A gain in time that is a smaller part of a round trip is not worth the work of the processor, 70 ms a megabyte.
const LEAST_PART_OF_ROUND_TRIP: u32 = 20;

/// The gain of pages that cross the link as differences from other pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DeltaGain {
    /// The time of the link that a page saves.
    saved: Duration,
    /// True if that is worth the work.
    pays: bool,
}

impl DeltaGain {
    /// Estimates the gain on `link`.
    fn of(link: &Link) -> Self {
        let saved = link.down.time_for(DELTA_SAVES_BYTES);
        Self { saved, pays: link.price == Price::Metered || saved > link.rtt / LEAST_PART_OF_ROUND_TRIP }
    }
}

impl Link {
    /// Describes the gain of pages that cross the link as differences from other pages.
    pub fn delta_saving(&self) -> String {
        format!("they save {} of the link for a page", units::show_duration(round_to_millis(DeltaGain::of(self).saved)))
    }
}

impl Settings {
    /// Returns true if pages cross the link of a pair as differences from other pages of their sites.
    pub fn sends_deltas(&self) -> bool {
        let pays = match self.page.delta {
            Delta::On => true,
            Delta::Off => false,
            Delta::Auto => DeltaGain::of(&self.link).pays,
        };
        // A first page is decompressed to be kept, and must be compressed again.
        let compresses = [self.compress.brotli, self.compress.gzip].iter().any(|level| *level != CompressionLevel::Off);
        pays && compresses && !self.role.is_alone()
    }
}

fn round_to_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Price;
    use crate::units::Rate;

    fn model(rtt_ms: u64, down_kbit: u64) -> LinkModel {
        let rate = |kbit| Rate { bits_per_second: kbit * 1000 };
        LinkModel::of(&Link::of(Duration::from_millis(rtt_ms), rate(down_kbit), rate(down_kbit)))
    }

    fn class(rtt_ms: u64, down_kbit: u64) -> LinkClass {
        model(rtt_ms, down_kbit).class
    }

    #[test]
    fn the_measured_links_fall_into_the_classes_their_measurements_showed() {
        assert_eq!(class(600, 20_000), LinkClass::LongRoundTrips, "geo");
        assert_eq!(class(700, 2_000), LinkClass::LongRoundTrips, "maritime");
        assert_eq!(class(80, 8_000), LinkClass::ShortRoundTrips, "rural LTE");
        assert_eq!(class(40, 100_000), LinkClass::ShortRoundTrips, "LEO");
        assert_eq!(class(400, 78), LinkClass::ByteBound, "CDMA average");
        assert_eq!(class(600, 56), LinkClass::ByteBound, "CDMA congested");
        assert_eq!(class(300, 384), LinkClass::ByteBound, "UMTS");
        assert_eq!(class(600, 500), LinkClass::LongRoundTrips, "broadband satellite of 2005");
    }

    #[test]
    fn fewer_rounds_pay_where_they_were_measured_to_and_not_where_bytes_take_all_the_time() {
        assert!(model(600, 20_000).saving_rounds_pays(), "geo");
        assert!(model(300, 384).saving_rounds_pays(), "UMTS");
        assert!(!model(400, 78).saving_rounds_pays(), "CDMA average");
        assert!(!model(600, 56).saving_rounds_pays(), "CDMA congested");
    }

    #[test]
    fn deltas_pay_where_bytes_take_time_or_money() {
        let link = |rtt_ms, kbit: u64, price| {
            let rate = Rate { bits_per_second: kbit * 1000 };
            Link { price, ..Link::of(Duration::from_millis(rtt_ms), rate, rate) }
        };
        for (rtt_ms, kbit, pays) in
            [(600, 20_000, false), (40, 100_000, false), (80, 8_000, true), (700, 2_000, true), (600, 56, true)]
        {
            assert_eq!(DeltaGain::of(&link(rtt_ms, kbit, Price::Free)).pays, pays, "{rtt_ms} ms, {kbit} kbit/s");
            assert!(DeltaGain::of(&link(rtt_ms, kbit, Price::Metered)).pays);
        }
        assert_eq!(link(700, 2_000, Price::Free).delta_saving(), "they save 62ms of the link for a page");
    }
}
