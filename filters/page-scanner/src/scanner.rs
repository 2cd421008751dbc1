//! One body of either kind, compressed or not: chunks in, chunks out.

use encoding_rs::Encoding;

use crate::bail_out::BailOut;
use crate::charset::Charset;
use crate::css::sheet::Sheet;
use crate::html::stream::HtmlStream;
use crate::limits::Limits;
use crate::unpack::{Broken, Packing, Unpacker};
use crate::visitor::Visitor;

/// The kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `text/html`
    Html,
    /// `text/css`
    Css,
}

/// The fate of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunk {
    /// Nothing: what was appended are its bytes, no more and no fewer.
    AsItCame,
    /// Something was replaced, held back, or let go that had been held back.
    Changed,
}

/// Reports the URLs of one body to a [`Visitor`] as it streams by, and writes the visitor's replacements in their places.
///
/// Every byte that is certain leaves with the call that made it so. If anything goes wrong, the output is whole: patched
/// up to some point, and the input's own bytes from there ([`Scanner::bail_out`] says why).
///
/// ```
/// use page_scanner::{Fits, Kind, Limits, Packing, Scanner, UrlReference, Visitor};
///
/// struct ToHttps;
///
/// impl Visitor for ToHttps {
///     fn url(&mut self, reference: &UrlReference<'_>, fits: Fits<'_>) -> Option<String> {
///         let https = format!("https:{}", reference.url.strip_prefix("http:")?);
///         fits(&https).ok().map(|()| https)
///     }
/// }
///
/// let mut scanner = Scanner::new(Kind::Html, Packing::Plain, None, Limits::default());
/// let mut out = Vec::new();
/// scanner.write(b"<p><img alt=x src='http://img.exam", &mut ToHttps, &mut out);
/// scanner.write(b"ple.com/a.png'>", &mut ToHttps, &mut out);
/// scanner.finish(&mut ToHttps, &mut out);
/// assert_eq!(out, b"<p><img alt=x src='https://img.example.com/a.png'>");
/// ```
#[derive(Debug)]
pub struct Scanner {
    inner: Inner,
    unpacker: Option<Box<Unpacker>>,
    broken: Option<Broken>,
    bytes_read: u64,
}

#[derive(Debug)]
enum Inner {
    Html(Box<HtmlStream>),
    Css(Box<Sheet>),
}

impl Scanner {
    /// A scanner for one body. `encoding`: the `charset` of its Content-Type, if there is one.
    pub fn new(kind: Kind, packing: Packing, encoding: Option<&'static Encoding>, limits: Limits) -> Self {
        let charset = Charset::from_header(encoding);
        let inner = match kind {
            Kind::Html => Inner::Html(Box::new(HtmlStream::new(limits, charset))),
            Kind::Css => Inner::Css(Box::new(Sheet::new(&limits, charset))),
        };
        let unpacker = (packing == Packing::Gzip).then(|| Box::new(Unpacker::new()));
        Self { inner, unpacker, broken: None, bytes_read: 0 }
    }

    /// Takes the next bytes of the body and appends to `out` all that is certain by now.
    pub fn write(&mut self, chunk: &[u8], visitor: &mut dyn Visitor, out: &mut Vec<u8>) -> Chunk {
        let Self { inner, unpacker, broken, bytes_read } = self;
        let (was_empty, made) = (inner.is_empty(), inner.made());
        let mut read = |plain: &[u8]| {
            *bytes_read += plain.len() as u64;
            inner.write(plain, visitor, out);
        };
        match unpacker {
            None => read(chunk),
            Some(unpacker) if broken.is_none() => {
                *broken = unpacker.write(chunk, read).err();
                if broken.is_some() {
                    inner.finish(visitor, out);
                }
            }
            Some(_) => {}
        }
        let as_it_came = unpacker.is_none() && was_empty && inner.is_empty() && inner.made() == made;
        if as_it_came { Chunk::AsItCame } else { Chunk::Changed }
    }

    /// The body is complete: appends the rest. Later calls add nothing.
    pub fn finish(&mut self, visitor: &mut dyn Visitor, out: &mut Vec<u8>) {
        let Self { inner, unpacker, broken, bytes_read } = self;
        if let Some(unpacker) = unpacker
            && broken.is_none()
        {
            let read = |plain: &[u8]| {
                *bytes_read += plain.len() as u64;
                inner.write(plain, visitor, out);
            };
            *broken = unpacker.finish(read).err();
        }
        inner.finish(visitor, out);
    }

    /// Bytes of the body so far, decompressed.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns true if the body comes compressed and leaves plain.
    pub fn unpacks(&self) -> bool {
        self.unpacker.is_some()
    }

    /// Why a compressed body ended before its end, if it did. All that came of it is in the output, but its receiver must
    /// see that it is not the whole.
    pub fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// Why scanning stopped, if it did.
    pub fn bail_out(&self) -> Option<BailOut> {
        match &self.inner {
            Inner::Html(html) => html.bail_out(),
            Inner::Css(css) => css.bail_out(),
        }
    }
}

impl Inner {
    fn write(&mut self, chunk: &[u8], visitor: &mut dyn Visitor, out: &mut Vec<u8>) {
        match self {
            Self::Html(html) => html.write(chunk, visitor, out),
            Self::Css(css) => css.write(chunk, visitor, out),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Html(html) => html.is_empty(),
            Self::Css(css) => css.is_empty(),
        }
    }

    fn made(&self) -> u64 {
        match self {
            Self::Html(html) => html.made(),
            Self::Css(css) => css.made(),
        }
    }

    fn finish(&mut self, visitor: &mut dyn Visitor, out: &mut Vec<u8>) {
        match self {
            Self::Html(html) => html.finish(visitor, out),
            Self::Css(css) => css.finish(visitor, out),
        }
    }
}
