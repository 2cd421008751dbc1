//! What a link is for, the same for the `link` element and the `Link` header: a preload in one must go exactly where its
//! consumer in the other goes, or browsers fetch the object twice.

use url_mapping::{Reason, Use};

/// What `rel` (and `as`, for preloads) make of a link. Every token of `rel` must agree with a move.
pub(crate) fn usage(rel: &[u8], destination: &[u8]) -> Result<Use, Reason> {
    let mut usage = Err(Reason::LinkRel);
    for token in rel.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty()) {
        match token.to_ascii_lowercase().as_slice() {
            b"stylesheet" => usage = Ok(Use::Stylesheet),
            b"icon" | b"apple-touch-icon" | b"apple-touch-icon-precomposed" | b"apple-touch-startup-image" => {
                usage = usage.or(Ok(Use::Icon));
            }
            b"preload" | b"prefetch" => usage = usage.or_else(|_| preloaded(destination)),
            // Qualifies one of the others.
            b"shortcut" | b"alternate" | b"nofollow" | b"noopener" | b"noreferrer" => {}
            b"modulepreload" => return Err(Reason::Module),
            _ => return Err(Reason::LinkRel),
        }
    }
    usage
}

/// `as` of a preload.
fn preloaded(destination: &[u8]) -> Result<Use, Reason> {
    match destination.to_ascii_lowercase().as_slice() {
        b"image" => Ok(Use::Image),
        b"script" => Ok(Use::Script),
        b"style" => Ok(Use::Stylesheet),
        b"font" => Ok(Use::Font),
        b"track" => Ok(Use::Track),
        b"audio" | b"video" => Ok(Use::Media),
        _ => Err(Reason::Preload),
    }
}
