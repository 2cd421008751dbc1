//! Quantities as an operator writes them: `600ms`, `20mbit`, `1gib`.
//!
//! A number without a unit is always refused, because a guess at the unit would misconfigure the link.

use std::fmt;
use std::iter::Sum;
use std::time::Duration;

/// A rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// The bits per second.
    pub bits_per_second: u64,
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Sum for Rate {
    /// Returns the rate of links that carry bytes together.
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        Self { bits_per_second: rates.map(|rate| rate.bits_per_second).fold(0, u64::saturating_add) }
    }
}

impl Rate {
    /// Returns the bytes that this rate carries in `time`, rounded down. Saturates.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bits = u128::from(self.bits_per_second).saturating_mul(time.as_micros()) / 1_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }

    /// Returns the time that this rate needs for `bytes`.
    pub fn time_for(self, bytes: u64) -> Duration {
        let micros = u128::from(bytes).saturating_mul(8_000_000) / u128::from(self.bits_per_second.max(1));
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// A unit that an operator may write after a number, and its factor.
struct Unit {
    suffix: &'static str,
    factor: u64,
}

// Rates are decimal, as links are sold. Sizes are binary or decimal, by their unit.
const RATE_UNITS: &[Unit] = &[
    Unit { suffix: "gbit", factor: 1_000_000_000 },
    Unit { suffix: "mbit", factor: 1_000_000 },
    Unit { suffix: "kbit", factor: 1_000 },
    Unit { suffix: "bit", factor: 1 },
];
const BINARY_UNITS: &[Unit] = &[
    Unit { suffix: "tib", factor: 1 << 40 },
    Unit { suffix: "gib", factor: 1 << 30 },
    Unit { suffix: "mib", factor: 1 << 20 },
    Unit { suffix: "kib", factor: 1 << 10 },
    Unit { suffix: "b", factor: 1 },
];
const DECIMAL_UNITS: &[Unit] = &[
    Unit { suffix: "tb", factor: 1_000_000_000_000 },
    Unit { suffix: "gb", factor: 1_000_000_000 },
    Unit { suffix: "mb", factor: 1_000_000 },
    Unit { suffix: "kb", factor: 1_000 },
    Unit { suffix: "b", factor: 1 },
];
const LONG_UNITS: &[Unit] = &[
    Unit { suffix: "d", factor: 86_400_000_000 },
    Unit { suffix: "h", factor: 3_600_000_000 },
    Unit { suffix: "m", factor: 60_000_000 },
];
const SHORT_UNITS: &[Unit] =
    &[Unit { suffix: "s", factor: 1_000_000 }, Unit { suffix: "ms", factor: 1_000 }, Unit { suffix: "us", factor: 1 }];

/// The reason why a quantity was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitError {
    /// A number without a unit.
    NoUnit,
    /// A number with a unit that this kind of value does not have.
    UnknownUnit,
    /// No number at the start, or one with a sign or an exponent.
    NotANumber,
    /// A number of more than 64 bits, or finer than the unit can be divided.
    OutOfRange,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoUnit => "a number without a unit",
            Self::UnknownUnit => "a unit that is not known here",
            Self::NotANumber => "no number",
            Self::OutOfRange => "a number too large or too fine",
        })
    }
}

/// Parses `600ms`, `1.5s`, `1h`, `1d`.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    parse(text, &[SHORT_UNITS, LONG_UNITS]).map(Duration::from_micros)
}

/// Parses `20mbit`, `0.5mbit`, `78kbit`.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    parse(text, &[RATE_UNITS]).map(|bits_per_second| Rate { bits_per_second })
}

/// Parses `256kib`, `1gib`, `100mb`.
pub(crate) fn parse_bytes(text: &str) -> Result<Bytes, UnitError> {
    parse(text, &[BINARY_UNITS, DECIMAL_UNITS]).map(Bytes)
}

fn parse(text: &str, units: &[&[Unit]]) -> Result<u64, UnitError> {
    let lower = text.trim().to_ascii_lowercase();
    let end = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (number, suffix) = lower.split_at(end);
    let suffix = suffix.trim_start();
    if number.is_empty() {
        return Err(UnitError::NotANumber);
    }
    if suffix.is_empty() {
        return Err(UnitError::NoUnit);
    }
    let unit = units.iter().copied().flatten().find(|unit| unit.suffix == suffix).ok_or(UnitError::UnknownUnit)?;
    decimal(number, unit.factor)
}

/// Returns `number` times `factor` without floating point, so that `0.1gbit` is exactly 100 mbit.
fn decimal(number: &str, factor: u64) -> Result<u64, UnitError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return Err(UnitError::NotANumber);
    }
    let whole: u64 = whole.parse().map_err(|_| UnitError::OutOfRange)?;
    let mut value = whole.checked_mul(factor).ok_or(UnitError::OutOfRange)?;
    let mut place = factor;
    for digit in fraction.bytes() {
        let digit = u64::from(digit.saturating_sub(b'0'));
        // A binary unit cannot be divided by ten without end. The fraction of a byte is dropped.
        value = value.checked_add(digit.saturating_mul(place) / 10).ok_or(UnitError::OutOfRange)?;
        place /= 10;
        if place == 0 && digit != 0 {
            return Err(UnitError::OutOfRange);
        }
    }
    Ok(value)
}

/// A value in one unit, with at most three decimals.
struct Scaled {
    whole: u64,
    thousandths: u64,
    suffix: &'static str,
    exact: bool,
}

impl Scaled {
    /// Scales `value` to the largest of `units` that does not exceed it.
    fn of(value: u64, units: &[Unit]) -> Self {
        let unit = units.iter().find(|unit| value >= unit.factor).or(units.last());
        let (factor, suffix) = unit.map_or((1, ""), |unit| (unit.factor, unit.suffix));
        let scaled = u128::from(value) * 1_000;
        let thousandths = scaled / u128::from(factor);
        Self {
            whole: u64::try_from(thousandths / 1_000).unwrap_or(u64::MAX),
            thousandths: u64::try_from(thousandths % 1_000).unwrap_or_default(),
            suffix,
            exact: scaled % u128::from(factor) == 0,
        }
    }
}

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thousandths {
            0 => write!(f, "{}{}", self.whole, self.suffix),
            rest => write!(f, "{}.{}{}", self.whole, format!("{rest:03}").trim_end_matches('0'), self.suffix),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Scaled::of(self.bits_per_second, RATE_UNITS).fmt(f)
    }
}

impl fmt::Display for Bytes {
    /// Writes binary units if they are exact, as for buffers. Otherwise writes decimal units, as for links.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = Scaled::of(self.0, BINARY_UNITS);
        let shown = if binary.exact { binary } else { Scaled::of(self.0, DECIMAL_UNITS) };
        shown.fmt(f)
    }
}

/// Returns a duration as in the configuration file: whole hours or minutes, or else seconds.
pub fn show_duration(duration: Duration) -> String {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let whole = LONG_UNITS
        .iter()
        .filter(|unit| unit.suffix != "d")
        .find(|unit| micros >= unit.factor && micros % unit.factor == 0);
    match whole {
        _ if micros == 0 => "0s".to_owned(),
        Some(unit) => format!("{}{}", micros / unit.factor, unit.suffix),
        None => Scaled::of(micros, SHORT_UNITS).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_units_of_the_documentation_are_read_exactly() {
        assert_eq!(parse_duration("600ms"), Ok(Duration::from_millis(600)));
        assert_eq!(parse_duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("1d"), Ok(Duration::from_hours(24)));
        assert_eq!(parse_rate("20mbit"), Ok(Rate { bits_per_second: 20_000_000 }));
        assert_eq!(parse_rate("0.5Mbit"), Ok(Rate { bits_per_second: 500_000 }));
        assert_eq!(parse_rate("0.1gbit"), Ok(Rate { bits_per_second: 100_000_000 }));
        assert_eq!(parse_bytes("1gib"), Ok(Bytes(1 << 30)));
        assert_eq!(parse_bytes("1gb"), Ok(Bytes(1_000_000_000)));
        assert_eq!(parse_bytes("0b"), Ok(Bytes(0)));
    }

    #[test]
    fn values_that_are_no_quantities_are_refused_with_the_reason() {
        let table = [
            ("600", UnitError::NoUnit),
            ("600 parsecs", UnitError::UnknownUnit),
            ("20mbit", UnitError::UnknownUnit),
            ("ms", UnitError::NotANumber),
            ("-1ms", UnitError::NotANumber),
            ("", UnitError::NotANumber),
            ("1.ms", UnitError::NotANumber),
            (".5s", UnitError::NotANumber),
            ("1.2.3s", UnitError::NotANumber),
            ("99999999999999999999s", UnitError::OutOfRange),
            ("999999999999999d", UnitError::OutOfRange),
            ("0.00000001us", UnitError::OutOfRange),
        ];
        for (text, expected) in table {
            assert_eq!(parse_duration(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_rate_and_a_time_give_bytes() {
        let rate = Rate { bits_per_second: 20_000_000 };
        assert_eq!(rate.bytes_in(Duration::from_millis(600)), 1_500_000);
        assert_eq!(rate.time_for(1_500_000), Duration::from_millis(600));
    }

    proptest! {
        #[test]
        fn a_shown_whole_quantity_reads_back_as_itself(n in 1u64..1000, unit in 0usize..4) {
            let text = format!("{n}{}", ["bit", "kbit", "mbit", "gbit"][unit]);
            let rate = parse_rate(&text).unwrap();
            prop_assert_eq!(parse_rate(&rate.to_string()).unwrap(), rate);
            let text = format!("{n}{}", ["b", "kib", "mib", "gib"][unit]);
            let bytes = parse_bytes(&text).unwrap();
            prop_assert_eq!(parse_bytes(&bytes.to_string()).unwrap(), bytes);
            let text = format!("{n}{}", ["us", "ms", "s", "m"][unit]);
            let time = parse_duration(&text).unwrap();
            prop_assert_eq!(parse_duration(&show_duration(time)).unwrap(), time);
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in ".*") {
            let _ = (parse_duration(&text), parse_rate(&text), parse_bytes(&text));
        }
    }
}
