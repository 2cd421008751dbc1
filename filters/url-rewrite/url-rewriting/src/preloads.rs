//! Preloads, and the objects that they name.
//!
//! A preload saves time only if its consumer requests the same URL. Otherwise the browser fetches the object twice. The
//! consumer may stand anywhere behind the preload. It may also be a script, which names the original URL.
//!
//! So the first of the two in the page decides for both. A preload stays, and so does every later use of its URL. A
//! preload behind a use that moved moves with it.

use memchr::memchr;
use url_mapping::Use;

/// The largest number of preloads remembered per page. Further ones move wherever their URL may.
const PRELOADS: usize = 64;

/// The largest number of moved URLs remembered per page, at 8 bytes each. A preload behind its consumer moves only if
/// the consumer's URL is remembered.
const MOVED_REMEMBERED: usize = 4096;

/// Matches the preloads of one page with their consumers, by hashes of their moved URLs.
#[derive(Debug, Default)]
pub struct Preloads {
    /// Preloads that stay.
    staying: Vec<u64>,
    /// All other uses that moved.
    moved: Vec<u64>,
}

impl Preloads {
    /// Decides a preload that could move to `moved`. Returns false if it must stay. Later uses of its URL then stay,
    /// too.
    pub(crate) fn may_move_preload(&mut self, moved: &str) -> bool {
        let object = object(moved);
        if self.moved.contains(&object) {
            return true;
        }
        if self.staying.contains(&object) {
            return false;
        }
        // Without room to remember it, the preload moves, because most consumers are in the markup.
        let has_room = self.staying.len() < PRELOADS;
        if has_room {
            self.staying.push(object);
        }
        !has_room
    }

    /// Decides any other use that could move to `moved`. Returns false if a preload of the same URL stays.
    pub(crate) fn may_move(&mut self, moved: &str) -> bool {
        let object = object(moved);
        if self.staying.contains(&object) {
            return false;
        }
        if self.moved.len() < MOVED_REMEMBERED {
            self.moved.push(object);
        }
        true
    }
}

/// Returns true if the consumer of such a preload may be a script. Fonts, media and tracks only move at level full,
/// where all their consumers move, too.
pub(crate) fn may_lack_consumer(usage: Use) -> bool {
    matches!(usage, Use::Image | Use::Script | Use::Stylesheet)
}

/// Returns a hash of a URL without its fragment, which browsers do not send. It takes few instructions, because every
/// moved URL pays for it. Its key is fixed, so every run gives the same result. An author who makes two URLs of a page
/// collide only keeps a URL of that page from moving.
fn object(url: &str) -> u64 {
    const ODD: u64 = 0x517c_c1b7_2722_0a95;
    let end = memchr(b'#', url.as_bytes()).unwrap_or(url.len());
    let (words, rest) = url.as_bytes().get(..end).unwrap_or_default().as_chunks::<8>();
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(ODD);
    let hash = words.iter().fold(end as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, &byte| mix(hash, byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_preload_and_its_consumer_decides_for_both() {
        let mut preloads = Preloads::default();
        assert!(!preloads.may_move_preload("https://pep.example/a/x.js"));
        assert!(!preloads.may_move("https://pep.example/a/x.js#y"));
        assert!(preloads.may_move("https://pep.example/a/z.js"));
        assert!(preloads.may_move_preload("https://pep.example/a/z.js"));
    }

    #[test]
    fn more_preloads_than_are_remembered_move() {
        let mut preloads = Preloads::default();
        let url = |number: usize| format!("https://pep.example/a/{number}");
        assert!((0..PRELOADS).all(|number| !preloads.may_move_preload(&url(number))));
        assert!(preloads.may_move_preload(&url(PRELOADS)) && preloads.may_move(&url(PRELOADS)));
        assert!(!preloads.may_move(&url(0)));
    }
}
