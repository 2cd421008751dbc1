//! Learns the votes by a logistic regression over hashed contexts: gradient descent with a separate step for each
//! weight (`AdaGrad`). The trainer then keeps only the contexts that earn a slot, and trains these again.

use std::collections::{BTreeMap, HashMap};

use header_codec::training::check_of;

use crate::questions::Questions;

/// A vote of this size multiplies the odds by e.
pub const UNIT: f32 = 16.0;
/// The largest sum of votes that still matters, in units of [`UNIT`].
pub const LARGEST_SUM: u16 = 12;
/// The smallest distance of a probability from 0 or 1, in units of 2^-16.
const SUREST: f32 = 8.0;
/// The trainer ignores a context seen less often.
const SEEN: u32 = 2;
/// A vote smaller than this is not worth a slot.
const SMALLEST: f32 = 0.06;
const EPOCHS: usize = 4;
const EPOCHS_AFTER_CUT: usize = 2;
const STEP: f32 = 0.15;
const DECAY: f32 = 1e-5;
const BOUND: f32 = 127.0 / UNIT;

/// The training state of one context.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    vote: f32,
    steps: f32,
    seen: u32,
}

/// Returns the probability of true for a sum of votes.
fn logistic(sum: f32) -> f32 {
    1.0 / (1.0 + (-sum).exp())
}

/// Returns the probabilities of true for all sums, in units of 2^-16.
pub fn probabilities() -> Vec<u16> {
    let units = i32::from(LARGEST_SUM) * 16;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // in range
    let probability =
        |sum: i32| (logistic(sum as f32 / UNIT) * 65_536.0).round().clamp(SUREST, 65_536.0 - SUREST) as u16;
    (-units..=units).map(probability).collect()
}

/// Learns from `questions` and returns the 2^`slot_bits` slots of a dictionary. Calls `progress` with the loss in bytes
/// after every pass.
pub fn learn(questions: &[Questions], slot_bits: u32, mut progress: impl FnMut(&str, f64)) -> Vec<[u8; 2]> {
    let mut weights: HashMap<u32, Weight> = HashMap::new();
    for context in questions.iter().flat_map(Questions::contexts) {
        weights.entry(*context).or_default().seen += 1;
    }
    weights.retain(|_, weight| weight.seen >= SEEN);
    let mut order = Order { order: (0..questions.len()).collect(), state: 1 };
    for _ in 0..EPOCHS {
        progress("all contexts", pass(&mut weights, order.shuffle(), questions, STEP));
    }
    cut(&mut weights, slot_bits);
    for _ in 0..EPOCHS_AFTER_CUT {
        progress("kept contexts", pass(&mut weights, order.shuffle(), questions, STEP / 2.0));
    }
    let mut slots = vec![[0, 0]; 1 << slot_bits];
    for (context, weight) in &weights {
        if let Some(slot) = slots.get_mut((context >> (32 - slot_bits)) as usize) {
            #[allow(clippy::cast_possible_truncation)] // bounded by BOUND
            let vote = (weight.vote * UNIT).round() as i8;
            *slot = [vote.cast_unsigned(), check_of(*context)];
        }
    }
    slots
}

/// Keeps one context for each slot: the one that matters most often.
fn cut(weights: &mut HashMap<u32, Weight>, slot_bits: u32) {
    let mut best: BTreeMap<u32, (f32, u32)> = BTreeMap::new();
    for (context, weight) in weights.iter().filter(|(_, weight)| weight.vote.abs() >= SMALLEST) {
        #[allow(clippy::cast_precision_loss)] // a rank
        let worth = weight.vote.abs() * (weight.seen as f32).sqrt();
        let held = best.entry(context >> (32 - slot_bits)).or_insert((worth, *context));
        if worth > held.0 || (worth.total_cmp(&held.0).is_eq() && *context < held.1) {
            *held = (worth, *context);
        }
    }
    weights.retain(|context, _| best.get(&(context >> (32 - slot_bits))).is_some_and(|(_, kept)| kept == context));
    for weight in weights.values_mut() {
        // The remaining contexts must learn what the removed ones contributed.
        weight.steps *= 0.3;
    }
}

/// Trains on all decisions once. Returns the loss in bytes.
fn pass(weights: &mut HashMap<u32, Weight>, order: &[usize], questions: &[Questions], step: f32) -> f64 {
    let mut loss = 0.0;
    for questions in order.iter().filter_map(|at| questions.get(*at)) {
        for (contexts, bit) in questions.iter() {
            let sum: f32 = contexts.iter().filter_map(|context| weights.get(context)).map(|weight| weight.vote).sum();
            let probability = logistic(sum);
            let (error, likely) = if bit { (probability - 1.0, probability) } else { (probability, 1.0 - probability) };
            loss -= f64::from(likely.max(SUREST / 65_536.0).log2());
            for context in contexts {
                if let Some(weight) = weights.get_mut(context) {
                    let slope = error + DECAY * weight.vote;
                    weight.steps += slope * slope;
                    weight.vote -= step * slope / (weight.steps + 0.1).sqrt();
                    weight.vote = weight.vote.clamp(-BOUND, BOUND);
                }
            }
        }
    }
    loss / 8.0
}

/// A random order that differs in every pass and is the same in every run.
struct Order {
    order: Vec<usize>,
    state: u64,
}

impl Order {
    fn shuffle(&mut self) -> &[usize] {
        for at in (1..self.order.len()).rev() {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let other = usize::try_from(self.state >> 33).unwrap_or(0) % (at + 1);
            self.order.swap(at, other);
        }
        &self.order
    }
}
