//! Recognises page loads, and requests that rule out prefetching.
//!
//! Prefetching and bundling fetch objects that no client has requested yet. Both use this module to decide if they may.

use crate::Fields;

/// The place where a browser shows a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// A window or a tab.
    Window,
    /// A frame of another page.
    Frame,
}

/// Returns the place where the browser will show the page. Returns None if the request is not a page load.
///
/// Every browser names `text/html` in the `Accept` of a page load. `Sec-Fetch-Dest` (Fetch, "destination") then
/// separates a page load from the request of a script. Browsers omit that field over plain http. A request without it
/// counts as one for a window.
pub fn page_load(request: &Fields<'_>) -> Option<Shown> {
    let shown = match request.get("sec-fetch-dest") {
        Some(b"document") | None => Shown::Window,
        Some(b"iframe" | b"frame") => Shown::Frame,
        Some(_) => return None,
    };
    request.lists("accept", "text/html").then_some(shown)
}

/// Returns true for a prefetch, a prerender or a preview. Browsers send these before anybody wants the response.
///
/// Reads `Sec-Purpose` (Fetch) and the three fields that older browsers send instead. Any value counts.
pub fn is_speculative(request: &Fields<'_>) -> bool {
    ["sec-purpose", "purpose", "x-moz", "x-purpose"].iter().any(|name| request.has(name))
}

/// Returns true if the client wants the origin's own response. The directives are `no-cache` and `no-store` (RFC 9111
/// section 5.2.1), and `Pragma: no-cache` (section 5.4). Browsers send `no-cache` for a forced reload.
pub fn bypasses_caches(request: &Fields<'_>) -> bool {
    let lists = |name| request.lists("cache-control", name);
    lists("no-cache") || lists("no-store") || request.lists("pragma", "no-cache")
}

/// Returns true if the client wants fewer bytes: `Save-Data: on` (WICG Save Data API).
pub fn saves_data(request: &Fields<'_>) -> bool {
    request.get("save-data").is_some_and(|value| value.eq_ignore_ascii_case(b"on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(pairs: &[(&'a str, &'a str)]) -> Fields<'a> {
        pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    #[test]
    fn a_page_load_accepts_html_and_is_for_a_window_or_a_frame() {
        for (pairs, expected) in [
            (&[("sec-fetch-dest", "document"), ("accept", "text/html")][..], Some(Shown::Window)),
            (&[("sec-fetch-dest", "document"), ("accept", "image/png")], None),
            (&[("sec-fetch-dest", "iframe"), ("accept", "text/html")], Some(Shown::Frame)),
            (&[("sec-fetch-dest", "frame"), ("accept", "text/html")], Some(Shown::Frame)),
            (&[("sec-fetch-dest", "empty"), ("accept", "text/html")], None),
            (&[("accept", "text/html,application/xhtml+xml;q=0.9")], Some(Shown::Window)),
            (&[("accept", "application/xhtml+xml, Text/HTML;q=0.9")], Some(Shown::Window)),
            (&[("accept", "*/*")], None),
            (&[], None),
        ] {
            assert_eq!(page_load(&fields(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn every_form_of_a_speculative_request_is_known() {
        for (name, value) in [
            ("sec-purpose", "prefetch;prerender"),
            ("purpose", "prefetch"),
            ("x-moz", "prefetch"),
            ("x-purpose", "preview"),
        ] {
            assert!(is_speculative(&fields(&[(name, value)])), "{name}: {value}");
        }
        assert!(!is_speculative(&fields(&[("priority", "u=1")])));
    }

    #[test]
    fn a_forced_reload_bypasses_caches_and_a_usual_one_does_not() {
        for (name, value) in
            [("cache-control", "max-age=0, no-cache"), ("cache-control", "No-Store"), ("pragma", "no-cache")]
        {
            assert!(bypasses_caches(&fields(&[(name, value)])), "{name}: {value}");
        }
        assert!(!bypasses_caches(&fields(&[("cache-control", "max-age=0")])));
    }

    #[test]
    fn only_on_saves_data() {
        assert!(saves_data(&fields(&[("save-data", "On")])));
        assert!(!saves_data(&fields(&[("save-data", "off")])) && !saves_data(&fields(&[])));
    }
}
