//! Decides which pages may show an object on the proxy's own origin. The object's own `Cross-Origin-Resource-Policy`
//! decides (Fetch, "cross-origin resource policy check"), as far as the request names the page.
//!
//! The policy forbids only pages that certainly may not show the object. All pages are cross-origin to the proxy's own
//! origin. A narrower policy there would block objects that load from the true URL.

use http_semantics::authority;
use url_mapping::{Mapper, Scheme, may_be_same_site};

use http_semantics::Fields;

/// Returns the origin of the page that requests a moved object, as `scheme://authority`, from its `Referer`. `None`
/// without a `Referer`, or if it names a style sheet on the proxy's own origin: browsers check the page that uses the
/// style sheet.
pub(crate) fn page_of(mapper: &Mapper, fields: &Fields<'_>) -> Option<String> {
    let referer = std::str::from_utf8(fields.get("referer")?).ok()?;
    let (scheme, rest) = referer.split_once("://")?;
    let scheme = Scheme::from_name(scheme.as_bytes())?;
    let authority = rest.split(['/', '?', '#']).next()?;
    (!mapper.is_own_authority(authority.as_bytes())).then(|| format!("{scheme}://{authority}"))
}

/// Returns the policy to send for the object at `scheme://authority` when the page of origin `page` requests it.
pub(crate) fn resource_policy(page: Option<&str>, object: (Scheme, &str), fields: &Fields<'_>) -> &'static str {
    let mut policies = fields.all("cross-origin-resource-policy");
    let (scheme, authority) = object;
    match (policies.next(), policies.next(), page) {
        (Some(b"same-origin"), None, Some(page)) if page != format!("{scheme}://{authority}") => "same-origin",
        (Some(b"same-site"), None, Some(page)) if !may_be_same_site(host_of(page), host_of(authority)) => "same-site",
        _ => "cross-origin",
    }
}

/// Returns the host of an origin or authority.
pub(super) fn host_of(origin: &str) -> &str {
    authority::host(origin.split_once("://").map_or(origin, |(_, authority)| authority))
}
