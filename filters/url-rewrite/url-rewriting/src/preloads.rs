//! Preloads, and the objects that they name.
//!
//! A preload saves time only if its consumer asks for the same URL; otherwise browsers fetch the object twice. The
//! consumer may stand anywhere behind the preload, or a script may make it, which names the URL as it was. So the first
//! of both in the page decides for the other: a preload stays where it is, and so does every later use of its URL. A
//! preload behind a use that moved moves with it.

use memchr::memchr;
use url_mapping::Use;

/// Preloads of one page that are remembered. Further ones move wherever their URL may.
const PRELOADS: usize = 64;

/// Moved URLs of one page that are remembered, at 8 bytes each, so that a preload behind its consumer moves with it.
const MOVED_REMEMBERED: usize = 4096;

/// The URLs of one page by which preloads and their consumers find each other, as hashes of their moved forms.
#[derive(Debug, Default)]
pub struct Preloads {
    /// Of preloads that stay.
    staying: Vec<u64>,
    /// Of everything else that moved.
    moved: Vec<u64>,
}

impl Preloads {
    /// Decides a preload that could move to `moved`. Returns false if it must stay; later uses then stay as well.
    pub(crate) fn may_move_preload(&mut self, moved: &str) -> bool {
        let object = object(moved);
        if self.moved.contains(&object) {
            return true;
        }
        if self.staying.contains(&object) {
            return false;
        }
        // With no room to remember it, it moves: most consumers are in the markup.
        let has_room = self.staying.len() < PRELOADS;
        if has_room {
            self.staying.push(object);
        }
        !has_room
    }

    /// Decides any other use that could move to `moved`. Returns false if a preload of it stays.
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

/// Returns true if a script may be the consumer of such a preload. Fonts, media and tracks only move at level full, where
/// all their consumers do.
pub(crate) fn may_lack_consumer(usage: Use) -> bool {
    matches!(usage, Use::Image | Use::Script | Use::Stylesheet)
}

/// A hash of a URL without its fragment, which is not sent. It is made of a few instructions, because every URL that
/// moves pays for it; its key is fixed, so that any run gives the same result. Whoever makes two URLs of a page collide
/// only keeps his own page from moving one.
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
