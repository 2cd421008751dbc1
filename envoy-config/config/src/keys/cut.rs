//! The table of cut keys. A file of an earlier release that has one still starts, and a warning names what replaced it.

/// A key that an earlier release read.
#[derive(Debug)]
pub(crate) struct CutKey {
    /// Its full name, such as `listen.admin`.
    pub name: &'static str,
    /// The reason why it has no effect, in a few words.
    pub why: &'static str,
    /// The replacement, and the cure for the file, in Markdown.
    pub instead: &'static str,
}

/// Every cut key.
pub(crate) const CUT_KEYS: &[CutKey] = &[
    CutKey {
        name: "listen.admin",
        why: "no TCP port obeys orders",
        instead: "remove it. `listen.metrics` serves Envoy's statistics at `/metrics`, `longhaul status` shows the state, and Envoy's admin interface is the Unix socket `private/admin.sock` in the state folder",
    },
    CutKey {
        name: "page.inline",
        why: "no object stands in pages",
        instead: "remove it. It slowed heavy pages. `page.prefetch` has the objects of a page in the cache before browsers request them",
    },
    CutKey {
        name: "transport.inline_object",
        why: "no object stands in pages",
        instead: "remove it. It was a limit of `page.inline`, which is cut",
    },
    CutKey {
        name: "transport.inline_page",
        why: "no object stands in pages",
        instead: "remove it. It was a limit of `page.inline`, which is cut",
    },
    CutKey {
        name: "cache.engine",
        why: "there is one cache",
        instead: "remove it. `longhaul-objects` is the cache, with `Vary`, validation, ranges and stale responses",
    },
    CutKey {
        name: "cache.admit",
        why: "the cache stores from the first request on",
        instead: "remove it. It was a rule of Envoy's own cache, which `longhaul-objects` has replaced",
    },
    CutKey {
        name: "limits.urls",
        why: "no URL takes memory of Envoy or an open file",
        instead: "remove it. It was a limit of Envoy's own cache, which `longhaul-objects` has replaced",
    },
    CutKey {
        name: "split.dial",
        why: "the remote opens every connection",
        instead: "remove it. A ground that the remote cannot reach opens a WireGuard tunnel, and the remote connects through it: section \"A ground that nobody can reach\" of the guide, `docs/src/gateways.md`",
    },
    CutKey {
        name: "split.warm_as",
        why: "the link decides between connections and streams",
        instead: "remove it. `longhaul check` shows the choice, and `split.warm` sets the number",
    },
];

/// Returns the row of the cut key with this full name.
pub(crate) fn cut(name: &str) -> Option<&'static CutKey> {
    let name = super::without_indices(name);
    CUT_KEYS.iter().find(|key| key.name == name)
}
