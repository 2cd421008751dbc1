//! The reasons why an object is not put into its page.

use std::cell::Cell;
use std::rc::Rc;

use http_semantics::labels::labelled;

labelled! {
    /// Why an object that could have been put into the page was not.
    NotInlined {
        /// Page: its browser has been here (a cookie, a conditional request) and may have the object.
        Returning = "returning";
        /// Page: its visitor came from another page of its site.
        Referred = "referred";
        /// Page: its visitor had another page of its site within a day, and may have the object cached.
        Seen = "seen";
        /// Page: no object of it was at hand when its headers left, so it kept its validators.
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
        /// Its tag has attributes that mean more than the use of the object.
        Attributes = "attributes";
        /// Its tag stands where another element would mean something else: a style sheet outside the head, a script near
        /// SVG.
        Place = "place";
        /// Its element has content of its own.
        Content = "content";
        /// Its text ends the element that would hold it, or looks for the place it came from.
        Text = "text";
        /// Its text and the page are, or may be, in different encodings.
        Charset = "charset";
        /// It is a style sheet of another origin with fonts, which their server may allow to that origin only.
        Fonts = "fonts";
        /// It is a style sheet with a URL that cannot be written so that it means the same in the page.
        Unread = "unread";
        /// It is not at hand, or too large, or of a type that is not put into pages.
        NotHeld = "not_held";
        /// It was fetched for browsers that know other formats.
        Format = "format";
        /// It does not stay fresh for as long as the page does.
        Stale = "stale";
        /// The page has grown by its whole budget.
        PageLimit = "page_limit";
    }
}

/// How often objects were not put into one page, by reason. Clones share their counts.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Rc<[Cell<u64>; NotInlined::ALL.len()]>);

impl Refusals {
    /// Returns the reasons that occurred, and the number of objects of each.
    pub fn iter(&self) -> impl Iterator<Item = (NotInlined, u64)> {
        NotInlined::ALL.iter().copied().zip(self.0.iter().map(Cell::get)).filter(|&(_, count)| count > 0)
    }

    pub(super) fn count(&self, why: NotInlined) {
        if let Some(count) = self.0.get(why.index()) {
            count.set(count.get() + 1);
        }
    }
}
