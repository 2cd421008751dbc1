//! Objects of a page and of its sheets, found by the code that moves URLs. Here nothing is moved: its output is dropped.

use std::cell::RefCell;
use std::rc::Rc;

use url_mapping::{Base, Scheme, Use};
use url_rewriting::{Body, Kind, Packing, Plan, Policies, Preloads, Rewriter, UrlEvent};

use crate::fields::Fields;
use crate::limits;

/// An object that a browser will ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// As a browser will ask for it.
    pub(crate) url: String,
    /// None: learnt from browsers that asked for it; what for is not known.
    pub(crate) usage: Option<Use>,
}

/// What a page waits for comes first: its sheets and scripts, then fonts, then images in the order of the page, then what
/// sheets draw with and what only scripts can name.
pub(crate) fn rank(usage: Option<Use>) -> u8 {
    let Some(usage) = usage else { return 4 };
    match usage {
        Use::Stylesheet | Use::CssImport | Use::Script => 0,
        Use::Font => 1,
        Use::Image | Use::Poster | Use::Background | Use::Icon | Use::Media | Use::Track => 2,
        Use::CssImage => 3,
    }
}

/// Reads one page or sheet as it streams by.
#[derive(Debug)]
pub(crate) struct Finder {
    rewriter: Rewriter,
    found: Rc<RefCell<Vec<Found>>>,
    dropped: Vec<u8>,
}

impl Finder {
    /// A finder for the answer `fields` to a request for `url`; none for what is neither page nor sheet, or cannot be read.
    pub(crate) fn new(plan: &Rc<Plan>, url: &str, fields: Fields<'_>) -> Option<Self> {
        let kind = match fields.media_type().as_slice() {
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
        let found = Rc::new(RefCell::new(Vec::new()));
        let body = Body {
            kind,
            packing,
            base,
            encoding: charset(fields),
            policies: Policies::default(),
            preloads: Preloads::default(),
        };
        let rewriter = Rewriter::new(plan.clone(), body, Some(Box::new(collector(found.clone()))));
        Some(Self { rewriter, found, dropped: Vec::new() })
    }

    /// Takes the next bytes; returns what they name.
    pub(crate) fn read(&mut self, chunk: &[u8]) -> Vec<Found> {
        self.rewriter.write(chunk, &mut self.dropped);
        self.dropped.clear();
        self.found.take()
    }

    /// There is no more.
    pub(crate) fn finish(&mut self) -> Vec<Found> {
        self.rewriter.finish(&mut self.dropped);
        self.found.take()
    }
}

/// A plan that moves nothing, and does not look into markup for browsers without scripts.
pub(crate) fn plan() -> Option<Rc<Plan>> {
    Plan::from_json(br#"{"targets": {}, "own": [], "level": "off", "ports": [80], "limits": {"nesting": 0}}"#).ok()
}

fn charset(fields: Fields<'_>) -> Option<&'static encoding_rs::Encoding> {
    let content_type = fields.text("content-type")?.to_ascii_lowercase();
    let label = content_type.split(';').find_map(|parameter| parameter.trim().strip_prefix("charset="))?;
    encoding_rs::Encoding::for_label(label.trim_matches('"').as_bytes())
}

fn collector(found: Rc<RefCell<Vec<Found>>>) -> impl FnMut(&UrlEvent<'_>) {
    // The image of a `picture` stands behind its sources, and is one candidate among them.
    let mut in_picture = false;
    move |event| {
        let is_source = event.place.element == "source" && event.place.attribute == "srcset";
        let is_candidate = in_picture && event.place.element == "img";
        in_picture = is_source;
        let Some(fetch) = event.fetch else { return };
        let drawn = matches!(fetch.usage, Use::CssImage | Use::Font);
        if is_candidate || !(fetch.at_once || drawn) {
            return;
        }
        let Some(url) = event.base.join(event.url) else { return };
        let url = url.split('#').next().unwrap_or_default();
        if let Ok(mut found) = found.try_borrow_mut()
            && url.starts_with("http://")
            && url.len() <= limits::URL_BYTES
            && found.len() < limits::ENTRIES
        {
            found.push(Found { url: url.to_owned(), usage: Some(fetch.usage) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str, content_type: &str, body: &str) -> Vec<(String, &'static str)> {
        let list: [(&[u8], &[u8]); 1] = [(b"content-type", content_type.as_bytes())];
        let mut finder = Finder::new(&plan().unwrap(), url, Fields(&list)).unwrap();
        let mut found = Vec::new();
        for byte in body.as_bytes() {
            found.extend(finder.read(&[*byte]));
        }
        found.extend(finder.finish());
        found.into_iter().map(|found| (found.url, found.usage.map_or("", Use::as_str))).collect()
    }

    #[test]
    fn objects_of_a_page_are_found_as_a_browser_will_ask_for_them() {
        let page = "<base href=/d/><link rel=stylesheet href=a.css><script src='//cdn.test/s.js?a=1&amp;b#x'></script>\
            <img src=\"i 1.png\"><style>p{background:url(p.png)}</style><body background=b.gif>\
            <input type=image src=n.png><link rel=preload as=font href=f.woff2 crossorigin>";
        let expected = [
            ("http://www.test/d/a.css", "stylesheet"),
            ("http://cdn.test/s.js?a=1&b", "script"),
            ("http://www.test/d/i%201.png", "image"),
            ("http://www.test/d/p.png", "css image"),
            ("http://www.test/d/b.gif", "background"),
            ("http://www.test/d/n.png", "image"),
            ("http://www.test/d/f.woff2", "font"),
        ];
        let read = found("http://www.test/x/y.html", "text/html; charset=utf-8", page);
        assert_eq!(read, expected.map(|(url, usage)| (url.to_owned(), usage)));
    }

    #[test]
    fn what_a_browser_may_not_ask_for_is_left_to_it() {
        let page = "<img src=a.png loading=lazy><img src=b.png srcset='b2.png 2x'><picture><source srcset=c.webp>\
            <img src=c.png></picture><link rel=stylesheet media=print href=p.css><link rel=prefetch href=n.html>\
            <link rel='alternate stylesheet' href=alt.css><link rel=icon href=i.ico><noscript><img src=no.png></noscript>\
            <iframe src=f.html></iframe><video src=v.mp4></video><a href=l.html>l</a><img src=https://s.test/s.png>\
            <script type=module src=m.js></script><img src=data:image/png,x><!-- <img src=z.png> -->";
        assert_eq!(found("http://www.test/", "text/html", page), []);
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
    fn what_cannot_be_read_is_not() {
        for (name, value) in [("content-type", "image/png"), ("content-encoding", "br")] {
            let list: [(&[u8], &[u8]); 2] = [(name.as_bytes(), value.as_bytes()), (b"content-type", b"text/html")];
            assert!(Finder::new(&plan().unwrap(), "http://a.test/", Fields(&list)).is_none());
        }
    }
}
