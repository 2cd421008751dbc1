//! Drives `lol_html` as a finder: its output is thrown away, its positions are kept.
//!
//! Writing through `lol_html` would rewrite whole tags (quotes, white space, stray slashes). What it is needed for is the
//! tokenizer's state and the tree builder's feedback: what is a tag and what only looks like one inside a script.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use lol_html::errors::RewritingError;
use lol_html::html_content::{Element, EndTag};
use lol_html::{HtmlRewriter, MemorySettings, Settings, element};

use super::page::{Ends, Namespace, Page};
use crate::bail_out::BailOut;

/// Elements to be told of. Type selectors let the parser skip the attributes of every other tag.
const LOOKED_AT: &str = "img, source, input, video, audio, track, script, link, iframe, frame, embed, object, image, \
     feimage, use, base, meta, style, noscript, template, [style], [background]";

/// How much the parser is given at a time, in bytes: what it holds in the worst case is this beyond a tag.
const SLICE_BYTES: usize = 16 * 1024;

type Shared = Rc<RefCell<Page>>;
type Output = Box<dyn FnMut(&[u8])>;
type HandlerResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// The parser, until it ends or fails. A failed one panics if it is called again, so it is dropped at once.
pub(super) struct Finder {
    engine: Option<HtmlRewriter<'static, Output>>,
}

/// Stops the parser; the page knows why.
#[derive(Debug)]
struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the page stopped the parser")
    }
}

impl std::error::Error for Stop {}

impl Finder {
    pub(super) fn new(page: &Shared, memory_bytes: usize) -> Self {
        let told = Rc::clone(page);
        let sink = Rc::clone(page);
        let memory =
            MemorySettings::new().with_max_allowed_memory_usage(memory_bytes).with_preallocated_parsing_buffer_size(0);
        let settings = Settings::new()
            .with_strict(false)
            .with_memory_settings(memory)
            .append_element_content_handler(element!(LOOKED_AT, move |element| start_tag(&told, element)));
        // What it emits is the input, or it would not be a finder; only how much of it is done with is of use.
        let output: Output = Box::new(move |bytes: &[u8]| {
            if let Ok(mut page) = sink.try_borrow_mut() {
                page.parsed(bytes.len());
            }
        });
        Self { engine: Some(HtmlRewriter::new(settings, output)) }
    }

    /// Pieces in which input should be given.
    pub(super) fn slices(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        bytes.chunks(SLICE_BYTES)
    }

    /// Parses the next bytes of the input.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), BailOut> {
        let Some(mut engine) = self.engine.take() else { return Err(BailOut::Parser) };
        engine.write(bytes).map_err(|error| cause(&error))?;
        self.engine = Some(engine);
        Ok(())
    }

    /// Parses what was left for the end.
    pub(super) fn finish(&mut self) -> Result<(), BailOut> {
        let Some(engine) = self.engine.take() else { return Err(BailOut::Parser) };
        engine.end().map_err(|error| cause(&error))
    }
}

impl fmt::Debug for Finder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Finder").field("running", &self.engine.is_some()).finish()
    }
}

fn cause(error: &RewritingError) -> BailOut {
    match error {
        RewritingError::MemoryLimitExceeded(_) => BailOut::Memory,
        _ => BailOut::Parser,
    }
}

fn start_tag(page: &Shared, element: &mut Element<'_, '_>) -> HandlerResult {
    let namespace = match element.namespace_uri() {
        "http://www.w3.org/1999/xhtml" => Namespace::Html,
        "http://www.w3.org/2000/svg" => Namespace::Svg,
        _ => Namespace::Other,
    };
    let ends = page.try_borrow_mut()?.start_tag(element.source_location().bytes(), namespace);
    if let Some(ends) = ends
        && let Some(handlers) = element.end_tag_handlers()
    {
        let page = Rc::clone(page);
        handlers.push(Box::new(move |_: &mut EndTag<'_>| end_tag(&page, ends)));
    }
    go_on(page)
}

fn end_tag(page: &Shared, ends: Ends) -> HandlerResult {
    match ends {
        Ends::Style => page.try_borrow_mut()?.end_of_style(),
        Ends::Template => page.try_borrow_mut()?.end_of_template(),
        Ends::Noscript => {
            let markup = page.try_borrow_mut()?.end_of_noscript();
            if let Some((start, text)) = markup {
                read_inner(page, start, &text)?;
            }
        }
    }
    go_on(page)
}

/// Reads text as markup of its own. What cannot be read stays as it is; the page goes on.
fn read_inner(page: &Shared, start: usize, text: &[u8]) -> HandlerResult {
    let memory = {
        let mut page = page.try_borrow_mut()?;
        page.begin_inner(start);
        page.longest_markup()
    };
    let mut finder = Finder::new(page, memory);
    let read = finder.write(text).and_then(|()| finder.finish());
    drop(finder);
    let open = {
        let mut page = page.try_borrow_mut()?;
        if read.is_err() && page.stopped != Some(BailOut::Growth) {
            page.stopped = None;
        }
        page.end_inner()
    };
    // Without scripting, a `noscript` in a `noscript` is an element like any other; its end tag ended the outer one.
    match open {
        Some((start, text)) => read_inner(page, start, &text),
        None => Ok(()),
    }
}

fn go_on(page: &Shared) -> HandlerResult {
    match page.try_borrow()?.stopped {
        Some(_) => Err(Stop.into()),
        None => Ok(()),
    }
}
