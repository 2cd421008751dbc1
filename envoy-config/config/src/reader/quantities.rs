//! Readers for times, rates and sizes, and what an operator may have meant by a text that is none.
//!
//! A remedy names only values that the key accepts: each is parsed, and must lie in the range of the key.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::Reader;
use super::Setting;
use super::values::value_type;
use crate::keys::{self, DefaultValue, ValueType};
use crate::units::{self, Bytes, Rate, UnitError, show_duration};

/// A kind of quantity.
struct Kind<T> {
    what: &'static str,
    /// The units, for the message.
    units: &'static str,
    /// The units with which a number is often confused, from small to large. Neighbours differ by a factor of about 1000.
    scale: &'static [&'static str],
    /// The unit of another program, in lower case and without a plural `s`, and the unit here.
    others: &'static [(&'static str, &'static str)],
    /// The units that a number without one may have.
    usual: [&'static str; 2],
    parse: fn(&str) -> Result<T, UnitError>,
    show: fn(T) -> String,
}

const TIME: Kind<Duration> = Kind {
    what: "a time such as 600ms",
    units: "us, ms, s, m, h, d",
    scale: &["us", "ms", "s"],
    others: &[
        ("msec", "ms"),
        ("milli", "ms"),
        ("millisecond", "ms"),
        ("sec", "s"),
        ("second", "s"),
        ("min", "m"),
        ("minute", "m"),
        ("hr", "h"),
        ("hour", "h"),
        ("day", "d"),
        ("usec", "us"),
        ("µ", "us"),
        ("μ", "us"),
    ],
    usual: ["ms", "s"],
    parse: units::parse_duration,
    show: show_duration,
};

const RATE: Kind<Rate> = Kind {
    what: "a rate such as 20mbit",
    units: "bit, kbit, mbit, gbit (per second)",
    scale: &["bit", "kbit", "mbit", "gbit"],
    others: &[
        ("b", "bit"),
        ("k", "kbit"),
        ("kb", "kbit"),
        ("kbyte", "kbit"),
        ("kilobit", "kbit"),
        ("m", "mbit"),
        ("mb", "mbit"),
        ("mbyte", "mbit"),
        ("megabit", "mbit"),
        ("g", "gbit"),
        ("gb", "gbit"),
        ("gbyte", "gbit"),
        ("gigabit", "gbit"),
    ],
    usual: ["mbit", "kbit"],
    parse: units::parse_rate,
    show: |rate| rate.to_string(),
};

const SIZE: Kind<Bytes> = Kind {
    what: "a size such as 256kib",
    units: "b, kb, mb, gb, tb (decimal), kib, mib, gib, tib (binary)",
    scale: &["b", "kib", "mib", "gib", "tib"],
    others: &[
        ("byte", "b"),
        ("k", "kib"),
        ("kbyte", "kib"),
        ("m", "mib"),
        ("mbyte", "mib"),
        ("megabyte", "mib"),
        ("g", "gib"),
        ("gbyte", "gib"),
        ("gigabyte", "gib"),
        ("t", "tib"),
        ("tbyte", "tib"),
        ("terabyte", "tib"),
    ],
    usual: ["mib", "gib"],
    parse: units::parse_bytes,
    show: |bytes| bytes.to_string(),
};

impl Reader {
    /// Reads a time of any length.
    pub(crate) fn duration(&mut self, setting: &Setting<'_>) -> Option<Duration> {
        self.quantity(setting, &TIME, None)
    }

    /// Reads a time in this range.
    pub(crate) fn duration_in(&mut self, setting: &Setting<'_>, range: RangeInclusive<Duration>) -> Option<Duration> {
        self.quantity(setting, &TIME, Some(&range))
    }

    /// Reads a time in the range of its row.
    pub(crate) fn time(&mut self, setting: &Setting<'_>) -> Option<Duration> {
        let range = match value_type(setting) {
            ValueType::Time { min, max } => Some(min..=max),
            _ => None,
        };
        self.quantity(setting, &TIME, range.as_ref())
    }

    /// Reads a rate in the range of its row.
    pub(crate) fn rate(&mut self, setting: &Setting<'_>) -> Option<Rate> {
        let range = match value_type(setting) {
            ValueType::Rate { min } => Some(min..=Rate { bits_per_second: u64::MAX }),
            _ => None,
        };
        self.quantity(setting, &RATE, range.as_ref())
    }

    /// Reads a size in the range of its row.
    pub(crate) fn size(&mut self, setting: &Setting<'_>) -> Option<Bytes> {
        let range = match value_type(setting) {
            ValueType::Size { min, max } => Some(Bytes(min)..=Bytes(max)),
            _ => None,
        };
        self.quantity(setting, &SIZE, range.as_ref())
    }

    /// Reads a size in this range.
    pub(crate) fn size_in(&mut self, setting: &Setting<'_>, range: RangeInclusive<Bytes>) -> Option<Bytes> {
        self.quantity(setting, &SIZE, Some(&range))
    }

    fn quantity<T: PartialOrd + Copy>(
        &mut self,
        setting: &Setting<'_>,
        kind: &Kind<T>,
        range: Option<&RangeInclusive<T>>,
    ) -> Option<T> {
        let units = format!("units: {}", kind.units);
        let text = self.text(setting, kind.what, &units)?;
        let fits = |value: &T| range.is_none_or(|range| range.contains(value));
        let accepted = |text: &String| (kind.parse)(text).is_ok_and(|value| fits(&value));
        match (kind.parse)(text) {
            Ok(value) if fits(&value) => Some(value),
            Ok(value) => {
                let label = range.map(|range| kind.outside(range, value)).unwrap_or_default();
                let meant = kind.neighbours(text).into_iter().find(accepted);
                let example = example(setting).filter(accepted);
                let help = match (meant, example) {
                    (Some(meant), _) => format!("write `{meant}` if the unit is wrong"),
                    (None, Some(example)) => format!("write a value in this range, such as `{example}`"),
                    (None, None) => format!("write a value in this range; {units}"),
                };
                self.bad(setting, label, &help);
                None
            }
            Err(error) => {
                let help = kind.meant(text, accepted).map(|meant| format!("{meant}; {units}")).unwrap_or(units);
                self.bad(setting, format!("expected {}, found `{text}`: {error}", kind.what), &help);
                None
            }
        }
    }
}

impl<T: PartialOrd + Copy> Kind<T> {
    /// Describes a value outside of its range.
    fn outside(&self, range: &RangeInclusive<T>, found: T) -> String {
        let [least, most, shown] = [*range.start(), *range.end(), found].map(self.show);
        // A rate has no upper bound.
        if found < *range.start() && self.what == RATE.what {
            return format!("expected {least} or more, found {shown}");
        }
        format!("expected {least} to {most}, found {shown}")
    }

    /// Returns the same number with the next smaller and the next larger unit.
    fn neighbours(&self, text: &str) -> Vec<String> {
        let (number, unit) = number_and_unit(text);
        let unit = unit.to_ascii_lowercase();
        let Some(at) = self.scale.iter().position(|known| *known == unit) else { return Vec::new() };
        let near = [at.checked_sub(1), at.checked_add(1)].into_iter().flatten().filter_map(|at| self.scale.get(at));
        near.map(|unit| format!("{number}{unit}")).collect()
    }

    /// Returns what to write for a text that is not of this kind: with the unit of another program (`20 Mbit/s`, `2MB/s`,
    /// `600msec`), a decimal comma, or no unit.
    fn meant(&self, text: &str, accepted: impl Fn(&String) -> bool) -> Option<String> {
        let (number, unit) = number_and_unit(text);
        if unit.is_empty() {
            let usual = self.usual.map(|unit| format!("{number}{unit}"));
            let fitting: Vec<String> = usual.into_iter().filter(accepted).map(|value| format!("`{value}`")).collect();
            return (!fitting.is_empty()).then(|| format!("add the unit: {}", fitting.join(" or ")));
        }
        let lower = unit.to_lowercase();
        let a_second = ["/sec", "/s", "ps"].iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
        let singular = a_second.trim_end_matches('s');
        let own = self.others.iter().find(|(other, _)| *other == singular).map(|(_, own)| *own);
        let is_bytes = self.what == RATE.what && (unit.contains('B') || lower.contains("byte"));
        let number = if is_bytes { number.parse::<u64>().ok()?.checked_mul(8)?.to_string() } else { number };
        let units = own.into_iter().chain([lower.as_str(), a_second, singular]);
        let meant = units.map(|unit| format!("{number}{unit}")).find(accepted)?;
        Some(format!("write `{meant}`"))
    }
}

/// Returns the same number with a neighbouring unit, where that is a time in `range`.
pub(crate) fn time_of_another_unit(text: &str, range: &RangeInclusive<Duration>) -> Option<String> {
    TIME.neighbours(text).into_iter().find(|text| units::parse_duration(text).is_ok_and(|time| range.contains(&time)))
}

/// Returns the rates with the same number and a neighbouring unit.
pub(crate) fn rates_of_other_units(text: &str) -> Vec<(String, Rate)> {
    let rates = RATE.neighbours(text).into_iter();
    rates.filter_map(|text| units::parse_rate(&text).ok().map(|rate| (text, rate))).collect()
}

/// Returns the example or the default of a setting's row.
fn example(setting: &Setting<'_>) -> Option<String> {
    match keys::row(&setting.name)?.default {
        DefaultValue::Required(value) | DefaultValue::Is(value) | DefaultValue::Unless { is: value, .. } => {
            Some(value.to_owned())
        }
        DefaultValue::Derived(_) => None,
    }
}

/// Splits `20 Mbit/s` into the number, with a decimal point, and the unit.
fn number_and_unit(text: &str) -> (String, String) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number.replace(',', "."), unit.trim().to_owned())
}
