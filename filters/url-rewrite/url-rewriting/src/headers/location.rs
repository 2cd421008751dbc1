//! URLs in response headers of the proxy's own origin, where a relative URL would mean the proxy.

use crate::plan::Plan;
use page_scanner::refresh;
use url_mapping::{Base, Outcome, Use};

/// Translates the `Location` of a moved object. The redirect stays in the prefix space if it may, and otherwise goes to
/// the true URL. The use of the object is unknown here. It moved already, so the rules of an image apply.
pub(crate) fn redirect(plan: &Plan, base: &Base, location: &[u8]) -> Option<Vec<u8>> {
    let location = std::str::from_utf8(location).ok()?;
    match plan.mapper().forward(base, location, Use::Image) {
        Outcome::Moved(url) | Outcome::Pinned(url, _) => Some(url.into_bytes()),
        Outcome::Left(_) => None,
    }
}

/// Makes the URL in a `Refresh` field absolute. A refresh is a navigation, which belongs to the true origin.
/// <https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps>
pub(crate) fn refresh(base: &Base, refresh: &[u8]) -> Option<Vec<u8>> {
    let (time, url) = refresh::target(std::str::from_utf8(refresh).ok()?)?;
    Some(format!("{time};url={}", base.join(url)?).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use url_mapping::Scheme;

    #[test]
    fn a_refresh_of_a_moved_object_leads_to_the_true_place() {
        let base = Base::new(Scheme::Http, "cdn.example", "/a/b").unwrap();
        for (header, expected) in [
            ("5; url=/x", Some("5;url=http://cdn.example/x")),
            ("0;URL='c?d'", Some("0;url=http://cdn.example/a/c?d")),
            ("1.5, url = \"https://other.example/\"", Some("1.5;url=https://other.example/")),
            ("5;x", Some("5;url=http://cdn.example/a/x")),
            ("5", None),
            ("", None),
        ] {
            let found = refresh(&base, header.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{header}");
        }
    }
}
