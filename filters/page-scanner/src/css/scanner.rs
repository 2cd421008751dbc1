//! Which parts of a style sheet are URLs that a browser fetches, and what for.
//!
//! A URL can only stand in a string or in `url()`, so most of a style sheet is stepped over from bracket to bracket. The
//! rest is read by cssparser: strings, `url()`, escaped names, at-keywords. The kept context tells a fetched URL from one
//! that is compared, named or looked up (`@namespace`, `@document`, conditions), and one kind of fetch from another. In
//! which declaration a URL stands is looked up when there is one: few declarations hold any. No token depends on the
//! brackets around it, so there is no recursion, whatever the nesting.
//!
//! A property test holds this to a plain loop over cssparser's tokens.

use std::ops::Range;

use cssparser::Token;
use memchr::{memchr, memchr_iter, memrchr3};
use url_mapping::Reason;

use super::blocks::{Block, Blocks};
use super::long::Escape;
use super::piece::{Piece, Sought, is_space};
use super::property::Fetch;
use super::specials::Specials;
use super::token::inside;
pub(crate) use super::token::value;

/// A URL, and the bytes that say it. Positions count from the start of the style sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The text between the quotes, or between `url(` and `)` without the white space there.
    pub(crate) range: Range<usize>,
    /// The whole token, for reading its value.
    pub(crate) token: Range<usize>,
    pub(crate) fetch: Fetch,
    /// Why its value is not looked at, if it is longer than the bound on tokens.
    pub(crate) unread: Option<Reason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prelude {
    /// Not between an at-keyword and its block or semicolon.
    None,
    /// `@import`, whose URL comes first behind this position.
    Import { behind: usize },
    /// Any other place between an at-keyword and its block or semicolon: what stands here is not fetched.
    NotFetched,
    /// The same, and the block that follows is a `@font-face`.
    FontFace,
}

impl Prelude {
    /// Of an at-rule of this name, which ends at `end`.
    fn of(name: &str, end: usize) -> Self {
        if name.eq_ignore_ascii_case("import") {
            Self::Import { behind: end }
        } else if name.eq_ignore_ascii_case("font-face") {
            Self::FontFace
        } else {
            Self::NotFetched
        }
    }
}

/// The token around the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Tokens,
    Comment {
        after_star: bool,
    },
    /// A string or `url()` too long to be kept, up to its closing byte.
    Long {
        closing: u8,
        escape: Escape,
    },
}

/// The property of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    /// Its colon has not come yet.
    None,
    /// Its name is in front of this colon, not looked at: few declarations hold a URL.
    Before(usize),
    Fetches(Fetch),
}

/// The context between two tokens; carries over from one piece of a style sheet to the next.
#[derive(Debug)]
pub(crate) struct Scanner {
    token_bytes: usize,
    inside: Inside,
    blocks: Blocks,
    prelude: Prelude,
    /// Depth of brackets at which the prelude began; its semicolon or block stands at the same depth.
    prelude_depth: usize,
    /// Where the declaration or rule began, and its property, as far as has been looked for colons, semicolons and braces.
    statement: usize,
    property: Property,
    /// How far that is. Behind it nothing has been stepped over but single bytes: no string, comment or escape.
    declared_to: usize,
    /// Behind the bracket of the function opened last.
    function: usize,
    /// Behind the name read last for its at-sign or backslash: no part of it is another name.
    read_to: usize,
}

/// Where to go on, or none if there are too few bytes.
type Next = Option<usize>;

impl Scanner {
    /// `token_bytes`: the longest string or `url()` that is looked at.
    pub(crate) fn new(token_bytes: usize) -> Self {
        Self {
            token_bytes,
            inside: Inside::Tokens,
            blocks: Blocks::default(),
            prelude: Prelude::None,
            prelude_depth: 0,
            statement: 0,
            property: Property::None,
            declared_to: 0,
            function: 0,
            read_to: 0,
        }
    }

    /// Scans from `from` on and reports URLs. `text` begins at `start` of the style sheet. It reaches [`LOOK_BEHIND`] back
    /// from `from`, or to the style sheet's start.
    ///
    /// Returns where to go on when there is more: what is before is certain.
    pub(crate) fn scan(
        &mut self,
        text: &str,
        start: usize,
        from: usize,
        last: bool,
        found: &mut dyn FnMut(Found),
    ) -> usize {
        let piece = Piece { text, start, last };
        let at = self.scan_piece(&piece, from, found);
        self.declared(&piece, at);
        if let Property::Before(colon) = self.property {
            // The next piece may begin behind it.
            self.property = Property::Fetches(piece.property(self.statement..colon));
        }
        at
    }

    fn scan_piece(&mut self, piece: &Piece<'_>, mut at: usize, found: &mut dyn FnMut(Found)) -> usize {
        let mut specials = Specials::of(piece.text);
        loop {
            let next = match self.inside {
                Inside::Tokens => match self.next_special(&mut specials, at - piece.start) {
                    None => return piece.end(),
                    Some((special, byte)) => {
                        at = piece.start + special;
                        self.token(piece, at, byte, found)
                    }
                },
                Inside::Comment { after_star } => self.comment(piece, at, after_star),
                Inside::Long { closing, escape } => self.long(piece, at, closing, escape),
            };
            match next {
                Some(next) => at = next,
                None if piece.last => return piece.end(),
                None => return self.wait(piece, at),
            }
        }
    }

    /// The next byte from `from` on that must be looked at, and where it is. Brackets that only open or close are stepped
    /// over: where one ends a statement, [`Scanner::declared`] finds it.
    #[inline]
    fn next_special(&mut self, specials: &mut Specials<'_>, from: usize) -> Option<(usize, u8)> {
        if self.prelude != Prelude::None {
            return specials.next_or_semicolon(from);
        }
        let mut from = from;
        loop {
            let (special, byte) = specials.next(from)?;
            match byte {
                b'{' | b'[' => self.blocks.open(Block::Other),
                b'}' | b']' | b')' => self.blocks.close(),
                b'(' if !specials.may_open_known_function(special) => self.blocks.open(Block::Other),
                _ => return Some((special, byte)),
            }
            from = special + 1;
        }
    }

    /// Where what cannot be decided yet begins.
    fn wait(&self, piece: &Piece<'_>, at: usize) -> usize {
        match self.inside {
            Inside::Tokens if piece.byte(at) == Some(b'(') => piece.name_before(at, self.read_to),
            Inside::Tokens if piece.byte(at) == Some(b'\\') => piece.escaped_name(at, self.read_to),
            Inside::Tokens => at,
            _ => piece.end(),
        }
    }

    fn token(&mut self, piece: &Piece<'_>, at: usize, byte: u8, found: &mut dyn FnMut(Found)) -> Next {
        match byte {
            b'"' | b'\'' => return self.string(piece, at, found),
            b'(' => return self.bracket(piece, at, found),
            b'\\' => return self.escaped(piece, piece.escaped_name(at, self.read_to), at, found),
            b'@' => return self.at_keyword(piece, at),
            b'/' => match piece.byte(at + 1) {
                Some(b'*') => {
                    self.declared(piece, at);
                    self.inside = Inside::Comment { after_star: false };
                    return Some(at + 2);
                }
                None if !piece.last => return None,
                _ => {}
            },
            b';' => self.end_of_statement(at),
            b'{' => {
                let block = if self.prelude == Prelude::FontFace { Block::FontFace } else { Block::Other };
                self.end_of_statement(at);
                self.blocks.open(block);
            }
            b'[' => self.blocks.open(Block::Other),
            b'}' => {
                self.blocks.close();
                self.end_of_statement(at);
            }
            b')' | b']' => self.blocks.close(),
            _ => {}
        }
        Some(at + 1)
    }

    /// `(`: of a function, of a `url()`, or neither.
    fn bracket(&mut self, piece: &Piece<'_>, at: usize, found: &mut dyn FnMut(Found)) -> Next {
        let name_at = piece.name_before(at, self.read_to);
        let name = if piece.is_hash(name_at) { "" } else { piece.get(name_at..at) };
        self.expect_import(piece, name_at);
        if name.eq_ignore_ascii_case("url") {
            return self.url_or_function(piece, name_at, at, found);
        }
        self.open_function(name, at);
        Some(at + 1)
    }

    /// `url(`: with a quote behind it a function, else a token that ends at its bracket.
    fn url_or_function(&mut self, piece: &Piece<'_>, name_at: usize, at: usize, found: &mut dyn FnMut(Found)) -> Next {
        let behind = piece.from(at + 1);
        let blank = behind.len() - behind.trim_start_matches(is_space).len();
        match behind.as_bytes().get(blank) {
            _ if blank > self.token_bytes => self.open_function("", at),
            Some(b'"' | b'\'') => self.open_function("url", at),
            None if !piece.last => return None,
            _ => return self.unquoted_url(piece, name_at, at + 1, found),
        }
        Some(at + 1)
    }

    fn unquoted_url(
        &mut self,
        piece: &Piece<'_>,
        name_at: usize,
        content: usize,
        found: &mut dyn FnMut(Found),
    ) -> Next {
        let (url, length) = piece.url_at(name_at, content, self.token_bytes)?;
        self.declared(piece, name_at);
        if url == Sought::TooLong {
            return Some(self.too_long(piece, content, b')', self.fetch(piece), found));
        }
        Some(self.end_of_token(piece, name_at..name_at + length, url == Sought::Value, found))
    }

    fn string(&mut self, piece: &Piece<'_>, at: usize, found: &mut dyn FnMut(Found)) -> Next {
        if self.blocks.last() != Some(Block::Url) {
            self.expect_import(piece, at);
        }
        let is_url = self.string_is_url(piece, at);
        let (string, length) = piece.string_at(at, self.token_bytes)?;
        self.declared(piece, at);
        if string == Sought::TooLong {
            let fetch = if is_url { self.fetch(piece) } else { None };
            let closing = piece.byte(at).unwrap_or(b'"');
            return Some(self.too_long(piece, at + 1, closing, fetch, found));
        }
        Some(self.end_of_token(piece, at..at + length, is_url && string == Sought::Value, found))
    }

    /// Behind a string or `url()`.
    fn end_of_token(
        &mut self,
        piece: &Piece<'_>,
        token: Range<usize>,
        is_url: bool,
        found: &mut dyn FnMut(Found),
    ) -> usize {
        let end = token.end;
        if is_url {
            self.url(piece, token, found);
        }
        self.end_import();
        self.declared_to = end;
        end
    }

    /// A string or `url()` that is longer than what is looked at, from its content on.
    fn too_long(
        &mut self,
        piece: &Piece<'_>,
        content: usize,
        closing: u8,
        fetch: Option<Fetch>,
        found: &mut dyn FnMut(Found),
    ) -> usize {
        if let Some(fetch) = fetch {
            let said = piece.from(content).trim_start_matches(is_space);
            let is_data = said.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
            let reason = if is_data { Reason::Scheme } else { Reason::TooLong };
            found(Found { range: content..content, token: content..content, fetch, unread: Some(reason) });
        }
        self.end_import();
        self.inside = Inside::Long { closing, escape: Escape::No };
        content
    }

    fn comment(&mut self, piece: &Piece<'_>, at: usize, after_star: bool) -> Next {
        let text = piece.from(at);
        let bytes = text.as_bytes();
        let mut stars = memchr_iter(b'*', bytes);
        let end = if after_star && text.starts_with('/') {
            Some(1)
        } else {
            stars.find(|star| bytes.get(star + 1) == Some(&b'/')).map(|star| star + 2)
        };
        let after_star = text.ends_with('*') || (text.is_empty() && after_star);
        self.inside = if end.is_some() { Inside::Tokens } else { Inside::Comment { after_star } };
        self.declared_to = at + end.unwrap_or(text.len());
        end.map(|end| at + end)
    }

    fn long(&mut self, piece: &Piece<'_>, at: usize, closing: u8, mut escape: Escape) -> Next {
        let end = escape.end_of_token(piece.bytes_from(at), closing);
        self.inside = if end.is_some() { Inside::Tokens } else { Inside::Long { closing, escape } };
        self.declared_to = end.map_or(piece.end(), |end| at + end);
        end.map(|end| at + end)
    }

    /// A name with a backslash in it, which may hide anything.
    fn escaped(&mut self, piece: &Piece<'_>, name_at: usize, at: usize, found: &mut dyn FnMut(Found)) -> Next {
        let (token, length) = piece.token_at(name_at, self.token_bytes)?;
        let end = name_at + length;
        self.declared(piece, at);
        let stepped_over = at + 1 + piece.from(at + 1).chars().next().map_or(0, char::len_utf8);
        self.read_to = stepped_over.max(end);
        match token {
            Some(Token::Function(name)) => {
                self.expect_import(piece, name_at);
                self.open_function(&name, end - 1);
            }
            Some(Token::UnquotedUrl(_) | Token::BadUrl(_)) => {
                self.expect_import(piece, name_at);
                let content = piece.get(name_at..end).find('(').map_or(end, |open| name_at + open + 1);
                return self.unquoted_url(piece, name_at, content, found);
            }
            Some(_) if end > at => {}
            // Not a name, or too long for one: only the backslash and what it escapes are stepped over.
            _ => {
                self.read_to = stepped_over;
                self.declared_to = stepped_over;
                return Some(stepped_over);
            }
        }
        self.declared_to = end;
        Some(end)
    }

    fn at_keyword(&mut self, piece: &Piece<'_>, at: usize) -> Next {
        let (prelude, end) = match piece.plain_name(at + 1, self.token_bytes) {
            Some(name) => (Prelude::of(name, at + 1 + name.len()), at + 1 + name.len()),
            None => match piece.token_at(at, self.token_bytes)? {
                (Some(Token::AtKeyword(name)), length) => (Prelude::of(&name, at + length), at + length),
                _ => return Some(at + 1),
            },
        };
        // The end of the prelude begins another statement, so nobody asks for this one.
        self.declared_to = end;
        self.read_to = end;
        self.prelude = prelude;
        self.prelude_depth = self.blocks.depth();
        self.property = Property::None;
        Some(end)
    }

    fn open_function(&mut self, name: &str, bracket: usize) {
        self.blocks.open(if name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src") {
            Block::Url
        } else if name.eq_ignore_ascii_case("image-set") || name.eq_ignore_ascii_case("-webkit-image-set") {
            Block::ImageSet
        } else {
            Block::Other
        });
        self.function = bracket + 1;
    }

    fn string_is_url(&self, piece: &Piece<'_>, at: usize) -> bool {
        match self.blocks.last() {
            _ if self.blocks.too_many() => false,
            Some(Block::Url) => piece.is_blank(self.function..at),
            Some(Block::ImageSet) => true,
            _ => matches!(self.prelude, Prelude::Import { .. }),
        }
    }

    /// The purpose of a URL here; none if a browser would not fetch it.
    fn fetch(&self, piece: &Piece<'_>) -> Option<Fetch> {
        match self.prelude {
            Prelude::Import { .. } => Some(Fetch::Import),
            Prelude::NotFetched | Prelude::FontFace => None,
            Prelude::None if self.blocks.in_font_face() => Some(Fetch::Font),
            Prelude::None => Some(match self.property {
                Property::None => Fetch::Image,
                Property::Before(colon) => piece.property(self.statement..colon),
                Property::Fetches(fetch) => fetch,
            }),
        }
    }

    fn url(&self, piece: &Piece<'_>, token: Range<usize>, found: &mut dyn FnMut(Found)) {
        let Some(fetch) = self.fetch(piece) else { return };
        let inner = inside(piece.get(token.clone()));
        let range = token.start + inner.start..token.start + inner.end;
        found(Found { range, token, fetch, unread: None });
    }

    /// The URL of an `@import` comes first or not at all: anything before `at` makes the rule invalid.
    fn expect_import(&mut self, piece: &Piece<'_>, at: usize) {
        if matches!(self.prelude, Prelude::Import { behind } if !piece.is_blank(behind..at)) {
            self.prelude = Prelude::NotFetched;
        }
    }

    /// Later strings in an `@import` are something else.
    fn end_import(&mut self) {
        if matches!(self.prelude, Prelude::Import { .. }) {
            self.prelude = Prelude::NotFetched;
        }
    }

    fn end_of_statement(&mut self, at: usize) {
        self.property = Property::None;
        self.statement = at + 1;
        self.declared_to = at + 1;
        if self.blocks.depth() <= self.prelude_depth {
            self.prelude = Prelude::None;
        }
    }

    /// Finds in which declaration `at` stands: what was stepped over on the way there is looked at now.
    fn declared(&mut self, piece: &Piece<'_>, at: usize) {
        let mut passed = piece.get(self.declared_to..at).as_bytes();
        if let Some(end) = memrchr3(b';', b'{', b'}', passed) {
            self.property = Property::None;
            self.statement = self.declared_to + end + 1;
            passed = passed.get(end + 1..).unwrap_or_default();
        }
        if self.property == Property::None {
            let colon = memchr(b':', passed).map(|colon| at - passed.len() + colon);
            self.property = colon.map_or(Property::None, Property::Before);
        }
        self.declared_to = self.declared_to.max(at);
    }
}
