//! One page: which of its objects are put into it.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use http_semantics::cache_control::kept_by_browsers_ms;
use shared_board::Board;
use url_mapping::{Level, Outcome, Use};

use super::Kept;
use super::matter::Matter;
use super::sheet::{Transplant, transplanted};
use super::shelf::{Need, Object, Shelf, View};
use super::text::Text;
use super::visits::{Visitor, is_known};
use crate::config::Budget;
use crate::event::{Ask, Mention};
use crate::form::Form;
use crate::headers::request::Visit;
use crate::headers::{Edit, Fields};
use crate::ledger::{Ledger, Substitute};
use crate::plan::Plan;
use crate::prefetch::Asker;
use crate::substitute::{Put, Standing};
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

/// What an object is used as that could stand in the page.
enum Kind<'s> {
    Picture,
    Sheet(&'s Standing),
    Script(&'s Standing),
}

impl Substitute for Inliner {
    fn consider(
        &mut self,
        mention: &Mention<'_>,
        outcome: &Outcome,
        standing: Option<&Standing>,
        ledger: &Ledger,
    ) -> Option<Result<Put, Kept>> {
        let place = mention.place;
        let in_choice = place.element == "img" && std::mem::take(&mut self.behind_sources);
        self.behind_sources |= place.element == "source" && place.attribute == "srcset";
        let (Outcome::Moved(moved), Ok(ask)) = (outcome, mention.verdict) else { return None };
        let found = self.named(moved);
        let kind = match (place.element, place.attribute, ask.usage, standing) {
            ("img", "src", ..) => Kind::Picture,
            ("link", "href", Use::Stylesheet, Some(standing)) => Kind::Sheet(standing),
            ("script", "src", Use::Script, Some(standing)) => Kind::Script(standing),
            _ => return None,
        };
        Some(self.fits(moved, ask, in_choice).and_then(|()| match kind {
            Kind::Picture => self.picture(ask, ledger, found),
            Kind::Sheet(standing) => self.sheet(ask, standing, ledger, found),
            Kind::Script(standing) => self.script(ask, standing, ledger, found),
        }))
    }
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
        visitors: (&Visitor<'_>, &dyn Board),
    ) -> Option<Self> {
        let Budget { page_bytes, .. } = *plan.inlines()?;
        // A page that the browser may show again without a question must not outlive what is in it.
        let fresh_until_ms = now_ms.saturating_add(kept_by_browsers_ms(answer)).saturating_add(1);
        let need = Need { fresh_until_ms, newer_pictures: asker.knows_newer_pictures() };
        let view = shelf.try_borrow_mut().ok()?.look(visit.scheme, &visit.authority, &visit.path);
        let (visitor, board) = visitors;
        let page = if asker.is_returning() {
            Err(Kept::Returning)
        } else if is_known(visitor, asker.user_agent(), visit, board) {
            // Also of a visitor who follows a link: they are known from now on.
            Err(if asker.is_referred() { Kept::Referred } else { Kept::Seen })
        } else if asker.is_referred() {
            Err(Kept::Referred)
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
        let mut shelf = Shelf::of(plan)?;
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

    /// Every mention counts as a use, whatever becomes of it.
    fn named(&mut self, moved: &str) -> Result<(Object, String), Kept> {
        let url = TrueUrl::of_moved(self.plan.mapper(), moved).ok_or(Kept::Spelling)?;
        // Nobody else is at the shelf while a page is read.
        let mut objects = self.shelf.try_borrow_mut().map_err(|_| Kept::NotHeld)?;
        let object = objects.named(&url, self.view, self.need, self.now_ms)?;
        Ok((object, url.to_string()))
    }

    fn fits(&self, moved: &str, ask: Ask, in_choice: bool) -> Result<(), Kept> {
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
        Ok(())
    }

    fn picture(&mut self, ask: Ask, ledger: &Ledger, found: Found) -> Result<Put, Kept> {
        if !ledger.policies.permit_data(ask.usage) {
            return Err(Kept::Csp);
        }
        let Matter::Picture(kind, body) = found?.0.matter? else { return Err(Kept::NotHeld) };
        self.take_room(kind.data_url_bytes(body.len()))?;
        Ok(Put::Url(kind.data_url(&body)))
    }

    fn sheet(&mut self, ask: Ask, standing: &Standing, ledger: &Ledger, found: Found) -> Result<Put, Kept> {
        let form = form_for(ask, standing, ledger)?;
        let (object, url) = found?;
        let Matter::Sheet(text) = object.matter? else { return Err(Kept::NotHeld) };
        legible(&text, standing)?;
        let Transplant { text, urls } = transplanted(&text, &url, ledger)?;
        self.take_room(form.bytes(text.len()))?;
        for (_, outcome, _) in &urls {
            if let Outcome::Moved(moved) = outcome {
                // What is not at hand is counted as used all the same.
                let _ = self.named(moved);
            }
        }
        Ok(Put::Element { text: form.around(&text), urls })
    }

    fn script(&mut self, ask: Ask, standing: &Standing, ledger: &Ledger, found: Found) -> Result<Put, Kept> {
        if self.plan.mapper().level() < Level::Full {
            return Err(Kept::Level);
        }
        let form = form_for(ask, standing, ledger)?;
        let Matter::Script(text) = found?.0.matter? else { return Err(Kept::NotHeld) };
        legible(&text, standing)?;
        self.take_room(form.bytes(text.as_str().len()))?;
        Ok(Put::Element { text: form.around(text.as_str()), urls: Vec::new() })
    }

    fn take_room(&mut self, bytes: usize) -> Result<(), Kept> {
        self.room = self.room.checked_sub(bytes).ok_or(Kept::PageLimit)?;
        Ok(())
    }
}

/// An object at hand and its true URL, or why there is none.
type Found = Result<(Object, String), Kept>;

fn form_for<'s>(ask: Ask, standing: &'s Standing, ledger: &Ledger) -> Result<&'s Form, Kept> {
    let form = standing.form.as_ref().map_err(|why| *why)?;
    if ledger.policies.permit_inline(ask.usage) { Ok(form) } else { Err(Kept::Csp) }
}

fn legible(text: &Text, standing: &Standing) -> Result<(), Kept> {
    if text.is_legible_in(standing.charset) { Ok(()) } else { Err(Kept::Charset) }
}

impl fmt::Debug for Inliner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inliner").field("page", &self.page).field("room", &self.room).finish_non_exhaustive()
    }
}
