//! One page: which of its objects are put into it.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use url_mapping::{Outcome, Reason};

use super::shelf::{Need, Object, Shelf, View};
use super::{Budget, Kept};
use crate::headers::csp::Policies;
use crate::headers::request::Visit;
use crate::headers::{Edit, Fields};
use crate::ledger::Ask;
use crate::places::Place;
use crate::plan::Plan;
use crate::prefetch::{Asker, kept_by_browsers_ms};
use crate::true_url::TrueUrl;

/// Decides about the objects of one page, in the order of the page.
pub struct Inliner {
    plan: Rc<Plan>,
    shelf: Rc<RefCell<Shelf>>,
    view: View,
    need: Need,
    now_ms: u64,
    /// By how much the page may still grow.
    room: usize,
    /// Why nothing is put into this page, if nothing is.
    page: Result<(), Kept>,
    /// Behind a `source` of pictures: the `img` that follows is for browsers that know none of them.
    behind_sources: bool,
}

impl Inliner {
    /// For a page that is asked for and answered so. Times are milliseconds since the moment that the shelf's are.
    /// None where nothing is put into pages.
    pub fn new(
        plan: &Rc<Plan>,
        shelf: &Rc<RefCell<Shelf>>,
        asker: &Asker,
        visit: &Visit,
        answer: &Fields<'_>,
        now_ms: u64,
    ) -> Option<Self> {
        let Budget { page_bytes, .. } = *plan.inlines()?;
        // A page that the browser may show again without a question must not outlive what is in it.
        let fresh_until_ms = now_ms.saturating_add(kept_by_browsers_ms(answer)).saturating_add(1);
        let need = Need { fresh_until_ms, newer_pictures: asker.knows_newer_pictures() };
        let view = shelf.try_borrow_mut().ok()?.look(visit.scheme, &visit.authority, &visit.path);
        let page = if asker.is_returning() {
            Err(Kept::Returning)
        } else if shelf.try_borrow().ok()?.serves(view, need) {
            Ok(())
        } else {
            Err(Kept::NothingHeld)
        };
        let (plan, shelf) = (Rc::clone(plan), Rc::clone(shelf));
        Some(Self { plan, shelf, view, need, now_ms, room: page_bytes, page, behind_sources: false })
    }

    /// For a page that is only explained: by a browser that was never here, with nothing at hand, so that what would be put
    /// in is [`Kept::NotHeld`]. None where nothing is put into pages.
    pub fn explaining(plan: &Rc<Plan>, visit: &Visit) -> Option<Self> {
        let budget = *plan.inlines()?;
        let mut shelf = Shelf::new(budget);
        let view = shelf.look(visit.scheme, &visit.authority, &visit.path);
        let need = Need { fresh_until_ms: 0, newer_pictures: true };
        let (plan, shelf) = (Rc::clone(plan), Rc::new(RefCell::new(shelf)));
        let room = budget.page_bytes;
        Some(Self { plan, shelf, view, need, now_ms: 0, room, page: Ok(()), behind_sources: false })
    }

    /// Edits of the page's response headers. What is put in changes from visit to visit, so a page that may get something
    /// has no validators: a copy could not be confirmed, and without `Last-Modified` no browser guesses how long to keep it.
    pub fn edits(&self) -> Vec<Edit> {
        match self.page {
            Ok(()) => vec![Edit::remove("etag"), Edit::remove("last-modified")],
            Err(_) => Vec::new(),
        }
    }

    /// A URL of the page was decided. If the object itself can stand in its place, the text that does, or why not.
    pub(crate) fn consider(
        &mut self,
        place: &Place,
        verdict: Result<Ask, Reason>,
        outcome: &Outcome,
        policies: &Policies,
    ) -> Option<Result<String, Kept>> {
        let in_choice = place.element == "img" && std::mem::take(&mut self.behind_sources);
        self.behind_sources |= place.element == "source" && place.attribute == "srcset";
        let (Outcome::Moved(moved), Ok(ask)) = (outcome, verdict) else { return None };
        let found = self.named(moved);
        let is_picture = (place.element, place.attribute) == ("img", "src");
        is_picture.then(|| self.picture(moved, ask, in_choice, policies, found))
    }

    /// Every mention counts as a use, whatever becomes of it.
    fn named(&mut self, moved: &str) -> Result<Object, Kept> {
        let url = TrueUrl::of_moved(self.plan.mapper(), moved).ok_or(Kept::Spelling)?;
        // Nobody else is at the shelf while a page is read.
        let mut objects = self.shelf.try_borrow_mut().map_err(|_| Kept::NotHeld)?;
        objects.named(&url, self.view, self.need, self.now_ms)
    }

    fn picture(
        &mut self,
        moved: &str,
        ask: Ask,
        in_choice: bool,
        policies: &Policies,
        found: Result<Object, Kept>,
    ) -> Result<String, Kept> {
        self.page?;
        if ask.cors {
            return Err(Kept::Cors);
        }
        if !ask.at_once || in_choice {
            return Err(Kept::Uncertain);
        }
        if moved.contains('#') {
            return Err(Kept::Spelling);
        }
        if !policies.permit_data(ask.usage) {
            return Err(Kept::Csp);
        }
        let object = found?;
        let bytes = object.kind.data_url_bytes(object.body.len());
        self.room = self.room.checked_sub(bytes).ok_or(Kept::PageLimit)?;
        Ok(object.kind.data_url(&object.body))
    }
}

impl fmt::Debug for Inliner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inliner").field("page", &self.page).field("room", &self.room).finish_non_exhaustive()
    }
}
