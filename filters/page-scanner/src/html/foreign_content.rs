//! Whether something is a tag, in SVG, in `MathML` and behind them: `lol_html` knows, because it has the tokenizer's states
//! and the tree builder's feedback.
//!
//! It is used for nothing else. Its output is thrown away, so it cannot change a page; and without handlers it takes its
//! fastest way, which neither reads attributes nor keeps a stack of elements. It holds its output back from a `<` on while
//! that may still be a tag, and that is how it answers: given everything up to the end of a tag's name, it has let go of
//! everything before the `<` and nothing behind, exactly if that `<` begins a tag.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use lol_html::errors::RewritingError;
use lol_html::{HtmlRewriter, MemorySettings, Settings};

use crate::bail_out::BailOut;

type Output = Box<dyn FnMut(&[u8])>;

/// The parser. A failed one panics if it is called again, so it is dropped at once.
pub(super) struct ForeignContent {
    engine: Option<HtmlRewriter<'static, Output>>,
    /// How much of the input it has let go of.
    let_go: Rc<Cell<usize>>,
    /// How much it has been given.
    given: usize,
}

impl ForeignContent {
    /// One that is where the start tag of an `svg` or `math` element ended, at `start` of the body: the first in a page
    /// or in markup inside one, so that nothing before it can matter.
    pub(super) fn inside(element: &[u8], start: usize, memory_bytes: usize) -> Result<Self, BailOut> {
        let tag = [b"<", element, b">"].concat();
        let tag_start = start.saturating_sub(tag.len());
        let let_go = Rc::new(Cell::new(tag_start));
        let counter = Rc::clone(&let_go);
        let memory =
            MemorySettings::new().with_max_allowed_memory_usage(memory_bytes).with_preallocated_parsing_buffer_size(0);
        let settings = Settings::new().with_strict(false).with_memory_settings(memory);
        let output: Output = Box::new(move |bytes: &[u8]| counter.set(counter.get() + bytes.len()));
        let mut parser = Self { engine: Some(HtmlRewriter::new(settings, output)), let_go, given: tag_start };
        parser.read(&tag)?;
        Ok(parser)
    }

    /// How much of the body it has been given.
    pub(super) fn given(&self) -> usize {
        self.given
    }

    /// Reads on.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), BailOut> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut engine = self.engine.take().ok_or(BailOut::Parser)?;
        engine.write(bytes).map_err(|error| match error {
            RewritingError::MemoryLimitExceeded(_) => BailOut::Memory,
            _ => BailOut::Parser,
        })?;
        self.engine = Some(engine);
        self.given += bytes.len();
        Ok(())
    }

    /// Given everything up to the end of a tag's name: whether the `<` at `open` begins a tag.
    pub(super) fn is_tag(&self, open: usize) -> bool {
        self.let_go.get() == open
    }
}

#[allow(clippy::missing_fields_in_debug, reason = "the engine says nothing about itself")]
impl fmt::Debug for ForeignContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parser = formatter.debug_struct("ForeignContent");
        parser.field("running", &self.engine.is_some()).field("given", &self.given).field("let_go", &self.let_go);
        parser.finish()
    }
}
