//! The headers that the requests for a page's objects repeat from the page's own request. With them an origin responds as
//! it would to the browser. They hold no credentials, no cookies, and nothing about the reader that a browser would not
//! send with every object.

use http_semantics::navigation;
use http_semantics::object_request::{Browser, Object};
use url_mapping::{Scheme, Use, may_be_same_site};
use url_rewriting::headers::request::Visit;
use url_rewriting::headers::{Fields, host_of};

use super::Skip;

/// The common part of the requests for the objects of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTemplate {
    browser: Browser,
    referrer: Option<String>,
    page_scheme: Scheme,
    is_returning: bool,
    is_referred: bool,
}

impl RequestTemplate {
    /// Makes a template if `fields` are a browser's request for a page. Other programs do not request its objects.
    pub fn of(visit: &Visit, fields: &Fields<'_>) -> Option<Result<Self, Skip>> {
        (visit.moved.is_none() && navigation::page_load(fields).is_some()).then(|| Self::of_page(visit, fields))
    }

    /// # Errors
    /// The reason why no object of this page is prefetched.
    fn of_page(visit: &Visit, fields: &Fields<'_>) -> Result<Self, Skip> {
        if fields.get(":method") != Some(b"GET") {
            return Err(Skip::Method);
        }
        if navigation::saves_data(fields) {
            return Err(Skip::SaveData);
        }
        if navigation::is_speculative(fields) {
            return Err(Skip::Speculative);
        }
        if navigation::bypasses_caches(fields) {
            return Err(Skip::Reload);
        }
        Ok(Self {
            browser: Browser::of(fields),
            // The default of browsers for another origin (strict-origin-when-cross-origin).
            referrer: Some(format!("{}://{}/", visit.scheme, visit.authority)),
            page_scheme: visit.scheme,
            is_returning: ["cookie", "if-none-match", "if-modified-since"]
                .iter()
                .any(|name| fields.get(name).is_some()),
            is_referred: fields.get("referer").is_some_and(|referer| is_of_site(referer, &visit.authority)),
        })
    }

    /// Returns the template with the policies of the page's response.
    ///
    /// # Errors
    /// The reason why no object of this page is prefetched.
    pub fn with_answer(mut self, fields: &Fields<'_>) -> Result<Self, Skip> {
        if fields.get(":status") != Some(b"200") {
            return Err(Skip::Status);
        }
        // In a list, the last policy that a browser knows wins. No referrer at all is always right.
        let hushed = ["no-referrer", "same-origin"];
        if hushed.iter().any(|policy| fields.lists("referrer-policy", policy)) {
            self.referrer = None;
        }
        Ok(self)
    }

    /// Returns true if the browser was here before and may still have objects of the page. Its request has a cookie or is
    /// conditional.
    pub(crate) fn is_returning(&self) -> bool {
        self.is_returning
    }

    /// Returns true if the reader came from another page of the site.
    pub(crate) fn is_referred(&self) -> bool {
        self.is_referred
    }

    /// Returns the browser's `User-Agent`, empty if it sends none.
    pub(crate) fn user_agent(&self) -> &str {
        self.browser.agent()
    }

    /// Returns true if the browser accepts pictures in newer formats.
    pub(crate) fn knows_newer_pictures(&self) -> bool {
        self.browser.knows_newer_pictures()
    }

    /// Returns the request for one object. `authority` and `path` are its true ones.
    pub(super) fn fields(
        &self,
        scheme: Scheme,
        authority: &str,
        path: &str,
        usage: Use,
    ) -> Vec<(&'static str, String)> {
        let is_secure = scheme == Scheme::Https;
        let referer = self.referrer.as_deref().filter(|_| self.page_scheme == Scheme::Http || is_secure);
        self.browser.request(Object { is_secure, authority, path, destination: Some(usage.destination()), referer })
    }
}

/// Returns true if a `Referer` may name a page of the site at `authority`.
fn is_of_site(referer: &[u8], authority: &str) -> bool {
    let referer = String::from_utf8_lossy(referer).to_ascii_lowercase();
    let behind_scheme = referer.split_once("://").map_or("", |(_, behind)| behind);
    let page = behind_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    may_be_same_site(host_of(page), host_of(&authority.to_ascii_lowercase()))
}
