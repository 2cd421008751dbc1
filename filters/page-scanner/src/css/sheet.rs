//! A style sheet of its own (`text/css`): chunks in, chunks out. Keeps every byte, whatever happens.

use super::patch;
use super::{SheetUrl, Stream};
use crate::bail_out::BailOut;
use crate::charset::Charset;
use crate::limits::Limits;
use crate::patch::Patch;
use crate::places::STYLE_SHEET;
use crate::visitor::Visitor;

/// One CSS body.
#[derive(Debug)]
pub(crate) struct Sheet {
    patch: Patch,
    charset: Charset,
    stream: Stream,
    stopped: Option<BailOut>,
    found: Vec<SheetUrl>,
}

impl Sheet {
    pub(crate) fn new(limits: &Limits, charset: Charset) -> Self {
        // Unlike a page, a sheet in which nothing is declared is UTF-8 (CSS Syntax, 3.2), or what its page is, which is
        // not known here.
        let stream = Stream::new(charset, limits.url_bytes);
        Self { patch: Patch::new(limits.output_growth_bytes), charset, stream, stopped: None, found: Vec::new() }
    }

    pub(crate) fn write(&mut self, chunk: &[u8], visitor: &mut dyn Visitor, out: &mut Vec<u8>) {
        if self.stopped.is_some() {
            out.extend_from_slice(chunk);
            return;
        }
        self.patch.push(chunk);
        self.stream.push(chunk, &mut |url| self.found.push(url));
        self.apply(visitor);
        let held = if self.stopped.is_some() { 0 } else { self.stream.held() };
        self.patch.release(self.patch.end().saturating_sub(held), out);
    }

    pub(crate) fn finish(&mut self, visitor: &mut dyn Visitor, out: &mut Vec<u8>) {
        if self.stopped.is_none() {
            self.stream.finish(&mut |url| self.found.push(url));
        }
        self.apply(visitor);
        self.patch.release(self.patch.end(), out);
    }

    /// Returns true if nothing of the input is held back.
    pub(crate) fn is_empty(&self) -> bool {
        self.patch.is_empty()
    }

    /// How many replacements were made or will be.
    pub(crate) fn made(&self) -> u64 {
        self.patch.made()
    }

    pub(crate) fn bail_out(&self) -> Option<BailOut> {
        self.stopped
    }

    fn apply(&mut self, visitor: &mut dyn Visitor) {
        for url in self.found.drain(..) {
            patch(visitor, &mut self.patch, self.charset, STYLE_SHEET, 0, url);
        }
        if self.patch.is_full() {
            self.stopped.get_or_insert(BailOut::Growth);
        }
    }
}
