//! Looks at a page's URLs as they are decided and picks those whose objects are worth fetching ahead.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use url_mapping::{Outcome, Reverse, Scheme, Use};

use super::limits::{OBJECTS_A_HOST, OBJECTS_A_PAGE};
use super::{Asker, Skip};
use crate::ledger::{Fetch, Observer, UrlEvent};
use crate::plan::Plan;

/// An object that a browser is about to ask for.
#[derive(Debug, Clone)]
pub struct Wish {
    pub(super) scheme: Scheme,
    pub(super) authority: String,
    pub(super) path: String,
    pub(super) usage: Use,
    pub(super) asker: Rc<Asker>,
}

/// What a scout has found since it was last asked.
#[derive(Debug, Default)]
pub struct Wishes {
    /// In the order of the page.
    pub wishes: Vec<Wish>,
    /// What it passed by, each with its reason.
    pub skipped: Vec<Skip>,
}

/// The observer of one page.
#[derive(Debug)]
pub struct Scout {
    plan: Rc<Plan>,
    asker: Rc<Asker>,
    found: Rc<RefCell<Wishes>>,
    taken: usize,
    taken_of_host: HashMap<String, usize>,
    /// Behind a `source` of pictures: the `img` that follows is for browsers that know none of them.
    behind_sources: bool,
}

impl Scout {
    /// A scout, and where it leaves what it finds.
    pub fn new(plan: Rc<Plan>, asker: Asker) -> (Self, Rc<RefCell<Wishes>>) {
        let found = Rc::<RefCell<Wishes>>::default();
        let scout = Self {
            plan,
            asker: Rc::new(asker),
            found: Rc::clone(&found),
            taken: 0,
            taken_of_host: HashMap::new(),
            behind_sources: false,
        };
        (scout, found)
    }

    fn judge(&mut self, url: &str, fetch: Fetch, in_choice: bool) -> Result<Wish, Skip> {
        if matches!(fetch.usage, Use::Media | Use::Track) {
            return Err(Skip::Media);
        }
        if fetch.cors {
            return Err(Skip::Cors);
        }
        if !fetch.at_once || in_choice || matches!(fetch.usage, Use::CssImage | Use::CssImport) {
            return Err(Skip::Uncertain);
        }
        let (authority, path) = parts(url).ok_or(Skip::Spelling)?;
        let Reverse::Origin(origin) = self.plan.mapper().reverse(authority.as_bytes(), path.as_bytes()) else {
            return Err(Skip::Spelling);
        };
        let path =
            std::str::from_utf8(origin.path).ok().filter(|path| is_spelled_as_sent(path)).ok_or(Skip::Spelling)?;
        if self.taken >= OBJECTS_A_PAGE {
            return Err(Skip::PageLimit);
        }
        let of_host = self.taken_of_host.entry(origin.authority.to_owned()).or_default();
        if *of_host >= OBJECTS_A_HOST {
            return Err(Skip::PageLimit);
        }
        *of_host += 1;
        self.taken += 1;
        Ok(Wish {
            scheme: origin.scheme,
            authority: origin.authority.to_owned(),
            path: path.to_owned(),
            usage: fetch.usage,
            asker: Rc::clone(&self.asker),
        })
    }
}

impl Observer for Scout {
    fn url(&mut self, event: &UrlEvent<'_>) {
        let element = event.place.element;
        let in_choice = element == "img" && std::mem::take(&mut self.behind_sources);
        self.behind_sources |= element == "source" && event.place.attribute == "srcset";
        let (Outcome::Moved(url), Some(fetch)) = (event.outcome, event.fetch) else { return };
        let judged = self.judge(url, fetch, in_choice);
        // Nobody else is at work while a page is read.
        let Ok(mut found) = self.found.try_borrow_mut() else { return };
        match judged {
            Ok(wish) => found.wishes.push(wish),
            Err(why) => found.skipped.push(why),
        }
    }
}

/// Authority and path of a moved URL, without its fragment.
fn parts(url: &str) -> Option<(&str, &str)> {
    let (_, rest) = url.split_once("://")?;
    let rest = rest.split('#').next()?;
    let slash = rest.find('/')?;
    rest.split_at_checked(slash)
}

/// Whether a browser sends the path and query as they are written: no character that it would encode, no `.` or `..`
/// between slashes (URL, "path percent-encode set", "special-query percent-encode set").
fn is_spelled_as_sent(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?@!$&()*+,;=%[]".contains(&byte);
    let dots = |segment: &str| {
        matches!(segment.len(), 1..=6)
            && matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
    };
    path.bytes().all(plain) && !path.split('?').next().unwrap_or_default().split('/').any(dots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_would_write_in_another_way_is_told() {
        for path in ["/", "/a.png?v=1&w=%20", "/.well-known/x", "/a..b/...", "/a?../x"] {
            assert!(is_spelled_as_sent(path), "{path}");
        }
        for path in ["/a b", "/ü", "/a/../b", "/a/.", "/%2E%2e/b", "/a'", "/a\"", "/{x}", "/a|b", "/a\\b"] {
            assert!(!is_spelled_as_sent(path), "{path}");
        }
    }

    #[test]
    fn a_moved_url_is_taken_apart() {
        assert_eq!(
            parts("https://pep.example.net/a.example:443/x?y#z"),
            Some(("pep.example.net", "/a.example:443/x?y"))
        );
        assert_eq!(parts("https://pep.example.net"), None);
    }
}
