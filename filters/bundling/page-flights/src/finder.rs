//! Finds the objects that a page and its style sheets name, by the scanner that also finds the URLs to move.

use http_semantics::Fields;
use page_scanner::{Fits, Kind, Limits, LoadRequest, Packing, Place, Scanner, UrlReference, Visitor};
use url_mapping::{Base, Reason, Scheme, Use};

use crate::faces;
use crate::fields::media_type;
use crate::hosts::Hosts;
use crate::limits;
use crate::selectors::{self, Wanted};

/// An object that a browser will request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The URL in the spelling of the browser's request.
    pub(crate) url: String,
    /// The use of the object. `None` means that browsers requested it for a use that is not known.
    pub(crate) usage: Option<Use>,
    /// A browser requests the object only if the page has elements with these names. `None` means that it always does.
    pub(crate) wanted: Option<Wanted>,
}

/// Returns the urgency of an object, 0 first. A page waits for its style sheets and scripts. Then come fonts, images of
/// the page, images of style sheets, and objects that only scripts name.
pub(crate) fn rank(usage: Option<Use>) -> u8 {
    let Some(usage) = usage else { return 4 };
    match usage {
        Use::Stylesheet | Use::CssImport | Use::Script => 0,
        Use::Font => 1,
        Use::Image | Use::Poster | Use::Background | Use::Icon | Use::Media | Use::Track => 2,
        Use::CssImage => 3,
    }
}

/// Reads one page or style sheet as it streams by.
#[derive(Debug)]
pub(crate) struct Finder {
    scanner: Scanner,
    collector: Collector,
    is_sheet: bool,
    /// The end of the plain text. Of a style sheet it is the whole text, and of a page the part that waiting fonts
    /// need.
    text: Vec<u8>,
    /// The position of `text` in the body.
    text_at: usize,
    /// Fonts of a rule that has not ended yet, in the order of the body.
    fonts: Vec<Told>,
    /// Bytes at the end of `text` that the page's [`Vocabulary`](crate::selectors::Vocabulary) has not seen.
    unseen: usize,
}

/// The length of the pieces in which a compressed style sheet is read. It keeps a few bytes from becoming a thousand
/// times as many at once.
const PIECE_BYTES: usize = 4 << 10;

/// A URL and its position in the body.
#[derive(Debug)]
struct Told {
    /// `None` for a URL that cannot be bundled.
    found: Option<Found>,
    offset: usize,
    /// True for one of the sources of a font.
    is_source: bool,
    /// True for an image in a rule of a style sheet or a style element.
    in_rule: bool,
}

impl Finder {
    /// Returns a finder for the response `fields` to a request for `url`. `None` if the response is neither a page nor
    /// a style sheet, or cannot be read.
    pub(crate) fn new(url: &str, fields: &Fields<'_>) -> Option<Self> {
        let kind = match media_type(fields).as_slice() {
            b"text/html" => Kind::Html,
            b"text/css" => Kind::Css,
            _ => return None,
        };
        let packing = match fields.get("content-encoding") {
            None | Some(b"identity") => Packing::Plain,
            Some(b"gzip" | b"x-gzip") => Packing::Gzip,
            Some(_) => return None,
        };
        let rest = url.strip_prefix("http://")?;
        let (authority, path) = rest.split_at(rest.find('/')?);
        let base = Base::new(Scheme::Http, authority, path)?;
        // Markup for browsers without scripts is not read.
        let limits = Limits { nesting: 0, ..Limits::default() };
        let scanner = Scanner::new(kind, packing, charset(fields), limits);
        let collector =
            Collector { base: Some(base), told: Vec::new(), hosts: None, in_picture: false, restricts_base: false };
        let is_sheet = kind == Kind::Css;
        Some(Self { scanner, collector, is_sheet, text: Vec::new(), text_at: 0, fonts: Vec::new(), unseen: 0 })
    }

    /// Collects the hosts that the body names, for [`Finder::hosts`].
    pub(crate) fn with_hosts(mut self) -> Self {
        self.collector.hosts = self.collector.base.as_ref().and_then(|base| Hosts::of(base.page_host()));
        self
    }

    /// Returns a list of hosts for [`HOSTS_FIELD`](crate::HOSTS_FIELD) if it is time to hand one over.
    pub(crate) fn hosts(&mut self, is_end: bool) -> Option<String> {
        self.collector.hosts.as_mut()?.report(is_end)
    }

    /// Reads the next bytes. Returns the objects that they name.
    pub(crate) fn read(&mut self, chunk: &[u8]) -> Vec<Found> {
        let before = self.text.len();
        self.scanner.write(chunk, &mut self.collector, &mut self.text);
        self.unseen += self.text.len() - before;
        self.settle(false)
    }

    /// Ends the body. Returns the objects that were still uncertain.
    pub(crate) fn finish(&mut self) -> Vec<Found> {
        let before = self.text.len();
        self.scanner.finish(&mut self.collector, &mut self.text);
        self.unseen += self.text.len() - before;
        self.settle(true)
    }

    /// Reads a whole style sheet, up to the limit of its decompressed bytes.
    pub(crate) fn read_whole(&mut self, body: &[u8]) -> Vec<Found> {
        let mut found = Vec::new();
        for piece in body.chunks(PIECE_BYTES) {
            if self.text.len() > limits::SHEET_BYTES {
                break;
            }
            found.extend(self.read(piece));
        }
        found.extend(self.finish());
        found
    }

    /// Returns the page's markup in the last bytes.
    pub(crate) fn markup(&self) -> &[u8] {
        self.text.get(self.text.len().saturating_sub(self.unseen)..).unwrap_or_default()
    }

    /// Returns the objects that are certain by now. Fonts are certain when their rule has ended.
    fn settle(&mut self, is_end: bool) -> Vec<Found> {
        let mut sure = Vec::new();
        for told in std::mem::take(&mut self.collector.told) {
            if told.is_source {
                self.fonts.push(told);
            } else if let Some(mut found) = told.found {
                if told.in_rule {
                    found.wanted = selectors::wanted(&self.text, told.offset.saturating_sub(self.text_at));
                }
                sure.push(found);
            }
        }
        while let Some(first) = self.fonts.first() {
            let begin = first.offset.saturating_sub(self.text_at);
            let behind = self.text.get(begin..).unwrap_or_default();
            let is_long = is_end || behind.len() > limits::RULE_BYTES;
            let Some(length) = behind.iter().position(|byte| *byte == b'}').or(is_long.then_some(behind.len())) else {
                break;
            };
            let end = begin + length;
            let before = self.text.get(..begin).unwrap_or_default();
            let rule_at = before.iter().rposition(|byte| matches!(byte, b'{' | b'}')).map_or(0, |at| at + 1);
            let (from, to) = (self.text_at + rule_at, self.text_at + end);
            let count = self.fonts.iter().take_while(|font| font.offset < to).count().max(1);
            let mut rule: Vec<Told> = self.fonts.drain(..count).collect();
            let urls: Vec<usize> = rule.iter().map(|font| font.offset.saturating_sub(from)).collect();
            let taken = self.text.get(rule_at..end).and_then(|text| faces::taken(text, &urls));
            if let Some(at) = taken.filter(|at| *at < rule.len()) {
                sure.extend(rule.swap_remove(at).found);
            }
        }
        sure
    }

    /// Drops text that is no longer needed. Call it after reading [`Finder::markup`].
    pub(crate) fn forget(&mut self) {
        self.unseen = 0;
        // A rule may begin in one chunk of the page and name its fonts in the next.
        let least = self.text.len().saturating_sub(limits::RULE_BYTES);
        let needed = self.fonts.first().map_or(least, |font| font.offset.saturating_sub(self.text_at).min(least));
        if !self.is_sheet {
            self.text.drain(..needed);
            self.text_at += needed;
        }
    }
}

fn charset(fields: &Fields<'_>) -> Option<&'static encoding_rs::Encoding> {
    let content_type = fields.text("content-type")?.to_ascii_lowercase();
    let label = content_type.split(';').find_map(|parameter| parameter.trim().strip_prefix("charset="))?;
    encoding_rs::Encoding::for_label(label.trim_matches('"').as_bytes())
}

/// The scanner's visitor. It collects the objects that a browser loads as it reads the body, and changes nothing.
#[derive(Debug)]
struct Collector {
    /// The base of relative references. `None` if it is no longer known.
    base: Option<Base>,
    told: Vec<Told>,
    /// The hosts that the body names, if somebody wants them.
    hosts: Option<Hosts>,
    /// True right after a `source` of a `picture`: the next image is one candidate among several.
    in_picture: bool,
    /// True if a policy in the page restricts `base`.
    restricts_base: bool,
}

impl Visitor for Collector {
    fn url(&mut self, reference: &UrlReference<'_>, _: Fits<'_>) -> Option<String> {
        let place = reference.place;
        let is_candidate = self.in_picture && place.element == "img";
        self.follow(place);
        if is_loaded(place, reference.request) {
            self.note(reference.url);
        }
        let (usage, at_once) = usage(place, reference.request)?;
        let is_font = usage == Use::Font && !at_once;
        if is_candidate || !(at_once || is_font || usage == Use::CssImage) {
            return None;
        }
        let found = self.found(reference.url, usage);
        if self.told.len() < 2 * limits::ENTRIES && (found.is_some() || is_font) {
            let in_rule = usage == Use::CssImage && place.attribute == "#text";
            self.told.push(Told { found, offset: reference.offset, is_source: is_font, in_rule });
        }
        None
    }

    fn unread(&mut self, place: &'static Place, _: usize, _: Reason) {
        self.follow(place);
    }

    fn base(&mut self, href: &str) {
        self.base = self.base.as_ref().filter(|_| !self.restricts_base).map(|base| base.with_href(href));
    }

    fn hint(&mut self, href: &str) {
        self.note(href);
    }

    fn policy(&mut self, policy: Option<&str>) -> Option<String> {
        self.restricts_base |= policy.is_some_and(|policy| policy.to_ascii_lowercase().contains("base-uri"));
        None
    }
}

impl Collector {
    fn follow(&mut self, place: &Place) {
        self.in_picture = place.element == "source" && place.attribute == "srcset";
    }

    /// Notes the host that `reference` names.
    fn note(&mut self, reference: &str) {
        if let (Some(hosts), Some(base)) = (&mut self.hosts, &self.base)
            && reference.len() <= limits::URL_BYTES
            && let Some(url) = base.join(reference)
        {
            hosts.add(&url);
        }
    }

    /// Returns the object that `reference` names, if it can be bundled.
    fn found(&self, reference: &str, usage: Use) -> Option<Found> {
        let trimmed = reference.trim_matches(|letter: char| letter <= ' ');
        // An empty reference, or one to a place in the document, would name the document itself.
        if trimmed.is_empty() || trimmed.starts_with('#') {
            return None;
        }
        let url = self.base.as_ref()?.join(reference)?;
        let url = url.split('#').next().unwrap_or_default();
        let is_plain = url.starts_with("http://") && url.len() <= limits::URL_BYTES;
        is_plain.then(|| Found { url: url.to_owned(), usage: Some(usage), wanted: None })
    }
}

/// Returns true if browsers load something from there for the page, at once or later.
fn is_loaded(place: &Place, request: Result<LoadRequest, Reason>) -> bool {
    match request {
        Ok(_) | Err(Reason::Module | Reason::Integrity | Reason::Cors | Reason::Preload) => true,
        // Frames load with the page. A refresh leads to another page.
        Err(Reason::Document) => place.element != "meta",
        Err(_) => false,
    }
}

/// Returns the use of an object, and true if the browser loads it as it reads the tag. Some reasons forbid only a move.
/// They do not matter here, because nothing moves.
fn usage(place: &Place, request: Result<LoadRequest, Reason>) -> Option<(Use, bool)> {
    match request {
        Ok(load) => Some((load.usage, load.at_once)),
        Err(Reason::Module) => Some((Use::Script, true)),
        Err(Reason::Integrity) if place.element == "script" => Some((Use::Script, true)),
        Err(Reason::Integrity) if place.element == "link" => Some((Use::Stylesheet, true)),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str, content_type: &str, body: &str) -> Vec<(String, &'static str)> {
        let list: [(&[u8], &[u8]); 1] = [(b"content-type", content_type.as_bytes())];
        let mut finder = Finder::new(url, &Fields::from(&list[..])).unwrap();
        let mut found = Vec::new();
        for byte in body.as_bytes() {
            found.extend(finder.read(&[*byte]));
            finder.forget();
        }
        found.extend(finder.finish());
        found.into_iter().map(|found| (found.url, found.usage.map_or("", Use::as_str))).collect()
    }

    #[test]
    fn objects_of_a_page_are_found_as_a_browser_will_ask_for_them() {
        let page = "<base href=/d/><link rel=stylesheet href=a.css><script src='//cdn.test/s.js?a=1&amp;b#x'></script>\
            <img src=\"i 1.png\"><style>p{background:url(p.png)}</style><body background=b.gif>\
            <input type=image src=n.png><link rel=preload as=font href=f.woff2 crossorigin>\
            <script type=module src=m.js></script><link rel=modulepreload href=m2.js>\
            <script src=i.js integrity=sha256-x></script><link rel=stylesheet href=i.css integrity=sha256-x>";
        let expected = [
            ("http://www.test/d/a.css", "stylesheet"),
            ("http://cdn.test/s.js?a=1&b", "script"),
            ("http://www.test/d/i%201.png", "image"),
            ("http://www.test/d/p.png", "css image"),
            ("http://www.test/d/b.gif", "background"),
            ("http://www.test/d/n.png", "image"),
            ("http://www.test/d/f.woff2", "font"),
            ("http://www.test/d/m.js", "script"),
            ("http://www.test/d/m2.js", "script"),
            ("http://www.test/d/i.js", "script"),
            ("http://www.test/d/i.css", "stylesheet"),
        ];
        let read = found("http://www.test/x/y.html", "text/html; charset=utf-8", page);
        assert_eq!(read, expected.map(|(url, usage)| (url.to_owned(), usage)));
    }

    #[test]
    fn objects_that_a_browser_may_not_request_are_left_to_it() {
        let page = "<img src=a.png loading=lazy><img src=b.png srcset='b2.png 2x'><picture><source srcset=c.webp>\
            <img src=c.png></picture><link rel=stylesheet media=print href=p.css><link rel=prefetch href=n.html>\
            <link rel='alternate stylesheet' href=alt.css><link rel=icon href=i.ico><noscript><img src=no.png></noscript>\
            <iframe src=f.html></iframe><video src=v.mp4></video><a href=l.html>l</a><img src=https://s.test/s.png>\
            <img src><img src=''><img src=' #x'><script src=#></script><style>p{background:url()}</style><img src=data:image/png,x><!-- <img src=z.png> -->";
        assert_eq!(found("http://www.test/", "text/html", page), []);
    }

    #[test]
    fn objects_after_a_base_element_under_a_base_uri_policy_are_not_taken() {
        let page = "<img src=a.png><base href=/d/><img src=b.png>";
        let urls = |page: &str| found("http://www.test/", "text/html", page).into_iter().map(|(url, _)| url).collect();
        let both: Vec<String> = urls(page);
        assert_eq!(both, ["http://www.test/a.png", "http://www.test/d/b.png"]);
        let first: Vec<String> =
            urls(&format!("<meta http-equiv=content-security-policy content=\"Base-URI 'none'\">{page}"));
        assert_eq!(first, ["http://www.test/a.png"]);
    }

    #[test]
    fn a_sheet_names_its_imports_fonts_and_pictures() {
        let sheet = "@import 'b.css';@font-face{src:url(f.woff)}p{background:url(../p.png)}";
        let expected = [
            ("http://c.test/s/b.css", "css import"),
            ("http://c.test/s/f.woff", "font"),
            ("http://c.test/p.png", "css image"),
        ];
        assert_eq!(
            found("http://c.test/s/a.css", "text/css", sheet),
            expected.map(|(url, usage)| (url.to_owned(), usage))
        );
    }

    #[test]
    fn every_format_of_a_font_is_bundled() {
        let rule = "@font-face{font-family:F;src:url(f.eot);src:url('f.eot?#iefix')format('embedded-opentype'),\
            url(f.woff2)format('woff2'),url(f.woff)format('woff'),url(f.ttf),url(f.svg#F)format('svg')}";
        let two = format!("{rule}p{{background:url(p.png)}}{}", rule.replace("f.", "g."));
        let named: Vec<String> = found("http://c.test/", "text/css", &two).into_iter().map(|(url, _)| url).collect();
        let page: Vec<String> = found("http://c.test/", "text/html", &format!("<style>{two}</style>"))
            .into_iter()
            .map(|(url, _)| url)
            .collect();
        for mut named in [named, page] {
            named.sort();
            assert_eq!(named, ["http://c.test/f.woff2", "http://c.test/g.woff2", "http://c.test/p.png"]);
        }
    }

    #[test]
    fn a_page_that_cannot_be_read_has_no_objects() {
        for (name, value) in [("content-type", "image/png"), ("content-encoding", "br")] {
            let list: [(&[u8], &[u8]); 2] = [(name.as_bytes(), value.as_bytes()), (b"content-type", b"text/html")];
            assert!(Finder::new("http://a.test/", &Fields::from(&list[..])).is_none());
        }
    }
}
