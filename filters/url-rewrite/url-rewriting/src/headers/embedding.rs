//! Whom an object on the proxy's own origin may be shown to: what its own `Cross-Origin-Resource-Policy` says (Fetch,
//! "cross-origin resource policy check"), as far as the request tells the page.
//!
//! Where it is not certain that the page may not show the object, any page may: nobody's page is on the proxy's own
//! origin, so a narrower policy there would block what loads from the true URL.

use super::fields::Fields;
use url_mapping::{Mapper, Scheme, may_be_same_site};

/// The origin of the page that asks for a moved object, as `scheme://authority`, by its `Referer`. None if the request
/// does not say, or names a sheet on the proxy's own origin: browsers check the page that uses the sheet.
pub(crate) fn page_of(mapper: &Mapper, fields: &Fields<'_>) -> Option<String> {
    let referer = std::str::from_utf8(fields.get("referer")?).ok()?;
    let (scheme, rest) = referer.split_once("://")?;
    let scheme = Scheme::from_name(scheme.as_bytes())?;
    let authority = rest.split(['/', '?', '#']).next()?;
    (!mapper.is_own_authority(authority.as_bytes())).then(|| format!("{scheme}://{authority}"))
}

/// The policy to send down for the object at `scheme://authority` that the page of this origin asks for.
pub(crate) fn resource_policy(page: Option<&str>, object: (Scheme, &str), fields: &Fields<'_>) -> &'static str {
    let mut policies = fields.all("cross-origin-resource-policy");
    let (scheme, authority) = object;
    match (policies.next(), policies.next(), page) {
        (Some(b"same-origin"), None, Some(page)) if page != format!("{scheme}://{authority}") => "same-origin",
        (Some(b"same-site"), None, Some(page)) if !may_be_same_site(host_of(page), host_of(authority)) => "same-site",
        _ => "cross-origin",
    }
}

/// The host of an origin or authority.
pub fn host_of(origin: &str) -> &str {
    let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => host,
        _ => authority,
    }
}
