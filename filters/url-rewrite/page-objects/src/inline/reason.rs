//! Reasons for which an object does not stand in its page.

use std::cell::Cell;
use std::rc::Rc;

use http_semantics::labels::labelled;

labelled! {
    /// Why an object that could have been put into the page was not.
    NotInlined {
        /// Page: its browser has been here (a cookie, a conditional request) and may have the object.
        Returning = "returning";
        /// Page: it was come to from another page of its site.
        Referred = "referred";
        /// Page: its visitor had another of its site within a day, and what belongs into the browser's cache goes there.
        Seen = "seen";
        /// Page: nothing of it was at hand when its headers left, so it kept its validators.
        NothingHeld = "nothing_held";
        /// The browser may not want it: lazy, one of several candidates, in a template or `noscript`.
        Uncertain = "uncertain";
        /// Fetched with CORS, which a `data:` URL is not.
        Cors = "cors";
        /// Its URL has a fragment, or characters that browsers write in another way.
        Spelling = "spelling";
        /// The page's policies allow none here.
        Csp = "csp";
        /// The page uses it more than once, so that one copy in the browser's cache is cheaper.
        Repeated = "repeated";
        /// Other pages use it too.
        Shared = "shared";
        /// A script below level full.
        Level = "level";
        /// Its tag says more than that the object is to be used here.
        Attributes = "attributes";
        /// Its tag stands where another element would mean something else: a sheet outside the head, a script near SVG.
        Place = "place";
        /// Its element has content of its own.
        Content = "content";
        /// Its text ends the element that would hold it, or looks for the place it came from.
        Text = "text";
        /// Its text and the page are, or may be, in different encodings.
        Charset = "charset";
        /// It is a sheet of another origin with fonts, which their server may give to that origin's sheets only.
        Fonts = "fonts";
        /// It is a sheet with a URL that cannot be written so that it means the same in the page.
        Unread = "unread";
        /// It is not at hand, or too large, or of a type that is not put into pages.
        NotHeld = "not_held";
        /// It was fetched for browsers that know other formats.
        Format = "format";
        /// It does not stay fresh for as long as the page does.
        Stale = "stale";
        /// The page has grown by all that the link makes worth while.
        PageLimit = "page_limit";
    }
}

/// How often objects were not put into one page, by reason. Clones share their counts.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Rc<[Cell<u64>; NotInlined::ALL.len()]>);

impl Refusals {
    /// The reasons, and how many objects each; reasons without one are not listed.
    pub fn iter(&self) -> impl Iterator<Item = (NotInlined, u64)> {
        NotInlined::ALL.iter().copied().zip(self.0.iter().map(Cell::get)).filter(|&(_, count)| count > 0)
    }

    pub(super) fn count(&self, why: NotInlined) {
        if let Some(count) = self.0.get(why.index()) {
            count.set(count.get() + 1);
        }
    }
}
