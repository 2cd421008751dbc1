//! Marks of visitors that had a page of a site before, for all workers. A browser that has the objects cached should not
//! receive them again in the page.
//!
//! A mark holds the hour of the last visit, and a keyed hash of the visitor's address, `User-Agent` and site. Neither the
//! visitor nor the site can be read from it. Marks stand in a fixed number of small boxes under fixed names. A crowd of
//! visitors pushes the oldest marks out of a box, and a visitor without a mark counts as new.

use std::hash::{DefaultHasher, Hash, Hasher};

use http_semantics::client::without_port;
use shared_board::{Board, update};
use url_mapping::site_of;
use url_rewriting::headers::host_of;
use url_rewriting::headers::request::Visit;

use super::limits::{BOXES, FORGOTTEN_H, MARKS_A_BOX};

/// The visitor of a page.
#[derive(Debug, Clone, Copy)]
pub struct Visitor<'v> {
    /// The address as the proxy writes it, with or without a port.
    pub address: &'v [u8],
    /// Makes marks mean nothing outside this process.
    pub salt: [u8; 8],
    /// Hours since 1970.
    pub now_h: u32,
}

/// Bytes of a mark: the hash, and the hour.
const MARK: usize = HASH + 4;
const HASH: usize = 8;

/// Returns true if the visitor had a page of this site within the last day, and marks the visitor. Also true if the
/// visitor cannot be marked.
pub(super) fn is_known(visitor: &Visitor<'_>, user_agent: &str, visit: &Visit, board: &dyn Board) -> bool {
    let address = without_port(visitor.address);
    if address.is_empty() {
        return true;
    }
    let mut hasher = DefaultHasher::new();
    (visitor.salt, address, user_agent, site_of(host_of(&visit.authority.to_ascii_lowercase()))).hash(&mut hasher);
    let hash = hasher.finish();
    let name = format!("visits{}", hash % BOXES);
    let mut known = false;
    let remembered = update(board, &name, |marks| {
        let (was_known, marks) = marked(marks, hash.to_le_bytes(), visitor.now_h);
        known = was_known;
        Some(marks)
    });
    known || !remembered
}

/// Returns true if the mark is among `marks` and alive, and the live marks with this one last.
fn marked(marks: &[u8], hash: [u8; HASH], now_h: u32) -> (bool, Vec<u8>) {
    let is_alive = |hour: &[u8]| {
        let hour = hour.try_into().map_or(0, u32::from_le_bytes);
        now_h.saturating_sub(hour) < FORGOTTEN_H
    };
    let alive: Vec<&[u8]> = marks
        .chunks_exact(MARK)
        .filter(|mark| mark.split_at_checked(HASH).is_some_and(|(_, hour)| is_alive(hour)))
        .collect();
    let (same, others): (Vec<&[u8]>, Vec<&[u8]>) = alive.into_iter().partition(|mark| mark.starts_with(&hash));
    let spare = (others.len() + 1).saturating_sub(MARKS_A_BOX);
    let mut kept: Vec<u8> = others.into_iter().skip(spare).flatten().copied().collect();
    kept.extend_from_slice(&hash);
    kept.extend_from_slice(&now_h.to_le_bytes());
    (!same.is_empty(), kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_board::Memory;
    use url_mapping::Scheme;
    use url_rewriting::headers::request::Exchange;

    struct Full;

    impl Board for Full {
        fn get(&self, _: &str) -> (Vec<u8>, u32) {
            (Vec::new(), 0)
        }

        fn set(&self, _: &str, _: &[u8], _: u32) -> bool {
            false
        }
    }

    fn seen(board: &dyn Board, address: &str, agent: &str, authority: &str, now_h: u32) -> bool {
        let visit = Visit {
            scheme: Scheme::Http,
            authority: authority.to_owned(),
            path: "/".to_owned(),
            moved: None,
            exchange: Exchange::Ordinary,
            is_fetched_by_script: false,
            bears_cookie: false,
            names_our_etag: false,
        };
        is_known(&Visitor { address: address.as_bytes(), salt: *b"saltsalt", now_h }, agent, &visit, board)
    }

    #[test]
    fn a_visitor_is_known_from_the_second_page_of_a_site_on_whatever_the_connection() {
        let board = Memory::default();
        assert!(!seen(&board, "192.0.2.1:1000", "a", "www.foo.example", 5));
        assert!(seen(&board, "192.0.2.1:2000", "a", "shop.foo.example:8080", 6));
        for (address, agent, authority) in [
            ("192.0.2.2:1000", "a", "www.foo.example"),
            ("192.0.2.1:1000", "b", "www.foo.example"),
            ("192.0.2.1:1000", "a", "www.bar.example"),
            ("[2001:db8::1]:1000", "a", "www.foo.example"),
        ] {
            assert!(!seen(&board, address, agent, authority, 6), "{address} {agent} {authority}");
            assert!(seen(&board, address, agent, authority, 6), "{address} {agent} {authority}");
        }
    }

    #[test]
    fn a_visitor_who_stays_away_is_forgotten_and_one_who_comes_again_is_not() {
        let board = Memory::default();
        let comes = |now_h| seen(&board, "192.0.2.1:1", "a", "foo.example", now_h);
        assert!(!comes(100));
        assert!(comes(100 + FORGOTTEN_H - 1));
        assert!(comes(100 + 2 * FORGOTTEN_H - 2));
        assert!(!comes(100 + 3 * FORGOTTEN_H));
    }

    #[test]
    fn who_cannot_be_remembered_or_told_is_taken_for_known() {
        assert!(seen(&Full, "192.0.2.1:1", "a", "foo.example", 1));
        assert!(seen(&Memory::default(), "", "a", "foo.example", 1));
    }

    #[test]
    fn a_box_holds_so_many_marks_and_the_oldest_goes() {
        let mark = |number: usize| u64::try_from(number).unwrap().to_le_bytes();
        let mut marks = b"not a mark".to_vec();
        for number in 0..MARKS_A_BOX + 3 {
            let (known, next) = marked(&marks, mark(number), 7);
            assert!(!known);
            marks = next;
        }
        assert_eq!(marks.len(), MARKS_A_BOX * MARK);
        assert!(!marked(&marks, mark(2), 7).0 && marked(&marks, mark(3), 7).0);
    }
}
