//! What of a page's request the requests for its objects repeat, so that an origin answers them as it would answer the
//! browser: no credentials, no cookies, nothing that names the reader beyond what every object's request names.

use http_semantics::navigation;
use http_semantics::object_request::{Browser, Object};
use url_mapping::{Scheme, Use, may_be_same_site};
use url_rewriting::headers::request::Visit;
use url_rewriting::headers::{Fields, host_of};

use super::Skip;

/// Who asks for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTemplate {
    browser: Browser,
    referrer: Option<String>,
    page_scheme: Scheme,
    is_returning: bool,
    is_referred: bool,
}

impl RequestTemplate {
    /// By a request, if a browser asks for a page with it: other programs do not ask for its objects.
    pub fn of(visit: &Visit, fields: &Fields<'_>) -> Option<Result<Self, Skip>> {
        (visit.moved.is_none() && navigation::page_load(fields).is_some()).then(|| Self::of_page(visit, fields))
    }

    /// # Errors
    /// Why nothing of this page is fetched ahead.
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
            // What browsers send to another origin unless the page says otherwise (strict-origin-when-cross-origin).
            referrer: Some(format!("{}://{}/", visit.scheme, visit.authority)),
            page_scheme: visit.scheme,
            is_returning: ["cookie", "if-none-match", "if-modified-since"]
                .iter()
                .any(|name| fields.get(name).is_some()),
            is_referred: fields.get("referer").is_some_and(|referer| is_of_site(referer, &visit.authority)),
        })
    }

    /// The same, with what the page's answer says.
    ///
    /// # Errors
    /// Why nothing of this page is fetched ahead.
    pub fn with_answer(mut self, fields: &Fields<'_>) -> Result<Self, Skip> {
        if fields.get(":status") != Some(b"200") {
            return Err(Skip::Status);
        }
        // The last policy that a browser knows wins, and lists may hold any; less than it would send is always right.
        let hushed = ["no-referrer", "same-origin"];
        if hushed.iter().any(|policy| fields.lists("referrer-policy", policy)) {
            self.referrer = None;
        }
        Ok(self)
    }

    /// Whether its browser has been here before and may still have objects of the page: it sends a cookie, or asks whether
    /// its copy of the page is still good.
    pub(crate) fn is_returning(&self) -> bool {
        self.is_returning
    }

    /// Whether it was come to from another page of its site.
    pub(crate) fn is_referred(&self) -> bool {
        self.is_referred
    }

    /// What its browser calls itself; nothing where it does not.
    pub(crate) fn user_agent(&self) -> &str {
        self.browser.agent()
    }

    /// Whether its browser asks for pictures in newer formats.
    pub(crate) fn knows_newer_pictures(&self) -> bool {
        self.browser.knows_newer_pictures()
    }

    /// The request for one object. `authority` and `path` are its true ones.
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

/// Whether a `Referer` may name a page of the site that is at `authority`.
fn is_of_site(referer: &[u8], authority: &str) -> bool {
    let referer = String::from_utf8_lossy(referer).to_ascii_lowercase();
    let behind_scheme = referer.split_once("://").map_or("", |(_, behind)| behind);
    let page = behind_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    may_be_same_site(host_of(page), host_of(&authority.to_ascii_lowercase()))
}
