//! The page sent to a navigation to the proxy's own origin, unless it comes from the target's own site. The page names
//! the target and offers a link.
//!
//! A redirect would make the proxy name an open redirect. A mail could then lead to any site under a name that its
//! reader trusts.

use http_semantics::Reply;
use url_mapping::Scheme;

/// The largest part of a target that is shown, in bytes. The link has all of it.
const SHOWN_BYTES: usize = 300;

/// Returns the page for a target. `browser` is the scheme by which the browser came. No link leads to a lower scheme.
pub(super) fn offer(browser: Scheme, scheme: Scheme, authority: &str, path: &[u8]) -> Reply {
    let path = encoded(path);
    let target = format!("{scheme}://{authority}{path}");
    let shown = target.get(..SHOWN_BYTES).map_or_else(|| escaped(&target), |start| format!("{}...", escaped(start)));
    // On the default port, https likely leads to the same page. On another port that is unknown.
    let link = match (browser, scheme) {
        (Scheme::Https, Scheme::Http) if has_port(authority) => None,
        (Scheme::Https, Scheme::Http) => Some(format!("https://{authority}{path}")),
        _ => Some(target),
    };
    let link = link.map_or_else(String::new, |link| {
        let link = escaped(&link);
        format!("<p><a rel=\"noreferrer nofollow\" href=\"{link}\">Open {}</a>\n", escaped(authority))
    });
    let body = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=robots content=noindex>\
         <meta name=viewport content=\"width=device-width\"><title>Link to {authority}</title>\n\
         <p>This link leads to another site: <code>{shown}</code>\n\
         <p>Open it only if you expected this address.\n{link}",
        authority = escaped(authority),
    );
    let fields: [(&str, &[u8]); 6] = [
        ("content-type", b"text/html; charset=utf-8"),
        ("cache-control", b"no-store"),
        ("content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; sandbox"),
        ("referrer-policy", b"no-referrer"),
        ("x-content-type-options", b"nosniff"),
        ("x-robots-tag", b"noindex"),
    ];
    Reply::new(403, &fields, body)
}

fn has_port(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'))
}

/// Returns path and query as browsers send them. All other characters are percent-encoded, including markup characters
/// and bytes beyond ASCII.
fn encoded(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"-._~:/?@!$&()*+,;=%[]".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.extend(["%".to_owned(), format!("{byte:02X}")]);
        }
    }
    text
}

/// Escapes text for HTML: as text, or as a value in double quotes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(browser: Scheme, scheme: Scheme, authority: &str, path: &[u8]) -> String {
        String::from_utf8(offer(browser, scheme, authority, path).body).unwrap()
    }

    #[test]
    fn nothing_in_a_target_is_markup() {
        let path = b"/\"><script>alert(1)</script>?a=b&lt;'\xff\n\x00";
        let page = text(Scheme::Https, Scheme::Https, "a.example", path);
        assert!(!page.contains("<script") && page.matches('<').count() == page.matches('>').count(), "{page}");
        assert!(page.contains("%22%3E%3Cscript%3Ealert(1)%3C/script%3E?a=b&amp;lt;%27%FF%0A%00\""), "{page}");
    }

    #[test]
    fn a_link_never_leads_to_a_lower_scheme() {
        let page = |browser, scheme, authority| text(browser, scheme, authority, b"/x");
        for (browser, scheme, authority, link) in [
            (Scheme::Http, Scheme::Http, "a.example:8080", Some("http://a.example:8080/x")),
            (Scheme::Http, Scheme::Https, "a.example", Some("https://a.example/x")),
            (Scheme::Https, Scheme::Https, "a.example", Some("https://a.example/x")),
            (Scheme::Https, Scheme::Http, "a.example", Some("https://a.example/x")),
            (Scheme::Https, Scheme::Http, "[2001:db8::1]", Some("https://[2001:db8::1]/x")),
            (Scheme::Https, Scheme::Http, "a.example:8080", None),
        ] {
            let page = page(browser, scheme, authority);
            let href = page.split_once("href=\"").and_then(|(_, rest)| rest.split('"').next());
            assert_eq!(href, link);
            assert!(page.contains(&format!("{scheme}://{authority}/x")), "the true address is named");
        }
    }

    #[test]
    fn a_long_target_is_shown_in_part_and_linked_whole() {
        let path = [b"/".to_vec(), b"a".repeat(5000)].concat();
        let page = text(Scheme::Https, Scheme::Https, "a.example", &path);
        assert!(page.len() < 6500 && page.contains("...</code>") && page.contains(&"a".repeat(5000)));
    }
}
