//! What two ends have in common of one client's past: completed exchanges, and views of them.

use std::rc::Rc;

use crate::block::Block;
use crate::limits;

/// One half of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Remote to ground.
    Request,
    /// Ground to remote.
    Response,
}

/// A request and its response, known to both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Which of the client's exchanges it is, from 1.
    number: u64,
    pub(crate) site: Vec<u8>,
    request: Rc<Block>,
    response: Block,
}

impl Exchange {
    /// A completed exchange.
    pub fn new(number: u64, request: Rc<Block>, response: Block) -> Self {
        let site = request.site();
        Self { number, site, request, response }
    }

    pub(crate) fn block(&self, side: Side) -> &Block {
        match side {
            Side::Request => &self.request,
            Side::Response => &self.response,
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn bytes(&self) -> usize {
        self.request.bytes() + self.response.bytes()
    }
}

/// The exchanges that a message may refer to, oldest first. Immutable: a later view is another one, and whoever
/// holds this one keeps it, so that a response decodes however long it took.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// How many exchanges have ever been added.
    pub(crate) number: u64,
    exchanges: Vec<Rc<Exchange>>,
    bytes: usize,
}

impl View {
    /// The view with one exchange more; the oldest ones leave as [`limits`] say.
    #[must_use]
    pub fn with(&self, exchange: Rc<Exchange>) -> Self {
        let mut bytes = self.bytes + exchange.bytes();
        let mut dropped = 0;
        for old in &self.exchanges {
            if self.exchanges.len() - dropped < limits::VIEW_EXCHANGES && bytes <= limits::VIEW_BYTES {
                break;
            }
            bytes = bytes.saturating_sub(old.bytes());
            dropped += 1;
        }
        let mut exchanges = Vec::with_capacity(self.exchanges.len() + 1 - dropped);
        exchanges.extend(self.exchanges.iter().skip(dropped).cloned());
        exchanges.push(exchange);
        Self { number: self.number + 1, exchanges, bytes }
    }

    /// Exchanges, newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().rev().map(Rc::as_ref)
    }

    /// The number of the newest exchange; 0 if there is none.
    pub(crate) fn newest_number(&self) -> u64 {
        self.exchanges.last().map_or(0, |exchange| exchange.number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }
}
