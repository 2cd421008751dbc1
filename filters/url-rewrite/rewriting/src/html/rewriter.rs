//! A page: chunks in, chunks out. Keeps every byte, whatever happens.

use std::cell::RefCell;
use std::rc::Rc;

use super::finder::Finder;
use super::page::Page;
use crate::bail_out::BailOut;
use crate::charset::Charset;
use crate::ledger::{Ledger, Tally};

/// Rewrites one HTML body.
#[derive(Debug)]
pub(crate) struct HtmlRewriter {
    page: Rc<RefCell<Page>>,
    finder: Option<Finder>,
    /// The first bytes, until it is clear that they are no byte order mark.
    head: Option<Vec<u8>>,
}

impl HtmlRewriter {
    pub(crate) fn new(ledger: Ledger, charset: Charset) -> Self {
        let memory = ledger.plan.limits().page_memory_bytes / 2;
        let page = Rc::new(RefCell::new(Page::new(ledger, charset)));
        let finder = Finder::new(&page, memory);
        Self { page, finder: Some(finder), head: Some(Vec::new()) }
    }

    pub(crate) fn write(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let Some(mut head) = self.head.take() else {
            self.parse(chunk, out);
            return;
        };
        head.extend_from_slice(chunk);
        if head.len() < 3 && [&b"\xEF\xBB\xBF"[..], b"\xFE\xFF", b"\xFF\xFE"].iter().any(|mark| mark.starts_with(&head))
        {
            self.head = Some(head);
        } else {
            self.start(&head, out);
        }
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(head) = self.head.take() {
            self.start(&head, out);
        }
        let Some(mut finder) = self.finder.take() else { return };
        let ended = finder.finish();
        drop(finder);
        let Ok(mut page) = self.page.try_borrow_mut() else { return };
        page.end_of_style();
        if let Err(cause) = ended {
            page.stopped.get_or_insert(cause);
        }
        let end = page.patch.end();
        page.patch.release(end, out);
    }

    pub(crate) fn bail_out(&self) -> Option<BailOut> {
        self.page.try_borrow().ok()?.stopped
    }

    pub(crate) fn tally(&self) -> Tally {
        self.page.try_borrow().map(|page| page.ledger.tally.clone()).unwrap_or_default()
    }

    fn start(&mut self, head: &[u8], out: &mut Vec<u8>) {
        if let Ok(mut page) = self.page.try_borrow_mut() {
            page.charset.byte_order_mark(head);
            if !page.charset.is_ascii_compatible() {
                page.stopped = Some(BailOut::Encoding);
                self.finder = None;
            }
        }
        self.parse(head, out);
    }

    fn parse(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let mut rest = chunk;
        for slice in Finder::slices(chunk) {
            let Some(finder) = &mut self.finder else { break };
            rest = rest.get(slice.len()..).unwrap_or_default();
            if let Ok(mut page) = self.page.try_borrow_mut() {
                page.patch.push(slice);
            }
            let parsed = finder.write(slice);
            let Ok(mut page) = self.page.try_borrow_mut() else { break };
            if let Err(cause) = parsed {
                page.stopped.get_or_insert(cause);
            } else if page.undecided() > page.longest_markup() {
                page.stopped = Some(BailOut::Memory);
            }
            let until = if page.stopped.is_some() { page.patch.end() } else { page.certain() };
            page.patch.release(until, out);
            if page.stopped.is_some() {
                drop(page);
                self.finder = None;
            }
        }
        if self.finder.is_none() {
            out.extend_from_slice(rest);
        }
    }
}
