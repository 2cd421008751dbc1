//! The rate of names that a ground sends before they are asked.

use longhaul_config::{Link, Price};

/// The part of the link for popular names, one of so many. A page takes more than the rest of the link leaves it.
const PART: u64 = 50;
/// The most that is of use, in bytes a second: all popular names take about 200 kB.
const MOST: u64 = 16 << 10;

/// Returns what a ground sends of popular names while a remote asks nothing, in bytes a second. On a metered link it is 0,
/// because most of them are never used.
#[must_use]
pub fn names_ahead(link: &Link) -> u64 {
    match link.price {
        Price::Metered => 0,
        Price::Free => (link.down.bits_per_second / 8 / PART).min(MOST),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use longhaul_config::Rate;

    use super::*;

    #[test]
    fn popular_names_take_a_fiftieth_of_a_free_link() {
        let link = |bits| {
            let rate = Rate { bits_per_second: bits };
            Link::of(Duration::from_millis(600), rate, rate)
        };
        assert_eq!(names_ahead(&link(2_000_000)), 5_000);
        assert_eq!(names_ahead(&link(1_000_000_000)), 16 << 10);
        assert_eq!(names_ahead(&Link { price: Price::Metered, ..link(2_000_000) }), 0);
    }
}
