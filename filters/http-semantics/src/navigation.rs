//! Is this request a page load, and does its reader want more than the page?
//!
//! Prefetching and bundling both fetch objects that nobody has asked for yet. Both ask here whether they may.

use crate::Fields;

/// Where a browser shows the page that it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// In a window or a tab.
    Window,
    /// In a frame of another page.
    Frame,
}

/// Where the page of this request is shown. None if the request is not a page load.
///
/// Every browser names `text/html` in the `Accept` of a page load. `Sec-Fetch-Dest` (Fetch, "destination") then tells a page
/// from a script's request. Browsers omit it over plain http; a request without it counts as a window.
pub fn page_load(request: &Fields<'_>) -> Option<Shown> {
    let shown = match request.get("sec-fetch-dest") {
        Some(b"document") | None => Shown::Window,
        Some(b"iframe" | b"frame") => Shown::Frame,
        Some(_) => return None,
    };
    request.lists("accept", "text/html").then_some(shown)
}

/// Whether a browser sends this request before anybody wants the response: a prefetch, a prerender or a preview.
///
/// `Sec-Purpose` (Fetch, section 2.2.6) and the three fields that older browsers send instead.
pub fn is_speculative(request: &Fields<'_>) -> bool {
    ["sec-purpose", "purpose", "x-moz", "x-purpose"].iter().any(|name| request.has(name))
}

/// Whether the client asks for the origin's own response: `no-cache` or `no-store` (RFC 9111, section 5.2.1), or `Pragma`
/// (section 5.4). Browsers send `no-cache` for a forced reload.
pub fn bypasses_caches(request: &Fields<'_>) -> bool {
    let lists = |name| request.lists("cache-control", name);
    lists("no-cache") || lists("no-store") || request.lists("pragma", "no-cache")
}

/// Whether the reader asks for fewer bytes (`Save-Data`, WICG Save Data API).
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
