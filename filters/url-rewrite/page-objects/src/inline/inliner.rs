//! The decisions about the objects of one page.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use http_semantics::cache_control::kept_by_browsers_ms;
use page_scanner::{LoadRequest, TagContext};
use shared_board::Board;
use url_mapping::{Level, Outcome, Use};
use url_rewriting::headers::request::Visit;
use url_rewriting::headers::{Edit, Fields};
use url_rewriting::{Decider, Plan, Substitute, Substitution, UrlEvent};

use super::content::Content;
use super::element::Element;
use super::sheet::{Transplant, transplanted};
use super::store::{Need, Object, ObjectStore, View};
use super::text::Text;
use super::visits::{Visitor, is_known};
use super::{NotInlined, Refusals};
use crate::config::Config;
use crate::prefetch::RequestTemplate;
use crate::true_url::TrueUrl;

/// Decides about the objects of one page, in the order of the page.
pub struct Inliner {
    plan: Rc<Plan>,
    store: Rc<RefCell<ObjectStore>>,
    view: View,
    need: Need,
    now_ms: u64,
    /// The bytes by which the page may still grow.
    room: usize,
    /// The reason if no object is put into this page.
    page: Result<(), NotInlined>,
    /// Behind a `source` of pictures: the `img` that follows is for browsers that know none of them.
    behind_sources: bool,
    refused: Refused,
}

/// Learns of each object that could have been put into the page and was not.
type Refused = Box<dyn FnMut(&UrlEvent<'_>, NotInlined)>;

/// The use of an object that could stand in the page.
enum Kind<'s> {
    Picture,
    Sheet(&'s TagContext<'s>),
    Script(&'s TagContext<'s>),
}

impl Substitute for Inliner {
    fn consider(
        &mut self,
        event: &UrlEvent<'_>,
        tag: Option<&TagContext<'_>>,
        decider: &Decider<'_>,
    ) -> Option<Substitution> {
        match self.judge(event, tag, decider)? {
            Ok(object) => Some(object),
            Err(why) => {
                (self.refused)(event, why);
                None
            }
        }
    }
}

impl Inliner {
    /// Makes the inliner of a page with this request and response, and the counts of objects that it does not put in. Its
    /// times count from the same moment as the store's, in milliseconds. `None` if the store is borrowed.
    pub fn new(
        plan: &Rc<Plan>,
        store: &Rc<RefCell<ObjectStore>>,
        template: &RequestTemplate,
        visit: &Visit,
        answer: &Fields<'_>,
        now_ms: u64,
        visitors: (&Visitor<'_>, &dyn Board),
    ) -> Option<(Self, Refusals)> {
        // A page that the browser may show again without a question must not outlive what is in it.
        let fresh_until_ms = now_ms.saturating_add(kept_by_browsers_ms(answer)).saturating_add(1);
        let need = Need { fresh_until_ms, newer_pictures: template.knows_newer_pictures() };
        let mut objects = store.try_borrow_mut().ok()?;
        let view = objects.look(visit.scheme, &visit.authority, &visit.path);
        let (visitor, board) = visitors;
        let page = if template.is_returning() {
            Err(NotInlined::Returning)
        } else if is_known(visitor, template.user_agent(), visit, board) {
            // Also of a visitor who follows a link: they are known from now on.
            Err(if template.is_referred() { NotInlined::Referred } else { NotInlined::Seen })
        } else if template.is_referred() {
            Err(NotInlined::Referred)
        } else if objects.serves(view, need) {
            Ok(())
        } else {
            Err(NotInlined::NothingHeld)
        };
        let refusals = Refusals::default();
        let refused = {
            let refusals = refusals.clone();
            Box::new(move |_: &UrlEvent<'_>, why| refusals.count(why))
        };
        let (plan, store, room) = (Rc::clone(plan), Rc::clone(store), objects.budget().page_bytes);
        Some((Self { plan, store, view, need, now_ms, room, page, behind_sources: false, refused }, refusals))
    }

    /// Makes the inliner of a page that is only explained, for a browser that was never here. Its store is empty. So an
    /// object that fits is refused as [`NotInlined::NotHeld`]. `refused` receives each refusal. `None` where inlining is off.
    pub fn explaining<Admission>(
        config: &Config<Admission>,
        plan: &Rc<Plan>,
        visit: &Visit,
        refused: impl FnMut(&UrlEvent<'_>, NotInlined) + 'static,
    ) -> Option<Self> {
        let mut store = ObjectStore::of(config)?;
        let view = store.look(visit.scheme, &visit.authority, &visit.path);
        Some(Self {
            plan: Rc::clone(plan),
            view,
            need: Need { fresh_until_ms: 0, newer_pictures: true },
            now_ms: 0,
            room: store.budget().page_bytes,
            store: Rc::new(RefCell::new(store)),
            page: Ok(()),
            behind_sources: false,
            refused: Box::new(refused),
        })
    }

    /// Returns the edits of the page's response headers. The objects in a page change from visit to visit, so a copy of it
    /// could not be confirmed. Such a page loses its validators. Without `Last-Modified`, no browser guesses a freshness
    /// lifetime.
    pub fn edits(&self) -> Vec<Edit> {
        match self.page {
            Ok(()) => vec![Edit::remove("etag"), Edit::remove("last-modified")],
            Err(_) => Vec::new(),
        }
    }

    /// Returns the object itself, or the reason against it. `None` where no object can stand.
    fn judge(
        &mut self,
        event: &UrlEvent<'_>,
        tag: Option<&TagContext<'_>>,
        decider: &Decider<'_>,
    ) -> Option<Result<Substitution, NotInlined>> {
        let place = event.place;
        let in_choice = place.element == "img" && std::mem::take(&mut self.behind_sources);
        self.behind_sources |= place.element == "source" && place.attribute == "srcset";
        let (Outcome::Moved(moved), Some(load)) = (event.outcome, event.load) else { return None };
        let found = self.named(moved);
        let kind = match (place.element, place.attribute, load.usage, tag) {
            ("img", "src", ..) => Kind::Picture,
            // Preloads of sheets are links, too.
            ("link", "href", Use::Stylesheet, Some(tag)) if tag.tag.lists("rel", "stylesheet") => Kind::Sheet(tag),
            ("script", "src", Use::Script, Some(tag)) => Kind::Script(tag),
            _ => return None,
        };
        Some(self.fits(moved, load, in_choice).and_then(|()| match kind {
            Kind::Picture => self.picture(load, decider, found),
            Kind::Sheet(tag) => self.sheet(load, tag, decider, found),
            Kind::Script(tag) => self.script(load, tag, decider, found),
        }))
    }

    /// Finds the object of a moved URL. Each URL counts as a use, also if the object is not put in.
    fn named(&mut self, moved: &str) -> Result<(Object, String), NotInlined> {
        let url = TrueUrl::of_moved(self.plan.mapper(), moved).ok_or(NotInlined::Spelling)?;
        // Nothing else borrows the store while a page is read.
        let mut objects = self.store.try_borrow_mut().map_err(|_| NotInlined::NotHeld)?;
        let object = objects.named(&url, self.view, self.need, self.now_ms)?;
        Ok((object, url.to_string()))
    }

    fn fits(&self, moved: &str, load: LoadRequest, in_choice: bool) -> Result<(), NotInlined> {
        self.page?;
        if load.cors {
            return Err(NotInlined::Cors);
        }
        if !load.at_once || in_choice {
            return Err(NotInlined::Uncertain);
        }
        if moved.contains('#') {
            return Err(NotInlined::Spelling);
        }
        Ok(())
    }

    fn picture(&mut self, load: LoadRequest, decider: &Decider<'_>, found: Found) -> Result<Substitution, NotInlined> {
        if !decider.permits_data(load.usage) {
            return Err(NotInlined::Csp);
        }
        let Content::Picture(kind, body) = found?.0.content? else { return Err(NotInlined::NotHeld) };
        self.take_room(kind.data_url_bytes(body.len()))?;
        Ok(Substitution::Url(kind.data_url(&body)))
    }

    fn sheet(
        &mut self,
        load: LoadRequest,
        tag: &TagContext<'_>,
        decider: &Decider<'_>,
        found: Found,
    ) -> Result<Substitution, NotInlined> {
        let element = element_for(load, tag, decider)?;
        let (object, url) = found?;
        let Content::Sheet(text) = object.content? else { return Err(NotInlined::NotHeld) };
        legible(&text, tag)?;
        let Transplant { text, urls } = transplanted(&text, &url, decider)?;
        self.take_room(element.bytes(text.len()))?;
        for decided in &urls {
            if let Outcome::Moved(moved) = &decided.outcome {
                // What is not at hand is counted as used all the same.
                let _ = self.named(moved);
            }
        }
        Ok(Substitution::Element { text: element.around(&text), urls })
    }

    fn script(
        &mut self,
        load: LoadRequest,
        tag: &TagContext<'_>,
        decider: &Decider<'_>,
        found: Found,
    ) -> Result<Substitution, NotInlined> {
        if self.plan.mapper().level() < Level::Full {
            return Err(NotInlined::Level);
        }
        let element = element_for(load, tag, decider)?;
        let Content::Script(text) = found?.0.content? else { return Err(NotInlined::NotHeld) };
        legible(&text, tag)?;
        self.take_room(element.bytes(text.as_str().len()))?;
        Ok(Substitution::Element { text: element.around(text.as_str()), urls: Vec::new() })
    }

    fn take_room(&mut self, bytes: usize) -> Result<(), NotInlined> {
        self.room = self.room.checked_sub(bytes).ok_or(NotInlined::PageLimit)?;
        Ok(())
    }
}

/// An object at hand and its true URL, or why there is none.
type Found = Result<(Object, String), NotInlined>;

fn element_for(load: LoadRequest, tag: &TagContext<'_>, decider: &Decider<'_>) -> Result<Element, NotInlined> {
    let element = Element::of(tag.tag, tag.surroundings)?;
    if decider.permits_inline(load.usage) { Ok(element) } else { Err(NotInlined::Csp) }
}

fn legible(text: &Text, tag: &TagContext<'_>) -> Result<(), NotInlined> {
    if text.is_legible_in(tag.charset) { Ok(()) } else { Err(NotInlined::Charset) }
}

impl fmt::Debug for Inliner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inliner").field("page", &self.page).field("room", &self.room).finish_non_exhaustive()
    }
}
