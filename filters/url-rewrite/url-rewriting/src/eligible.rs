//! Decides whether a response is rewritten, and names the reason if it is not.

use http_semantics::authority;
use http_semantics::body_fields::is_of_range;
use http_semantics::content_encoding::{codings, is_gzip};
use http_semantics::labels::labelled;
use http_semantics::media_type;
use page_scanner::{Kind, Packing};

use crate::headers::Fields;
use crate::headers::request::Visit;
use crate::plan::Plan;

labelled! {
    /// The reason why a response passes unchanged.
    Ineligible {
        /// `rewrite.level` is `off`, or there is no target.
        MovesNothing = "moves_nothing", "The configuration moves nothing.";
        /// The page's host is under `rewrite.exclude`.
        Excluded = "excluded", "The page's host is under rewrite.exclude.";
        /// Neither HTML nor CSS. On the proxy's own origin: not CSS.
        Type = "type", "It is neither HTML nor CSS; from the proxy's own origin only style sheets are rewritten.";
        /// A style sheet under its own URL. It may have an `integrity` hash, which its request does not show. Browsers
        /// would then refuse a changed body. A style sheet with a hash never moves, so a moved one has none.
        SheetInPlace = "sheet_in_place", "It is a style sheet under its own URL, which may have an integrity hash.";
        /// No content, not modified, a redirect, or the response to a request for a range.
        Status = "status", "A response of this status, or to a request for a range, has no whole page to rewrite.";
        /// A content encoding other than gzip.
        Encoded = "encoded", "Its content encoding is not gzip.";
        /// `Cache-Control: no-transform`.
        NoTransform = "no_transform", "The origin forbids changes by Cache-Control: no-transform.";
        /// Enforces `Cross-Origin-Embedder-Policy`, under which browsers block objects that do not permit embedding.
        /// Responses of the proxy's own origin permit it, so the page would be less isolated than it requires.
        Isolated = "isolated", "It enforces Cross-Origin-Embedder-Policy, which objects from the proxy would weaken.";
        /// `Content-Disposition: attachment`.
        Attachment = "attachment", "It is to be saved, not shown.";
        /// Requested by a script.
        FetchedByScript = "fetched_by_script", "A script requested it, and may do anything with the text.";
        /// A character encoding that is not an extension of ASCII, such as UTF-16.
        Charset = "charset", "Its character encoding is not an extension of ASCII, so markup cannot be found in it.";
        /// Announces trailers. Bytes that the rewriter holds back could not be sent before them.
        Trailers = "trailers", "It announces trailers, which held-back bytes would have to precede.";
    }
}

/// Returns the kind of body to rewrite.
///
/// # Errors
/// The first reason against it. The media type is checked first, the others in the order of the enum.
pub fn kind(plan: &Plan, visit: &Visit, status: u16, fields: &Fields<'_>) -> Result<Kind, Ineligible> {
    let content_type = fields.get("content-type").unwrap_or_default();
    // Nearly all responses are images and scripts. The first bytes rule them out before anything is allocated.
    let kind = match content_type.get(..8) {
        Some(start) if start.eq_ignore_ascii_case(b"text/htm") => "text/html",
        Some(start) if start.eq_ignore_ascii_case(b"text/css") => "text/css",
        _ => return Err(Ineligible::Type),
    };
    let kind = match media_type::essence(content_type) {
        essence if essence != kind => return Err(Ineligible::Type),
        _ if kind == "text/css" && visit.moved.is_none() => return Err(Ineligible::SheetInPlace),
        _ if kind == "text/css" => Kind::Css,
        // A moved style sheet must be rewritten, or its references break. A page never moves.
        _ if visit.moved.is_some() => return Err(Ineligible::Type),
        _ => Kind::Html,
    };
    let host = authority::host(&visit.authority);
    if visit.moved.is_none() && plan.mapper().moves_nothing() {
        Err(Ineligible::MovesNothing)
    } else if visit.moved.is_none() && plan.mapper().is_excluded(&host.to_ascii_lowercase()) {
        Err(Ineligible::Excluded)
    } else if !matches!(status, 200..=203 | 207..=299 | 400..=599) || is_of_range(visit.asks_range, status) {
        Err(Ineligible::Status)
    } else if packing(fields).is_none() {
        Err(Ineligible::Encoded)
    } else if fields.lists("cache-control", "no-transform") && visit.moved.is_none() {
        Err(Ineligible::NoTransform)
    } else if visit.moved.is_none() && is_isolated(fields) {
        Err(Ineligible::Isolated)
    } else if fields.lists("content-disposition", "attachment") {
        Err(Ineligible::Attachment)
    } else if visit.is_fetched_by_script {
        Err(Ineligible::FetchedByScript)
    } else if is_beyond_ascii(content_type) {
        Err(Ineligible::Charset)
    } else if fields.get("trailer").is_some() {
        Err(Ineligible::Trailers)
    } else {
        Ok(kind)
    }
}

/// Returns true if a page enforces an embedder policy (HTML, "obtain an embedder policy"). A value that names a policy
/// counts, even if browsers may not be able to parse it.
pub(crate) fn is_isolated(fields: &Fields<'_>) -> bool {
    ["require-corp", "credentialless"].into_iter().any(|policy| fields.lists("cross-origin-embedder-policy", policy))
}

/// Returns the content encoding of a body. `None` for an encoding that the filter cannot decompress, or for several.
pub(crate) fn packing(fields: &Fields<'_>) -> Option<Packing> {
    match codings(fields).next() {
        None => Some(Packing::Plain),
        Some(_) => is_gzip(fields).then_some(Packing::Gzip),
    }
}

/// Returns true if the declared character encoding hides markup from the scanner. An unknown label declares nothing.
fn is_beyond_ascii(content_type: &[u8]) -> bool {
    let declared = media_type::charset(content_type).and_then(encoding_rs::Encoding::for_label);
    declared.is_some_and(|encoding| !encoding.is_ascii_compatible())
}
