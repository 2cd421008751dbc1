//! Which parts of a style sheet are URLs that a browser fetches, and what for.
//!
//! A URL can only stand in a string or in `url()`, so most of a sheet is stepped over byte by byte; what matters is read
//! by cssparser: strings, `url()`, escaped names, at-keywords. The context kept is only what tells a fetched URL from one
//! that is compared, named or looked up (`@namespace`, `@document`, conditions), and one kind of fetch from another. No
//! token depends on the brackets around it, so there is no recursion, whatever the nesting.
//!
//! A property test holds this to a plain loop over cssparser's tokens.

use std::ops::Range;

use cssparser::{Parser, Token};
use url_mapping::Reason;

/// What a URL in a style sheet is fetched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// Backgrounds, list markers, cursors, borders, generated content, custom properties: fetched without CORS.
    Image,
    /// `@import`.
    Import,
    /// `src` of `@font-face`: always fetched with CORS.
    Font,
    /// Masks and shapes: images that are fetched with CORS.
    CorsImage,
    /// Filters, clip paths, paint servers, bindings: only same-origin documents are accepted.
    SameOrigin,
}

/// A URL, and the bytes that say it. Positions count from the start of the sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// What stands between the quotes, or between `url(` and `)` without the white space there.
    pub(crate) range: Range<usize>,
    /// The whole token, for reading its value.
    pub(crate) token: Range<usize>,
    pub(crate) fetch: Fetch,
    /// Why its value is not looked at, if it is longer than the bound on tokens.
    pub(crate) unread: Option<Reason>,
}

/// How far back, in bytes, the text must reach that is scanned: names and what stands between a name and what it names
/// are looked up there. What is longer is not seen, wherever the sheet was cut.
pub(crate) const LOOK_BEHIND: usize = 256;

/// Open brackets that are told apart. Below that, `url()` is still found, but no bare string in a function.
const MOST_BLOCKS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    FontFace,
    /// `url(` and `src(` before a quote: a string first in it is a URL.
    Url,
    /// `image-set(`: every string directly in it is a URL.
    ImageSet,
    Other,
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

/// What the next byte is in.
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

/// How far into an escape a long token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    No,
    Backslash,
    Digits(u8),
    /// After a carriage return that belongs to the escape: a line feed would, too.
    Return,
}

/// The context between two tokens; carries over from one piece of a sheet to the next.
#[derive(Debug)]
pub(crate) struct Scanner {
    token_bytes: usize,
    inside: Inside,
    blocks: Vec<Block>,
    /// Brackets open beyond the ones told apart.
    deeper: usize,
    prelude: Prelude,
    /// Depth of brackets at which the prelude began; its semicolon or block stands at the same depth.
    prelude_depth: usize,
    /// Where the declaration or rule began, and what its property fetches, once its colon is behind.
    statement: usize,
    property: Option<Fetch>,
    /// Behind the bracket of the function opened last.
    function: usize,
    /// Behind the name read last for its at-sign or backslash: no part of it is another name.
    read_to: usize,
}

/// A piece of a sheet.
#[derive(Clone, Copy)]
struct Piece<'t> {
    text: &'t str,
    /// Where it begins in the sheet.
    start: usize,
    last: bool,
}

/// Where to go on, or none if there are too few bytes.
type Next = Option<usize>;

impl Scanner {
    /// `token_bytes`: the longest string or `url()` that is looked at.
    pub(crate) fn new(token_bytes: usize) -> Self {
        Self {
            token_bytes,
            inside: Inside::Tokens,
            blocks: Vec::new(),
            deeper: 0,
            prelude: Prelude::None,
            prelude_depth: 0,
            statement: 0,
            property: None,
            function: 0,
            read_to: 0,
        }
    }

    /// Scans from `from` on and reports URLs. `text` begins at `start` of the sheet and reaches [`LOOK_BEHIND`] back from
    /// `from`, or to the sheet's start.
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
        let mut at = from;
        loop {
            let next = match self.inside {
                Inside::Tokens => match piece.special(at) {
                    None => return piece.end(),
                    Some((special, byte)) => {
                        at = special;
                        self.token(&piece, at, byte, found)
                    }
                },
                Inside::Comment { after_star } => self.comment(&piece, at, after_star),
                Inside::Long { closing, escape } => self.long(&piece, at, closing, escape),
            };
            match next {
                Some(next) => at = next,
                None if last => return piece.end(),
                None => return self.wait(&piece, at),
            }
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
                    self.inside = Inside::Comment { after_star: false };
                    return Some(at + 2);
                }
                None if !piece.last => return None,
                _ => {}
            },
            b':' => {
                if self.property.is_none() {
                    self.property = Some(piece.property(self.statement..at));
                }
            }
            b';' => self.end_of_statement(at),
            b'{' => {
                let block = if self.prelude == Prelude::FontFace { Block::FontFace } else { Block::Other };
                self.end_of_statement(at);
                self.open(block);
            }
            b'[' => self.open(Block::Other),
            b'}' => {
                self.close();
                self.end_of_statement(at);
            }
            // `)` and `]`.
            _ => self.close(),
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
        let (token, length) = piece.token_at(name_at, self.token_bytes)?;
        let range = name_at..name_at + length;
        match token {
            Some(Token::UnquotedUrl(_)) => self.url(piece, range.clone(), found),
            Some(_) => {}
            None => return Some(self.too_long(piece, content, b')', self.fetch(), found)),
        }
        self.end_import();
        Some(range.end)
    }

    fn string(&mut self, piece: &Piece<'_>, at: usize, found: &mut dyn FnMut(Found)) -> Next {
        if self.blocks.last() != Some(&Block::Url) {
            self.expect_import(piece, at);
        }
        let is_url = self.string_is_url(piece, at);
        let (token, length) = piece.token_at(at, self.token_bytes)?;
        let range = at..at + length;
        match token {
            Some(Token::QuotedString(_)) if is_url => self.url(piece, range.clone(), found),
            Some(_) => {}
            None => {
                let fetch = if is_url { self.fetch() } else { None };
                let closing = piece.byte(at).unwrap_or(b'"');
                return Some(self.too_long(piece, at + 1, closing, fetch, found));
            }
        }
        self.end_import();
        Some(range.end)
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

    fn long(&mut self, piece: &Piece<'_>, at: usize, closing: u8, mut escape: Escape) -> Next {
        for (distance, byte) in piece.from(at).bytes().enumerate() {
            escape = match (escape, byte) {
                (Escape::Backslash, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => Escape::Digits(1),
                (Escape::Backslash | Escape::Digits(_), b'\r') => Escape::Return,
                (Escape::Backslash, _)
                | (Escape::Digits(_), b' ' | b'\t' | b'\n' | b'\x0C')
                | (Escape::Return, b'\n') => Escape::No,
                (Escape::Digits(count @ 1..=5), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => Escape::Digits(count + 1),
                (_, b'\\') => Escape::Backslash,
                (_, byte) if byte == closing => {
                    self.inside = Inside::Tokens;
                    return Some(at + distance + 1);
                }
                // A bare line break ends a string, too; it is not part of it.
                (_, b'\n' | b'\r' | b'\x0C') if closing != b')' => {
                    self.inside = Inside::Tokens;
                    return Some(at + distance);
                }
                _ => Escape::No,
            };
        }
        self.inside = Inside::Long { closing, escape };
        None
    }

    fn comment(&mut self, piece: &Piece<'_>, at: usize, after_star: bool) -> Next {
        let text = piece.from(at);
        let end = if after_star && text.starts_with('/') { Some(1) } else { text.find("*/").map(|end| end + 2) };
        let after_star = text.ends_with('*') || (text.is_empty() && after_star);
        self.inside = if end.is_some() { Inside::Tokens } else { Inside::Comment { after_star } };
        end.map(|end| at + end)
    }

    /// A name with a backslash in it, which may hide anything.
    fn escaped(&mut self, piece: &Piece<'_>, name_at: usize, at: usize, found: &mut dyn FnMut(Found)) -> Next {
        let (token, length) = piece.token_at(name_at, self.token_bytes)?;
        let end = name_at + length;
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
                return Some(stepped_over);
            }
        }
        Some(end)
    }

    fn at_keyword(&mut self, piece: &Piece<'_>, at: usize) -> Next {
        let (token, length) = piece.token_at(at, self.token_bytes)?;
        let end = at + length;
        let Some(Token::AtKeyword(keyword)) = token else { return Some(at + 1) };
        self.read_to = end;
        self.prelude = if keyword.eq_ignore_ascii_case("import") {
            Prelude::Import { behind: end }
        } else if keyword.eq_ignore_ascii_case("font-face") {
            Prelude::FontFace
        } else {
            Prelude::NotFetched
        };
        self.prelude_depth = self.depth();
        self.property = None;
        Some(end)
    }

    fn open_function(&mut self, name: &str, bracket: usize) {
        self.open(if name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src") {
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
            _ if self.deeper > 0 => false,
            Some(Block::Url) => piece.is_blank(self.function..at),
            Some(Block::ImageSet) => true,
            _ => matches!(self.prelude, Prelude::Import { .. }),
        }
    }

    /// What a URL here would be fetched for; none if it would not be.
    fn fetch(&self) -> Option<Fetch> {
        match self.prelude {
            Prelude::Import { .. } => Some(Fetch::Import),
            Prelude::NotFetched | Prelude::FontFace => None,
            Prelude::None if self.blocks.contains(&Block::FontFace) => Some(Fetch::Font),
            Prelude::None => Some(self.property.unwrap_or(Fetch::Image)),
        }
    }

    fn url(&self, piece: &Piece<'_>, token: Range<usize>, found: &mut dyn FnMut(Found)) {
        let Some(fetch) = self.fetch() else { return };
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

    fn depth(&self) -> usize {
        self.blocks.len() + self.deeper
    }

    fn open(&mut self, block: Block) {
        if self.blocks.len() < MOST_BLOCKS && self.deeper == 0 {
            self.blocks.push(block);
        } else {
            self.deeper = self.deeper.saturating_add(1);
        }
    }

    fn close(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.blocks.pop();
        }
    }

    fn end_of_statement(&mut self, at: usize) {
        self.property = None;
        self.statement = at + 1;
        if self.depth() <= self.prelude_depth {
            self.prelude = Prelude::None;
        }
    }
}

impl<'t> Piece<'t> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    fn get(&self, range: Range<usize>) -> &'t str {
        let from = range.start.checked_sub(self.start);
        let to = range.end.checked_sub(self.start);
        from.zip(to).and_then(|(from, to)| self.text.get(from..to)).unwrap_or_default()
    }

    fn from(&self, at: usize) -> &'t str {
        self.get(at..self.end())
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.from(at).bytes().next()
    }

    /// The next byte that can begin or end something, and where it is.
    fn special(&self, from: usize) -> Option<(usize, u8)> {
        let bytes = self.from(from).bytes();
        let special = |(_, byte): &(usize, u8)| SPECIAL.get(usize::from(*byte)).is_some_and(|&is| is);
        bytes.enumerate().find(special).map(|(distance, byte)| (from + distance, byte))
    }

    /// Where the name before `at` begins, but not before `floor`; `at` if there is none.
    fn name_before(&self, at: usize, floor: usize) -> usize {
        let floor = at.saturating_sub(LOOK_BEHIND).max(self.start).max(floor.min(at));
        let before = self.get(floor..at);
        let length = before.bytes().rev().take_while(|&byte| is_name(byte)).count();
        let name_at = at - length;
        // `<!--` is a token of its own.
        let opens_comment = self.get(name_at..at).starts_with("--") && self.get(floor..name_at).ends_with("<!");
        if opens_comment { name_at + 2 } else { name_at }
    }

    /// Where the name begins that has a backslash at `at`.
    fn escaped_name(&self, at: usize, floor: usize) -> usize {
        let name_at = self.name_before(at, floor);
        if self.is_hash(name_at) { name_at - 1 } else { name_at }
    }

    fn is_hash(&self, name_at: usize) -> bool {
        self.get(self.start..name_at).ends_with('#')
    }

    /// The token at `at` and its length; no token if that is longer than `most` bytes. None if there are too few bytes.
    fn token_at(&self, at: usize, most: usize) -> Option<(Option<Token<'t>>, usize)> {
        let behind = self.from(at);
        let text = behind.get(..behind.floor_char_boundary(most + LOOK_AHEAD + 4)).unwrap_or(behind);
        let mut parser = Parser::new(text);
        let token = parser.next_including_whitespace_and_comments().ok().cloned();
        let length = parser.position().byte_index();
        let is_cut = text.len() < behind.len();
        let reaches_end = length + LOOK_AHEAD > text.len();
        if reaches_end && !is_cut && !self.last {
            return None;
        }
        let too_long = length > most || (reaches_end && is_cut);
        Some((token.filter(|_| !too_long), length))
    }

    /// What the property in front of a colon fetches.
    fn property(&self, statement: Range<usize>) -> Fetch {
        if statement.len() > LOOK_BEHIND {
            return Fetch::Image;
        }
        let name = skip_blank(self.get(statement)).trim_end_matches(is_space);
        if name.contains('\\') {
            let mut parser = Parser::new(name);
            return match parser.next() {
                Ok(Token::Ident(name)) => fetch_of_property(name),
                _ => Fetch::Image,
            };
        }
        fetch_of_property(name)
    }

    /// Whether nothing but white space and comments stands there.
    fn is_blank(&self, range: Range<usize>) -> bool {
        range.len() <= LOOK_BEHIND && skip_blank(self.get(range)).is_empty()
    }
}

/// CSS tokenization never looks further ahead than three code points past the end of a token.
const LOOK_AHEAD: usize = 3;

/// Bytes that can begin or end something; all others are parts of names and numbers, white space, or delimiters that mean
/// nothing here.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
static SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut rest: &[u8] = b"\"'()[]{};:@\\/";
    while let [byte, after @ ..] = rest {
        special[*byte as usize] = true;
        rest = after;
    }
    special
};

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\x0C' | '\r')
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | 0) || !byte.is_ascii()
}

/// The text behind white space and comments.
fn skip_blank(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches(is_space);
        let Some(comment) = text.strip_prefix("/*") else { return text };
        text = comment.split_once("*/").map_or("", |(_, behind)| behind);
    }
}

/// What a URL in a declaration of this property is fetched for.
fn fetch_of_property(name: &str) -> Fetch {
    /// Properties whose URL names a part of a document or a program: browsers take these from the page's own origin only.
    const SAME_ORIGIN: [&str; 11] = [
        "filter",
        "backdrop-filter",
        "clip-path",
        "fill",
        "stroke",
        "marker",
        "marker-start",
        "marker-mid",
        "marker-end",
        "behavior",
        "binding",
    ];
    /// <https://drafts.fxtf.org/css-masking/#mask-image-fetch>, <https://drafts.csswg.org/css-shapes/#shape-outside-property>
    const WITH_CORS: [&str; 7] = [
        "mask",
        "mask-image",
        "mask-border",
        "mask-border-source",
        "mask-box-image",
        "mask-box-image-source",
        "shape-outside",
    ];

    let vendor = |prefix: &str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let prefix = ["-webkit-", "-moz-"].into_iter().find(|prefix| vendor(prefix)).unwrap_or_default();
    let bare = name.get(prefix.len()..).unwrap_or_default();
    if SAME_ORIGIN.iter().any(|known| bare.eq_ignore_ascii_case(known)) {
        Fetch::SameOrigin
    } else if WITH_CORS.iter().any(|known| bare.eq_ignore_ascii_case(known)) {
        Fetch::CorsImage
    } else {
        Fetch::Image
    }
}

/// Where the URL stands in a string or `url()` token as written.
fn inside(written: &str) -> Range<usize> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\x0C' | b'\r');
    let bytes = written.as_bytes();
    let escaped = |end: usize| {
        let before = bytes.get(..end).unwrap_or_default();
        before.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
    };
    // The end of the input closes what is still open, so the last byte is not always the closing one.
    let closed_by = |byte: u8, from: usize| {
        let last = bytes.len().saturating_sub(1);
        if last >= from && bytes.get(last) == Some(&byte) && !escaped(last) { last } else { bytes.len() }
    };
    if let Some(&quote @ (b'"' | b'\'')) = bytes.first() {
        return 1..closed_by(quote, 1);
    }
    let open = bytes.iter().position(|&byte| byte == b'(').map_or(bytes.len(), |at| at + 1);
    let end = closed_by(b')', open);
    let body = bytes.get(open..end).unwrap_or_default();
    let start = open + body.iter().take_while(|byte| is_space(byte)).count();
    let kept = bytes.get(start..end).unwrap_or_default();
    let trailing = kept.iter().rev().take_while(|byte| is_space(byte)).count();
    start..end - trailing
}

/// The value of a string or `url()` token.
pub(crate) fn value(token: &str) -> Option<String> {
    let mut parser = Parser::new(token);
    match parser.next_including_whitespace_and_comments() {
        Ok(Token::QuotedString(value) | Token::UnquotedUrl(value)) => Some(value.as_ref().to_owned()),
        _ => None,
    }
}
