//! `transport`: overrides of derived values. Each has the kind and the range of its key.

use crate::overrides::{Override, OverrideValue, Overrides, TransportKey, ValueKind};
use crate::reader::{Reader, Section, Setting};
use crate::units::Bytes;
use std::time::Duration;

/// The longest name. The kernel's `TCP_CA_NAME_MAX` of 16 includes the final zero.
const MAX_NAME: usize = 15;

pub(super) fn overrides(reader: &mut Reader, top: &Section<'_>, line_of: &dyn Fn(usize) -> usize) -> Option<Overrides> {
    let section = reader.section(top, "transport");
    let mut overrides = Overrides::new();
    let mut clean = true;
    for key in TransportKey::ALL {
        let Some(setting) = section.get(key.name()) else { continue };
        match value(reader, &setting, key.kind()) {
            Some(value) => {
                overrides.insert(*key, Override { line: line_of(setting.key_place.start), value });
            }
            None => clean = false,
        }
    }
    clean.then_some(overrides)
}

fn value(reader: &mut Reader, setting: &Setting<'_>, kind: ValueKind) -> Option<OverrideValue> {
    match kind {
        ValueKind::Bytes { min, max } => reader.size_in(setting, Bytes(min)..=Bytes(max)).map(OverrideValue::Bytes),
        ValueKind::Duration { min_ms, max_ms } => {
            let range = Duration::from_millis(min_ms)..=Duration::from_millis(max_ms);
            reader.duration_in(setting, range).map(OverrideValue::Duration)
        }
        ValueKind::Count { off: true, .. } if setting.is_off() => Some(OverrideValue::Off),
        ValueKind::Count { min, max, .. } => reader.number_between(setting, min, max).map(OverrideValue::Count),
        ValueKind::Switch => {
            let switch = if setting.is_off() { Some(false) } else { setting.switch() };
            if switch.is_none() {
                reader.expected(setting, "on or off", "write `on` or `off`");
            }
            switch.map(OverrideValue::Switch)
        }
        ValueKind::Name => {
            let what = "a word such as bbr, cubic, or host for the machine's default";
            let text = reader.text(setting, what, "")?;
            let well_formed = !text.is_empty()
                && text.len() <= MAX_NAME
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !well_formed {
                reader.expected(setting, what, "");
                return None;
            }
            Some(OverrideValue::Name(text.to_owned()))
        }
    }
}
