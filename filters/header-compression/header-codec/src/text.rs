//! Encodes a text as its differences from a known text, token by token. New tokens are spelt out.
//!
//! A token is either copied whole or spelt whole. An attacker can make the client send guesses of a secret and watch
//! the sizes. Whole tokens force the attacker to guess a complete token at once, as with HPACK's whole values (RFC
//! 7541, 7.1), and never byte by byte. So each value that may be a secret, such as a cookie's value or a segment of a
//! path, is one token.

use crate::bulk;
use crate::coder::{Coder, number, salt};
use crate::error::DecodeError;
use crate::hash::mix;
use crate::limits;
use crate::policy::Form;
use crate::spell::{END, Speller};

/// The bytes of a block that may still be spelt under the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget(usize);

impl Budget {
    pub(crate) fn new() -> Self {
        Self(limits::MODELLED_BYTES)
    }

    /// Returns true if a text should be spelt under the model rather than go to [`bulk`].
    fn allows(self, form: Form, text: &[u8]) -> bool {
        (!form.repeats_safely() || text.len() < limits::BULK_BYTES) && text.len() < self.0 && !text.contains(&END)
    }

    fn spend(&mut self) -> Result<(), DecodeError> {
        self.0 = self.0.checked_sub(1).ok_or(DecodeError::TooLarge)?;
        Ok(())
    }
}

/// Returns the length of the first token of a value of this `form`.
fn token(form: Form, text: &[u8]) -> usize {
    let separates = |byte: u8| match form {
        Form::Url => matches!(byte, b'/' | b'?' | b'&' | b'=' | b'#' | b';' | b','),
        Form::Crumb => byte == b'=',
        Form::SetCookie => matches!(byte, b';' | b' ' | b'=' | b','),
        Form::Whole => false,
        Form::Text | Form::Date | Form::Number => {
            !matches!(byte, b'-' | b'_' | b'+' | b'%') && !byte.is_ascii_alphanumeric()
        }
    };
    match text.iter().position(|byte| separates(*byte)) {
        Some(0) => 1,
        Some(at) => at,
        None => text.len(),
    }
}

/// Splits a text into tokens. A cookie's value is one token, whatever bytes it contains.
fn tokens(form: Form, text: &[u8]) -> Vec<&[u8]> {
    let mut tokens = Vec::with_capacity(16);
    cut(form, text, &mut tokens);
    tokens
}

fn cut<'a>(form: Form, mut text: &'a [u8], tokens: &mut Vec<&'a [u8]>) {
    tokens.clear();
    while !text.is_empty() {
        let length = match (form, tokens.len()) {
            (Form::Crumb, 2) => text.len(),
            (Form::SetCookie, 2) => text.iter().position(|byte| *byte == b';').unwrap_or(text.len()).max(1),
            _ => token(form, text),
        };
        let (first, rest) = text.split_at_checked(length).unwrap_or((text, &[]));
        tokens.push(first);
        text = rest;
    }
}

/// Returns the index of the known text that shares the most with `text` at both ends. Returns `None` if naming it would
/// cost more than it saves.
///
/// Only whole tokens count, as everywhere in this module. If single bytes affected the choice of the model, its index
/// would leak them. A URL is compared only with URLs of its own origin, because a page may choose the path on its own
/// origin.
pub(crate) fn best_model(form: Form, models: &[&[u8]], text: &[u8]) -> Option<usize> {
    let ours = tokens(form, text);
    let origin = match form {
        Form::Url if text.windows(3).any(|window| window == b"://") => ORIGIN_TOKENS,
        _ => 0,
    };
    let mut theirs = Vec::with_capacity(16);
    let mut best: Option<(usize, usize)> = None;
    for (rank, model) in models.iter().enumerate() {
        cut(form, model, &mut theirs);
        let head = ours.iter().zip(&theirs).take_while(|(one, other)| one == other).count();
        if head < origin {
            continue;
        }
        let rest = ours.len().min(theirs.len()) - head;
        let pairs = ours.iter().rev().zip(theirs.iter().rev()).take(rest);
        let tail = pairs.take_while(|(one, other)| one == other).count();
        let bytes = |tokens: &mut dyn Iterator<Item = &&[u8]>| tokens.map(|token| token.len()).sum::<usize>();
        let score = bytes(&mut ours.iter().take(head)) + bytes(&mut ours.iter().rev().take(tail));
        // A later rank costs more to name.
        if score > best.map_or(1, |(_, best)| best + usize::from(rank > 1)) {
            best = Some((rank, score));
        }
    }
    best.map(|(rank, _)| rank)
}

/// `http:`, two slashes and the authority.
const ORIGIN_TOKENS: usize = 4;

/// The field that a text belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) form: Form,
    /// Hash of the field's name.
    pub(crate) kind: u32,
}

/// Codes a text without a model to copy from, and appends it to `out`.
pub(crate) fn spell<C: Coder>(
    coder: &mut C,
    speller: &mut Speller,
    subject: Subject,
    text: &[u8],
    budget: &mut Budget,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    if coder.bit(&[mix(salt::BULK, subject.kind)], !budget.allows(subject.form, text)) {
        return bulk::code(coder, subject.form.repeats_safely(), text, out);
    }
    let mut text = text.iter();
    loop {
        budget.spend()?;
        match speller.byte(coder, text.next().copied().unwrap_or(END)) {
            END => return Ok(()),
            byte => out.push(byte),
        }
    }
}

/// How many tokens of a text and of its model are searched for a token in common.
const LOOK_AHEAD: (usize, usize) = (24, 12);

/// Codes a text by its differences from `model`, and appends it to `out`.
pub(crate) fn differ<C: Coder>(
    coder: &mut C,
    subject: Subject,
    model: &[u8],
    text: &[u8],
    budget: &mut Budget,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let Subject { form, kind } = subject;
    let mut speller = Speller::new(kind);
    let ours = tokens(form, text);
    let known = tokens(form, model);
    let (mut at, mut known_at) = (0, 0);
    let mut copied = 1;
    loop {
        let next = known.get(known_at).copied();
        if let Some(next) = next {
            let copy = ours.get(at) == Some(&next);
            let contexts = [mix(kind ^ salt::COPY, copied), mix(salt::COPY, copied)];
            if coder.bit(&contexts, copy) {
                take(next, &mut speller, out)?;
                (at, known_at, copied) = (at + 1, known_at + 1, 1);
                continue;
            }
        }
        let left = u32::from(next.is_some());
        if coder.bit(&[mix(kind ^ salt::END, left), mix(salt::END, left)], at >= ours.len()) {
            return Ok(());
        }
        let (resume, known_resume) = meet(&ours, &known, at, known_at);
        let new = ours.get(at..resume).unwrap_or_default().concat();
        spell(coder, &mut speller, subject, &new, budget, out)?;
        if next.is_none() || coder.bit(&[mix(kind, salt::TAIL), salt::TAIL], known_resume >= known.len()) {
            return Ok(());
        }
        let skip = u64::try_from(known_resume.saturating_sub(known_at)).unwrap_or(0);
        let skip = number(coder, mix(kind, salt::SKIP_TOKENS), skip);
        known_at = usize::try_from(skip).ok().and_then(|skip| known_at.checked_add(skip)).unwrap_or(usize::MAX);
        // A token in common follows the new text. Otherwise the new text would be longer.
        let next = known.get(known_at).ok_or(DecodeError::Malformed("skips past the end of the text it copies"))?;
        take(next, &mut speller, out)?;
        (at, known_at, copied) = (resume + 1, known_at + 1, 0);
    }
}

/// Copies a token.
fn take(token: &[u8], speller: &mut Speller, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    if out.len().saturating_add(token.len()) > limits::BLOCK_BYTES {
        return Err(DecodeError::TooLarge);
    }
    for byte in token {
        speller.pass(*byte);
    }
    out.extend_from_slice(token);
    Ok(())
}

/// Returns the nearest token that both lists still have, or the ends of both lists if there is none.
fn meet(ours: &[&[u8]], known: &[&[u8]], at: usize, known_at: usize) -> (usize, usize) {
    for (ahead, token) in ours.iter().enumerate().skip(at).take(LOOK_AHEAD.0) {
        let found = known.iter().enumerate().skip(known_at).take(LOOK_AHEAD.1).find(|(_, other)| *other == token);
        if let Some((known_ahead, _)) = found {
            return (ahead, known_ahead);
        }
    }
    (ours.len(), known.len())
}
