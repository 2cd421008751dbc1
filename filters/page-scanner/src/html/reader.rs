//! Reads markup: the page's, or the one inside a `noscript`. The tag scanner finds tags, and the page reads them.
//! In SVG and `MathML`, the tag scanner only proposes, and the parser of foreign content confirms.

use std::ops::Range;

use super::elements::{self, Content, Element, Role, Text};
use super::foreign_content::ForeignContent;
use super::page::{Context, Page, presentation};
use super::tag_scanner::{Found, Name, TagScanner};
use crate::bail_out::BailOut;
use crate::css;
use crate::css::Stream;
use crate::markup::attributes::Span;
use crate::visitor::Visitor;

/// One reader. Positions count from the start of the body.
#[derive(Debug)]
pub(super) struct Reader {
    tags: TagScanner,
    /// None as long as the page is only HTML: there, no other parser knows more than the tag scanner.
    foreign: Option<ForeignContent>,
    /// How many readers this one is inside of.
    depth: usize,
    /// Bytes before this are not needed any more.
    needed: usize,
    text: Option<ToldText>,
}

/// Text of an element that is looked into.
#[derive(Debug)]
enum ToldText {
    /// A style sheet that began at `start`.
    Style { stream: Box<Stream>, start: usize, in_svg: bool },
    /// Markup for browsers without scripting, which began at `start`; kept to be read when it is complete.
    Noscript { start: usize },
}

impl Reader {
    pub(super) fn new(start: usize, depth: usize, page: &Page) -> Self {
        let tags = TagScanner::new(start, page.longest_markup());
        Self { tags, foreign: None, depth, needed: start, text: None }
    }

    /// Up to where the input may leave.
    pub(super) fn certain(&self) -> usize {
        match &self.text {
            None => self.needed,
            Some(ToldText::Style { stream, .. }) => self.needed.saturating_sub(stream.held()),
            Some(ToldText::Noscript { start }) => self.needed.min(*start),
        }
    }

    /// Reads the page's bytes up to `end`. `last`: there will be no more of this markup.
    pub(super) fn read(
        &mut self,
        page: &mut Page,
        visitor: &mut dyn Visitor,
        end: usize,
        last: bool,
    ) -> Result<(), BailOut> {
        loop {
            match self.tags.next(page.patch.bytes(self.needed..end), self.needed, last) {
                Found::StartTag(range, name, element) => {
                    self.start_tag(page, visitor, range, name, element)?;
                }
                Found::EndOfForeign(at) => self.end_of_foreign(page, at)?,
                Found::LongTag(name) => self.long_tag(name)?,
                Found::Text(range) => self.told_text(page, visitor, range)?,
                Found::EndOfText(at) => self.end_of_text(page, visitor, at)?,
                Found::More(needed) => {
                    if last {
                        return self.end_of_text(page, visitor, end);
                    }
                    self.needed = needed;
                    return self.show_foreign_content(page, needed, needed);
                }
            }
        }
    }

    /// Returns true where foreign content may stand, so that only its parser knows the tags.
    fn is_foreign(&self) -> bool {
        self.foreign.as_ref().is_some_and(ForeignContent::is_awake)
    }

    /// Shows the bytes before `until` to the parser. `from`: start tags before this will not be looked up.
    fn show_foreign_content(&mut self, page: &Page, from: usize, until: usize) -> Result<(), BailOut> {
        let Some(foreign) = self.foreign.as_mut().filter(|foreign| foreign.is_awake()) else { return Ok(()) };
        foreign.read(page.patch.bytes(foreign.given()..until.max(foreign.given())), from)
    }

    /// Returns true if this range is a start tag, and does not only look like one.
    fn is_tag(&mut self, page: &Page, tag: &Range<usize>) -> Result<bool, BailOut> {
        if !self.is_foreign() {
            return Ok(true);
        }
        self.show_foreign_content(page, tag.start, tag.end)?;
        Ok(self.foreign.as_ref().is_some_and(|foreign| foreign.is_tag(tag.start)))
    }

    /// Behind the end tag of the outermost `svg` or `math` element, as far as the tag scanner knows.
    fn end_of_foreign(&mut self, page: &Page, at: usize) -> Result<(), BailOut> {
        self.show_foreign_content(page, at, at)?;
        self.foreign.as_mut().map_or(Ok(()), |foreign| foreign.rest(at))
    }

    fn start_tag(
        &mut self,
        page: &mut Page,
        visitor: &mut dyn Visitor,
        range: Range<usize>,
        name_length: usize,
        element: &Element,
    ) -> Result<(), BailOut> {
        let bytes = page.patch.bytes(range.clone());
        let in_svg = self.tags.in_svg();
        // Without a parser to ask, looking for what matters costs no less than looking at it.
        if may_hold_any(element, bytes, self.tags.attributes())
            && (!self.is_foreign() || holds_any(element, bytes, self.tags.attributes(), in_svg))
        {
            if !self.is_tag(page, &range)? {
                self.tags.step_over(range.start);
                return Ok(());
            }
            let context = Context { in_svg, in_template: self.tags.in_template(), in_noscript: self.depth > 0 };
            page.look_at(visitor, range.clone(), name_length, self.tags.attributes(), element, context)?;
        }
        if begins_foreign(element) && !self.is_foreign() {
            let memory_bytes = page.longest_markup() * 2;
            let foreign = self.foreign.get_or_insert_with(|| ForeignContent::new(memory_bytes));
            foreign.wake(element.name.as_bytes(), range.end)?;
        }
        match element.content {
            Content::Markup => {}
            // In SVG, these are elements like any other.
            Content::Ignored(_) | Content::Noscript if in_svg => {}
            Content::Ignored(text) => self.tags.enter_text(text),
            Content::Style => {
                let stream = page.style_sheet(&range, name_length, self.tags.attributes());
                self.tags.enter_text(match &stream {
                    Some(_) if in_svg => Text::UntilMarkup,
                    _ => Text::Until { name: "style", told: stream.is_some() },
                });
                self.text = stream.map(|stream| ToldText::Style { stream, start: range.end, in_svg });
            }
            Content::Noscript => {
                let told = page.follows_markup_inside(self.depth);
                self.tags.enter_text(Text::Until { name: "noscript", told });
                self.text = told.then_some(ToldText::Noscript { start: range.end });
            }
        }
        Ok(())
    }

    /// Behind a start tag that was too long to be looked at.
    fn long_tag(&mut self, name: Name) -> Result<(), BailOut> {
        if self.is_foreign() {
            // What is in it will be asked for, whatever it is.
            return Ok(());
        }
        let element = elements::of(name.as_bytes());
        if begins_foreign(element) {
            return Err(BailOut::Memory);
        }
        match element.content {
            Content::Markup => {}
            Content::Ignored(text) => self.tags.enter_text(text),
            Content::Style => self.tags.enter_text(Text::Until { name: "style", told: false }),
            Content::Noscript => self.tags.enter_text(Text::Until { name: "noscript", told: false }),
        }
        Ok(())
    }

    fn told_text(&mut self, page: &mut Page, visitor: &mut dyn Visitor, range: Range<usize>) -> Result<(), BailOut> {
        match &mut self.text {
            Some(ToldText::Style { stream, start, in_svg }) => {
                page.read_sheet(visitor, stream, *start, *in_svg, Some(range))
            }
            Some(ToldText::Noscript { start }) if range.end - *start > page.longest_markup() => {
                // Longer than anything that is kept: it goes as it is.
                self.text = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end_of_text(&mut self, page: &mut Page, visitor: &mut dyn Visitor, at: usize) -> Result<(), BailOut> {
        match self.text.take() {
            Some(ToldText::Style { mut stream, start, in_svg }) => {
                page.read_sheet(visitor, &mut stream, start, in_svg, None)
            }
            Some(ToldText::Noscript { start }) => Self::new(start, self.depth + 1, page).read(page, visitor, at, true),
            None => Ok(()),
        }
    }
}

/// Returns true if the content of an element is of another language, which the tag scanner cannot read alone.
fn begins_foreign(element: &Element) -> bool {
    matches!(element.role, Role::Svg | Role::Math)
}

/// Returns true if a tag can hold anything of interest, by its element.
fn may_hold_any(element: &Element, tag: &[u8], attributes: &[Span]) -> bool {
    if matches!(element.content, Content::Style | Content::Noscript) {
        return true;
    }
    let has_place = !element.places.is_empty() || element.is_about_page;
    !attributes.is_empty() && (has_place || css::may_hold_url_written(tag))
}

/// Returns true if a tag holds anything of interest.
fn holds_any(element: &Element, tag: &[u8], attributes: &[Span], in_svg: bool) -> bool {
    matches!(element.content, Content::Style | Content::Noscript)
        || attributes.iter().map(|span| span.of(tag)).any(|attribute| {
            element.is_about_page
                || element.places.iter().any(|place| attribute.is(place.attribute))
                || (attribute.is("style") && css::may_hold_url_written(attribute.value))
                || (in_svg && presentation(&attribute).is_some())
        })
}
