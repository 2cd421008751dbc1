//! The headers that the requests for a page's objects repeat from the page's own request. With them an origin responds as
//! it would to the browser. They hold no credentials, no cookies, and nothing about the reader that a browser would not
//! send with every object.

use http_semantics::navigation;
use http_semantics::object_request::{Browser, Object};
use url_mapping::{Scheme, Use};
use url_rewriting::headers::Fields;
use url_rewriting::headers::request::Visit;

use crate::Skip;

/// The common part of the requests for the objects of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTemplate {
    browser: Browser,
    referrer: Option<String>,
    page_scheme: Scheme,
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

    /// Returns the request for one object. `authority` and `path` are its true ones.
    pub(crate) fn fields(
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
