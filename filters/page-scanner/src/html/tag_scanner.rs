//! Finds the tags of a page that are worth a look, fast. Most tags are passed without a report.
//!
//! As long as a page is HTML it follows the tokenizer exactly, because only names of elements decide what is text. In SVG
//! and `MathML` that takes a tree builder, which it has not. There it only proposes, and
//! [`foreign_content`](super::foreign_content) confirms each tag before anything is done about it. An overlooked tag is a
//! URL that stays, never damage.
//!
//! It depends on nothing but the bytes: cut the page anywhere and it finds the same.

use std::ops::Range;

use memchr::memchr_iter;

use super::elements::{self, Element, Role, Text};
use super::input::Input;
use super::raw_text::{self, Escape, Reach};
use super::tag_end::{self, TagEnd, Whole, name_length};
use crate::find::find_near;
use crate::markup::attributes::Span;

/// The next find.
#[derive(Debug)]
pub(super) enum Found {
    /// A start tag, from `<` to `>`, how many bytes its name has, and the name's element.
    StartTag(Range<usize>, usize, &'static Element),
    /// A start tag of this name that is too long to be looked at ended here.
    LongTag(Name),
    /// The end tag of the outermost `svg` or `math` element ended here.
    EndOfForeign(usize),
    /// Text of the element that was announced by [`TagScanner::enter_text`].
    Text(Range<usize>),
    /// That text ends here, at its end tag.
    EndOfText(usize),
    /// Nothing without more bytes. Bytes before this position will not be needed again.
    More(usize),
}

/// The name of a tag that is not at hand any more; cut where it is longer than any of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    bytes: [u8; 12],
    length: usize,
}

impl Name {
    pub(super) fn of(name: &[u8]) -> Self {
        let mut bytes = [0; 12];
        let length = name.len().min(bytes.len());
        bytes.iter_mut().zip(name).for_each(|(copy, byte)| *copy = *byte);
        Self { bytes, length }
    }

    /// As written.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Reads a page, or markup inside one, in any pieces. Positions count from the start of the body.
#[derive(Debug)]
pub(super) struct TagScanner {
    at: usize,
    state: State,
    /// Start tags longer than this are not kept.
    longest: usize,
    /// Elements open that change the language, the innermost last: true for `svg`, false for `math`.
    foreign: Vec<bool>,
    /// How many of them are `svg`, and how many `template` elements are open.
    svg: usize,
    template: usize,
    /// Of the start tag that was found last.
    attributes: Vec<Span>,
}

/// Deeper nesting of `svg` and `math` is not counted.
const MOST_FOREIGN: usize = 64;

/// A tag that is cut is read again from its start when there are more bytes, if it has fewer bytes than this. Longer ones
/// are read on in pieces.
const MOST_READ_TWICE: usize = 256;

#[derive(Debug, Clone, Copy)]
enum State {
    Markup,
    /// In a tag that began at `start`; read as far as `at`.
    Tag {
        start: usize,
        end: TagEnd,
        closing: bool,
    },
    /// In a tag of which nothing is kept but its name, if it is a start tag.
    LongTag {
        end: TagEnd,
        opens: Option<Name>,
    },
    /// In `<!--`, whose content began at `start`.
    Comment {
        start: usize,
    },
    /// In `<!` or `<?` or `</` and no letter: up to the next `>`.
    Bogus,
    Text(Text),
    Script(Escape),
}

impl TagScanner {
    pub(super) fn new(start: usize, longest: usize) -> Self {
        Self {
            at: start,
            state: State::Markup,
            longest,
            foreign: Vec::new(),
            svg: 0,
            template: 0,
            attributes: Vec::new(),
        }
    }

    /// The attributes of the start tag that was found last.
    pub(super) fn attributes(&self) -> &[Span] {
        &self.attributes
    }

    /// Returns true if an `svg` element is open.
    pub(super) fn in_svg(&self) -> bool {
        self.svg > 0
    }

    /// Returns true if a `template` element is open.
    pub(super) fn in_template(&self) -> bool {
        self.template > 0
    }

    /// After a start tag: its element's content is text, not markup.
    pub(super) fn enter_text(&mut self, text: Text) {
        self.state = match text {
            Text::Until { name: "script", .. } => State::Script(Escape::default()),
            _ => State::Text(text),
        };
    }

    /// After a start tag that turned out to be none: goes on behind its `<`.
    pub(super) fn step_over(&mut self, start: usize) {
        self.at = start + 1;
        self.state = State::Markup;
    }

    /// Goes on in `bytes`, which begin at `start` of the body. `last`: there will be no more.
    pub(super) fn next(&mut self, bytes: &[u8], start: usize, last: bool) -> Found {
        let input = Input { bytes, start, last };
        loop {
            let found = match self.state {
                State::Markup => self.markup(&input),
                State::Tag { start, end, closing } => self.tag(&input, start, end, closing),
                State::LongTag { end, opens } => self.long_tag(&input, end, opens),
                State::Comment { start } => self.comment(&input, start),
                State::Bogus => self.bogus(&input),
                State::Text(text) => self.text(&input, text),
                State::Script(escape) => self.script(&input, escape),
            };
            if let Some(found) = found {
                return found;
            }
        }
    }

    fn more(&mut self, at: usize) -> Found {
        self.at = at;
        Found::More(at)
    }

    fn markup(&mut self, input: &Input<'_>) -> Option<Found> {
        let bytes = input.bytes;
        let mut at = self.at.saturating_sub(input.start);
        loop {
            let Some(open) = next_tag(bytes, at, self.svg > 0) else { return Some(self.more(input.end())) };
            let behind = bytes.get(open..).unwrap_or_default();
            let Some(whole) = Whole::read(behind, &mut self.attributes) else {
                return self.no_whole_tag(input, open);
            };
            at = open + whole.length;
            let name = name_in(behind, whole.closing);
            let element = elements::of(name);
            if self.svg == 0 && !whole.has_style && element.is_any() {
                continue;
            }
            let tag = input.start + open..input.start + at;
            if let Some(found) = self.end_of_tag(input, tag, name, element, whole.closing) {
                return Some(found);
            }
        }
    }

    /// A `<` that begins no tag, or one that is not there to its end.
    #[cold]
    fn no_whole_tag(&mut self, input: &Input<'_>, open: usize) -> Option<Found> {
        let byte = |at: usize| input.bytes.get(at).copied().unwrap_or_default();
        let start = input.start + open;
        let closing = byte(open + 1) == b'/';
        let named = open + 1 + usize::from(closing);
        if !byte(named).is_ascii_alphabetic() {
            self.at = start;
            return self.no_tag(input, start);
        }
        if !input.last && input.bytes.len() - open < MOST_READ_TWICE {
            return Some(self.more(start));
        }
        self.enter(State::Tag { start, end: TagEnd::default(), closing }, input.start + named);
        None
    }

    /// A `<` that begins no tag, or nobody can tell yet what.
    fn no_tag(&mut self, input: &Input<'_>, open: usize) -> Option<Found> {
        match input.byte(open + 1) {
            None => return Some(self.wait(input)),
            Some(b'/') => match input.byte(open + 2) {
                None => return Some(self.wait(input)),
                Some(_) => self.enter(State::Bogus, open + 2),
            },
            Some(b'!') => match (input.byte(open + 2), input.byte(open + 3)) {
                (Some(b'-'), Some(b'-')) => {
                    self.enter(State::Comment { start: open + 4 }, open + 4);
                }
                (None, _) | (Some(b'-'), None) => return Some(self.wait(input)),
                _ => self.enter(State::Bogus, open + 2),
            },
            Some(b'?') => self.enter(State::Bogus, open + 1),
            Some(_) => self.at = open + 1,
        }
        None
    }

    /// Too few bytes to tell what begins here.
    fn wait(&mut self, input: &Input<'_>) -> Found {
        self.more(if input.last { input.end() } else { self.at })
    }

    fn enter(&mut self, state: State, at: usize) {
        self.state = state;
        self.at = at;
    }

    fn read_attributes(&mut self, tag: &[u8], name_length: usize) {
        self.attributes.clear();
        self.attributes.extend(Span::all(tag, name_length));
    }

    /// A tag that is not at hand to its end, or was not.
    fn tag(&mut self, input: &Input<'_>, start: usize, mut end: TagEnd, closing: bool) -> Option<Found> {
        if let Some(length) = end.find(input.from(self.at)) {
            let range = start..self.at + length;
            let tag = input.range(range.clone());
            let name = name_in(tag, closing);
            self.read_attributes(tag, name.len());
            return self.end_of_tag(input, range, name, elements::of(name), closing);
        }
        let read = input.end();
        if read - start <= self.longest {
            self.enter(State::Tag { start, end, closing }, read);
            return Some(Found::More(if input.last { read } else { start }));
        }
        let opens = (!closing).then(|| Name::of(name_in(input.from(start), closing)));
        self.enter(State::LongTag { end, opens }, read);
        Some(Found::More(read))
    }

    fn long_tag(&mut self, input: &Input<'_>, mut end: TagEnd, opens: Option<Name>) -> Option<Found> {
        let Some(length) = end.find(input.from(self.at)) else {
            self.enter(State::LongTag { end, opens }, input.end());
            return Some(Found::More(input.end()));
        };
        self.enter(State::Markup, self.at + length);
        opens.map(Found::LongTag)
    }

    fn end_of_tag(
        &mut self,
        input: &Input<'_>,
        range: Range<usize>,
        name: &[u8],
        element: &'static Element,
        closing: bool,
    ) -> Option<Found> {
        self.enter(State::Markup, range.end);
        if range.len() > self.longest {
            return (!closing).then(|| Found::LongTag(Name::of(name)));
        }
        let foreign = self.foreign.len();
        self.count_open(input.range(range.clone()), name, element.role, closing);
        if !closing {
            return Some(Found::StartTag(range, name.len(), element));
        }
        (self.foreign.len() < foreign && self.foreign.is_empty()).then_some(Found::EndOfForeign(range.end))
    }

    /// Keeps track of `svg`, `math` and `template`.
    fn count_open(&mut self, tag: &[u8], name: &[u8], role: Role, closing: bool) {
        match role {
            Role::Svg | Role::Math => self.count_foreign(tag, role == Role::Svg, closing),
            Role::Template if closing => self.template = self.template.saturating_sub(1),
            Role::Template => self.template += 1,
            Role::None if self.svg > 0 && !closing && ends_svg(name) => {
                self.foreign.clear();
                self.svg = 0;
            }
            Role::None => {}
        }
    }

    /// An end tag closes all that was opened inside its element, too: `<math><svg></math>` is at its end.
    fn count_foreign(&mut self, tag: &[u8], is_svg: bool, closing: bool) {
        if closing {
            if let Some(opened) = self.foreign.iter().rposition(|&svg| svg == is_svg) {
                self.foreign.truncate(opened);
            }
        } else if !tag.ends_with(b"/>") && self.foreign.len() < MOST_FOREIGN {
            self.foreign.push(is_svg);
        }
        self.svg = self.foreign.iter().filter(|&&svg| svg).count();
    }

    /// Ends at `-->` or `--!>`; the dashes of `<!--` count, so that `<!-->` is a whole comment.
    fn comment(&mut self, input: &Input<'_>, start: usize) -> Option<Found> {
        for close in memchr_iter(b'>', input.from(self.at)) {
            let close = self.at + close;
            let before = |count: usize| input.range(close.saturating_sub(count)..close);
            if before(2) == b"--" || (before(3) == b"--!" && close >= start + 3) {
                self.enter(State::Markup, close + 1);
                return None;
            }
        }
        self.at = input.end();
        Some(Found::More(if input.last { self.at } else { self.at.saturating_sub(3).max(start - 2) }))
    }

    fn bogus(&mut self, input: &Input<'_>) -> Option<Found> {
        let Some(close) = input.find(self.at, b'>') else { return Some(self.more(input.end())) };
        self.enter(State::Markup, close + 1);
        None
    }

    fn text(&mut self, input: &Input<'_>, text: Text) -> Option<Found> {
        let from = self.at;
        let told = !matches!(text, Text::Until { told: false, .. } | Text::Forever);
        let reach = raw_text::read(input, from, text);
        let (Reach::Open { until, .. } | Reach::Ended(until)) = reach;
        if told && until > from {
            self.at = until;
            return Some(Found::Text(from..until));
        }
        if let Reach::Ended(_) = reach {
            self.enter(State::Markup, until);
            return told.then_some(Found::EndOfText(until));
        }
        Some(self.more(until))
    }

    fn script(&mut self, input: &Input<'_>, mut escape: Escape) -> Option<Found> {
        match raw_text::read_script(input, self.at, &mut escape) {
            Reach::Ended(at) => {
                self.enter(State::Markup, at);
                None
            }
            Reach::Open { until, needed } => {
                self.enter(State::Script(escape), until);
                Some(Found::More(if input.last { input.end() } else { needed }))
            }
        }
    }
}

/// The next `<` from `from` on. Behind it is no tag of no interest, unless `all` tags are wanted. A loop of its own, because
/// most of a page goes through it.
#[inline(never)]
fn next_tag(bytes: &[u8], from: usize, all: bool) -> Option<usize> {
    let mut at = from;
    loop {
        let open = find_near::<b'<'>(bytes, at)?;
        match tag_end::passed(bytes.get(open..)?) {
            Some(length) if !all => at = open + length,
            _ => return Some(open),
        }
    }
}

/// The name in a tag, as written.
fn name_in(tag: &[u8], closing: bool) -> &[u8] {
    let name = tag.get(if closing { 2 } else { 1 }..).unwrap_or_default();
    name.get(..name_length(name).unwrap_or(name.len())).unwrap_or_default()
}

/// Returns true if an HTML element of this name closes all SVG around it; the elements that pages really have are enough.
/// <https://html.spec.whatwg.org/multipage/parsing.html#parsing-main-inforeign>
fn ends_svg(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 20] = [
        b"body", b"br", b"center", b"div", b"em", b"h1", b"h2", b"h3", b"h4", b"head", b"hr", b"i", b"img", b"li",
        b"meta", b"ol", b"p", b"span", b"table", b"ul",
    ];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Skims `html` in pieces and lists the finds. Text of `style` is among them, other raw text is not.
    fn skim(html: &str, piece: usize) -> Vec<String> {
        let mut tag_scanner = TagScanner::new(0, 1000);
        let mut found = Vec::new();
        let mut held = 0;
        let mut text = String::new();
        let pieces = html.len().div_ceil(piece);
        for count in 0..=pieces {
            let end = (count * piece).min(html.len());
            let last = count == pieces;
            loop {
                match tag_scanner.next(&html.as_bytes()[held..end], held, last) {
                    Found::StartTag(range, name, _) => {
                        assert_eq!(name_in(html[range.clone()].as_bytes(), false).len(), name);
                        let tag = &html[range];
                        found.push(tag.to_owned());
                        if tag.starts_with("<style") {
                            tag_scanner.enter_text(Text::Until { name: "style", told: true });
                        } else if tag.starts_with("<script") {
                            tag_scanner.enter_text(Text::Until { name: "script", told: false });
                        } else if tag.starts_with("<plaintext") {
                            tag_scanner.enter_text(Text::Forever);
                        }
                    }
                    Found::LongTag(name) => found.push(format!("long {}", name.as_bytes().escape_ascii())),
                    Found::EndOfForeign(_) => {}
                    Found::Text(range) => text.push_str(&html[range]),
                    Found::EndOfText(at) => {
                        assert!(html[at..].starts_with("</"));
                        found.push(format!("text {:?}", std::mem::take(&mut text)));
                    }
                    Found::More(needed) => {
                        assert!(needed >= held && needed <= end);
                        held = needed;
                        break;
                    }
                }
            }
        }
        found
    }

    #[test]
    fn tags_are_found_and_what_only_looks_like_one_is_not() {
        for (html, wanted) in [
            ("a<td>b</td><th class='>'>c", &["<td>", "<th class='>'>"][..]),
            ("a < b <3 <", &[]),
            ("<!-- <td> --><th>", &["<th>"]),
            ("<!--><th><!---><tr><!-- --!><use>", &["<th>", "<tr>", "<use>"]),
            ("<!--!><th>--><tr>", &["<tr>"]),
            ("<!doctype html><?xml <td?></ ><th>", &["<th>"]),
            ("<script><td></scripty></SCRIPT ><th>", &["<script>", "<th>"]),
            ("<script><!-- <script> </script> <td> --></script><th>", &["<script>", "<th>"]),
            ("<style>a<tr></styl</style></td><th>", &["<style>", "text \"a<tr></styl\"", "<th>"]),
            ("<style></style><plaintext><td></plaintext>", &["<style>", "text \"\"", "<plaintext>"]),
            ("<td title=a\"b><th title=\"<tr>\"><use title='", &["<td title=a\"b>", "<th title=\"<tr>\">"]),
            ("</p='a><th>'></p x='><td>'><tr>", &["<th>", "<tr>"]),
            ("<td", &[]),
        ] {
            for piece in 1..=html.len() {
                assert_eq!(skim(html, piece), wanted, "{html} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_tag_that_can_hold_nothing_is_passed_unless_it_is_in_svg() {
        let html = "<p><a href=b style=c><i style='a:url(b)'><svg><a><path></svg></p><b>";
        assert_eq!(skim(html, html.len()), ["<i style='a:url(b)'>", "<svg>", "<a>", "<path>"]);
    }

    #[test]
    fn the_name_of_a_tag_that_is_too_long_is_reported() {
        let html = format!("<p title='{0}'><TITLE lang='{0}'><th></title x='{0}'><th>", "x".repeat(1000));
        for piece in [1, 7, 100, 5000] {
            let found: Vec<_> = skim(&html, piece).into_iter().filter(|found| found != "long p").collect();
            assert_eq!(found, ["long TITLE", "<th>", "<th>"], "pieces of {piece}");
        }
    }
}
