//! Foreign content: SVG and `MathML`, of which the tag scanner does not know enough. `lol_html` reads it, because it has
//! the tokenizer's states and the tree builder's feedback.
//!
//! It is a second opinion and nothing else. A handler of every element notes where `lol_html` found a start tag
//! ([`Element::source_location`]), and the tag scanner's finds count only if they are among these. The output of
//! `lol_html` is dropped, so that it cannot change a page.
//!
//! From the end of the outermost `svg` or `math` element to the next one, `lol_html` rests: there the page is HTML again,
//! and the tag scanner follows the tokenizer by itself. [`ForeignContent::rest`] asks `lol_html` whether that is so.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use lol_html::errors::RewritingError;
use lol_html::html_content::Element;
use lol_html::{HtmlRewriter, MemorySettings, Settings, element};

use crate::bail_out::BailOut;

type Output = fn(&[u8]);

/// The namespace of HTML (Infra, "HTML namespace").
const HTML: &str = "http://www.w3.org/1999/xhtml";

/// Start tags that were found and not looked up yet. More of them would mean that the tag scanner and `lol_html` read
/// different pages.
const MOST_PENDING: usize = 1024;

/// Closes whatever integration point is open, so that behind it only HTML outside of all foreign content is HTML.
const CLOSE_INTEGRATION_POINT: &[u8] = b"</title></mi>";
/// An element of no meaning, whose namespace tells where it stands.
const PROBE: &[u8] = b"<a></a>";

/// The same again, if that closed one.
const OPEN_INTEGRATION_POINT: &[u8] = b"<title><mi>";

/// The parser, and what it found.
pub(super) struct ForeignContent {
    /// A failed one panics if it is called again, so it is dropped at once.
    parser: Option<HtmlRewriter<'static, Output>>,
    found: Rc<RefCell<Found>>,
    /// Bytes that the parser has read, made ones included.
    read: usize,
    /// How much of the body it has been given.
    given: usize,
    rests: bool,
}

/// The notes of the handler. Positions count in what the parser has read.
#[derive(Debug, Default)]
struct Found {
    /// Start tags before this are of no interest.
    from: usize,
    starts: VecDeque<usize>,
    overflow: bool,
    /// True if the last element is of HTML. None if there was none since the last question.
    is_html: Option<bool>,
}

impl Found {
    fn note(&mut self, element: &Element<'_, '_>) {
        self.is_html = Some(element.namespace_uri() == HTML);
        let start = element.source_location().bytes().start;
        if start >= self.from {
            self.overflow |= self.starts.len() >= MOST_PENDING;
            if !self.overflow {
                self.starts.push_back(start);
            }
        }
    }
}

impl ForeignContent {
    /// Of a page, or of markup inside one: the first `svg` or `math` element. `memory_bytes`: the most that the parser may
    /// hold.
    pub(super) fn new(memory_bytes: usize) -> Self {
        let found = Rc::<RefCell<Found>>::default();
        let told = Rc::clone(&found);
        let handler = element!("*", move |element| {
            // Only this handler and the methods below look at it, never at the same time.
            if let Ok(mut found) = told.try_borrow_mut() {
                found.note(element);
            }
            Ok(())
        });
        let memory =
            MemorySettings::new().with_max_allowed_memory_usage(memory_bytes).with_preallocated_parsing_buffer_size(0);
        let settings =
            Settings::new().with_strict(false).with_memory_settings(memory).append_element_content_handler(handler);
        let parser = HtmlRewriter::new(settings, (|_: &[u8]| ()) as Output);
        Self { parser: Some(parser), found, read: 0, given: 0, rests: true }
    }

    /// Returns true from the start tag of an `svg` or `math` element on, until [`ForeignContent::rest`].
    pub(super) fn is_awake(&self) -> bool {
        !self.rests
    }

    /// How much of the body it has been given.
    pub(super) fn given(&self) -> usize {
        self.given
    }

    /// Wakes at `start` of the body, where the start tag of an `svg` or `math` element ended. Nothing before it can matter.
    pub(super) fn wake(&mut self, element: &[u8], start: usize) -> Result<(), BailOut> {
        self.rests = false;
        self.given = start;
        self.write(&[b"<", element, b">"].concat())
    }

    /// Reads on. `from`: start tags before this position of the body will not be looked up.
    pub(super) fn read(&mut self, bytes: &[u8], from: usize) -> Result<(), BailOut> {
        self.given += bytes.len();
        let from = (self.read + bytes.len()).saturating_sub(self.given.saturating_sub(from));
        self.with_found(|found| {
            found.from = from;
            while found.starts.front().is_some_and(|&start| start < from) {
                found.starts.pop_front();
            }
        })?;
        if bytes.is_empty() { Ok(()) } else { self.write(bytes) }
    }

    /// Given everything up to the end of the tag: whether the `<` at `open` of the body begins a start tag. To be asked
    /// behind a [`ForeignContent::read`] from `open`.
    pub(super) fn is_tag(&self, open: usize) -> bool {
        let open = self.read.saturating_sub(self.given.saturating_sub(open));
        self.found.try_borrow().is_ok_and(|found| found.starts.front() == Some(&open))
    }

    /// Rests if the foreign content ended at `at` of the body, up to where it has been given.
    pub(super) fn rest(&mut self, at: usize) -> Result<(), BailOut> {
        if self.is_awake() && self.given == at && self.probe(PROBE)? == Some(true) {
            // HTML may also stand inside foreign content, at an integration point.
            self.write(CLOSE_INTEGRATION_POINT)?;
            self.rests = self.probe(PROBE)? == Some(true);
            if !self.rests {
                self.write(OPEN_INTEGRATION_POINT)?;
            }
        }
        Ok(())
    }

    /// Reads made markup and returns whether the element in it is of HTML; none if there it is no element.
    fn probe(&mut self, markup: &[u8]) -> Result<Option<bool>, BailOut> {
        self.with_found(|found| {
            found.is_html = None;
            found.from = usize::MAX;
        })?;
        self.write(markup)?;
        self.with_found(|found| found.is_html)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), BailOut> {
        let mut parser = self.parser.take().ok_or(BailOut::Parser)?;
        parser.write(bytes).map_err(|error| match error {
            RewritingError::MemoryLimitExceeded(_) => BailOut::Memory,
            _ => BailOut::Parser,
        })?;
        self.parser = Some(parser);
        self.read += bytes.len();
        if self.with_found(|found| found.overflow)? { Err(BailOut::Memory) } else { Ok(()) }
    }

    fn with_found<T>(&mut self, act: impl FnOnce(&mut Found) -> T) -> Result<T, BailOut> {
        self.found.try_borrow_mut().map(|mut found| act(&mut found)).map_err(|_| BailOut::Parser)
    }
}

#[allow(clippy::missing_fields_in_debug, reason = "the parser says nothing about itself")]
impl fmt::Debug for ForeignContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut content = formatter.debug_struct("ForeignContent");
        content.field("running", &self.parser.is_some()).field("given", &self.given).field("found", &self.found);
        content.finish()
    }
}
