//! A page: chunks in, chunks out. Keeps every byte, whatever happens.

use super::page::Page;
use super::reader::Reader;
use crate::bail_out::BailOut;
use crate::charset::Charset;
use crate::limits::Limits;
use crate::visitor::Visitor;

/// How much is read at a time, in bytes: beyond what must be held, no more of a page is kept than this. All copies of a slice
/// together fit into the first cache of a processor.
const SLICE_BYTES: usize = 4 * 1024;

/// One HTML body.
#[derive(Debug)]
pub(crate) struct HtmlStream {
    page: Page,
    /// None once reading stopped.
    reader: Option<Reader>,
    stopped: Option<BailOut>,
    /// The first bytes, until it is clear that they are no byte order mark.
    head: Option<Vec<u8>>,
}

impl HtmlStream {
    pub(crate) fn new(limits: Limits, charset: Charset) -> Self {
        let page = Page::new(limits, charset);
        let reader = Reader::new(0, 0, &page);
        Self { page, reader: Some(reader), stopped: None, head: Some(Vec::new()) }
    }

    pub(crate) fn write(&mut self, chunk: &[u8], visitor: &mut dyn Visitor, out: &mut Vec<u8>) {
        let Some(mut head) = self.head.take() else {
            self.read(chunk, visitor, out);
            return;
        };
        if head.is_empty() && chunk.len() >= 3 {
            self.start(chunk, visitor, out);
            return;
        }
        head.extend_from_slice(chunk);
        if head.len() < 3 && [&b"\xEF\xBB\xBF"[..], b"\xFE\xFF", b"\xFF\xFE"].iter().any(|mark| mark.starts_with(&head))
        {
            self.head = Some(head);
        } else {
            self.start(&head, visitor, out);
        }
    }

    pub(crate) fn finish(&mut self, visitor: &mut dyn Visitor, out: &mut Vec<u8>) {
        if let Some(head) = self.head.take() {
            self.start(&head, visitor, out);
        }
        let end = self.page.patch.end();
        if let Some(mut reader) = self.reader.take()
            && let Err(cause) = reader.read(&mut self.page, visitor, end, true)
        {
            self.stopped = Some(cause);
        }
        self.page.patch.release(end, out);
    }

    /// Returns true if nothing of the input is held back.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.as_ref().is_none_or(Vec::is_empty) && self.page.patch.is_empty()
    }

    /// How many replacements were made or will be.
    pub(crate) fn made(&self) -> u64 {
        self.page.patch.made()
    }

    pub(crate) fn bail_out(&self) -> Option<BailOut> {
        self.stopped
    }

    fn start(&mut self, head: &[u8], visitor: &mut dyn Visitor, out: &mut Vec<u8>) {
        self.page.known.charset.byte_order_mark(head);
        if !self.page.known.charset.is_ascii_compatible() {
            self.stopped = Some(BailOut::Encoding);
            self.reader = None;
        }
        self.read(head, visitor, out);
    }

    fn read(&mut self, chunk: &[u8], visitor: &mut dyn Visitor, out: &mut Vec<u8>) {
        let Self { page, reader, stopped, .. } = self;
        out.reserve(chunk.len() + SLICE_BYTES);
        for slice in chunk.chunks(SLICE_BYTES) {
            let Some(running) = reader else {
                out.extend_from_slice(slice);
                continue;
            };
            page.patch.push(slice);
            let end = page.patch.end();
            match running.read(page, visitor, end, false) {
                Ok(()) => page.patch.release(running.certain(), out),
                Err(cause) => {
                    // What is decided stays decided, the rest goes as it came.
                    *stopped = Some(cause);
                    *reader = None;
                    page.patch.release(end, out);
                }
            }
        }
    }
}
