//! Warns of settings that are valid and do nothing, alone or all together.

use super::contradictions::Places;
use super::diagnostic::Problem;
use super::settings::{
    Cache, Compress, CompressionLevel, Draft, InstantWish, Intercept, Level, Remote, Role, WhenDown,
};
use super::yaml::Node;

/// Checks all groups of the draft. Skips a group that has a problem of its own.
pub(super) fn check(root: &Node, draft: &Draft, problems: &mut Vec<Problem>) {
    let places = Places { root };
    problems.extend(
        [
            prefetch_without_cache(&places, draft),
            resolvers_of_nobody(&places, draft),
            clients_of_nobody(&places, draft),
            nothing_to_remember(&places, draft),
            nobody_to_push_to(&places, draft),
            nothing_instant(&places, draft),
            nothing_encrypted(&places, draft),
            no_page_changes(&places, draft),
            no_client_comes(&places, draft),
            ports_of_nobody(&places, draft),
        ]
        .into_iter()
        .flatten(),
    );
}

fn prefetch_without_cache(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let fetches = draft.role.as_ref().is_none_or(Role::changes_pages)
        && places.written("page", "prefetch")
        && draft.page.is_some_and(|page| page.prefetch);
    let no_disk = draft.cache.as_ref().is_some_and(|cache| !matches!(cache, Cache::Disk { .. }));
    (fetches && no_disk).then(|| {
        Problem::warning(
            "`page.prefetch` has no effect without a cache on disk",
            places.of(&["page", "prefetch"]),
            "there is no place for the objects",
        )
        .and(places.of(&["cache"]), "is off, or belongs to another proxy")
        .help("set `cache.dir`, or write `prefetch: false`")
    })
}

/// Other ports cross a pipe, and packet rules alone lead them there.
fn ports_of_nobody(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let (listen, role) = (draft.listen.as_ref()?, draft.role.as_ref()?);
    let wanted = places.written("listen", "tcp") && places.text(&["listen", "tcp"]).is_none_or(|text| text != "off");
    let place = places.of(&["listen", "tcp"]);
    match role {
        Role::Edge if wanted => Some(
            Problem::warning(
                "`listen.tcp` has no effect at this box",
                place,
                "an edge has no pipe to carry other ports",
            )
            .help("remove it: other ports of clients go to their servers without this box"),
        ),
        Role::Remote(_) if wanted && listen.intercept == Intercept::None => Some(
            Problem::warning("`listen.tcp` has no effect without packet rules", place, "no such connection comes here")
                .and(places.of(&["listen", "intercept"]), "clients come by DNS alone")
                .help("write `intercept: redirect` where this box is the clients' gateway, or remove `tcp`"),
        ),
        Role::Edge | Role::Remote(_) | Role::Ground(_) => None,
    }
}

/// A remote resolves the name of its ground, and origins only with `when_down: direct`.
fn resolvers_of_nobody(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let Some(Role::Remote(Remote { grounds, when_down: WhenDown::Error, .. })) = &draft.role else { return None };
    let resolves = grounds.iter().any(|at| at.host.is_name());
    (places.written("upstream", "resolvers") && !resolves).then(|| {
        Problem::warning(
            "`upstream.resolvers` has no effect at this remote",
            places.of(&["upstream", "resolvers"]),
            "the ground resolves the names of origins",
        )
        .help("remove `upstream`, or set `split.when_down` to `direct` if this box should connect to origins itself")
    })
}

/// Only a pair that compresses headers remembers clients.
fn clients_of_nobody(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let remembers = draft.role.as_ref()?.packs_headers();
    (places.written("limits", "clients") && !remembers).then(|| {
        Problem::warning(
            "`limits.clients` has no effect at this box",
            places.of(&["limits", "clients"]),
            "headers are not compressed",
        )
        .help("remove it; `limits.connections` bounds the connections of clients")
    })
}

/// Only a remote's queries of clients cross the link.
fn nothing_to_remember(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let elsewhere = !matches!(draft.role.as_ref()?, Role::Remote(_));
    (elsewhere && places.written("dns", "remember")).then(|| {
        Problem::warning(
            "`dns.remember` has no effect at this box",
            places.of(&["dns", "remember"]),
            "only the queries of a remote cross the link",
        )
        .help("remove it, and write it in the file of the remote")
    })
}

/// The lookups of an edge do not cross the link, and a remote without a memory has no place for responses.
fn nobody_to_push_to(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let dns = draft.dns.as_ref()?;
    let why = match draft.role.as_ref()? {
        Role::Edge => "the lookups of a single box do not cross the link",
        Role::Remote(_) if dns.remember.is_zero() => "`dns.remember` is off, so there is no place for the responses",
        Role::Remote(_) | Role::Ground(_) => return None,
    };
    (places.written("dns", "push") && dns.push).then(|| {
        Problem::warning("`dns.push` has no effect at this box", places.of(&["dns", "push"]), why)
            .help("remove it, or let `dns.remember` have a time at a remote")
    })
}

/// Only a remote's lookups cross the link, and only a gateway takes connections to any address.
fn nothing_instant(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let (dns, listen) = (draft.dns.as_ref()?, draft.listen.as_ref()?);
    let why = match draft.role.as_ref()? {
        Role::Edge | Role::Ground(_) => "only the lookups of a remote cross the link",
        Role::Remote(_) if listen.intercept == Intercept::None => {
            "clients come by DNS alone, so `listen.intercept` is none"
        }
        Role::Remote(_) if dns.remember.is_zero() => "`dns.remember` is off, so no lookup is known as the first one",
        Role::Remote(_) => return None,
    };
    (dns.instant == InstantWish::On).then(|| {
        Problem::warning("`dns.instant` has no effect at this box", places.of(&["dns", "instant"]), why)
            .help("remove it")
    })
}

/// Only an edge has names with certificates.
fn nothing_encrypted(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let wanted = *draft.role.as_ref()? != Role::Edge && draft.dns.as_ref()?.encrypted.is_some();
    (wanted && places.written("dns", "encrypted")).then(|| {
        Problem::warning(
            "`dns.encrypted` has no effect at this box",
            places.of(&["dns", "encrypted"]),
            "TLS passes through a pair",
        )
        .help("remove it")
    })
}

/// Nothing is rewritten, cached, compressed or served.
fn no_page_changes(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let idle = draft.role.as_ref()?.is_alone()
        && draft.rewrite.as_ref()?.level == Level::Off
        && matches!(draft.cache.as_ref()?, Cache::Off)
        && matches!(draft.compress.as_ref()?, Compress { brotli: CompressionLevel::Off, gzip: CompressionLevel::Off })
        && draft.terminate.as_ref()?.is_empty();
    idle.then(|| {
        Problem::warning("this file changes no page", places.of(&["rewrite", "level"]), "no URL moves")
            .and(places.of(&["cache"]), "no object is cached")
            .and(places.of(&["compress"]), "no response is compressed")
            .help("set one of them: remove `level: off`, `cache: off` or `compress: off`")
    })
}

/// No packet rule and no DNS response leads a client to this box.
fn no_client_comes(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let (listen, dns) = (draft.listen.as_ref()?, draft.dns.as_ref()?);
    let served = draft.role.as_ref()?.meets_clients();
    let steered = dns.has_lists();
    let named = !draft.terminate.as_ref()?.is_empty();
    (served && listen.intercept == Intercept::None && !steered && !named).then(|| {
        Problem::warning(
            "no client is sent to this box",
            places.of(&["listen", "intercept"]),
            "no packet rule sends clients here",
        )
        .and(places.of(&["dns"]), "no name is steered here")
        .help("list names under `dns: { domains: [domains.txt] }`, or write `intercept: redirect`")
    })
}
