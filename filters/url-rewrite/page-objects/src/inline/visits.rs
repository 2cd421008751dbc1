//! Marks of visitors that had a page of a site before, for all workers. A browser that has the objects cached should not
//! receive them again in the page.
//!
//! A mark holds the hour of the last visit, and a keyed hash of the visitor's address, `User-Agent` and site. Neither the
//! visitor nor the site can be read from it. A crowd of visitors pushes the oldest marks out of a box, and a visitor without
//! a mark counts as new.

use http_semantics::client::without_port;
use shared_board::{Board, Buckets};
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
    pub secret: [u8; 16],
    /// Hours since 1970.
    pub now_h: u32,
}

/// A mark is the hour of the last visit.
const MARKS: Buckets<4> = Buckets { prefix: "visits", buckets: BOXES, entries: MARKS_A_BOX };

/// Returns true if the visitor had a page of this site within the last day, and marks the visitor. Also true if the
/// visitor cannot be marked.
pub(super) fn is_known(visitor: &Visitor<'_>, user_agent: &str, visit: &Visit, board: &dyn Board) -> bool {
    let address = without_port(visitor.address);
    if address.is_empty() {
        return true;
    }
    let authority = visit.authority.to_ascii_lowercase();
    let key = [address, user_agent.as_bytes(), site_of(host_of(&authority)).as_bytes()];
    let alive = |hour| Some(0).filter(|_| visitor.now_h.saturating_sub(u32::from_le_bytes(hour)) < FORGOTTEN_H);
    let mut known = false;
    let remembered = MARKS.change(board, visitor.secret, &key, alive, |mark| {
        known = mark.is_some();
        Some(visitor.now_h.to_le_bytes())
    });
    known || !remembered
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
            asks_range: false,
            bears_cookie: false,
            names_our_etag: false,
        };
        is_known(&Visitor { address: address.as_bytes(), secret: [7; 16], now_h }, agent, &visit, board)
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
    fn visitors_that_cannot_be_distinguished_count_as_known() {
        assert!(seen(&Full, "192.0.2.1:1", "a", "foo.example", 1));
        assert!(seen(&Memory::default(), "", "a", "foo.example", 1));
    }

    #[test]
    fn a_crowd_takes_so_much_memory_and_no_more() {
        let board = Memory::default();
        for number in 0..20_000 {
            seen(&board, "192.0.2.1:1", &number.to_string(), "foo.example", 7);
        }
        let sizes = board.sizes();
        assert!(sizes.len() as u64 <= BOXES && sizes.iter().all(|(_, bytes)| *bytes <= MARKS_A_BOX * 12));
        assert!(seen(&board, "192.0.2.1:1", "19999", "foo.example", 7), "the newest is there");
    }
}
