//! Finds what looks like tags, fast: most of a page is skipped by `memchr`.
//!
//! It follows the tokenizer closely enough to propose every tag worth a look, but has no tree builder, so it can be wrong
//! (odd nestings of SVG, scripts that write scripts). It only proposes: before anything is done about a tag, the
//! [`oracle`](super::oracle) is asked whether it is one. What it overlooks is a URL that stays, never damage.
//!
//! It depends on nothing but the bytes: cut the page anywhere and it proposes the same.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

use super::attributes::TagEnd;

/// What was found next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A start tag, from `<` to `>`.
    StartTag(Range<usize>),
    /// Text of the element that was announced by [`Skimmer::enter_text`].
    Text(Range<usize>),
    /// That text ends here, at its end tag.
    EndOfText(usize),
    /// Nothing without more bytes. What is before this position will not be needed again.
    More(usize),
}

/// Elements whose content is not markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// Ends at an end tag of this name; of interest or not.
    Until { name: &'static str, told: bool },
    /// The same, of interest, but any tag ends it: an element of SVG, whose text is only text.
    UntilMarkup,
    /// Never ends (`plaintext`).
    Forever,
}

/// Reads a page, or markup inside one, in any pieces. Positions count from the start of the body.
#[derive(Debug)]
pub(super) struct Skimmer {
    at: usize,
    state: State,
    /// Start tags longer than this are not proposed.
    longest: usize,
    /// `svg` elements open, and `template` elements.
    svg: usize,
    template: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Markup,
    /// In a tag that began at `start`; read as far as `at`.
    Tag {
        start: usize,
        end: TagEnd,
        closing: bool,
    },
    /// In `<!--`, whose content began at `start`.
    Comment {
        start: usize,
    },
    /// In `<!` or `<?` or `</` and no letter: up to the next `>`.
    Bogus,
    Text(Text),
}

impl Skimmer {
    pub(super) fn new(start: usize, longest: usize) -> Self {
        Self { at: start, state: State::Markup, longest, svg: 0, template: 0 }
    }

    /// Whether an `svg` element is open.
    pub(super) fn in_svg(&self) -> bool {
        self.svg > 0
    }

    /// Whether a `template` element is open.
    pub(super) fn in_template(&self) -> bool {
        self.template > 0
    }

    /// After a start tag: its element's content is text, not markup.
    pub(super) fn enter_text(&mut self, text: Text) {
        self.state = State::Text(text);
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
                State::Comment { start } => self.comment(&input, start),
                State::Bogus => self.bogus(&input),
                State::Text(Text::Until { name, told }) => self.text(&input, name, told),
                State::Text(Text::UntilMarkup) => self.text(&input, "", true),
                State::Text(Text::Forever) => Some(self.more(input.end())),
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
        let Some(open) = input.find(self.at, b'<') else { return Some(self.more(input.end())) };
        self.at = open;
        match input.byte(open + 1) {
            None => return Some(self.wait(input)),
            Some(byte) if byte.is_ascii_alphabetic() => self.enter_tag(open, false),
            Some(b'/') => match input.byte(open + 2) {
                None => return Some(self.wait(input)),
                Some(byte) if byte.is_ascii_alphabetic() => self.enter_tag(open, true),
                Some(_) => self.enter(State::Bogus, open + 2),
            },
            Some(b'!') => match (input.byte(open + 2), input.byte(open + 3)) {
                (Some(b'-'), Some(b'-')) => self.enter(State::Comment { start: open + 4 }, open + 4),
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

    fn enter_tag(&mut self, start: usize, closing: bool) {
        self.enter(State::Tag { start, end: TagEnd::default(), closing }, start + 1);
    }

    fn tag(&mut self, input: &Input<'_>, start: usize, mut end: TagEnd, closing: bool) -> Option<Found> {
        let Some(length) = end.find(input.from(self.at)) else {
            let read = input.end();
            self.enter(State::Tag { start, end, closing }, read);
            // Of a tag that is too long to be looked at nothing is needed.
            let needed = read - start <= self.longest;
            return Some(Found::More(if needed && !input.last { start } else { read }));
        };
        let range = start..self.at + length;
        self.enter(State::Markup, range.end);
        if range.len() > self.longest {
            return None;
        }
        self.count_open(input.range(range.clone()), closing);
        (!closing).then_some(Found::StartTag(range))
    }

    /// Keeps track of `svg` and `template`.
    fn count_open(&mut self, tag: &[u8], closing: bool) {
        let name = name_in(tag, closing);
        let counter = if name.eq_ignore_ascii_case(b"svg") {
            if !closing && tag.ends_with(b"/>") {
                return;
            }
            &mut self.svg
        } else if name.eq_ignore_ascii_case(b"template") {
            &mut self.template
        } else {
            if self.svg > 0 && !closing && ends_svg(name) {
                self.svg = 0;
            }
            return;
        };
        if closing {
            *counter = counter.saturating_sub(1);
        } else {
            *counter += 1;
        }
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

    fn text(&mut self, input: &Input<'_>, name: &'static str, told: bool) -> Option<Found> {
        let from = self.at;
        let mut at = from;
        let (until, ended) = loop {
            let Some(open) = input.find(at, b'<') else { break (input.end(), false) };
            // `</`, the name, and what follows it.
            let tag = input.range(open..(open + name.len() + 3).min(input.end()));
            if tag.len() < name.len() + 3 && !input.last && may_begin_end_tag(tag, name) {
                break (open, false);
            }
            if ends_text(tag, name) {
                break (open, true);
            }
            at = open + 1;
        };
        if told && until > from {
            self.at = until;
            return Some(Found::Text(from..until));
        }
        if ended {
            self.enter(State::Markup, until);
            return told.then_some(Found::EndOfText(until));
        }
        Some(self.more(until))
    }
}

/// The bytes at hand.
struct Input<'i> {
    bytes: &'i [u8],
    start: usize,
    last: bool,
}

impl<'i> Input<'i> {
    fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    fn range(&self, range: Range<usize>) -> &'i [u8] {
        let from = range.start.checked_sub(self.start);
        let to = range.end.checked_sub(self.start);
        from.zip(to).and_then(|(from, to)| self.bytes.get(from..to)).unwrap_or_default()
    }

    fn from(&self, at: usize) -> &'i [u8] {
        self.range(at..self.end())
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.from(at).first().copied()
    }

    fn find(&self, from: usize, byte: u8) -> Option<usize> {
        memchr(byte, self.from(from)).map(|distance| from + distance)
    }
}

/// The name in a tag, as written.
fn name_in(tag: &[u8], closing: bool) -> &[u8] {
    let name = tag.get(if closing { 2 } else { 1 }..).unwrap_or_default();
    name.split(|&byte| ends_name(byte)).next().unwrap_or_default()
}

/// Whether an HTML element of this name closes all SVG around it; the elements that pages really have are enough.
/// <https://html.spec.whatwg.org/multipage/parsing.html#parsing-main-inforeign>
fn ends_svg(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 20] = [
        b"body", b"br", b"center", b"div", b"em", b"h1", b"h2", b"h3", b"h4", b"head", b"hr", b"i", b"img", b"li",
        b"meta", b"ol", b"p", b"span", b"table", b"ul",
    ];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Without a name, whatever may be markup ends a text.
fn ends_text(tag: &[u8], name: &str) -> bool {
    if name.is_empty() {
        return true;
    }
    let complete = tag.len() > name.len() + 2;
    complete && tag.starts_with(b"</") && name_in(tag, true).eq_ignore_ascii_case(name.as_bytes())
}

fn may_begin_end_tag(tag: &[u8], name: &str) -> bool {
    let wanted = b"</".iter().chain(name.as_bytes());
    tag.iter().zip(wanted).all(|(one, other)| one.eq_ignore_ascii_case(other))
}

fn ends_name(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0C' | b'\r' | b'/' | b'>')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Skims `html` in pieces and lists what is found; text of `style` is told, other raw text is not.
    fn skim(html: &str, piece: usize) -> Vec<String> {
        let mut skimmer = Skimmer::new(0, 1000);
        let mut found = Vec::new();
        let mut held = 0;
        let mut text = String::new();
        let pieces = html.len().div_ceil(piece);
        for count in 0..=pieces {
            let end = (count * piece).min(html.len());
            let last = count == pieces;
            loop {
                match skimmer.next(&html.as_bytes()[held..end], held, last) {
                    Found::StartTag(range) => {
                        let tag = &html[range];
                        found.push(tag.to_owned());
                        if tag.starts_with("<style") {
                            skimmer.enter_text(Text::Until { name: "style", told: true });
                        } else if tag.starts_with("<script") {
                            skimmer.enter_text(Text::Until { name: "script", told: false });
                        } else if tag.starts_with("<plaintext") {
                            skimmer.enter_text(Text::Forever);
                        }
                    }
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
            ("a<p>b</p><i class='>'>c", &["<p>", "<i class='>'>"][..]),
            ("a < b <3 <", &[]),
            ("<!-- <p> --><i>", &["<i>"]),
            ("<!--><i><!---><b><!-- --!><u>", &["<i>", "<b>", "<u>"]),
            ("<!--!><i>--><b>", &["<b>"]),
            ("<!doctype html><?xml <p?></ ><i>", &["<i>"]),
            ("<script><p></scripty></SCRIPT ><i>", &["<script>", "<i>"]),
            ("<style>a<b></styl</style></p><i>", &["<style>", "text \"a<b></styl\"", "<i>"]),
            ("<style></style><plaintext><p></plaintext>", &["<style>", "text \"\"", "<plaintext>"]),
            ("<p title=a\"b><i title=\"<b>\"><u title='", &["<p title=a\"b>", "<i title=\"<b>\">"]),
            ("<p", &[]),
        ] {
            for piece in 1..=html.len() {
                assert_eq!(skim(html, piece), wanted, "{html} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_tag_that_is_too_long_is_stepped_over() {
        let html = format!("<p title='{}'><i>", "x".repeat(1000));
        for piece in [1, 7, 100, 2000] {
            assert_eq!(skim(&html, piece), ["<i>"], "pieces of {piece}");
        }
    }
}
