//! Keeps a page's Content-Security-Policy exactly as strong while objects move.
//!
//! A source of a policy may have a path. So `https://NAME/i.cnn.net/` allows on the proxy exactly the objects that
//! `i.cnn.net` allowed. [`translate`] adds that second source beside every source that names one host.
//!
//! Wildcards (`*.cnn.net`) have no such form. Nonces, hashes and `strict-dynamic` do not depend on hosts. Objects that
//! only these allow stay where they are. Nothing is ever removed. No addition allows a byte of an origin that was not
//! allowed before.
//!
//! The caller asks [`Policies::permit`] before every move, so that header and page agree. It permits only objects whose
//! present URL is allowed, by a source that was translated or that also covers the proxy (`*`, `https:`).
//!
//! References: Content Security Policy Level 3, sections 2.2.1 (parsing), 6.7.2 (matching), 6.8.3 (fallback).

mod source;

use crate::plan::Plan;
use source::{PageOrigin, Place, SourceList};
use url_mapping::{Base, Mapper, Object, Reason, Scheme, Use};

/// The largest growth of a policy, in bytes. Proxies and browsers bound header lists. A policy that would grow more
/// stays unchanged, and the objects that it governs stay, too.
const GROWTH_BYTES: usize = 8 * 1024;

/// The directives that govern objects which can move. Their positions here are those in [`Policy::lists`].
const DIRECTIVES: [&str; 8] =
    ["default-src", "img-src", "script-src", "script-src-elem", "style-src", "style-src-elem", "font-src", "media-src"];

/// Returns the directives that govern a use. The first of them that the policy has decides (6.8.3).
const fn governing(usage: Use) -> &'static [usize] {
    match usage {
        Use::Image | Use::Icon | Use::Poster | Use::Background | Use::CssImage => &[1, 0],
        Use::Script => &[3, 2, 0],
        Use::Stylesheet | Use::CssImport => &[5, 4, 0],
        Use::Font => &[6, 0],
        Use::Media | Use::Track => &[7, 0],
    }
}

/// Returns true if nonces and hashes decide about this use, besides or instead of hosts.
const fn has_nonces(usage: Use) -> bool {
    matches!(usage, Use::Script | Use::Stylesheet | Use::CssImport)
}

/// All policies of a page. Each of them must allow an object.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    policies: Vec<Policy>,
    upgrade_insecure_requests: bool,
}

#[derive(Debug, Clone)]
struct Policy {
    page: PageOrigin,
    /// The source lists, by the positions of [`DIRECTIVES`].
    lists: [Option<SourceList>; DIRECTIVES.len()],
    base_uri: Option<SourceList>,
    /// True if it could not be translated. The objects that it governs stay.
    frozen: bool,
}

/// A serialized policy list, translated.
#[derive(Debug, Clone)]
pub struct Translation {
    /// The policies for this page.
    pub policies: Policies,
    /// The new text, if it differs.
    pub text: Option<String>,
}

/// Translates the value of a `Content-Security-Policy` or `Content-Security-Policy-Report-Only` field, or of a `meta`
/// element. `base` is the base of the page.
///
/// Report-only policies are translated as well. Otherwise they would report every moved object.
pub fn translate(plan: &Plan, base: &Base, text: &str) -> Translation {
    let page = PageOrigin::of(base);
    let mut policies = Policies::default();
    let mut out = String::with_capacity(text.len());
    for (index, policy) in text.split(',').enumerate() {
        if index > 0 {
            out.push(',');
        }
        let translated = Policy::read(plan.mapper(), &page, policy, &mut out);
        policies.upgrade_insecure_requests |= translated.upgrade_insecure_requests;
        policies.policies.push(translated.policy);
    }
    Translation { policies, text: (out != text).then_some(out) }
}

impl Policies {
    /// Returns a stand-in for policies that cannot be read. Everything that they might govern stays.
    pub fn unreadable(base: &Base) -> Self {
        let lists = std::array::from_fn(|index| (index == 0).then(SourceList::default));
        let policy = Policy { page: PageOrigin::of(base), lists, base_uri: None, frozen: true };
        Self { policies: vec![policy], upgrade_insecure_requests: false }
    }

    /// Adds policies that apply from here on (a second field, a `meta` element).
    pub fn extend(&mut self, more: Self) {
        self.policies.extend(more.policies);
        self.upgrade_insecure_requests |= more.upgrade_insecure_requests;
    }

    /// Returns true if browsers fetch http URLs of this page by https.
    pub fn upgrade_insecure_requests(&self) -> bool {
        self.upgrade_insecure_requests
    }

    /// Returns `Ok` if these policies let an object move.
    ///
    /// # Errors
    /// [`Reason::Csp`].
    pub fn permit(&self, usage: Use, object: &Object<'_>) -> Result<(), Reason> {
        let permitted = self.policies.iter().all(|policy| policy.permits(usage, object));
        if permitted { Ok(()) } else { Err(Reason::Csp) }
    }

    /// Returns true if the browser accepts a `<base href>` that resolves to `url`.
    pub fn permits_base(&self, url: &str) -> bool {
        self.policies.iter().all(|policy| match (&policy.base_uri, Place::of_url(url)) {
            (None, _) => true,
            (Some(list), Some(place)) => list.sources.iter().any(|source| source.matches(&policy.page, &place)),
            (Some(_), None) => false,
        })
    }
}

struct Read {
    policy: Policy,
    upgrade_insecure_requests: bool,
}

impl Policy {
    /// Reads one serialized policy (2.2.1) and writes its translation to `out`.
    fn read(mapper: &Mapper, page: &PageOrigin, text: &str, out: &mut String) -> Read {
        let start = out.len();
        let mut policy = Self { page: page.clone(), lists: Default::default(), base_uri: None, frozen: false };
        let mut upgrade_insecure_requests = false;
        for (index, directive) in text.split(';').enumerate() {
            if index > 0 {
                out.push(';');
            }
            out.push_str(directive);
            let mut tokens = directive.split_ascii_whitespace();
            let Some(name) = tokens.next() else { continue };
            upgrade_insecure_requests |= name.eq_ignore_ascii_case("upgrade-insecure-requests");
            if name.eq_ignore_ascii_case("base-uri") && policy.base_uri.is_none() {
                policy.base_uri = Some(SourceList::read(tokens));
                continue;
            }
            let position = DIRECTIVES.iter().position(|known| name.eq_ignore_ascii_case(known));
            // The first directive of a name counts. Later ones are ignored.
            if let Some(list @ None) = position.and_then(|position| policy.lists.get_mut(position)) {
                list.insert(SourceList::read(tokens)).translate(mapper, page, directive, out);
            }
        }
        let grown = out.len().saturating_sub(start).saturating_sub(text.len());
        if grown > GROWTH_BYTES {
            out.truncate(start);
            out.push_str(text);
            policy.frozen = true;
        }
        Read { policy, upgrade_insecure_requests }
    }

    /// Returns the source list that decides about a use, if there is one.
    fn governing(&self, usage: Use) -> Option<&SourceList> {
        governing(usage).iter().find_map(|&position| self.lists.get(position)?.as_ref())
    }

    fn permits(&self, usage: Use, object: &Object<'_>) -> bool {
        let Some(list) = self.governing(usage) else { return true };
        if self.frozen || (list.has_nonces && has_nonces(usage)) {
            return false;
        }
        let now = Place { scheme: object.scheme, host: object.host, port: object.port, path: object.path };
        let (target_host, target_port) = source::split_port(object.target);
        let then = Place { scheme: object.target_scheme, host: target_host, port: target_port, path: "/" };
        list.sources.iter().any(|source| {
            source.matches(&self.page, &now)
                && (source.is_translated(&then) || (source.covers_hosts() && source.matches(&self.page, &then)))
        })
    }
}

impl SourceList {
    /// Appends the moved form of every source that names one host. `out` ends with `directive`. Sources that another
    /// proxy already added to it are not added twice.
    fn translate(&self, mapper: &Mapper, page: &PageOrigin, directive: &str, out: &mut String) {
        let mut added: Vec<String> = Vec::new();
        for source in &self.sources {
            for place in source.places(page) {
                let Some(prefix) = mapper.prefix_of(place.scheme, place.host, place.port) else { continue };
                let moved = format!("{prefix}{}", place.path);
                let is_there = added.contains(&moved) || directive.split_ascii_whitespace().any(|token| token == moved);
                if !is_there && Place::of_url(&prefix).is_some_and(|target| source.is_translated(&target)) {
                    added.push(moved);
                }
            }
        }
        let trailing = out.len() - out.trim_end_matches(|character: char| character.is_ascii_whitespace()).len();
        let end = out.len() - trailing;
        let tail = out.split_off(end);
        for source in added {
            out.push(' ');
            out.push_str(&source);
        }
        out.push_str(&tail);
    }
}

/// Returns the port, or `None` for the default port.
fn normal_port(scheme: Scheme, port: Option<u16>) -> Option<u16> {
    port.filter(|&port| port != scheme.default_port())
}

#[cfg(test)]
mod tests;
