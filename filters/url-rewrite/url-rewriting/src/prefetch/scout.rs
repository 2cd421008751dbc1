//! Looks at a page's URLs as they are decided and picks those whose objects are worth fetching ahead.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use url_mapping::{Outcome, Scheme, Use};

use super::limits::{OBJECTS_A_HOST, OBJECTS_A_PAGE};
use super::{Asker, Skip};
use crate::event::{Fetch, Observer, UrlEvent};
use crate::plan::Plan;
use crate::true_url::TrueUrl;

/// An object that a browser is about to ask for.
#[derive(Debug, Clone)]
pub struct Wish {
    pub(super) scheme: Scheme,
    pub(super) authority: String,
    pub(super) path: String,
    pub(super) usage: Use,
    pub(super) asker: Rc<Asker>,
}

impl Wish {
    /// Where it is.
    pub(crate) fn true_url(&self) -> TrueUrl<'_> {
        TrueUrl { scheme: self.scheme, authority: &self.authority, path: &self.path }
    }

    /// See [`Asker::knows_newer_pictures`].
    pub(crate) fn knows_newer_pictures(&self) -> bool {
        self.asker.knows_newer_pictures()
    }
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
        let origin = TrueUrl::of_moved(self.plan.mapper(), url).ok_or(Skip::Spelling)?;
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
            path: origin.path.to_owned(),
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
