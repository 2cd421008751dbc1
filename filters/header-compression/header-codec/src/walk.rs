//! Codes a block as its differences from another block, the base, field by field.
//!
//! The base is the block most like it among the client's recent blocks and those of the dictionary. The walk passes
//! both blocks side by side. Each step is one of four:
//!
//! - the next field equals the next one of the base;
//! - it has the same name and another value;
//! - the walk skips the next field of the base;
//! - the field is inserted, without the base.

use crate::block::{Block, Field, Key};
use crate::coder::{Coder, choice, number, salt};
use crate::error::DecodeError;
use crate::hash::{self, mix};
use crate::limits;
use crate::policy::{self, Form, Scope};
use crate::scene::Scene;
use crate::spell::Speller;
use crate::text::{self, Subject};
use crate::value::{self, Place};

/// A candidate for the base, and its source.
#[derive(Clone, Copy)]
struct Base<'a> {
    block: &'a Block,
    /// The site that it belongs to, or `None` if it is from the dictionary.
    site: Option<&'a [u8]>,
}

impl Base<'_> {
    /// Returns true if it belongs to another site than the block, or if the block's site is not known yet.
    fn foreign(&self, scene: &Scene<'_>) -> bool {
        self.site.is_some_and(|site| scene.site.as_deref() != Some(site))
    }

    /// Returns true if the block may use the value of this field.
    fn lends(&self, scene: &Scene<'_>, field: &Field) -> bool {
        field.policy.scope == Scope::Client || !self.foreign(scene)
    }
}

/// The four steps of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Same,
    Changed,
    Skipped,
    Inserted,
}

/// Writes `block`, or reads one.
pub(crate) fn code<C: Coder>(coder: &mut C, scene: &mut Scene<'_>, block: &Block) -> Result<Block, DecodeError> {
    let base = choose_base(coder, scene, block)?;
    scene.base = Some(base.block);
    let mut out = Block::with_room();
    let mut ours = block.fields().iter().enumerate().peekable();
    let mut theirs = base.block.fields().iter().enumerate();
    let mut next_base = theirs.next();
    let mut last = Step::Same;
    loop {
        let next = ours.peek().map(|(at, field)| (*at, *field));
        let Some((base_at, base_field)) = next_base else {
            let contexts = [mix(salt::MORE, last as u32 + 8 * scene.side as u32), mix(salt::MORE + 8, last as u32)];
            if !coder.bit(&contexts, next.is_some()) {
                return Ok(out);
            }
            insert(coder, scene, block, next.map(|(_, field)| field), &mut out)?;
            ours.next();
            last = Step::Inserted;
            continue;
        };
        let step =
            next.map_or(Step::Skipped, |(at, field)| decide(scene, block, (at, field), &base, (base_at, base_field)));
        last = code_step(coder, scene, &base, base_field, last, step);
        match last {
            Step::Same => {
                let (name, value) = (base.block.name(base_field), base.block.value(base_field));
                scene.note(name, value);
                push(&mut out, name, value)?;
                ours.next();
                next_base = theirs.next();
            }
            Step::Changed => {
                let name = base.block.name(base_field);
                let known = base.lends(scene, base_field).then(|| base.block.value(base_field));
                let place = Place { name: base_field.key.name, policy: base_field.policy, base: known };
                let new = next.map(|(_, field)| block.value(field)).unwrap_or_default();
                let value = value::code(coder, scene, &place, new)?;
                scene.note(name, &value);
                push(&mut out, name, &value)?;
                ours.next();
                next_base = theirs.next();
            }
            Step::Skipped => next_base = theirs.next(),
            Step::Inserted => {
                insert(coder, scene, block, next.map(|(_, field)| field), &mut out)?;
                ours.next();
            }
        }
    }
}

fn push(out: &mut Block, name: &[u8], value: &[u8]) -> Result<(), DecodeError> {
    out.push(name, value).map_err(|_| DecodeError::TooLarge)
}

/// The subject under which a name that the dictionary lacks is spelt.
const NAME: Subject = Subject { form: Form::Text, kind: salt::NAME };

/// Codes a field without the base.
fn insert<C: Coder>(
    coder: &mut C,
    scene: &mut Scene<'_>,
    block: &Block,
    field: Option<&Field>,
    out: &mut Block,
) -> Result<(), DecodeError> {
    let before = out.keys().last().map_or(0, |key| key.name);
    let name = field.map(|field| block.name(field)).unwrap_or_default();
    let number = scene.dictionary.number_of(name);
    let side = scene.side as u32;
    let name = if coder.bit(&[mix(salt::NAME_KNOWN, side)], number.is_some()) {
        let contexts = [mix(salt::NAME, before), mix(salt::NAME + 1, side)];
        let number = choice(coder, contexts, 8, number.unwrap_or(0));
        scene
            .dictionary
            .name(number)
            .ok_or(DecodeError::Malformed("a name that the dictionary does not have"))?
            .to_vec()
    } else {
        let mut spelt = Vec::new();
        text::spell(coder, &mut Speller::new(salt::NAME), NAME, name, &mut scene.budget, &mut spelt)?;
        spelt
    };
    let place = Place { name: hash::bytes(&name), policy: policy::of(&name), base: None };
    let value = field.map(|field| block.value(field)).unwrap_or_default();
    let value = value::code(coder, scene, &place, value)?;
    scene.note(&name, &value);
    push(out, &name, &value)
}

/// Returns the encoder's step for the next field of the base.
fn decide(
    scene: &Scene<'_>,
    block: &Block,
    (at, field): (usize, &Field),
    base: &Base<'_>,
    (base_at, base_field): (usize, &Field),
) -> Step {
    let equal = |field: &Field, base_field: &Field| {
        field.key == base_field.key
            && base.lends(scene, base_field)
            && block.value(field) == base.block.value(base_field)
            && block.name(field) == base.block.name(base_field)
    };
    if equal(field, base_field) {
        return Step::Same;
    }
    let ours_later = || block.fields().iter().skip(at + 1);
    let theirs_later = || base.block.fields().iter().skip(base_at + 1);
    let wanted_later = ours_later().any(|later| equal(later, base_field));
    let comes_later = theirs_later().any(|later| equal(field, later));
    if block.name(field) == base.block.name(base_field) {
        return match (wanted_later, comes_later) {
            (true, false) => Step::Inserted,
            (false, true) => Step::Skipped,
            _ => Step::Changed,
        };
    }
    let name_wanted = ours_later().any(|later| later.key.name == base_field.key.name);
    let name_comes = theirs_later().any(|later| later.key.name == field.key.name);
    if !name_wanted || (name_comes && !wanted_later) { Step::Skipped } else { Step::Inserted }
}

/// Codes a step as up to three decisions. The recent stability of this field is the strongest context.
fn code_step<C: Coder>(
    coder: &mut C,
    scene: &Scene<'_>,
    base: &Base<'_>,
    field: &Field,
    last: Step,
    step: Step,
) -> Step {
    let stable = stability(scene, field);
    let origin = u32::from(base.site.is_none()) + 2 * u32::from(base.foreign(scene));
    let last = last as u32;
    let name = field.key.name;
    let contexts = [
        mix(name ^ salt::SAME, stable * 4 + origin),
        mix(name ^ salt::SAME, 1000 + last * 4 + origin),
        mix(salt::SAME, stable * 4 + last),
    ];
    if base.lends(scene, field) && coder.bit(&contexts, step == Step::Same) {
        return Step::Same;
    }
    if coder.bit(&[mix(name ^ salt::CHANGED, last), mix(salt::CHANGED, last)], step == Step::Changed) {
        return Step::Changed;
    }
    if coder.bit(&[mix(name ^ salt::SKIPPED, last), mix(salt::SKIPPED, last)], step == Step::Skipped) {
        return Step::Skipped;
    }
    Step::Inserted
}

/// Number of the latest exchanges that show the stability of a field.
const STEADY_EXCHANGES: usize = 4;

/// Returns one state for each of the latest exchanges: the field was absent, equal to the base's, or different.
fn stability(scene: &Scene<'_>, field: &Field) -> u32 {
    scene.view.newest().take(STEADY_EXCHANGES).fold(0, |sum, past| {
        let found = past.keys(scene.side).iter().find(|other| other.name == field.key.name);
        let state = match found {
            None => 0,
            Some(other) if other.value == field.key.value => 1,
            Some(_) => 2,
        };
        sum * 3 + state
    })
}

/// Binary digits of the index of a block in the dictionary.
const COMMON_BITS: u32 = 7;

fn choose_base<'a, C: Coder>(coder: &mut C, scene: &Scene<'a>, block: &Block) -> Result<Base<'a>, DecodeError> {
    let common = scene.dictionary.blocks(scene.side);
    let best = best_base(scene, block, common);
    let side = scene.side as u32;
    if scene.view.is_empty() || coder.bit(&[mix(salt::BASE_KIND, side)], best.1) {
        let rank = u64::try_from(best.0).unwrap_or(0);
        let first = u32::from(scene.view.is_empty());
        let contexts = [mix(salt::BASE_RANK, 4 + side * 2 + first), mix(salt::BASE_RANK, 8 + side)];
        let rank = choice(coder, contexts, COMMON_BITS, rank);
        let found = usize::try_from(rank).ok().and_then(|rank| common.get(rank));
        let block = found.ok_or(DecodeError::Malformed("a block that the dictionary does not have"))?;
        return Ok(Base { block, site: None });
    }
    let rank = number(coder, mix(salt::BASE_RANK, side), u64::try_from(best.0).unwrap_or(0));
    let found = usize::try_from(rank).ok().and_then(|rank| scene.view.newest().nth(rank));
    let exchange = found.ok_or(DecodeError::Malformed("an exchange that the view does not have"))?.exchange();
    Ok(Base { block: exchange.block(scene.side), site: Some(&exchange.site) })
}

/// Returns the index of the block most like `block`, and true if it is one of the dictionary's. The search reads the
/// dictionary only if no recent block is much alike.
fn best_base(scene: &Scene<'_>, block: &Block, common: &[Block]) -> (usize, bool) {
    let perfect: i32 = block.fields().iter().map(worth).sum();
    let mut best = (0, scene.view.is_empty(), i32::MIN);
    let site = scene.site.as_ref().map_or_else(|| hash::bytes(&block.site()), |site| hash::bytes(site));
    let recent = scene.view.newest().take(limits::BASES);
    for (rank, past) in recent.enumerate() {
        let score = likeness(block, past.keys(scene.side), past.site == site)
            - i32::try_from((rank + 1).ilog2()).unwrap_or(0) * 2;
        if score > best.2 {
            best = (rank, false, score);
        }
        if best.2 >= perfect - i32::try_from((rank + 2).ilog2()).unwrap_or(0) * 2 {
            return (best.0, best.1);
        }
    }
    if best.2 > perfect / 2 {
        return (best.0, best.1);
    }
    for (rank, base) in common.iter().enumerate() {
        let score = likeness(block, base.keys(), true) - 10;
        if score > best.2 {
            best = (rank, true, score);
        }
    }
    (best.0, best.1)
}

/// Returns roughly how many bytes an omitted field saves.
fn worth(field: &Field) -> i32 {
    6 + field.value_size().min(10)
}

/// Returns roughly how many bytes a base saves. Unless the base `lends` all its values, values that must stay within
/// their site do not count. Otherwise the choice of the base would leak them.
pub(crate) fn likeness(block: &Block, theirs: &[Key], lends: bool) -> i32 {
    let mut from = 0;
    let mut found = 0;
    let mut score = 0;
    for field in block.fields() {
        // Most blocks have their fields in the same order.
        let later = theirs.iter().enumerate().skip(from);
        let earlier = theirs.iter().enumerate().take(from);
        let Some((at, other)) = later.chain(earlier).find(|(_, other)| other.name == field.key.name) else {
            score -= 6;
            continue;
        };
        from = at + 1;
        found += 1;
        let same = other.value == field.key.value && (lends || field.policy.scope == Scope::Client);
        score += if same { worth(field) } else { 3 };
    }
    score - 4 * i32::try_from(theirs.len()).unwrap_or(0).saturating_sub(found)
}
