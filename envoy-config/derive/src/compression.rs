//! The levels of the compressors, by the rate of the link.
//!
//! A higher level saves bytes, which the link carries, and costs processor time. On a slow link the time of the bytes is
//! long, so a high level is cheaper. On a fat link the text of a page takes a small part of a round trip whatever the
//! level, so only the processor's time counts. On a metered link only the bytes count.

use std::fmt::Write as _;
use std::time::Duration;

use longhaul_config::{Compress, CompressionLevel, Link, Price, Role, show_duration};

use super::value::{Origin, Row};

/// A level, its result and its cost.
struct Level {
    number: u8,
    /// Output per 10,000 bytes of input.
    output: u64,
    /// Input that one core compresses, in MB/s.
    speed: u64,
}

const fn level(number: u8, output: u64, speed: u64) -> Level {
    Level { number, output, speed }
}

/// A content encoding with the levels that may be chosen for it.
struct Encoding {
    /// The key of the level, and the name of its row.
    key: &'static str,
    name: &'static str,
    /// The level that the others are compared with. A lower level must not delay a page noticeably.
    reference: u8,
    levels: &'static [Level],
}

/// Measured in Envoy 1.40 with its own libraries, on 60 pages of 7.9 MB together: window 1 MiB (brotli) and 32 KiB (gzip),
/// buffers of 32 KiB, one core. The time of the same Envoy without a compressor is subtracted. Its gzip is zlib-ng. Brotli 7
/// to 9 need 10 to 34 MiB of memory for each response, brotli 5 needs 3 MiB. They save at most 1 % of the bytes, so nothing
/// above 6 is chosen. Brotli 0 is no faster than 1.
const BROTLI: Encoding = Encoding {
    key: "compress.br",
    name: "br",
    reference: 5,
    levels: &[
        level(1, 2655, 177),
        level(2, 2047, 119),
        level(3, 2002, 115),
        level(4, 1919, 71),
        level(5, 1789, 51),
        level(6, 1774, 44),
    ],
};

/// Measured like [`BROTLI`]. Levels above 6 save less than 1 %.
const GZIP: Encoding = Encoding {
    key: "compress.gzip",
    name: "gzip",
    reference: 6,
    levels: &[
        level(1, 2788, 252),
        level(2, 2246, 156),
        level(3, 2105, 120),
        level(4, 2045, 103),
        level(5, 2007, 91),
        level(6, 1999, 81),
    ],
};

/// Bytes of HTML and style sheets of the median page of 2025, uncompressed: 104 kB after brotli.
const TEXT_BYTES: u64 = 520_000;
/// A level below the reference may add this part of a round trip to the transfer of a page.
const PART_OF_ROUND_TRIP: u32 = 20;
/// A link is fat if it carries the text of a page, at the reference level, within this part of a round trip.
const FAT_PART_OF_ROUND_TRIP: u32 = 10;
const SOURCE: &str = "measured: output and speed of each level on 60 pages";

/// The levels in use. None: the content encoding is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compressors {
    /// The quality of brotli.
    pub brotli: Option<LevelInUse>,
    /// The level of gzip.
    pub gzip: Option<LevelInUse>,
    /// The level of gzip for text that the cache stores.
    pub stored: Option<LevelInUse>,
    /// True if text that came in gzip leaves in br, for clients that accept br. False: it passes as it came.
    pub brotli_for_gzip: bool,
}

/// The level of a compressor, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelInUse {
    /// The level.
    pub level: u8,
    /// The reason for a derived level. None: the operator set it.
    pub formula: Option<String>,
}

impl LevelInUse {
    /// Returns the comment that the rendered files put beside the level.
    pub fn comment(&self) -> String {
        self.formula
            .as_ref()
            .map_or_else(|| "set by the operator".to_owned(), |formula| format!("{formula} [{SOURCE}]"))
    }
}

impl Compressors {
    pub(super) fn of(settings: Compress, link: &Link) -> Self {
        let mut brotli = BROTLI.settle(settings.brotli, link);
        let gain = brotli_over_gzip(link);
        let is_metered = link.price == Price::Metered;
        let brotli_for_gzip = brotli.is_some() && (is_metered || gain > link.rtt / PART_OF_ROUND_TRIP);
        if let Some(formula) = brotli.as_mut().and_then(|level| level.formula.as_mut()) {
            let fate = if brotli_for_gzip { "is compressed again in br" } else { "stays in gzip" };
            let _ = write!(formula, "; text that comes in gzip {fate}: br saves {} of the link", show(gain));
        }
        let gzip = GZIP.settle(settings.gzip, link);
        let stored = gzip.as_ref().map(stored);
        Self { brotli, gzip, stored, brotli_for_gzip }
    }

    /// Returns a row for each derived level, for `longhaul check`. A remote compresses nothing: its ground does.
    pub(super) fn rows(&self, role: &Role) -> Vec<Row> {
        if !role.changes_pages() {
            return Vec::new();
        }
        [(&BROTLI, &self.brotli), (&GZIP, &self.gzip)]
            .into_iter()
            .filter_map(|(encoding, level)| {
                let LevelInUse { level, formula } = level.as_ref()?;
                Some(Row {
                    name: encoding.key,
                    value: level.to_string(),
                    purpose: "level of compression towards clients, a key of its own",
                    formula: formula.clone()?,
                    source: SOURCE,
                    origin: Origin::Derived,
                })
            })
            .collect()
    }
}

impl Encoding {
    fn reference(&self) -> Option<&Level> {
        self.levels.iter().find(|level| level.number == self.reference)
    }

    fn settle(&self, wanted: CompressionLevel, link: &Link) -> Option<LevelInUse> {
        match wanted {
            CompressionLevel::Off => None,
            CompressionLevel::Set(level) => Some(LevelInUse { level, formula: None }),
            CompressionLevel::Auto => {
                let (level, formula) = self.choose(link);
                Some(LevelInUse { level, formula: Some(formula) })
            }
        }
    }

    /// Returns the level for a link, and the reason. A metered link gets the least bytes, and a fat one the least time of
    /// the processor. Any other link gets the least time of processor and link together.
    fn choose(&self, link: &Link) -> (u8, String) {
        if link.price == Price::Metered
            && let Some(least) = self.levels.iter().min_by_key(|level| level.output)
        {
            return (least.number, "the least bytes: the link is metered".to_owned());
        }
        let Some(reference) = self.reference() else { return (self.reference, "the default".to_owned()) };
        let most = reference.transfer(link) + link.rtt / PART_OF_ROUND_TRIP;
        let is_fat = reference.transfer(link) <= link.rtt / FAT_PART_OF_ROUND_TRIP;
        let time = |level: &Level| if is_fat { level.work() } else { level.transfer(link) + level.work() };
        let best = self
            .levels
            .iter()
            .filter(|level| level.transfer(link) <= most)
            .min_by_key(|level| time(level))
            .unwrap_or(reference);
        let cost =
            |level: &Level| format!("{} of a core and {} of the link", show(level.work()), show(level.transfer(link)));
        let least = if is_fat { "the least time of a core, on a fat link," } else { "the least time" };
        let mut formula = format!("{least} for a page's {} kB of text: {}", TEXT_BYTES / 1000, cost(best));
        if best.number != self.reference {
            formula = format!("{formula}; with {} {}: {}", self.name, self.reference, cost(reference));
        }
        (best.number, formula)
    }
}

/// Returns the level for text that the cache stores, where `gzip` is the level towards clients.
fn stored(gzip: &LevelInUse) -> LevelInUse {
    match gzip.level {
        level if level >= GZIP.reference => gzip.clone(),
        _ => LevelInUse {
            level: GZIP.reference,
            formula: Some("the least bytes: the cache stores a text once for many clients".to_owned()),
        },
    }
}

/// Returns the time of the link that br saves over gzip for the text of a page, at the reference levels.
fn brotli_over_gzip(link: &Link) -> Duration {
    let transfer = |encoding: &Encoding| encoding.reference().map(|level| level.transfer(link)).unwrap_or_default();
    transfer(&GZIP).saturating_sub(transfer(&BROTLI))
}

impl Level {
    /// The time of the link for the compressed text of a page.
    fn transfer(&self, link: &Link) -> Duration {
        link.down.time_for(TEXT_BYTES * self.output / 10_000)
    }

    /// The time of one core for the text of a page.
    fn work(&self) -> Duration {
        Duration::from_micros(TEXT_BYTES / self.speed.max(1))
    }
}

fn show(time: Duration) -> String {
    show_duration(Duration::from_millis(u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use longhaul_config::Rate;

    use super::*;

    fn link(rtt_ms: u64, down_kbit: u64) -> Link {
        let down = Rate { bits_per_second: down_kbit * 1000 };
        Link::of(Duration::from_millis(rtt_ms), down, down)
    }

    fn levels(rtt_ms: u64, down_kbit: u64) -> (u8, u8) {
        let link = link(rtt_ms, down_kbit);
        (BROTLI.choose(&link).0, GZIP.choose(&link).0)
    }

    #[test]
    fn fast_links_get_low_levels_and_slow_links_high_ones() {
        assert_eq!(levels(600, 20_000), (1, 1), "geostationary: fat");
        assert_eq!(levels(600, 10_000), (5, 5), "a narrower one, on which the text takes 75 ms and more");
        assert_eq!(levels(40, 100_000), (3, 2), "low orbit");
        assert_eq!(levels(80, 8_000), (5, 5), "rural LTE: br 4 delays a page by more than 4 ms");
        assert_eq!(levels(700, 2_000), (6, 6), "ship");
        assert_eq!(levels(600, 56), (6, 6), "congested cell");
    }

    #[test]
    fn a_lower_level_than_the_reference_delays_a_page_by_a_twentieth_of_a_round_trip_at_most() {
        for rtt_ms in [1, 10, 40, 80, 300, 600, 2000] {
            for down_kbit in [35, 384, 2_000, 8_000, 20_000, 100_000, 1_000_000] {
                let link = link(rtt_ms, down_kbit);
                for encoding in [&BROTLI, &GZIP] {
                    let chosen = encoding.choose(&link).0;
                    let of = |level: u8| encoding.levels.iter().find(|row| row.number == level).unwrap();
                    assert!(of(chosen).transfer(&link) <= of(encoding.reference).transfer(&link) + link.rtt / 20);
                }
            }
        }
    }

    #[test]
    fn a_metered_link_gets_the_least_bytes_at_any_rate() {
        for down_kbit in [56, 20_000, 1_000_000] {
            let metered = Link { price: Price::Metered, ..link(600, down_kbit) };
            for (encoding, expected) in [(&BROTLI, 6), (&GZIP, 6)] {
                assert_eq!(encoding.choose(&metered), (expected, "the least bytes: the link is metered".to_owned()));
            }
            let auto = Compress { brotli: CompressionLevel::Auto, gzip: CompressionLevel::Auto };
            assert!(Compressors::of(auto, &metered).brotli_for_gzip);
        }
    }

    #[test]
    fn gzip_becomes_br_where_its_bytes_delay_a_page() {
        const AUTO: Compress = Compress { brotli: CompressionLevel::Auto, gzip: CompressionLevel::Auto };
        for (rtt_ms, down_kbit, expected) in
            [(600, 20_000, false), (40, 100_000, false), (80, 8_000, true), (700, 2_000, true), (600, 56, true)]
        {
            let compressors = Compressors::of(AUTO, &link(rtt_ms, down_kbit));
            assert_eq!(compressors.brotli_for_gzip, expected, "{rtt_ms} ms, {down_kbit} kbit/s");
        }
        let off = Compress { brotli: CompressionLevel::Off, ..AUTO };
        assert!(!Compressors::of(off, &link(600, 56)).brotli_for_gzip);
    }

    #[test]
    fn text_that_the_cache_stores_gets_the_level_with_the_least_bytes() {
        let stored = |gzip| {
            let settings = Compress { brotli: CompressionLevel::Auto, gzip };
            Compressors::of(settings, &link(600, 20_000)).stored.map(|level| level.level)
        };
        assert_eq!(stored(CompressionLevel::Auto), Some(6));
        assert_eq!(stored(CompressionLevel::Set(1)), Some(6));
        assert_eq!(stored(CompressionLevel::Off), None);
    }

    #[test]
    fn a_level_of_the_operator_wins_and_off_stays_off() {
        let settings = Compress { brotli: CompressionLevel::Off, gzip: CompressionLevel::Set(9) };
        let compressors = Compressors::of(settings, &link(600, 20_000));
        assert_eq!(compressors.brotli, None);
        assert_eq!(compressors.gzip.as_ref().unwrap().level, 9);
        assert_eq!(compressors.stored.as_ref().unwrap().level, 9);
        assert_eq!(compressors.rows(&Role::Edge), [], "the operator knows the levels that he set");
    }
}
