//! What both ends know while they walk a block.

use std::cell::OnceCell;

use crate::block::Block;
use crate::date;
use crate::dictionary::Dictionary;
use crate::exchange::{Side, View};
use crate::site;
use crate::text::Budget;

/// Where a block belongs.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) side: Side,
    /// What it may refer to.
    pub(crate) view: &'a View,
    /// The request that a response answers.
    pub(crate) request: Option<&'a Block>,
}

/// What is known while a block is walked.
pub(crate) struct Scene<'a> {
    pub(crate) side: Side,
    pub(crate) view: &'a View,
    pub(crate) dictionary: &'a Dictionary,
    /// The site the exchange belongs to, as soon as its authority is known.
    pub(crate) site: Option<Vec<u8>>,
    /// The block's own date so far.
    pub(crate) date: Option<u64>,
    /// The latest date of an earlier block, once it was asked for.
    last_date: OnceCell<Option<u64>>,
    /// The block that this one starts from.
    pub(crate) base: Option<&'a Block>,
    /// `max-age` of the block's `Cache-Control` so far.
    pub(crate) max_age: Option<u64>,
    pub(crate) budget: Budget,
}

/// How many of the latest exchanges are asked for a date.
const DATED: usize = 4;

impl<'a> Scene<'a> {
    /// The scene before the first field; a response belongs to the site of its request.
    pub(crate) fn new(setting: Setting<'a>, dictionary: &'a Dictionary) -> Self {
        let Setting { side, view, request } = setting;
        Self {
            side,
            view,
            dictionary,
            site: request.map(Block::site),
            date: None,
            last_date: OnceCell::new(),
            base: None,
            max_age: None,
            budget: Budget::new(),
        }
    }

    /// The date of the latest earlier block that has one.
    pub(crate) fn last_date(&self) -> Option<u64> {
        let find = || self.view.newest().take(DATED).find_map(|past| date_of(past.exchange().block(Side::Response)));
        *self.last_date.get_or_init(find)
    }

    /// The date of the block that this one starts from.
    pub(crate) fn base_date(&self) -> Option<u64> {
        self.base.and_then(date_of)
    }

    /// Takes note of a field that is known now.
    pub(crate) fn note(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b":authority" if self.side == Side::Request => self.site = Some(site::of(value)),
            b"date" => self.date = date::parse(value),
            b"cache-control" => self.max_age = max_age(value),
            _ => {}
        }
    }
}

fn date_of(block: &Block) -> Option<u64> {
    block.get(b"date").and_then(date::parse)
}

/// The number after `max-age=`.
fn max_age(value: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"max-age=";
    let at = value.windows(KEY.len()).position(|window| window == KEY)?;
    let digits = value.iter().skip(at + KEY.len()).take_while(|byte| byte.is_ascii_digit()).take(10);
    Some(digits.fold(0, |sum, digit| sum * 10 + u64::from(digit.wrapping_sub(b'0'))))
}
