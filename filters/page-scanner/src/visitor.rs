//! The seam: the scanner reports each URL to a [`Visitor`], and writes the visitor's replacement.

use url_mapping::{Reason, Use};

use crate::places::Place;

/// Decides about the URLs of one body. The scanner calls it in the order of the body, once for each URL.
///
/// Every method has a default that changes nothing, so that a visitor which only looks implements what it looks at.
pub trait Visitor {
    /// One URL was read. Returns what is written in its place; None leaves it as it is.
    ///
    /// The scanner escapes that text for where it stands. `fits` says whether a text can stand in place of the URL, and if
    /// not, why. A visitor that returns a text must have called `fits` with it, once: the scanner writes the text of that
    /// call.
    fn url(&mut self, reference: &UrlReference<'_>, fits: Fits<'_>) -> Option<String>;

    /// A place holds URLs that were not read, for this reason. `offset`: where its value begins in the body, in bytes.
    fn unread(&mut self, place: &'static Place, offset: usize, reason: Reason) {
        let _ = (place, offset, reason);
    }

    /// `<base href>`, character references decoded. It holds for all that follows. Later ones count for nothing (HTML,
    /// 4.2.3) and are not reported.
    fn base(&mut self, href: &str) {
        let _ = href;
    }

    /// `<link rel=preconnect>` and `<link rel=dns-prefetch>`, character references decoded: browsers look the host up before
    /// anything on it is named.
    fn hint(&mut self, href: &str) {
        let _ = href;
    }

    /// `<meta http-equiv=content-security-policy>`, which holds for all that follows. None: its bytes could not be read.
    /// Returns the text to write in its place, if it changes.
    fn policy(&mut self, policy: Option<&str>) -> Option<String> {
        let _ = policy;
        None
    }
}

/// Says if a text can stand in place of a URL; see [`Visitor::url`].
pub type Fits<'f> = &'f mut dyn FnMut(&str) -> Result<(), Reason>;

/// One URL of a body, and what its place says about it.
#[derive(Debug)]
pub struct UrlReference<'r> {
    /// Element and attribute.
    pub place: &'static Place,
    /// Where its value begins, in bytes from the start of the body.
    pub offset: usize,
    /// The URL as the page says it, escapes and character references decoded.
    pub url: &'r str,
    /// How a browser loads the object, or why that does not matter.
    pub request: Result<LoadRequest, Reason>,
}

/// How a browser comes to load an object, as far as its place in the page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadRequest {
    /// The use of the object.
    pub usage: Use,
    /// It is fetched with CORS: the response is for the page's origin.
    pub cors: bool,
    /// It is fetched as soon as its place is read, whatever the window and the reader do: not one candidate of several, not
    /// lazily, not for another medium.
    pub at_once: bool,
    /// It only loads ahead of time what another place uses (`rel=preload`, `rel=prefetch`).
    pub is_preload: bool,
}

impl LoadRequest {
    /// The same, where browsers with scripts do not look (`noscript`), or nobody does yet (`template`).
    pub(crate) fn out_of_sight(self, is_out_of_sight: bool) -> Self {
        Self { at_once: self.at_once && !is_out_of_sight, ..self }
    }
}

/// Gets the text in place of a URL. `write` turns the visitor's URL into that text.
pub(crate) fn ask<T>(
    visitor: &mut dyn Visitor,
    reference: &UrlReference<'_>,
    write: impl Fn(&str) -> Result<T, Reason>,
) -> Option<T> {
    let mut written = None;
    visitor.url(reference, &mut |url| {
        written = Some(write(url)?);
        Ok(())
    })?;
    written
}
