//! The purpose of a link, the same for the `link` element and the `Link` header. A preload in one must go exactly where
//! its consumer in the other goes. Otherwise browsers fetch the object twice.

use url_mapping::{Reason, Use};

/// The purpose of a link that may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purpose {
    /// The use of the object.
    pub usage: Use,
    /// The link only fetches the object ahead: something else in the page, or nothing, uses it.
    pub is_preload: bool,
}

/// Reads `rel` (and `as`, for preloads), character references decoded. Every token of `rel` must agree with a move.
///
/// # Errors
/// The reason why such a link cannot name another URL.
pub fn purpose(rel: &[u8], destination: &[u8]) -> Result<Purpose, Reason> {
    let mut purpose = Err(Reason::LinkRel);
    let used = |usage| Ok(Purpose { usage, is_preload: false });
    for token in rel.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty()) {
        match token.to_ascii_lowercase().as_slice() {
            b"stylesheet" => purpose = used(Use::Stylesheet),
            b"icon" | b"apple-touch-icon" | b"apple-touch-icon-precomposed" | b"apple-touch-startup-image" => {
                purpose = purpose.or(used(Use::Icon));
            }
            b"preload" | b"prefetch" => {
                purpose = purpose.or_else(|_| Ok(Purpose { usage: preloaded(destination)?, is_preload: true }));
            }
            // Qualifies one of the others, or prepares a connection, which only costs time if it is the wrong one.
            b"shortcut" | b"alternate" | b"nofollow" | b"noopener" | b"noreferrer" | b"dns-prefetch"
            | b"preconnect" => {}
            b"modulepreload" => return Err(Reason::Module),
            _ => return Err(Reason::LinkRel),
        }
    }
    purpose
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_to_connect_beside_a_style_sheet_keeps_it_from_moving() {
        for rel in ["dns-prefetch stylesheet", "stylesheet preconnect"] {
            let sheet = Purpose { usage: Use::Stylesheet, is_preload: false };
            assert_eq!(purpose(rel.as_bytes(), b""), Ok(sheet), "{rel}");
        }
        for rel in ["dns-prefetch", "preconnect", "stylesheet next"] {
            assert_eq!(purpose(rel.as_bytes(), b""), Err(Reason::LinkRel), "{rel}");
        }
    }

    #[test]
    fn a_preload_that_is_its_own_consumer_is_none() {
        let is_preload = |rel: &str| purpose(rel.as_bytes(), b"style").unwrap().is_preload;
        assert!(is_preload("preload") && is_preload("prefetch"));
        assert!(!is_preload("preload stylesheet") && !is_preload("stylesheet preload"));
    }
}
