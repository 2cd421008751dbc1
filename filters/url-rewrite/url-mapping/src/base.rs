//! What a reference is relative to: the document's true URL, its `<base href>`, and where the browser got it from.

use crate::site::Cookies;
use std::fmt;
use url::Url;

/// The two schemes that can be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`, default port 80.
    Http,
    /// `https`, default port 443.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// 80 or 443.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// The scheme named by `name`, in any case.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"http") {
            Some(Self::Http)
        } else if name.eq_ignore_ascii_case(b"https") {
            Some(Self::Https)
        } else {
            None
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a reference in a document is relative to. Made once a document, and again where a `<base href>` stands.
#[derive(Debug, Clone)]
pub struct Base {
    /// Scheme of the document itself, which rules about mixed content go by.
    pub(crate) page_scheme: Scheme,
    /// Host of the document itself, in the parser's spelling. `<base href>` does not change it.
    pub(crate) page_host: String,
    /// The document's true URL without query and fragment, or what `<base href>` made of it.
    document: Url,
    pub(crate) url: Url,
    /// Whether `url` is on `page_host`.
    pub(crate) on_page_host: bool,
    /// Where the browser believes the document to be, if that is a moved URL.
    pub(crate) proxied: Option<Url>,
    pub(crate) upgrade_insecure: bool,
    pub(crate) cookies: Cookies,
}

impl Base {
    /// The base of a document that the browser requested as `scheme://authority path`. None if that is not a URL.
    pub fn new(scheme: Scheme, authority: &str, path: &str) -> Option<Self> {
        let url = Url::parse(&format!("{scheme}://{authority}{path}")).ok()?;
        let page_host = url.host_str()?.to_owned();
        Some(Self {
            page_scheme: scheme,
            page_host,
            document: url.clone(),
            url,
            on_page_host: true,
            proxied: None,
            upgrade_insecure: false,
            cookies: Cookies::None,
        })
    }

    /// The same document when the browser got it as `path` from the proxy's own `scheme://authority`: relative
    /// references in it then resolve to somewhere else than they were meant to. None if that is not a URL.
    #[must_use]
    pub fn on_proxy(mut self, scheme: Scheme, authority: &str, path: &str) -> Option<Self> {
        self.proxied = Some(Url::parse(&format!("{scheme}://{authority}{path}")).ok()?);
        Some(self)
    }

    /// The base after `<base href>` (HTML, 4.2.3): resolved against the document, never against an earlier base; an
    /// unusable `href` leaves the document's own URL.
    #[must_use]
    pub fn with_href(&self, href: &str) -> Self {
        let mut base = self.clone();
        base.url = match self.document.join(href) {
            Ok(url) if !matches!(url.scheme(), "data" | "javascript") => url,
            _ => self.document.clone(),
        };
        base.on_page_host = base.url.host_str() == Some(base.page_host.as_str());
        base
    }

    /// Treats http references as https ones from now on, as browsers do under the policy `upgrade-insecure-requests`.
    pub fn upgrade_insecure_requests(&mut self) {
        self.upgrade_insecure = true;
    }

    /// Leaves objects where they are from now on if their requests may bear a cookie of the page, which moved they do not.
    pub fn keep_reach_of(&mut self, cookies: Cookies) {
        self.cookies = cookies;
    }

    /// The absolute URL that `reference` means, as text; nothing is moved. None if it is no URL.
    pub fn join(&self, reference: &str) -> Option<String> {
        self.url.join(reference).ok().map(String::from)
    }

    /// What `reference` must be written as in this document so that it means what it means relative to `other`; none if it
    /// means the same in both, or is no URL in either.
    pub fn pinned(&self, other: &Self, reference: &str) -> Option<String> {
        let (here, there) = (self.url.join(reference).ok(), other.url.join(reference).ok());
        there.filter(|there| here.as_ref() != Some(there)).map(String::from)
    }

    /// Whether what references resolve against is of the document's own origin, so that neither needs the other's consent.
    pub fn is_at_home(&self) -> bool {
        self.url.origin() == self.document.origin()
    }

    /// Host of the document, as the parser spells it.
    pub fn page_host(&self) -> &str {
        &self.page_host
    }

    /// Scheme of the document.
    pub fn page_scheme(&self) -> Scheme {
        self.page_scheme
    }

    /// The document's own port if it is not its scheme's default.
    pub fn page_port(&self) -> Option<u16> {
        self.document.port()
    }

    /// The URL that references resolve against, as text.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_href_resolves_against_the_document_and_not_an_earlier_base() {
        let page = Base::new(Scheme::Http, "www.foo.example", "/a/b.html?q").unwrap();
        let first = page.with_href("//cdn.example/x/");
        assert_eq!(first.as_str(), "http://cdn.example/x/");
        assert!(!first.on_page_host);
        assert_eq!(first.with_href("c/").as_str(), "http://www.foo.example/a/c/");
        assert_eq!(first.page_host(), "www.foo.example");
    }

    #[test]
    fn an_unusable_base_href_leaves_the_document() {
        let page = Base::new(Scheme::Https, "www.foo.example:8443", "/a/").unwrap();
        for href in ["data:text/html,", "javascript:1", "http://[bad/"] {
            assert_eq!(page.with_href(href).as_str(), "https://www.foo.example:8443/a/", "{href}");
        }
    }

    #[test]
    fn a_reference_is_pinned_where_it_would_mean_something_else() {
        let page = Base::new(Scheme::Http, "www.foo.example", "/a/b.html?q").unwrap();
        let sheet = page.with_href("//cdn.example/css/x.css");
        for (reference, pinned) in [
            ("y.png", Some("http://cdn.example/css/y.png")),
            ("/y.png?z", Some("http://cdn.example/y.png?z")),
            ("http:y.png", Some("http://cdn.example/css/y.png")),
            ("//img.example/y", None),
            ("https://img.example/y", None),
            ("data:,x", None),
            ("http://[bad", None),
        ] {
            assert_eq!(page.pinned(&sheet, reference).as_deref(), pinned, "{reference}");
        }
        assert!(page.is_at_home() && !sheet.is_at_home());
        assert!(page.with_href("/css/").is_at_home());
    }

    #[test]
    fn an_authority_that_is_none_makes_no_base() {
        for authority in ["", "a b", "[::1", "x:99999"] {
            assert!(Base::new(Scheme::Http, authority, "/").is_none(), "{authority}");
        }
    }
}
