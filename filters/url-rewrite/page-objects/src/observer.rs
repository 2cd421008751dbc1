//! Picks the URLs of a page whose objects are worth a prefetch, as they are decided.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use page_scanner::LoadRequest;
use url_mapping::{Outcome, Scheme, Use};
use url_rewriting::{Observer, Plan, UrlEvent};

use crate::limits::{OBJECTS_A_HOST, OBJECTS_A_PAGE};
use crate::true_url::TrueUrl;
use crate::{RequestTemplate, Skip};

/// An object that a browser is about to request.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub(crate) scheme: Scheme,
    pub(crate) authority: String,
    pub(crate) path: String,
    pub(crate) usage: Use,
    pub(crate) template: Rc<RequestTemplate>,
}

/// The finds of an observer since they were last taken.
#[derive(Debug, Default)]
pub struct Candidates {
    /// In the order of the page.
    pub candidates: Vec<Candidate>,
    /// The reason of each object that it left out.
    pub skipped: Vec<Skip>,
}

/// The observer of one page.
#[derive(Debug)]
pub struct PrefetchObserver {
    plan: Rc<Plan>,
    template: Rc<RequestTemplate>,
    found: Rc<RefCell<Candidates>>,
    taken: usize,
    taken_of_host: HashMap<String, usize>,
    /// Behind a `source` of pictures: the `img` that follows is for browsers that know none of them.
    behind_sources: bool,
}

impl PrefetchObserver {
    /// Makes an observer, and the place where it leaves its finds.
    pub fn new(plan: Rc<Plan>, template: RequestTemplate) -> (Self, Rc<RefCell<Candidates>>) {
        let found = Rc::<RefCell<Candidates>>::default();
        let observer = Self {
            plan,
            template: Rc::new(template),
            found: Rc::clone(&found),
            taken: 0,
            taken_of_host: HashMap::new(),
            behind_sources: false,
        };
        (observer, found)
    }

    fn judge(&mut self, url: &str, load: LoadRequest, in_choice: bool) -> Result<Candidate, Skip> {
        if matches!(load.usage, Use::Media | Use::Track) {
            return Err(Skip::Media);
        }
        if load.cors {
            return Err(Skip::Cors);
        }
        if !load.at_once || in_choice || matches!(load.usage, Use::CssImage | Use::CssImport) {
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
        Ok(Candidate {
            scheme: origin.scheme,
            authority: origin.authority.to_owned(),
            path: origin.path.to_owned(),
            usage: load.usage,
            template: Rc::clone(&self.template),
        })
    }
}

impl Observer for PrefetchObserver {
    fn url(&mut self, event: &UrlEvent<'_>) {
        let element = event.place.element;
        let in_choice = element == "img" && std::mem::take(&mut self.behind_sources);
        self.behind_sources |= element == "source" && event.place.attribute == "srcset";
        let (Outcome::Moved(url), Some(load)) = (event.outcome, event.load) else { return };
        let judged = self.judge(url, load, in_choice);
        // Nothing else borrows the finds while a page is read.
        let Ok(mut found) = self.found.try_borrow_mut() else { return };
        match judged {
            Ok(candidate) => found.candidates.push(candidate),
            Err(why) => found.skipped.push(why),
        }
    }
}
