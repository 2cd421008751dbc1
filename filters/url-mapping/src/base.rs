//! The base of a reference: the document's true URL, its `<base href>`, and the URL from which the browser fetched it.

use crate::site::Cookies;
use std::fmt;
use url::Url;

/// The two schemes whose URLs can move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`, default port 80.
    Http,
    /// `https`, default port 443.
    Https,
}

impl Scheme {
    /// Returns `http` or `https`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Returns 80 or 443.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// Returns the scheme with this name, in any case.
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

/// The base of the references in a document. It is built once for each document, and again at a `<base href>`.
#[derive(Debug, Clone)]
pub struct Base {
    /// Scheme of the document itself, which decides about mixed content.
    pub(crate) page_scheme: Scheme,
    /// Host of the document itself, as the URL parser writes it. `<base href>` does not change it.
    pub(crate) page_host: String,
    /// The document's true URL without query and fragment, or the result of its `<base href>`.
    document: Url,
    pub(crate) url: Url,
    /// True if `url` is on `page_host`.
    pub(crate) on_page_host: bool,
    /// The document's URL in the browser, if that is a moved URL.
    pub(crate) proxied: Option<Url>,
    pub(crate) upgrade_insecure: bool,
    pub(crate) cookies: Cookies,
}

impl Base {
    /// Returns the base of a document that the browser requested as `scheme://authority path`. Returns `None` if that
    /// is not a URL.
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

    /// Returns the base of the same document if the browser fetched it as `path` from the proxy's own
    /// `scheme://authority`. Relative references in it then resolve to other URLs than intended. Returns `None` if that
    /// is not a URL.
    #[must_use]
    pub fn on_proxy(mut self, scheme: Scheme, authority: &str, path: &str) -> Option<Self> {
        self.proxied = Some(Url::parse(&format!("{scheme}://{authority}{path}")).ok()?);
        Some(self)
    }

    /// Returns the base after `<base href>` (HTML, 4.2.3). The `href` resolves against the document, never against an
    /// earlier base. An unusable `href` leaves the document's own URL.
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

    /// From now on, leaves every object whose request may carry a cookie of the page. The request to the moved URL
    /// would not carry it.
    pub fn keep_reach_of(&mut self, cookies: Cookies) {
        self.cookies = cookies;
    }

    /// Returns the absolute URL of `reference` as text, not moved. Returns `None` if it is not a URL.
    pub fn join(&self, reference: &str) -> Option<String> {
        self.url.join(reference).ok().map(String::from)
    }

    /// Returns the text that has the same meaning in this document as `reference` has relative to `other`. Returns
    /// `None` if both meanings are equal, or if `reference` is not a URL in either.
    pub fn pinned(&self, other: &Self, reference: &str) -> Option<String> {
        let (here, there) = (self.url.join(reference).ok(), other.url.join(reference).ok());
        there.filter(|there| here.as_ref() != Some(there)).map(String::from)
    }

    /// Returns true if references resolve within the document's own origin, so that neither origin needs the other's
    /// consent.
    pub fn is_at_home(&self) -> bool {
        self.url.origin() == self.document.origin()
    }

    /// Returns the host of the document, as the URL parser writes it.
    pub fn page_host(&self) -> &str {
        &self.page_host
    }

    /// Returns the scheme of the document.
    pub fn page_scheme(&self) -> Scheme {
        self.page_scheme
    }

    /// Returns the document's own port if it is not the default of its scheme.
    pub fn page_port(&self) -> Option<u16> {
        self.document.port()
    }

    /// Returns the URL against which references resolve, as text.
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
