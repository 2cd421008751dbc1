//! A style sheet of its own (`text/css`): chunks in, chunks out. Keeps every byte, whatever happens.

use super::patch;
use super::stream::{SheetUrl, Stream};
use crate::bail_out::BailOut;
use crate::charset::Charset;
use crate::ledger::{Ledger, Tally};
use crate::patch::Patch;
use crate::places::STYLE_SHEET;

/// Rewrites one CSS body.
#[derive(Debug)]
pub(crate) struct CssRewriter {
    patch: Patch,
    ledger: Ledger,
    charset: Charset,
    stream: Stream,
    stopped: Option<BailOut>,
    found: Vec<SheetUrl>,
}

impl CssRewriter {
    pub(crate) fn new(ledger: Ledger, charset: Charset) -> Self {
        // Unlike a page, a sheet in which nothing is declared is UTF-8 (CSS Syntax, 3.2), or what its page is, which is
        // not known here.
        let stream = Stream::new(charset, ledger.plan.limits().url_bytes);
        let room = ledger.plan.limits().output_growth_bytes;
        Self { patch: Patch::new(room), ledger, charset, stream, stopped: None, found: Vec::new() }
    }

    pub(crate) fn write(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        if self.stopped.is_some() {
            out.extend_from_slice(chunk);
            return;
        }
        self.patch.push(chunk);
        self.stream.push(chunk, &mut |url| self.found.push(url));
        self.apply();
        let held = if self.stopped.is_some() { 0 } else { self.stream.held() };
        self.patch.release(self.patch.end().saturating_sub(held), out);
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if self.stopped.is_none() {
            self.stream.finish(&mut |url| self.found.push(url));
        }
        self.apply();
        self.patch.release(self.patch.end(), out);
    }

    /// Whether nothing of the input is held back.
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

    pub(crate) fn tally(&self) -> Tally {
        self.ledger.tally.clone()
    }

    fn apply(&mut self) {
        for url in self.found.drain(..) {
            patch(&mut self.ledger, &mut self.patch, self.charset, STYLE_SHEET, 0, url);
        }
        if self.patch.is_full() {
            self.stopped.get_or_insert(BailOut::Growth);
        }
    }
}
