//! The pages that one end has, for all its workers.
//!
//! The board's value `bases` lists them, and the page that was used the longest ago comes first. `base/N` is the N-th
//! place. A place begins with the name of its page, so an outdated list does no harm.

use http_semantics::site;
use sha2::{Digest, Sha256};
use shared_board::{Board, update};

use super::limits;

/// The name of a page: the first 24 bytes of its SHA-256.
pub type Name = [u8; 24];

/// Returns the name of a page.
pub(super) fn name(page: &[u8]) -> Name {
    cut(&Sha256::digest(page))
}

/// Returns the name with this SHA-256.
pub(super) fn cut(digest: &[u8]) -> Name {
    digest.first_chunk().copied().unwrap_or_default()
}

/// The first bytes of a SHA-256.
type Key = [u8; 8];

/// The site of a page, whose pages may be its bases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(Key);

impl Place {
    /// Returns the site of `authority` (`host[:port]`). Case does not matter.
    pub(super) fn of(authority: &[u8]) -> Self {
        Self(Sha256::digest(site::of(authority)).first_chunk().copied().unwrap_or_default())
    }
}

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    name: Name,
    place: Place,
    slot: u8,
    bytes: u32,
}

const LIST: &str = "bases";
const LINE_BYTES: usize = size_of::<Name>() + size_of::<Key>() + size_of::<u8>() + size_of::<u32>();

fn slot_name(slot: u8) -> String {
    format!("base/{slot}")
}

fn read(list: &[u8]) -> Vec<Line> {
    let line = |bytes: &[u8]| {
        let (name, rest) = bytes.split_first_chunk()?;
        let (site, rest) = rest.split_first_chunk()?;
        let (slot, rest) = rest.split_first()?;
        let bytes = u32::from_le_bytes(rest.try_into().ok()?);
        Some(Line { name: *name, place: Place(*site), slot: *slot, bytes })
    };
    list.chunks_exact(LINE_BYTES).filter_map(line).collect()
}

fn write(lines: &[Line]) -> Vec<u8> {
    let mut out = Vec::with_capacity(lines.len() * LINE_BYTES);
    for Line { name, place, slot, bytes } in lines {
        out.extend_from_slice(name);
        out.extend_from_slice(&place.0);
        out.push(*slot);
        out.extend_from_slice(&bytes.to_le_bytes());
    }
    out
}

/// Keeps a page. Returns false if it is too long, or if the board refuses.
pub(super) fn put(board: &dyn Board, place: Place, name: &Name, page: &[u8]) -> bool {
    let Some(bytes) = u32::try_from(page.len()).ok().filter(|_| (1..=limits::PAGE_BYTES).contains(&page.len())) else {
        return false;
    };
    let (mut slot, mut freed, mut is_new) = (0, Vec::new(), true);
    let is_listed = update(board, LIST, |list| {
        let mut lines = read(list);
        freed.clear();
        if let Some(at) = lines.iter().position(|line| line.name == *name && line.place == place) {
            is_new = false;
            let line = lines.remove(at);
            lines.push(line);
            return Some(write(&lines));
        }
        is_new = true;
        while let Some(at) = in_the_way(&lines, place, bytes) {
            freed.push(lines.remove(at).slot);
        }
        slot = freed.pop().unwrap_or_else(|| first_free(&lines));
        lines.push(Line { name: *name, place, slot, bytes });
        Some(write(&lines))
    });
    if !is_listed || !is_new {
        return is_listed;
    }
    for slot in freed {
        board.set(&slot_name(slot), &[], 0);
    }
    board.set(&slot_name(slot), &[name, page].concat(), 0)
}

/// Returns the line that must go before one with `bytes` may come.
fn in_the_way(lines: &[Line], place: Place, bytes: u32) -> Option<usize> {
    let is_of_site = |line: &Line| line.place == place;
    if lines.iter().filter(|line| is_of_site(line)).count() >= limits::PAGES {
        return lines.iter().position(is_of_site);
    }
    let used: u64 = lines.iter().map(|line| u64::from(line.bytes)).sum();
    let is_full = used + u64::from(bytes) > limits::BASES_BYTES || lines.len() >= usize::from(limits::SLOTS);
    (is_full && !lines.is_empty()).then_some(0)
}

/// Returns the lowest slot that no line names.
fn first_free(lines: &[Line]) -> u8 {
    (0..limits::SLOTS).find(|slot| lines.iter().all(|line| line.slot != *slot)).unwrap_or_default()
}

/// Returns the names of pages that may be the base of a page at `place`, the one that was used last first.
pub(super) fn names(board: &dyn Board, place: Place) -> Vec<Name> {
    let of_site = read(&board.get(LIST).0).into_iter().rev().filter(|line| line.place == place);
    of_site.map(|line| line.name).collect()
}

/// Returns a page, and counts it as used.
pub(super) fn take(board: &dyn Board, name: &Name) -> Option<Vec<u8>> {
    let mut slot = None;
    update(board, LIST, |list| {
        let mut lines = read(list);
        let at = lines.iter().position(|line| line.name == *name);
        slot = at.and_then(|at| lines.get(at)).map(|line| line.slot);
        let at = at.filter(|at| at + 1 < lines.len())?;
        let line = lines.remove(at);
        lines.push(line);
        Some(write(&lines))
    });
    let mut value = board.get(&slot_name(slot?)).0;
    value.starts_with(name).then(|| value.split_off(size_of::<Name>()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use shared_board::Memory;

    use super::*;

    fn keep(board: &Memory, authority: &str, page: &[u8]) -> Name {
        let name = name(page);
        assert!(put(board, Place::of(authority.as_bytes()), &name, page));
        name
    }

    fn listed(board: &Memory, authority: &str) -> Vec<Name> {
        names(board, Place::of(authority.as_bytes()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn memory_is_bounded_and_the_newest_page_is_there(
            puts in proptest::collection::vec((0_u8..60, any::<u8>(), 1_usize..400_000), 1..80)
        ) {
            let board = Memory::default();
            let mut pages = HashMap::new();
            for (site, fill, bytes) in puts {
                let (place, page) = (Place::of(format!("s{site}.test").as_bytes()), vec![fill; bytes]);
                let name = name(&page);
                let is_kept = put(&board, place, &name, &page);
                prop_assert_eq!(is_kept, bytes <= limits::PAGE_BYTES);
                if is_kept {
                    pages.insert(name, page);
                    prop_assert_eq!(names(&board, place).first().copied(), Some(name));
                    prop_assert_eq!(take(&board, &name), pages.get(&name).cloned());
                }
                prop_assert!(names(&board, place).len() <= limits::PAGES);
                let held: usize = board.sizes().iter().map(|(_, bytes)| bytes).sum();
                let own = usize::from(limits::SLOTS) * (LINE_BYTES + size_of::<Name>());
                prop_assert!(u64::try_from(held - own.min(held)).unwrap() <= limits::BASES_BYTES);
                prop_assert!(board.sizes().len() <= 1 + usize::from(limits::SLOTS));
            }
        }
    }

    #[test]
    fn a_page_is_a_base_for_its_own_site_alone() {
        let board = Memory::default();
        let page = keep(&board, "www.a.test", b"page");
        assert_eq!(listed(&board, "WWW.a.test"), [page]);
        assert_eq!(listed(&board, "news.a.test"), [page]);
        assert_eq!(listed(&board, "www.b.test"), [[0_u8; 24]; 0]);
    }

    #[test]
    fn of_a_site_the_page_that_was_used_the_longest_ago_goes_first() {
        let board = Memory::default();
        let pages: Vec<Name> = (0_u8..4).map(|one| keep(&board, "a.test", &[one; 9])).collect();
        let other = keep(&board, "b.test", b"other");
        assert!(take(&board, &pages[0]).is_some());
        let fifth = keep(&board, "a.test", &[5; 9]);
        assert_eq!(listed(&board, "a.test"), [fifth, pages[0], pages[3], pages[2]]);
        assert_eq!(take(&board, &pages[1]), None);
        assert!(take(&board, &other).is_some());
    }

    #[test]
    fn a_slot_that_holds_another_page_by_now_is_not_believed() {
        let board = Memory::default();
        let page = keep(&board, "a.test", b"page");
        board.set(&slot_name(0), b"garbage", 0);
        assert_eq!(take(&board, &page), None);
        board.set(LIST, b"garbage", 0);
        assert_eq!(listed(&board, "a.test"), [[0_u8; 24]; 0]);
        keep(&board, "a.test", b"page");
        assert_eq!(take(&board, &page), Some(b"page".to_vec()));
    }
}
