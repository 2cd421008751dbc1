//! Selects the common content of a dictionary: the names, values and blocks that many traces share.

use std::collections::{BTreeMap, BTreeSet};

use header_codec::training::{is_common, likeness};
use header_codec::{Block, FieldList, Side};

use crate::traces::Trace;

/// The most names, most frequent first.
const NAMES: usize = 255;
/// The most values of one name.
const VALUES: usize = 64;
/// The most blocks of one side.
const BLOCKS: usize = 64;
/// A value must occur in this many traces, unless a sample has it.
const TRACES: usize = 2;

/// The content of a dictionary besides its votes.
#[derive(Debug, Clone, Default)]
pub struct Common {
    /// Names and their values.
    pub names: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    /// Blocks of requests and responses. Values that differ between sites are empty.
    pub blocks: [Vec<FieldList>; 2],
}

/// Selects from `traces`. `samples` are handwritten traces that stand for many.
pub fn pick(traces: &[Trace], samples: &[Trace]) -> Common {
    let all = || traces.iter().chain(samples);
    let mut names: BTreeMap<&[u8], usize> = BTreeMap::new();
    let mut values: BTreeMap<(&[u8], &[u8]), BTreeSet<&str>> = BTreeMap::new();
    for trace in all() {
        for (name, value) in trace.blocks.iter().flatten() {
            *names.entry(name).or_default() += 1;
            if of_everybody(name) {
                values.entry((name, value)).or_default().insert(&trace.name);
            }
        }
    }
    let handpicked: BTreeSet<(&[u8], &[u8])> = samples
        .iter()
        .flat_map(|trace| trace.blocks.iter().flatten())
        .map(|(name, value)| (&**name, &**value))
        .collect();
    let in_samples: BTreeSet<&[u8]> = handpicked.iter().map(|(name, _)| *name).collect();
    let mut ranked: Vec<(&[u8], usize)> =
        names.into_iter().filter(|(name, count)| *count > 1 || in_samples.contains(name)).collect();
    ranked.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    let mut common = Common::default();
    for (name, _) in ranked.into_iter().take(NAMES) {
        let of_name = values.iter().filter(|((of, _), _)| *of == name);
        let mut of_name: Vec<(&[u8], usize)> = of_name
            .filter(|(key, traces)| traces.len() >= TRACES || handpicked.contains(*key))
            .map(|((_, value), traces)| (*value, traces.len()))
            .collect();
        of_name.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        let of_name = of_name.into_iter().take(VALUES).map(|(value, _)| value.to_vec()).collect();
        common.names.push((name.to_vec(), of_name));
    }
    let known: BTreeSet<&[u8]> = common.names.iter().map(|(name, _)| &**name).collect();
    let blocks = |side| {
        let of_side: Vec<&Trace> = all().filter(|trace| trace.side == side).collect();
        pick_blocks(&of_side, &known)
    };
    common.blocks = [blocks(Side::Request), blocks(Side::Response)];
    common
}

/// Returns the blocks that together resemble all others best, chosen one by one.
fn pick_blocks(traces: &[&Trace], known: &BTreeSet<&[u8]>) -> Vec<FieldList> {
    let mut weights: BTreeMap<FieldList, f64> = BTreeMap::new();
    for trace in traces {
        // A block of a long trace counts less than a block of a short trace.
        let weight = 1.0 / f64::from(u32::try_from(trace.blocks.len()).unwrap_or(1)).sqrt();
        for block in &trace.blocks {
            *weights.entry(without_site(block, known)).or_default() += weight;
        }
    }
    let weighted: Vec<(FieldList, Block, f64)> =
        weights.into_iter().filter_map(|(fields, weight)| Some((fields.clone(), block_of(&fields)?, weight))).collect();
    let mut reached = vec![-60.0_f64; weighted.len()];
    let mut chosen = Vec::new();
    while chosen.len() < BLOCKS {
        let mut best: Option<(f64, &FieldList, Vec<f64>)> = None;
        for (fields, base, _) in &weighted {
            let scores: Vec<f64> = weighted.iter().map(|(_, block, _)| f64::from(likeness(block, base))).collect();
            let gain: f64 = weighted
                .iter()
                .zip(&scores)
                .zip(&reached)
                .map(|(((_, _, weight), score), old)| (score - old).max(0.0) * weight)
                .sum();
            if best.as_ref().is_none_or(|(most, _, _)| gain > *most) {
                best = Some((gain, fields, scores));
            }
        }
        let Some((gain, fields, scores)) = best else { break };
        if gain <= 0.0 {
            break;
        }
        for (old, score) in reached.iter_mut().zip(scores) {
            *old = old.max(score);
        }
        chosen.push(fields.clone());
    }
    chosen
}

fn block_of(fields: &FieldList) -> Option<Block> {
    Block::from_fields(fields.iter().map(|(name, value)| (&**name, &**value))).ok()
}

/// Returns true if all users may see the same value of a name, and the value identifies no site.
fn of_everybody(name: &[u8]) -> bool {
    is_common(name) && !matches!(name, b":authority" | b"origin" | b"host")
}

/// Keeps the names of a block that the dictionary holds, and only the values that do not identify its site or its
/// client.
fn without_site(block: &FieldList, known: &BTreeSet<&[u8]>) -> FieldList {
    let fields = block.iter().filter(|(name, _)| known.contains(&**name));
    fields.map(|(name, value)| (name.clone(), if of_everybody(name) { value.clone() } else { Vec::new() })).collect()
}
