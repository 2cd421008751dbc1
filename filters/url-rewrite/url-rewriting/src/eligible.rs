//! Whether a response is rewritten, and if not, why not.

use http_semantics::labels::labelled;
use http_semantics::media_type;
use page_scanner::{Kind, Packing};

use crate::headers::Fields;
use crate::headers::request::Visit;
use crate::plan::Plan;

labelled! {
    /// Why a response passes untouched.
    Ineligible {
        /// `rewrite.level: off`, or no target.
        MovesNothing = "moves_nothing", "The configuration moves nothing.";
        /// The page's host is under `rewrite.exclude`.
        Excluded = "excluded", "The page's host is under rewrite.exclude.";
        /// Neither HTML nor CSS; on the proxy's own origin, not CSS.
        Type = "type", "It is neither HTML nor CSS; from the proxy's own origin only style sheets are rewritten.";
        /// A sheet under its own URL: it may bear an `integrity` hash, which its request does not show, and then another body
        /// would be refused. A sheet with one is never moved, so a moved sheet has none.
        SheetInPlace = "sheet_in_place", "It is a style sheet under its own URL, which may have an integrity hash.";
        /// No content, partial content, not modified, a redirect.
        Status = "status", "A response of this status has no whole page to rewrite.";
        /// A content encoding other than gzip.
        Encoded = "encoded", "Its content encoding is not gzip.";
        /// `Cache-Control: no-transform`.
        NoTransform = "no_transform", "The origin forbids changes by Cache-Control: no-transform.";
        /// Enforces `Cross-Origin-Embedder-Policy`, under which browsers block objects that do not say they may be embedded;
        /// every response of the proxy's own origin says so, and would make a page less isolated than it asked to be.
        Isolated = "isolated", "It enforces Cross-Origin-Embedder-Policy, which objects from the proxy would weaken.";
        /// `Content-Disposition: attachment`.
        Attachment = "attachment", "It is to be saved, not shown.";
        /// Requested by a script.
        FetchedByScript = "fetched_by_script", "A script asked for it, and may do anything with the text.";
        /// An encoding that is not an extension of ASCII, such as UTF-16.
        Charset = "charset", "Its character encoding is not an extension of ASCII, so markup cannot be found in it.";
        /// Announces trailers: what is held back could not be sent before them.
        Trailers = "trailers", "It announces trailers, which held-back bytes would have to precede.";
    }
}

/// What kind of body to rewrite.
///
/// # Errors
/// The first reason against it, in the order of the enum.
pub fn kind(plan: &Plan, visit: &Visit, status: u16, fields: &Fields<'_>) -> Result<Kind, Ineligible> {
    let content_type = fields.get("content-type").unwrap_or_default();
    // Nearly all responses are images and scripts: tell them by the first bytes, before anything allocates.
    let kind = match content_type.get(..8) {
        Some(start) if start.eq_ignore_ascii_case(b"text/htm") => "text/html",
        Some(start) if start.eq_ignore_ascii_case(b"text/css") => "text/css",
        _ => return Err(Ineligible::Type),
    };
    let kind = match media_type::essence(content_type) {
        essence if essence != kind => return Err(Ineligible::Type),
        _ if kind == "text/css" && visit.moved.is_none() => return Err(Ineligible::SheetInPlace),
        _ if kind == "text/css" => Kind::Css,
        // A sheet that was moved must be rewritten, or its references miss; a page is not moved to begin with.
        _ if visit.moved.is_some() => return Err(Ineligible::Type),
        _ => Kind::Html,
    };
    let host = visit.authority.rsplit_once(':').map_or(visit.authority.as_str(), |(host, _)| host);
    if visit.moved.is_none() && plan.mapper().moves_nothing() {
        Err(Ineligible::MovesNothing)
    } else if visit.moved.is_none() && plan.mapper().is_excluded(&host.to_ascii_lowercase()) {
        Err(Ineligible::Excluded)
    } else if !matches!(status, 200..=203 | 207..=299 | 400..=599) {
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

/// Whether a page enforces an embedder policy (HTML, "obtain an embedder policy"). A value that browsers may not be able
/// to read counts if it names one.
pub(crate) fn is_isolated(fields: &Fields<'_>) -> bool {
    ["require-corp", "credentialless"].into_iter().any(|policy| fields.lists("cross-origin-embedder-policy", policy))
}

/// How a body says that it is packed; None if that is in a way which is not undone here, or in several.
pub(crate) fn packing(fields: &Fields<'_>) -> Option<Packing> {
    let mut codings = fields.all("content-encoding").filter(|coding| !coding.eq_ignore_ascii_case(b"identity"));
    match (codings.next(), codings.next()) {
        (None, _) => Some(Packing::Plain),
        (Some(coding), None) if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") => {
            Some(Packing::Gzip)
        }
        _ => None,
    }
}

/// Whether the declared encoding is none in which markup can be found. An unknown label declares nothing.
fn is_beyond_ascii(content_type: &[u8]) -> bool {
    let declared = media_type::charset(content_type).and_then(encoding_rs::Encoding::for_label);
    declared.is_some_and(|encoding| !encoding.is_ascii_compatible())
}
