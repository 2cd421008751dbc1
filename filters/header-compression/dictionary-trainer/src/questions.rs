//! Passes traces through the codec and records every decision with its contexts and its value.

use std::rc::Rc;

use header_codec::training::{self, Coder};
use header_codec::{Block, DecodeError, Dictionary, Exchange, FieldList, Side, View};

use crate::traces::Trace;

/// Decisions in order: the end of each one's contexts in `contexts`, and its value.
#[derive(Debug, Default)]
pub struct Questions {
    contexts: Vec<u32>,
    ends: Vec<(usize, bool)>,
}

impl Coder for Questions {
    fn bit(&mut self, contexts: &[u32], bit: bool) -> bool {
        self.contexts.extend_from_slice(contexts);
        self.ends.push((self.contexts.len(), bit));
        bit
    }

    fn raw(&mut self, _: u32, value: u64) -> u64 {
        value
    }
}

impl Questions {
    /// Iterates over the contexts and the value of each decision.
    pub fn iter(&self) -> impl Iterator<Item = (&[u32], bool)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts.zip(&self.ends).map(|(start, (end, bit))| (self.contexts.get(start..*end).unwrap_or_default(), *bit))
    }

    /// Returns the contexts of all decisions.
    pub fn contexts(&self) -> &[u32] {
        &self.contexts
    }

    /// Returns the number of decisions.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no decisions.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns only the decisions with this number of contexts.
    fn with_contexts(&self, count: usize) -> Self {
        let mut chosen = Self::default();
        for (contexts, bit) in self.iter().filter(|(contexts, _)| contexts.len() == count) {
            chosen.bit(contexts, bit);
        }
        chosen
    }
}

/// Number of contexts of a decision about one letter of a text.
const SPELLING_CONTEXTS: usize = 5;

/// Returns the decisions of a trace of one connection, block by block.
pub fn of_trace(dictionary: &Dictionary, trace: &Trace) -> Result<Vec<Questions>, DecodeError> {
    of_blocks(dictionary, trace.side, &trace.blocks)
}

/// Returns the decisions of pieces of a trace, each as if it were a connection of its own. Beginnings are rare in
/// traces and matter in use.
pub fn of_beginnings(dictionary: &Dictionary, trace: &Trace, pieces: usize) -> Result<Vec<Questions>, DecodeError> {
    const LENGTH: usize = 3;
    let every = trace.blocks.len().div_ceil(pieces.max(1)).max(1);
    let mut all = Vec::new();
    for start in (0..trace.blocks.len()).step_by(every) {
        let piece: Vec<FieldList> = trace.blocks.iter().skip(start).take(LENGTH).cloned().collect();
        all.extend(of_blocks(dictionary, trace.side, &piece)?);
    }
    Ok(all)
}

fn of_blocks(dictionary: &Dictionary, side: Side, blocks: &[FieldList]) -> Result<Vec<Questions>, DecodeError> {
    let mut view = View::default();
    let mut all = Vec::new();
    let answered = [(b":authority".to_vec(), b"www.example.org".to_vec())];
    let request_of_responses = block_of(&answered)?;
    for (number, fields) in (1..).zip(blocks) {
        let block = block_of(fields)?;
        let mut questions = Questions::default();
        heads(&mut questions, number)?;
        let request = (side == Side::Response).then_some(&request_of_responses);
        training::block(&mut questions, dictionary, side, &view, request, &block)?;
        all.push(questions);
        let exchange = match side {
            Side::Request => Exchange::new(number, Rc::new(block), Block::default()),
            Side::Response => Exchange::new(number, Rc::new(request_of_responses.clone()), block),
        };
        view = view.with(Rc::new(exchange));
    }
    Ok(all)
}

fn block_of(fields: &[(Vec<u8>, Vec<u8>)]) -> Result<Block, DecodeError> {
    Block::from_fields(fields.iter().map(|(name, value)| (&**name, &**value))).map_err(|_| DecodeError::TooLarge)
}

/// Records the decisions before a block. No trace shows how many clients a remote has or how their exchanges overlap.
/// These values assume a few clients, mostly one exchange after the other, and sometimes a dozen at once.
fn heads(questions: &mut Questions, number: u64) -> Result<(), DecodeError> {
    let client = [0, 1, 2, 3, 5, 9, 17, 40, 90, 200, 1, 0, 4, 7, 12, 25];
    let appended: [&[i64]; 8] = [&[0], &[0], &[], &[0], &[0, 0], &[1, -2], &[0], &[2]];
    let exchange = [0, 0, 0, 1, 2, 0, 5, 12, 0, 3];
    let pick = |length: usize| usize::try_from(number).unwrap_or(0) % length;
    let client = client.get(pick(client.len())).copied().unwrap_or(0);
    let appended = appended.get(pick(appended.len())).copied().unwrap_or(&[]);
    let exchange = exchange.get(pick(exchange.len())).copied().unwrap_or(0);
    if number == 1 {
        training::opening(questions, client, 1);
        return Ok(());
    }
    training::following(questions, client, appended, exchange)
}

/// Returns the spelling decisions of URLs: the succession of letters in paths, authorities and referers.
pub fn of_urls(dictionary: &Dictionary, urls: &[(String, String)]) -> Result<Vec<Questions>, DecodeError> {
    let view = View::default();
    let mut all = Vec::new();
    for (number, (authority, path)) in urls.iter().enumerate() {
        let referer = format!("http://{authority}{path}");
        let mut fields = vec![
            (b":authority".to_vec(), authority.clone().into_bytes()),
            (b":path".to_vec(), path.clone().into_bytes()),
        ];
        if number % 4 == 0 {
            fields.push((b"referer".to_vec(), referer.into_bytes()));
        }
        let mut questions = Questions::default();
        training::block(&mut questions, dictionary, Side::Request, &view, None, &block_of(&fields)?)?;
        all.push(questions.with_contexts(SPELLING_CONTEXTS));
    }
    Ok(all)
}
