//! Which tokens of a style sheet are URLs that a browser fetches, and what for.
//!
//! Tokens are cssparser's; the context kept here is only what tells a fetched URL from one that is compared, named or
//! looked up (`@namespace`, `@document`, conditions, `url(#fragment)`), and one kind of fetch from another. Tokens do not
//! depend on brackets around them, so the list is read flat: no recursion, whatever the nesting.

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

/// A URL, and the bytes of the text that say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// What stands between the quotes, or between `url(` and `)` without the white space there.
    pub(crate) range: Range<usize>,
    /// The whole token, for reading its value again.
    pub(crate) token: Range<usize>,
    pub(crate) fetch: Fetch,
    /// Why its value is not looked at, if it is longer than the bound on tokens.
    pub(crate) unread: Option<Reason>,
}

/// The beginning of a string or `url()` that is longer than the bound, to be stepped through without keeping it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Long {
    /// Bytes to the first one of its content.
    pub(crate) opening: usize,
    /// The byte that ends it: a quote, or `)`.
    pub(crate) closing: u8,
    /// What it would be fetched for, if it is a URL at all.
    pub(crate) fetch: Option<Fetch>,
    /// Why its value is not looked at.
    pub(crate) unread: Reason,
}

/// A name or number that does not fit the bound that keeps memory bounded. Nothing like it is found in a sheet that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenTooLong;

/// CSS tokenization never looks further ahead than three code points past the end of a token.
pub(crate) const LOOKAHEAD: usize = 3;

/// Open brackets that are told apart. Below that, URLs are still found, but no longer bare strings in functions.
const MOST_BLOCKS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// `{`, with what a URL in its declarations is by default.
    Rules,
    FontFace,
    /// `url("` and `src("`: a string first in it is a URL.
    Url,
    /// `image-set(`: every string directly in it is a URL.
    ImageSet,
    /// Any other bracket or function.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prelude {
    /// Not between an at-keyword and its block or semicolon.
    None,
    /// `@import`, its URL still to come.
    Import,
    /// Any other place between an at-keyword and its block or semicolon: what stands here is not fetched.
    NotFetched,
    /// The same, and the block that follows is a `@font-face`.
    FontFace,
}

/// The context between two tokens; carries over from one piece of a sheet to the next.
#[derive(Debug)]
pub(crate) struct Scanner {
    blocks: Vec<Block>,
    /// Brackets open beyond the ones told apart.
    deeper: usize,
    token_bytes: usize,
    prelude: Prelude,
    /// Depth of brackets at which the prelude began; its semicolon or block stands at the same depth.
    prelude_depth: usize,
    property: Option<Fetch>,
    /// The identifier just read, while it may still turn out to be a property's name.
    name: Option<Fetch>,
    /// Whether the next token that is not white space is the first in its function.
    first_in_function: bool,
}

impl Scanner {
    /// `token_bytes`: the longest token that is looked at.
    pub(crate) fn new(token_bytes: usize) -> Self {
        Self {
            blocks: Vec::new(),
            deeper: 0,
            token_bytes,
            prelude: Prelude::None,
            prelude_depth: 0,
            property: None,
            name: None,
            first_in_function: false,
        }
    }

    /// Reads tokens from the start of `text` and reports URLs.
    ///
    /// Returns how much of it is done with: all of it if it is the `last` piece, else up to the first token that more text
    /// could still change.
    pub(crate) fn scan(&mut self, text: &str, last: bool, found: &mut dyn FnMut(Found)) -> Result<usize, TokenTooLong> {
        let mut done = 0;
        while let Some(rest) = text.get(done..).filter(|rest| !rest.is_empty()) {
            let mut parser = Parser::new(rest);
            let base = done;
            while let Ok(token) = parser.next_including_whitespace_and_comments() {
                let opens = matches!(
                    token,
                    Token::Function(_) | Token::ParenthesisBlock | Token::SquareBracketBlock | Token::CurlyBracketBlock
                );
                let token = token.clone();
                let range = done..base + parser.position().byte_index();
                if !last && range.end + LOOKAHEAD > text.len() {
                    return Ok(done);
                }
                done = range.end;
                self.token(&token, text, range, found)?;
                if opens {
                    // The parser would skip to the end of the block; a new one on the rest reads into it.
                    break;
                }
            }
            if done == base {
                break;
            }
        }
        Ok(done)
    }

    /// Takes the token that `text` begins with and that is longer than the bound for read.
    ///
    /// What follows its opening must be stepped through to its end before scanning goes on.
    pub(crate) fn long_token(&mut self, text: &str) -> Result<Long, TokenTooLong> {
        let (opening, is_string, closing) = match text.bytes().next() {
            Some(quote @ (b'"' | b'\'')) => (1, true, quote),
            _ => match text.find('(').and_then(|open| text.get(..=open)) {
                // Only `url(`, however it is escaped, makes a token that does not end at its bracket.
                Some(name) if value(name).is_some() => (name.len(), false, b')'),
                _ => return Err(TokenTooLong),
            },
        };
        let is_url = !is_string || self.string_is_url();
        let fetch = if is_url { self.fetch() } else { None };
        self.after_token();
        let content = text.get(opening..).unwrap_or_default().trim_ascii_start();
        let is_data = content.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
        let unread = if is_data { Reason::Scheme } else { Reason::TooLong };
        Ok(Long { opening, closing, fetch, unread })
    }

    pub(crate) fn token_bytes(&self) -> usize {
        self.token_bytes
    }

    fn token(
        &mut self,
        token: &Token<'_>,
        text: &str,
        range: Range<usize>,
        found: &mut dyn FnMut(Found),
    ) -> Result<(), TokenTooLong> {
        if range.len() > self.token_bytes {
            match token {
                Token::WhiteSpace(_) | Token::Comment(_) => {}
                Token::QuotedString(_) | Token::BadString(_) | Token::UnquotedUrl(_) | Token::BadUrl(_) => {
                    let long = self.long_token(text.get(range.clone()).unwrap_or_default())?;
                    if let Some(fetch) = long.fetch {
                        found(Found { range: range.clone(), token: range, fetch, unread: Some(long.unread) });
                    }
                    return Ok(());
                }
                _ => return Err(TokenTooLong),
            }
        }
        match token {
            Token::WhiteSpace(_) | Token::Comment(_) => return Ok(()),
            Token::AtKeyword(keyword) => {
                self.prelude = prelude(keyword);
                self.prelude_depth = self.depth();
                self.property = None;
                self.name = None;
                self.first_in_function = false;
                return Ok(());
            }
            Token::Ident(ident) if self.property.is_none() => {
                self.after_token();
                self.name = Some(fetch_of_property(ident));
                return Ok(());
            }
            Token::Colon if self.property.is_none() => self.property = self.name,
            Token::Semicolon => self.end_of_statement(),
            Token::CurlyBracketBlock => {
                let block = if self.prelude == Prelude::FontFace { Block::FontFace } else { Block::Rules };
                self.end_of_statement();
                self.open(block);
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock => self.open(Block::Other),
            Token::Function(name) => {
                self.open(if name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src") {
                    Block::Url
                } else if name.eq_ignore_ascii_case("image-set") || name.eq_ignore_ascii_case("-webkit-image-set") {
                    Block::ImageSet
                } else {
                    Block::Other
                });
                self.name = None;
                self.first_in_function = true;
                return Ok(());
            }
            Token::CloseParenthesis | Token::CloseSquareBracket => self.close(),
            Token::CloseCurlyBracket => {
                self.close();
                self.end_of_statement();
            }
            Token::UnquotedUrl(_) => self.url(text, range, found),
            Token::QuotedString(_) if self.string_is_url() => self.url(text, range, found),
            _ => {}
        }
        self.after_token();
        Ok(())
    }

    fn after_token(&mut self) {
        self.name = None;
        self.first_in_function = false;
        if self.prelude == Prelude::Import {
            // The URL comes first or not at all.
            self.prelude = Prelude::NotFetched;
        }
    }

    fn string_is_url(&self) -> bool {
        match self.blocks.last() {
            _ if self.deeper > 0 => false,
            Some(Block::Url) => self.first_in_function,
            Some(Block::ImageSet) => true,
            _ => self.prelude == Prelude::Import,
        }
    }

    /// What a URL here would be fetched for; none if it would not be.
    fn fetch(&self) -> Option<Fetch> {
        match self.prelude {
            Prelude::Import => Some(Fetch::Import),
            Prelude::NotFetched | Prelude::FontFace => None,
            Prelude::None if self.blocks.contains(&Block::FontFace) => Some(Fetch::Font),
            Prelude::None => Some(self.property.unwrap_or(Fetch::Image)),
        }
    }

    fn url(&self, text: &str, token: Range<usize>, found: &mut dyn FnMut(Found)) {
        let Some(fetch) = self.fetch() else { return };
        let written = text.get(token.clone()).unwrap_or_default();
        let inner = inside(written);
        let range = token.start + inner.start..token.start + inner.end;
        found(Found { range, token, fetch, unread: None });
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

    fn end_of_statement(&mut self) {
        self.property = None;
        if self.depth() <= self.prelude_depth {
            self.prelude = Prelude::None;
        }
    }
}

fn prelude(keyword: &str) -> Prelude {
    if keyword.eq_ignore_ascii_case("import") {
        Prelude::Import
    } else if keyword.eq_ignore_ascii_case("font-face") {
        Prelude::FontFace
    } else {
        Prelude::NotFetched
    }
}

/// What a URL in a declaration of this property is fetched for.
fn fetch_of_property(name: &str) -> Fetch {
    /// Properties whose URL names a part of a document or a program: browsers take these from the page's own origin only.
    const SAME_ORIGIN: [&str; 10] = [
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
    ];
    /// <https://drafts.fxtf.org/css-masking/#mask-image-fetch>, <https://drafts.csswg.org/css-shapes/#shape-outside-property>
    const WITH_CORS: [&str; 6] =
        ["mask", "mask-image", "mask-border", "mask-border-source", "mask-box-image", "shape-outside"];

    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_prefix("-webkit-").or_else(|| lower.strip_prefix("-moz-")).unwrap_or(&lower);
    if SAME_ORIGIN.contains(&bare) || bare == "binding" {
        Fetch::SameOrigin
    } else if WITH_CORS.contains(&bare) || bare == "mask-box-image-source" {
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
