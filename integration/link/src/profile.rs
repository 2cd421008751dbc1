//! Link profiles: the properties of a link, one TOML file each, with the source of its numbers.
//!
//! Reading has two stages. serde reads the written form, with units in the keys, and refuses unknown keys. Then the
//! checks turn it into a typed [`Profile`].

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use toml::Table;
use toml::Value;

use crate::Way;
use crate::impairment::burst_loss::Bursts;
use crate::impairment::fair_queue::FairBy;
use crate::impairment::handover::{Handover, Range};
use crate::impairment::jitter::Shape;
use crate::impairment::outage::{Kind, Outage};
use crate::impairment::rate::Rate;
use crate::time::Moment;

/// A checked link profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// A one-line description of the link.
    pub title: String,
    /// The source of the numbers.
    pub source: String,
    /// Length of the longest IP packet in bytes. It is also the devices' MTU.
    pub mtu_bytes: u16,
    /// From end A to end B.
    pub up: DirectionProfile,
    /// From end B to end A.
    pub down: DirectionProfile,
    /// Outages, each with the directions that it affects.
    pub outages: Vec<(Affects, Outage)>,
}

/// A checked profile of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionProfile {
    /// Capacity; `None` is unlimited.
    pub rate: Option<Rate>,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Limit of the queue in front of the transmitter, in bytes.
    pub queue_bytes: usize,
    /// Flows take turns in the queue; `None` is first in, first out.
    pub fair: Option<FairBy>,
    /// Variation of the delay.
    pub jitter: Option<JitterProfile>,
    /// Probability of independent loss.
    pub random_loss: Option<f64>,
    /// Loss in bursts.
    pub burst_loss: Option<Bursts>,
    /// Packets that later ones overtake.
    pub reordering: Option<ReorderingProfile>,
    /// Probability that a packet arrives twice.
    pub duplication: Option<f64>,
    /// Hand-overs, which are the same in both directions.
    pub handover: Option<Handover>,
}

/// A checked variation of the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterProfile {
    /// The most that a packet is early or late; at most the delay.
    pub amount: Duration,
    /// The distribution.
    pub shape: Shape,
}

/// A checked reordering.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderingProfile {
    /// Probability that a packet is held back.
    pub probability: f64,
    /// Time for which it is held back.
    pub held_back: Duration,
}

/// The directions that a property or an outage affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Affects {
    /// From A to B.
    Up,
    /// From B to A.
    Down,
    /// Both.
    #[default]
    Both,
}

impl Affects {
    /// Returns true if `way` is affected.
    pub fn includes(self, way: Way) -> bool {
        matches!((self, way), (Self::Both, _) | (Self::Up, Way::Up) | (Self::Down, Way::Down))
    }
}

/// The built-in profiles: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("geo", include_str!("../profiles/geo.toml")),
    ("maritime", include_str!("../profiles/maritime.toml")),
    ("rural-lte", include_str!("../profiles/rural-lte.toml")),
    ("leo", include_str!("../profiles/leo.toml")),
    ("cdma-average", include_str!("../profiles/cdma-average.toml")),
    ("cdma-congested", include_str!("../profiles/cdma-congested.toml")),
    ("gprs", include_str!("../profiles/gprs.toml")),
    ("umts", include_str!("../profiles/umts.toml")),
    ("satellite-256k", include_str!("../profiles/satellite-256k.toml")),
    ("satellite-500k", include_str!("../profiles/satellite-500k.toml")),
    ("satellite-2m", include_str!("../profiles/satellite-2m.toml")),
];

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Neither a built-in name nor a path.
    #[error(
        "no profile is called `{name}`; there are {}; a file is named by a path that contains `/` or ends in .toml",
        names()
    )]
    Unknown {
        /// The unknown name.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read the profile {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        reason: std::io::Error,
    },
    /// Invalid TOML, an unknown key or a value out of range. The TOML reader's message has line and column.
    #[error("profile {name}: {reason}")]
    Malformed {
        /// The profile's name or path.
        name: String,
        /// The error, with its place.
        reason: toml::de::Error,
    },
    /// Two values contradict each other.
    #[error("profile {name}: {reason}")]
    Contradiction {
        /// The profile's name or path.
        name: String,
        /// The two values and the condition that they must meet.
        reason: String,
    },
    /// A `--set` argument that is not KEY=VALUE.
    #[error("--set {text}: expected KEY=VALUE with a TOML value, such as down.rate_bps=35000 ({reason})")]
    BadOverride {
        /// The argument.
        text: String,
        /// Why it is invalid.
        reason: String,
    },
}

fn names() -> String {
    BUILT_IN.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Reads the profile of this name or path, and applies the `KEY=VALUE` overrides in order.
pub fn load(name: &str, overrides: &[String]) -> Result<Profile, ProfileError> {
    let is_path = name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "toml");
    if is_path {
        let text = std::fs::read_to_string(name)
            .map_err(|reason| ProfileError::Unreadable { path: PathBuf::from(name), reason })?;
        return parse(name, &text, overrides);
    }
    let (_, text) = BUILT_IN
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| ProfileError::Unknown { name: name.to_owned() })?;
    parse(name, text, overrides)
}

/// Reads a profile's text. `name` is for messages.
pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Profile, ProfileError> {
    let malformed = |reason| ProfileError::Malformed { name: name.to_owned(), reason };
    // Parses the text before any override, because only then do messages have line and column.
    let mut written: Written = toml::from_str(text).map_err(malformed)?;
    if !overrides.is_empty() {
        let mut table: Table = toml::from_str(text).map_err(malformed)?;
        for text in overrides {
            apply_override(&mut table, text)
                .map_err(|reason| ProfileError::BadOverride { text: text.clone(), reason })?;
        }
        written = table.try_into().map_err(malformed)?;
    }
    written.check().map_err(|reason| ProfileError::Contradiction { name: name.to_owned(), reason })
}

fn apply_override(table: &mut Table, text: &str) -> Result<(), String> {
    let parsed: Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    if parsed.is_empty() {
        return Err("nothing is set".to_owned());
    }
    merge(table, parsed);
    Ok(())
}

fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(known)), Value::Table(new)) => merge(known, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

// ------------------------------------------------------------------------------------------------------- as written

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    title: String,
    source: String,
    mtu_bytes: u16,
    up: WrittenDirection,
    down: WrittenDirection,
    #[serde(default)]
    outage: Vec<WrittenOutage>,
    handover: Option<WrittenHandover>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDirection {
    rate_bps: Option<NonZeroU64>,
    #[serde(default)]
    frame_overhead_bytes: u32,
    delay_ms: Millis,
    queue_bytes: usize,
    fair: Option<FairBy>,
    jitter: Option<WrittenJitter>,
    random_loss: Option<Probability>,
    burst_loss: Option<WrittenBursts>,
    reordering: Option<WrittenReordering>,
    duplication: Option<Probability>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenJitter {
    amount_ms: Millis,
    #[serde(default)]
    shape: Shape,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBursts {
    enter_bad: Probability,
    leave_bad: Probability,
    #[serde(default)]
    loss_in_good: Probability,
    #[serde(default = "certain")]
    loss_in_bad: Probability,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenReordering {
    probability: Probability,
    held_back_ms: Millis,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenOutage {
    start_s: Seconds,
    length_s: Seconds,
    every_s: Option<Seconds>,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    affects: Affects,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHandover {
    every_s: Seconds,
    gap_ms: [Millis; 2],
    extra_delay_ms: [Millis; 2],
    #[serde(default)]
    kind: Kind,
}

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(try_from = "f64")]
struct Probability(f64);

impl TryFrom<f64> for Probability {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(format!("{value} is not a probability: expected 0 to 1 (0.01 for one per cent)"))
        }
    }
}

fn certain() -> Probability {
    Probability(1.0)
}

/// A day. A longer delay or outage is a typing error.
const LONGEST: Duration = Duration::from_hours(24);

fn duration(value: f64, unit: Duration, name: &str) -> Result<Duration, String> {
    let seconds = value * unit.as_secs_f64();
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        _ => Err(format!("{value} {name} is not a time a link can have: expected 0 up to a day")),
    }
}

/// A time written in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
struct Millis(Duration);

impl TryFrom<f64> for Millis {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        duration(value, Duration::from_millis(1), "ms").map(Self)
    }
}

/// A time written in seconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
struct Seconds(Duration);

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        duration(value, Duration::from_secs(1), "s").map(Self)
    }
}

/// The packet length that IPv4 requires every link to carry (RFC 791 section 3.2).
const LEAST_MTU_BYTES: u16 = 68;

impl Written {
    fn check(self) -> Result<Profile, String> {
        if self.source.trim().is_empty() {
            return Err("source is empty: say where the numbers come from".to_owned());
        }
        if self.mtu_bytes < LEAST_MTU_BYTES {
            return Err(format!("mtu_bytes = {}: expected at least {LEAST_MTU_BYTES}", self.mtu_bytes));
        }
        let outages = self.outage.into_iter().map(WrittenOutage::check).collect::<Result<_, _>>()?;
        let handover = self.handover.map(WrittenHandover::check).transpose()?;
        Ok(Profile {
            title: self.title,
            source: self.source,
            mtu_bytes: self.mtu_bytes,
            up: self.up.check("up", self.mtu_bytes, handover)?,
            down: self.down.check("down", self.mtu_bytes, handover)?,
            outages,
        })
    }
}

impl WrittenDirection {
    fn check(self, way: &str, mtu_bytes: u16, handover: Option<Handover>) -> Result<DirectionProfile, String> {
        if self.queue_bytes < usize::from(mtu_bytes) {
            let queue = self.queue_bytes;
            return Err(format!(
                "{way}.queue_bytes = {queue}: a queue below mtu_bytes = {mtu_bytes} drops every full packet"
            ));
        }
        let delay = self.delay_ms.0;
        if let Some(jitter) = &self.jitter
            && jitter.amount_ms.0 > delay
        {
            return Err(format!(
                "{way}.jitter.amount_ms is more than {way}.delay_ms: packets would arrive before they left"
            ));
        }
        Ok(DirectionProfile {
            rate: self
                .rate_bps
                .map(|bits_per_second| Rate { bits_per_second, frame_overhead_bytes: self.frame_overhead_bytes }),
            delay,
            queue_bytes: self.queue_bytes,
            fair: self.fair,
            jitter: self.jitter.map(|jitter| JitterProfile { amount: jitter.amount_ms.0, shape: jitter.shape }),
            random_loss: self.random_loss.map(|probability| probability.0),
            burst_loss: self.burst_loss.map(|bursts| Bursts {
                enter_bad: bursts.enter_bad.0,
                leave_bad: bursts.leave_bad.0,
                loss_in_good: bursts.loss_in_good.0,
                loss_in_bad: bursts.loss_in_bad.0,
            }),
            reordering: self.reordering.map(|reordering| ReorderingProfile {
                probability: reordering.probability.0,
                held_back: reordering.held_back_ms.0,
            }),
            duplication: self.duplication.map(|probability| probability.0),
            handover,
        })
    }
}

impl WrittenHandover {
    fn check(self) -> Result<Handover, String> {
        let range = |name: &str, [least, most]: [Millis; 2]| {
            if least.0 > most.0 {
                return Err(format!("handover.{name}: expected the shortest time, then the longest"));
            }
            Ok(Range { least: least.0, most: most.0 })
        };
        let handover = Handover {
            every: self.every_s.0,
            gap: range("gap_ms", self.gap_ms)?,
            extra_delay: range("extra_delay_ms", self.extra_delay_ms)?,
            kind: self.kind,
        };
        if handover.every <= handover.gap.most {
            return Err("handover.every_s must be more than the longest gap, or the link never comes back".to_owned());
        }
        Ok(handover)
    }
}

impl WrittenOutage {
    fn check(self) -> Result<(Affects, Outage), String> {
        let length = self.length_s.0;
        if let Some(every) = self.every_s
            && every.0 <= length
        {
            return Err("outage.every_s must be more than outage.length_s, or the link never comes back".to_owned());
        }
        let outage = Outage {
            start: Moment::after_start(self.start_s.0),
            length,
            every: self.every_s.map(|every| every.0),
            kind: self.kind,
        };
        Ok((self.affects, outage))
    }
}
