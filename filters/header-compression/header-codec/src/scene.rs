//! The state that both ends share while they walk a block.

use std::cell::OnceCell;

use http_semantics::site;

use crate::block::Block;
use crate::date;
use crate::dictionary::Dictionary;
use crate::exchange::{Side, View};
use crate::text::Budget;

/// The position of a block in the conversation.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) side: Side,
    /// The exchanges that it may refer to.
    pub(crate) view: &'a View,
    /// The request of a response.
    pub(crate) request: Option<&'a Block>,
}

/// The state of one walk over a block.
pub(crate) struct Scene<'a> {
    pub(crate) side: Side,
    pub(crate) view: &'a View,
    pub(crate) dictionary: &'a Dictionary,
    /// The site of the exchange, once its authority is known.
    pub(crate) site: Option<Vec<u8>>,
    /// The block's own date, once it is known.
    pub(crate) date: Option<u64>,
    /// The latest date of an earlier block, once a field needed it.
    last_date: OnceCell<Option<u64>>,
    /// The base of this block.
    pub(crate) base: Option<&'a Block>,
    /// `max-age` of the block's `Cache-Control`, once it is known.
    pub(crate) max_age: Option<u64>,
    pub(crate) budget: Budget,
}

/// How many of the latest exchanges are searched for a date.
const DATED: usize = 4;

impl<'a> Scene<'a> {
    /// Returns the state before the first field. A response belongs to the site of its request.
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

    /// Returns the date of the latest earlier block that has one.
    pub(crate) fn last_date(&self) -> Option<u64> {
        let find = || self.view.newest().take(DATED).find_map(|past| date_of(past.exchange().block(Side::Response)));
        *self.last_date.get_or_init(find)
    }

    /// Returns the date of the base block.
    pub(crate) fn base_date(&self) -> Option<u64> {
        self.base.and_then(date_of)
    }

    /// Records a field that both ends know now.
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

/// Returns the number after `max-age=`, of at most ten digits.
fn max_age(value: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"max-age=";
    let at = value.windows(KEY.len()).position(|window| window == KEY)?;
    let digits = value.iter().skip(at + KEY.len()).take_while(|byte| byte.is_ascii_digit()).take(10);
    Some(digits.fold(0, |sum, digit| sum * 10 + u64::from(digit.wrapping_sub(b'0'))))
}
