//! What browsers accept of an object, by what they use it as: the values that an origin decides by.

/// `Accept` of style sheets.
pub const SHEETS: &str = "text/css,*/*;q=0.1";
/// `Accept` of scripts, fonts and whatever a script fetches.
pub const ANYTHING: &str = "*/*";
/// `Accept` of pictures. A browser's own list differs by its version; servers decide by whether it names the newer formats.
const PICTURES: &str = "image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5";
const NEWER_PICTURES: &str = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";

/// `Accept` of pictures in a page that was requested with `accept`, which names the newer formats if its browser knows them.
pub fn pictures(accept: &[u8]) -> &'static str {
    if names_newer_pictures(accept) { NEWER_PICTURES } else { PICTURES }
}

/// Whether `accept` names pictures in newer formats.
pub fn names_newer_pictures(accept: &[u8]) -> bool {
    accept.windows(10).any(|window| window.eq_ignore_ascii_case(b"image/webp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_pictures_are_requested_for_browsers_that_know_them() {
        assert!(pictures(b"text/html,image/avif,image/webp,*/*;q=0.8").contains("image/avif"));
        assert!(!pictures(b"text/html,*/*;q=0.8").contains("image/webp"));
    }
}
