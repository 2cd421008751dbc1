//! What of a page's request the requests for its objects repeat, so that an origin answers them as it would answer the
//! browser: no credentials, no cookies, nothing that names the reader beyond what every object's request names.

use http_semantics::{accept, navigation};
use url_mapping::{Scheme, Use, may_be_same_site};

use super::Skip;
use super::limits::FIELD_BYTES;
use crate::headers::request::Visit;
use crate::headers::{Fields, host_of};

/// Repeated as they are.
const REPEATED: [&str; 4] = ["user-agent", "accept-language", "dnt", "sec-gpc"];
/// Repeated to https origins only, as browsers do.
const REPEATED_SECURELY: [&str; 3] = ["sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform"];

/// Who asks for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    repeated: Vec<(&'static str, String)>,
    repeated_securely: Vec<(&'static str, String)>,
    pictures: &'static str,
    /// The browser says what it wants an object for (`Sec-Fetch-*`).
    tells_destination: bool,
    referrer: Option<String>,
    page_scheme: Scheme,
    is_returning: bool,
    is_referred: bool,
}

impl Asker {
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
        let accept = fields.get("accept").unwrap_or_default();
        Ok(Self {
            repeated: repeated(&REPEATED, fields),
            repeated_securely: repeated(&REPEATED_SECURELY, fields),
            pictures: accept::pictures(accept),
            tells_destination: fields.get("sec-fetch-dest").is_some(),
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
        self.repeated.iter().find(|(name, _)| *name == "user-agent").map_or("", |(_, value)| value)
    }

    /// Whether its browser asks for pictures in newer formats.
    pub(crate) fn knows_newer_pictures(&self) -> bool {
        accept::names_newer_pictures(self.pictures.as_bytes())
    }

    /// The request for one object. `authority` and `path` are its true ones.
    pub(super) fn fields(
        &self,
        scheme: Scheme,
        authority: &str,
        path: &str,
        usage: Use,
    ) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            (":method", "GET".to_owned()),
            (":scheme", scheme.as_str().to_owned()),
            (":authority", authority.to_owned()),
            (":path", path.to_owned()),
            ("accept", self.accept(usage).to_owned()),
        ];
        fields.extend(self.repeated.iter().cloned());
        if let Some(referrer) =
            self.referrer.as_ref().filter(|_| self.page_scheme == Scheme::Http || scheme == Scheme::Https)
        {
            fields.push(("referer", referrer.clone()));
        }
        if scheme == Scheme::Https {
            fields.extend(self.repeated_securely.iter().cloned());
            if self.tells_destination {
                fields.push(("sec-fetch-dest", destination(usage).to_owned()));
                fields.push(("sec-fetch-mode", "no-cors".to_owned()));
            }
        }
        fields
    }

    fn accept(&self, usage: Use) -> &'static str {
        match usage {
            Use::Image | Use::Icon | Use::Poster | Use::Background | Use::CssImage => self.pictures,
            Use::Stylesheet | Use::CssImport => accept::SHEETS,
            Use::Script | Use::Font | Use::Media | Use::Track => accept::ANYTHING,
        }
    }
}

/// Whether a `Referer` may name a page of the site that is at `authority`.
fn is_of_site(referer: &[u8], authority: &str) -> bool {
    let referer = String::from_utf8_lossy(referer).to_ascii_lowercase();
    let behind_scheme = referer.split_once("://").map_or("", |(_, behind)| behind);
    let page = behind_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    may_be_same_site(host_of(page), host_of(&authority.to_ascii_lowercase()))
}

/// `Sec-Fetch-Dest` (Fetch, "destination").
fn destination(usage: Use) -> &'static str {
    match usage {
        Use::Image | Use::Icon | Use::Poster | Use::Background | Use::CssImage => "image",
        Use::Stylesheet | Use::CssImport => "style",
        Use::Script => "script",
        Use::Font => "font",
        Use::Track => "track",
        Use::Media => "video",
    }
}

/// What is too long, or no text, is left out: the origin is asked by a browser that does not say.
fn repeated(names: &[&'static str], fields: &Fields<'_>) -> Vec<(&'static str, String)> {
    let text = |value: &[u8]| {
        let plain = value.len() <= FIELD_BYTES && value.iter().all(|byte| (b' '..=b'~').contains(byte));
        plain.then(|| String::from_utf8_lossy(value).into_owned())
    };
    names.iter().filter_map(|&name| Some((name, text(fields.get(name)?)?))).collect()
}
