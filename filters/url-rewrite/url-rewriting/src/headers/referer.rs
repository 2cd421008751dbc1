//! Restores the `Referer` that the origin would get without the proxy.

use url_mapping::{Mapper, Origin, Scheme};

/// The value to send instead of a `Referer` that points to the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Restored {
    /// It does not point to the proxy.
    AsIs,
    /// The true URL.
    To(Vec<u8>),
    /// No true URL is known, or a browser would not have sent it.
    None,
}

/// Restores the `Referer` of a request for the origin `target`. The true URL is cut by the default policy of browsers,
/// `strict-origin-when-cross-origin`. Within an origin it stays whole, across origins it becomes the origin, and from
/// https to http nothing is sent.
///
/// The browser applied its policy to the URLs that it saw. Within the proxy's origin it cut nothing.
pub(crate) fn restore(mapper: &Mapper, referer: &[u8], target: (Scheme, &[u8])) -> Restored {
    let after = |prefix: &[u8]| referer.get(prefix.len()..).filter(|_| referer.starts_with(prefix));
    let Some(rest) = after(b"https://").or_else(|| after(b"http://")) else { return Restored::AsIs };
    let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let Some((authority, path)) = rest.split_at_checked(slash) else { return Restored::AsIs };
    if !mapper.is_own_authority(authority) {
        return Restored::AsIs;
    }
    let Ok(Origin { scheme, authority, path, .. }) = mapper.origin(path) else { return Restored::None };
    if (scheme, authority.as_bytes()) == target {
        return Restored::To([scheme.as_str().as_bytes(), b"://", authority.as_bytes(), path].concat());
    }
    if scheme == Scheme::Https && target.0 == Scheme::Http {
        return Restored::None;
    }
    Restored::To(format!("{scheme}://{authority}/").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn a_referer_from_the_proxys_origin_becomes_what_a_browser_would_have_sent() {
        let plan = Plan::from_json(
            br#"{"targets": {"https": ["pep.example.net"]}, "own": ["pep.example.net"], "level": "safe", "ports": [80, 443]}"#,
        )
        .unwrap();
        let target = (Scheme::Http, &b"i.cnn.net"[..]);
        let to = |text: &str| Restored::To(text.as_bytes().to_vec());
        for (referer, restored) in [
            ("http://www.cnn.com/world", Restored::AsIs),
            ("https://www.cnn.com/", Restored::AsIs),
            ("about:blank", Restored::AsIs),
            ("", Restored::AsIs),
            ("https://pep.example.net/i.cnn.net/css/site.css?v=1", to("http://i.cnn.net/css/site.css?v=1")),
            ("https://pep.example.net/cdn.example/site.css", to("http://cdn.example/")),
            ("https://pep.example.net/cdn.example:443/site.css", Restored::None),
            ("https://pep.example.net/", Restored::None),
            ("https://pep.example.net", Restored::None),
            ("https://pep.example.net/nonsense", Restored::None),
        ] {
            assert_eq!(restore(plan.mapper(), referer.as_bytes(), target), restored, "{referer}");
        }
        let secure = (Scheme::Https, &b"cdn.example"[..]);
        let same = b"https://pep.example.net/cdn.example:443/site.css";
        assert_eq!(restore(plan.mapper(), same, secure), to("https://cdn.example/site.css"));
    }
}
