//! Explains what the url-rewrite filter and the cache do with a page, without Envoy.
//!
//! This file decides nothing. It calls the crates of the filters, with the configuration and the request and response
//! headers that the filter has. So an explanation hardly differs from the filter's behaviour.

mod cache;
mod delta;
mod fetch;
mod images;
mod name;
mod port;
mod transcript;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::SystemTime;

use serde::Serialize;
use url::Url;
use url_mapping::{Outcome, Reason};
use url_rewriting::eligible::Ineligible;
use url_rewriting::headers::{Edit, Fields, Reply, request};
use url_rewriting::response;
use url_rewriting::{Plan, PlanError, Rewriter, UrlEvent};

pub(crate) use self::cache::CacheFate;
pub(crate) use self::delta::DeltaFate;
pub(crate) use self::fetch::Fetcher;
pub(crate) use self::images::ImageFate;
pub(crate) use self::name::{explain_name, source_of};
pub(crate) use self::port::explain_port;
pub(crate) use self::transcript::{Response, Transcript};

use longhaul_config::{Host, Settings};
use longhaul_derive::Derived;
use longhaul_render::filter_config;

/// The page to explain and the response that carries it.
#[derive(Debug, Clone)]
pub(crate) struct Question<'a> {
    /// The URL of the page.
    pub url: &'a str,
    /// The origin's response headers, with names in lower case. They include Content-Type.
    pub headers: &'a [(String, String)],
    /// The status code of the origin's response.
    pub status: u16,
    /// The body of the page, decompressed.
    pub page: &'a [u8],
}

/// The result for a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Explanation {
    /// The URL of the page, as it was parsed.
    pub url: String,
    /// The result for the page as a whole.
    pub page: PageFate,
    /// The source of the addresses of the page's host, as the running remote has it. None elsewhere, and if it does not run.
    pub name: Option<String>,
    /// The verdict of the cache. None if the box has no cache of its own or does not see the response.
    pub cache: Option<CacheFate>,
    /// The verdict on the image, or on the images of the page. None if Envoy does not see the response.
    pub images: Option<ImageFate>,
    /// The verdict on the page as a difference from another page. None if it crosses no link of a pair, or unread.
    pub delta: Option<DeltaFate>,
    /// The response headers that change.
    pub headers: Vec<HeaderChange>,
    /// Every URL found, in the order of the page.
    pub urls: Vec<UrlFate>,
    /// The number of URLs that move.
    pub moved: u64,
    /// The number of URLs that stay, by reason.
    pub left: Vec<Count>,
    /// The reason to stop rewriting before the end of the page, if there is one.
    pub stopped: Option<String>,
}

/// The result for the page as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub(crate) enum PageFate {
    /// The filter reads the page and makes the listed changes.
    Rewritten,
    /// The page passes unchanged.
    Untouched {
        /// The reason, as a label.
        reason: &'static str,
        /// The reason in a sentence.
        explanation: String,
    },
}

/// A change of one response header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct HeaderChange {
    /// The name of the header.
    pub name: String,
    /// The new value. None: the header is removed.
    pub value: Option<String>,
}

/// The result for one URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct UrlFate {
    /// The line in the page, from 1.
    pub line: usize,
    /// The column in that line, in bytes, from 1.
    pub column: usize,
    /// The element that holds the URL.
    pub element: &'static str,
    /// The attribute that holds the URL; `#text` for the text of the element.
    pub attribute: &'static str,
    /// The URL as written. Empty if it was not read.
    pub url: String,
    /// The URL that replaces it. None: the URL stays as written.
    pub to: Option<String>,
    /// The reason not to move the URL. None: it moves.
    pub reason: Option<&'static str>,
    /// The reason in a sentence.
    pub explanation: Option<&'static str>,
}

/// The number of URLs that stay for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    /// The reason, as a label.
    pub reason: &'static str,
    /// The number of URLs.
    pub urls: u64,
}

/// The reason why no explanation is possible.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExplainError {
    /// The given URL is not an http or https URL.
    #[error("`{0}` is not the URL of a page; expected a URL such as http://www.example.org/")]
    Url(String),
    /// The proxy would respond to this request itself.
    #[error("the proxy responds to this request itself: {0}")]
    NotForwarded(String),
    /// The checked settings make no valid filter configuration. This is a bug in this program.
    #[error("internal fault: {0}")]
    Plan(#[from] PlanError),
}

/// Returns the decisions of the filter's crates about one page.
pub(crate) fn explain(
    settings: &Settings,
    derived: &Derived,
    question: &Question<'_>,
) -> Result<Explanation, ExplainError> {
    let bad_url = || ExplainError::Url(question.url.to_owned());
    let url = Url::parse(question.url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(bad_url)?;
    if let Some(untouched) = passed_through(settings, &url) {
        return Ok(Explanation { page: untouched, ..Explanation::of_nothing(&url) });
    }
    let plan = Plan::new(&filter_config(settings, derived))?;
    let visit = visit(&plan, &url)?;
    let status = question.status.to_string();
    let fields: Fields<'_> = [(":status".as_bytes(), status.as_bytes())]
        .into_iter()
        .chain(question.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
        .collect();
    let cache = CacheFate::of(
        &settings.cache,
        url[url::Position::BeforeHost..url::Position::AfterPort].as_ref(),
        url[url::Position::BeforePath..url::Position::AfterQuery].as_ref(),
        &fields,
        SystemTime::now(),
    );
    let images = Some(ImageFate::of(settings, derived, &url, &fields, question.page));
    let delta = DeltaFate::of(settings, &fields);
    match response::decide(&plan, &visit, &fields) {
        response::Decision::Rewrite { edits, body } => {
            let rewritten = rewritten(&url, plan, *body, &edits, question.page);
            Ok(Explanation { cache, images, delta, ..rewritten })
        }
        response::Decision::Pass { edits } => {
            let why = url_rewriting::eligible::kind(&plan, &visit, question.status, &fields).err();
            let reason = why.map_or("not_rewritten", |why| why.as_str());
            let page = PageFate::Untouched { reason, explanation: why_untouched(why, derived) };
            Ok(Explanation {
                page,
                cache,
                images,
                delta,
                headers: edits.iter().map(HeaderChange::of).collect(),
                ..Explanation::of_nothing(&url)
            })
        }
        response::Decision::Reply(reply, _) => Err(ExplainError::NotForwarded(words_of(&reply))),
    }
}

/// Returns the result for TLS that does not end on this box. Envoy cannot read such a page.
fn passed_through(settings: &Settings, url: &Url) -> Option<PageFate> {
    let host = url.host_str().and_then(|host| Host::parse(host).ok())?;
    let terminated = settings.terminate.iter().any(|entry| entry.names.contains(&host));
    (url.scheme() == "https" && !terminated).then(|| PageFate::Untouched {
        reason: "passed_through",
        explanation: format!(
            "{host} is not under tls.terminate. Its TLS passes through by name, and the page cannot be read"
        ),
    })
}

/// Returns the request as the filter sees it, from a browser that navigates to the page.
fn visit(plan: &Plan, url: &Url) -> Result<request::Visit, ExplainError> {
    let host = url.host_str().unwrap_or_default();
    let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let fields = [
        (":method", "GET"),
        (":scheme", url.scheme()),
        (":authority", authority.as_str()),
        (":path", path.as_str()),
        ("sec-fetch-dest", "document"),
        ("sec-fetch-mode", "navigate"),
    ];
    let fields: Fields<'_> = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    match request::decide(plan, &fields) {
        request::Decision::Forward { visit, .. } => Ok(visit),
        request::Decision::Reply(reply, _) => Err(ExplainError::NotForwarded(words_of(&reply))),
    }
}

/// Returns the text of a response that the filter makes itself, or its status if there is none.
fn words_of(reply: &Reply) -> String {
    if reply.body.is_empty() {
        format!("status {}", reply.status)
    } else {
        String::from_utf8_lossy(&reply.body).into_owned()
    }
}

fn rewritten(url: &Url, plan: Rc<Plan>, body: url_rewriting::Body, edits: &[Edit], page: &[u8]) -> Explanation {
    let found: Rc<RefCell<Vec<UrlFate>>> = Rc::default();
    let observer = {
        let (found, places) = (Rc::clone(&found), LineStarts::of(page));
        move |event: &UrlEvent<'_>| found.borrow_mut().push(UrlFate::of(event, &places))
    };
    let mut rewriter = Rewriter::new(plan, body, Some(Box::new(observer)));
    let mut out = Vec::new();
    rewriter.write(page, &mut out);
    rewriter.finish(&mut out);
    let tally = rewriter.counts();
    let stopped = rewriter.bail_out().map(|why| why.to_string());
    Explanation {
        page: PageFate::Rewritten,
        cache: None,
        images: None,
        delta: None,
        headers: edits.iter().map(HeaderChange::of).collect(),
        urls: found.take(),
        moved: tally.moved,
        left: tally.left().map(|(reason, urls)| Count { reason: reason.as_str(), urls }).collect(),
        stopped,
        ..Explanation::of_nothing(url)
    }
}

/// Returns the sentence of the reason. If the configuration moves nothing, the sentence also names the cause in it.
fn why_untouched(why: Option<Ineligible>, derived: &Derived) -> String {
    match why {
        None => "The response has no body to rewrite.".to_owned(),
        Some(why @ Ineligible::MovesNothing) => format!("{} {}", why.explanation(), derived.target.reason),
        Some(why) => why.explanation().to_owned(),
    }
}

impl Explanation {
    fn of_nothing(url: &Url) -> Self {
        Self {
            url: url.to_string(),
            page: PageFate::Rewritten,
            name: None,
            cache: None,
            images: None,
            delta: None,
            headers: Vec::new(),
            urls: Vec::new(),
            moved: 0,
            left: Vec::new(),
            stopped: None,
        }
    }
}

impl HeaderChange {
    fn of(edit: &Edit) -> Self {
        let value = match edit {
            Edit::Set(_, value) | Edit::Add(_, value) => Some(String::from_utf8_lossy(value).into_owned()),
            Edit::Remove(_) => None,
        };
        Self { name: edit.name().to_owned(), value }
    }
}

impl UrlFate {
    fn of(event: &UrlEvent<'_>, places: &LineStarts) -> Self {
        let (to, reason): (Option<String>, Option<Reason>) = match event.outcome {
            Outcome::Moved(url) => (Some(url.clone()), None),
            Outcome::Pinned(url, reason) => (Some(url.clone()), Some(*reason)),
            Outcome::Left(reason) => (None, Some(*reason)),
        };
        let (line, column) = places.line_and_column(event.offset);
        Self {
            line,
            column,
            element: event.place.element,
            attribute: event.place.attribute,
            url: event.url.to_owned(),
            to,
            reason: reason.map(Reason::as_str),
            explanation: reason.map(Reason::explanation),
        }
    }
}

/// The offsets in a page at which its lines begin.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(page: &[u8]) -> Self {
        let after_breaks = page.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(after_breaks).collect())
    }

    fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|index| self.0.get(index)).copied().unwrap_or_default();
        (line, offset - start + 1)
    }
}

#[cfg(test)]
mod tests {
    use longhaul_config::load_text;
    use longhaul_derive::{HostFacts, derive};

    use super::*;

    const CONFIG: &str = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\n\
                          proxy: { addresses: [198.51.100.12] }\n\
                          upstream: { resolvers: [192.0.2.53] }\n";

    fn asked(more: &str, url: &str, headers: &[(&str, &str)], page: &str) -> Result<Explanation, ExplainError> {
        let loaded = load_text("test.yaml".as_ref(), format!("{CONFIG}{more}")).unwrap();
        let derived = derive(&loaded.settings, &HostFacts::unknown());
        let headers: Vec<(String, String)> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        explain(&loaded.settings, &derived, &Question { url, headers: &headers, status: 200, page: page.as_bytes() })
    }

    const HTML: (&str, &str) = ("content-type", "text/html");
    const HTTP: &str = "rewrite: { target: http }\n";

    #[test]
    fn every_url_is_listed_with_its_place_its_fate_and_the_reason() {
        let page = "<p>\n <img src=\"http://img.example.net/a.png\">\n<img src=/b.png><a href=http://c.example/>";
        let told = asked(HTTP, "http://www.example.org/", &[HTML], page).unwrap();
        assert_eq!(told.page, PageFate::Rewritten);
        let rows: Vec<_> = told.urls.iter().map(|u| (u.line, u.column, u.to.as_deref(), u.reason)).collect();
        let moved = Some("http://198.51.100.12/img.example.net/a.png");
        assert_eq!(rows, [(2, 12, moved, None), (3, 10, None, Some("same_host"))]);
        assert_eq!((told.moved, told.left.len()), (1, 1));
    }

    #[test]
    fn a_policy_in_the_headers_is_respected_as_in_the_filter() {
        let csp = ("content-security-policy", "img-src 'self'");
        let told =
            asked(HTTP, "http://www.example.org/", &[HTML, csp], "<img src=http://img.example.net/a.png>").unwrap();
        assert_eq!((told.moved, told.urls[0].reason), (0, Some("csp")));
    }

    #[test]
    fn a_page_that_is_not_read_says_why() {
        let fate = |more: &str, url: &str, headers: &[(&str, &str)]| match asked(
            more,
            url,
            headers,
            "<img src=//a.example/b>",
        )
        .unwrap()
        .page
        {
            PageFate::Untouched { reason, .. } => reason,
            PageFate::Rewritten => "rewritten",
        };
        assert_eq!(fate(HTTP, "http://www.example.org/", &[HTML]), "rewritten");
        assert_eq!(fate("", "http://www.example.org/", &[HTML]), "moves_nothing");
        assert_eq!(fate(HTTP, "https://www.example.org/", &[HTML]), "passed_through");
        assert_eq!(fate(HTTP, "http://www.example.org/", &[("content-type", "image/png")]), "type");
        assert_eq!(fate(HTTP, "http://www.example.org/", &[HTML, ("cache-control", "no-transform")]), "no_transform");
        assert_eq!(
            fate("rewrite: { target: http, exclude: [example.org] }\n", "http://www.example.org/", &[HTML]),
            "excluded"
        );
    }

    #[test]
    fn only_pages_of_other_sites_are_explained() {
        for url in ["ftp://example.org/", "www.example.org", "http://198.51.100.12/", "http://www.example.org:8080/"] {
            assert!(asked(HTTP, url, &[HTML], "").is_err(), "{url}");
        }
    }
}
