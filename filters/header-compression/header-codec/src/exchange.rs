//! The past of one client that both ends share: completed exchanges, and views of them.
//!
//! A worker serves many clients, and other programs share its CPU caches, so most of the earlier exchanges are not in a
//! CPU cache. Every message needs the hashes of names and values. They lie close together, a few exchanges at a time,
//! and the codec touches an exchange itself only to use a value of it.

use std::rc::Rc;

use crate::block::{Block, Key};
use crate::hash;
use crate::limits;

/// One half of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// From the remote to the ground.
    Request,
    /// From the ground to the remote.
    Response,
}

impl Side {
    fn index(self) -> usize {
        match self {
            Self::Request => 0,
            Self::Response => 1,
        }
    }
}

/// A request and its response, which both ends know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Number among the client's exchanges, from 1.
    number: u64,
    pub(crate) site: Vec<u8>,
    request: Rc<Block>,
    response: Block,
}

impl Exchange {
    /// Builds a completed exchange.
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

/// Exchanges in a segment.
const SEGMENT: usize = 4;

/// Successive exchanges, with the data that the codec reads before it touches any of them.
#[derive(Debug, Clone, Default)]
struct Segment {
    exchanges: Vec<Rc<Exchange>>,
    summaries: Vec<Summary>,
    /// The keys of all requests, and the keys of all responses.
    keys: [Vec<Key>; 2],
}

/// Summary of an exchange.
#[derive(Debug, Clone)]
struct Summary {
    site: Rc<Site>,
    bytes: usize,
    /// The ends of its keys in the two lists.
    ends: [usize; 2],
}

/// The site of one exchange or several.
#[derive(Debug)]
struct Site {
    hash: u32,
    name: Vec<u8>,
}

impl Segment {
    fn with(&self, exchange: Rc<Exchange>, site: Rc<Site>) -> Self {
        let mut longer = self.clone();
        for (keys, side) in longer.keys.iter_mut().zip([Side::Request, Side::Response]) {
            keys.extend_from_slice(exchange.block(side).keys());
        }
        let ends = [longer.keys[0].len(), longer.keys[1].len()];
        longer.summaries.push(Summary { site, bytes: exchange.bytes(), ends });
        longer.exchanges.push(exchange);
        longer
    }

    /// Returns one of its exchanges.
    fn past(&self, at: usize) -> Option<Past<'_>> {
        let (exchange, summary) = (self.exchanges.get(at)?, self.summaries.get(at)?);
        let starts =
            at.checked_sub(1).and_then(|before| self.summaries.get(before)).map_or([0, 0], |before| before.ends);
        Some(Past { exchange, site: summary.site.hash, keys: &self.keys, starts, ends: summary.ends })
    }
}

/// An exchange of a view, whose keys can be read without touching it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past<'a> {
    exchange: &'a Rc<Exchange>,
    /// The hash of its site.
    pub(crate) site: u32,
    keys: &'a [Vec<Key>; 2],
    starts: [usize; 2],
    ends: [usize; 2],
}

impl<'a> Past<'a> {
    pub(crate) fn keys(&self, side: Side) -> &'a [Key] {
        let which = side.index();
        let (starts, ends) = (self.starts.get(which), self.ends.get(which));
        match (self.keys.get(which), starts, ends) {
            (Some(keys), Some(start), Some(end)) => keys.get(*start..*end).unwrap_or_default(),
            _ => &[],
        }
    }

    pub(crate) fn exchange(&self) -> &'a Exchange {
        self.exchange
    }
}

/// A field of an earlier message that matches a search by name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit<'a> {
    segment: &'a Segment,
    side: Side,
    row: usize,
    /// The hash of its value.
    pub(crate) value: u32,
}

impl<'a> Hit<'a> {
    /// Returns true if a message of `site` may refer to its value. `None` allows the values of every site.
    pub(crate) fn may_be_lent_to(&self, site: Option<&[u8]>) -> bool {
        let summary = || self.segment.summaries.get(self.place());
        site.is_none_or(|site| summary().is_some_and(|summary| summary.site.name == site))
    }

    /// Returns its value.
    pub(crate) fn text(&self) -> &'a [u8] {
        let at = self.place();
        let before = at.checked_sub(1).and_then(|before| self.segment.summaries.get(before));
        let start = before.and_then(|before| before.ends.get(self.side.index())).copied().unwrap_or(0);
        let exchange = self.segment.exchanges.get(at);
        exchange.map(|exchange| exchange.block(self.side).value_at(self.row.saturating_sub(start))).unwrap_or_default()
    }

    /// Returns the index of its exchange in the segment.
    fn place(&self) -> usize {
        let which = self.side.index();
        let before = |summary: &Summary| summary.ends.get(which).is_some_and(|end| *end <= self.row);
        self.segment.summaries.partition_point(before)
    }
}

/// The exchanges that a message may refer to. A view is immutable: a later view is another value, and a stream keeps
/// the one it began with. So a response decodes however long it took.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Number of exchanges added since the first view.
    pub(crate) number: u64,
    /// Oldest first. All segments but the last are full.
    segments: Vec<Rc<Segment>>,
    /// Exchanges of the first segment that no longer belong to the view.
    skipped: usize,
    count: usize,
    bytes: usize,
}

impl View {
    /// Returns the view with one more exchange. The oldest ones leave as [`limits`] require.
    #[must_use]
    pub fn with(&self, exchange: Rc<Exchange>) -> Self {
        let mut longer = self.clone();
        longer.number += 1;
        longer.count += 1;
        longer.bytes += exchange.bytes();
        let site = longer.site(&exchange.site);
        match longer.segments.last_mut().filter(|last| last.exchanges.len() < SEGMENT) {
            Some(last) => *last = Rc::new(last.with(exchange, site)),
            None => longer.segments.push(Rc::new(Segment::default().with(exchange, site))),
        }
        while longer.count > 1 && (longer.count > limits::VIEW_EXCHANGES || longer.bytes > limits::VIEW_BYTES) {
            longer.leave_oldest();
        }
        longer
    }

    /// Returns the site of this name, shared with the last segment if it holds the same site. Successive exchanges
    /// mostly belong to one site.
    fn site(&self, name: &[u8]) -> Rc<Site> {
        let known = self.segments.last().map(|last| last.summaries.iter().rev()).into_iter().flatten();
        let mut known = known.map(|summary| &summary.site).filter(|site| site.name == name);
        known.next().map_or_else(|| Rc::new(Site { hash: hash::bytes(name), name: name.to_vec() }), Rc::clone)
    }

    fn leave_oldest(&mut self) {
        let Some(first) = self.segments.first() else { return };
        let bytes = first.summaries.get(self.skipped).map_or(0, |summary| summary.bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.count -= 1;
        self.skipped += 1;
        if self.skipped >= first.exchanges.len() {
            self.segments.remove(0);
            self.skipped = 0;
        }
    }

    /// Iterates over the exchanges, newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = Past<'_>> {
        let segments = self.segments.iter().rev();
        segments
            .flat_map(|segment| (0..segment.exchanges.len()).rev().filter_map(|at| segment.past(at)))
            .take(self.count)
    }

    /// Iterates over the fields of one side that have one of these names, latest first.
    pub(crate) fn search(&self, side: Side, names: [u32; 2]) -> impl Iterator<Item = Hit<'_>> {
        let skipped = self.skipped.checked_sub(1).and_then(|last| self.segments.first()?.summaries.get(last));
        let skipped = skipped.and_then(|last| last.ends.get(side.index())).copied().unwrap_or(0);
        let segments = self.segments.iter().enumerate().rev();
        segments.flat_map(move |(number, segment)| {
            let keys = segment.keys.get(side.index()).map(Vec::as_slice).unwrap_or_default();
            let first = if number == 0 { skipped } else { 0 };
            let rows = keys.get(first..).unwrap_or_default().iter().enumerate().rev();
            let [one, other] = names;
            let found = rows.filter(move |(_, key)| key.name == one || key.name == other);
            found.map(move |(row, key)| Hit { segment, side, row: first + row, value: key.value })
        })
    }

    /// Returns the number of the newest exchange, or 0 if there is none.
    pub(crate) fn newest_number(&self) -> u64 {
        let last = self.segments.last().and_then(|segment| segment.exchanges.last());
        last.map_or(0, |exchange| exchange.number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(number: u64, size: usize) -> Rc<Exchange> {
        let value = vec![b'v'; size];
        let block = |name: &'static [u8]| Block::from_fields([(name, &*value)]).unwrap();
        Rc::new(Exchange::new(number, Rc::new(block(b"request")), block(b"response")))
    }

    fn numbers(view: &View) -> Vec<u64> {
        view.newest().map(|past| past.exchange().number()).collect()
    }

    #[test]
    fn a_view_holds_the_newest_exchanges_and_their_own_keys() {
        let mut view = View::default();
        assert!(view.is_empty());
        for number in 1..=200 {
            view = view.with(exchange(number, usize::try_from(number).unwrap() % 7));
            let held = number.min(u64::try_from(limits::VIEW_EXCHANGES).unwrap());
            assert_eq!(numbers(&view), (number - held + 1..=number).rev().collect::<Vec<_>>());
            assert_eq!((view.number, view.newest_number()), (number, number));
            for past in view.newest() {
                for side in [Side::Request, Side::Response] {
                    assert_eq!(past.keys(side), past.exchange().block(side).keys());
                }
            }
        }
    }

    #[test]
    fn a_view_of_large_exchanges_holds_fewer_and_always_the_newest() {
        let mut view = View::default();
        for number in 1..=40 {
            view = view.with(exchange(number, 4000));
        }
        let held = limits::VIEW_BYTES / (2 * 4000 + "requestresponse".len());
        assert_eq!(numbers(&view), (41 - u64::try_from(held).unwrap()..=40).rev().collect::<Vec<_>>());
        assert_eq!(numbers(&view.with(exchange(41, 80_000))), [41]);
    }

    #[test]
    fn a_search_finds_what_the_view_holds_latest_first_and_lends_it_to_its_site_only() {
        let mut view = View::default();
        let name = hash::bytes(b"etag");
        for number in 1..=100_u64 {
            let authority = if number % 3 == 0 { &b"a.example"[..] } else { b"b.example" };
            let request = Block::from_fields([(&b":authority"[..], authority), (b"etag", b"no")]).unwrap();
            let etag = number.to_string().into_bytes();
            let response = Block::from_fields([(&b":status"[..], &b"200"[..]), (b"etag", &etag)]).unwrap();
            view = view.with(Rc::new(Exchange::new(number, Rc::new(request), response)));
            let lent = |site: Option<&'static [u8]>| {
                let hits = view.search(Side::Response, [name; 2]).filter(move |hit| hit.may_be_lent_to(site));
                hits.map(|hit| hit.text()).collect::<Vec<_>>()
            };
            let all = lent(None);
            let expected: Vec<_> = numbers(&view).iter().map(|number| number.to_string().into_bytes()).collect();
            assert_eq!(all, expected);
            let expected = numbers(&view).into_iter().filter(|number| number % 3 == 0);
            let expected: Vec<_> = expected.map(|number| number.to_string().into_bytes()).collect();
            assert_eq!(lent(Some(b"a.example")), expected);
        }
    }

    #[test]
    fn an_older_view_stays_what_it_was() {
        let mut view = View::default();
        for number in 1..=20 {
            view = view.with(exchange(number, 1));
        }
        let before = numbers(&view);
        let mut later = view.clone();
        for number in 21..=150 {
            later = later.with(exchange(number, 1));
        }
        assert_eq!(numbers(&view), before);
    }
}
