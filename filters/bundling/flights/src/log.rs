//! Flights of clients as the near end knows them: what is on its way to whom. One value of the board holds those of some
//! clients; `log/N` for N from 0 to a limit.

use crate::board::{Board, update};
use crate::digest::{FlightId, Ident, Mark, key, mark};
use crate::limits;
use crate::wire::{Malformed, Reader, put_bytes, put_length, put_number};

/// What is known of one object of a flight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Not announced yet: parcels may overtake each other.
    #[default]
    Unknown,
    /// On its way.
    Coming,
    /// On the shelf; `moment` are the headers of its answer alone.
    Here { ident: Ident, moment: Vec<u8> },
    /// Will not come.
    Withdrawn,
    /// A browser has got it from here.
    Used,
    /// It was here, or was said to be, and is not any more.
    Lost,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mark: Mark,
    pub(crate) state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) id: FlightId,
    pub(crate) client: u64,
    pub(crate) started_ms: u64,
    /// The page, and the root of its site: what a request on its behalf has as its `Referer`.
    pub(crate) page: Mark,
    pub(crate) site: Mark,
    pub(crate) entries: Vec<Entry>,
    /// URLs that were asked for on its behalf and that no manifest had.
    pub(crate) others: Vec<String>,
}

/// The name of a client: its address.
pub(crate) fn client_key(client: &[u8]) -> u64 {
    key(client)
}

fn name(client: u64) -> String {
    format!("log/{}", client % limits::LOGS)
}

fn read(value: &[u8]) -> Result<Vec<Flight>, Malformed> {
    let mut reader = Reader(value);
    let mut flights = Vec::new();
    while !reader.is_empty() {
        let (id, client, started_ms) = (reader.array()?, u64::from_le_bytes(reader.array()?), reader.number()?);
        let (page, site) = (reader.array()?, reader.array()?);
        let count = reader.length()?.min(limits::ENTRIES);
        let mut entries = Vec::new();
        for _ in 0..count {
            let mark = reader.array()?;
            let state = match reader.byte()? {
                1 => State::Coming,
                2 => State::Here { ident: reader.array()?, moment: reader.bytes()?.to_vec() },
                3 => State::Withdrawn,
                4 => State::Used,
                5 => State::Lost,
                _ => State::Unknown,
            };
            entries.push(Entry { mark, state });
        }
        let mut others = Vec::new();
        for _ in 0..reader.length()?.min(limits::OTHERS) {
            others.push(String::from_utf8(reader.bytes()?.to_vec()).map_err(|_| Malformed)?);
        }
        flights.push(Flight { id, client, started_ms, page, site, entries, others });
    }
    Ok(flights)
}

fn write(flights: &[Flight]) -> Vec<u8> {
    let mut out = Vec::new();
    for flight in flights {
        out.extend_from_slice(&flight.id);
        out.extend_from_slice(&flight.client.to_le_bytes());
        put_number(&mut out, flight.started_ms);
        out.extend_from_slice(&flight.page);
        out.extend_from_slice(&flight.site);
        put_length(&mut out, flight.entries.len());
        for entry in &flight.entries {
            out.extend_from_slice(&entry.mark);
            out.push(match entry.state {
                State::Unknown => 0,
                State::Coming => 1,
                State::Here { .. } => 2,
                State::Withdrawn => 3,
                State::Used => 4,
                State::Lost => 5,
            });
            if let State::Here { ident, moment } = &entry.state {
                out.extend_from_slice(ident);
                put_bytes(&mut out, moment);
            }
        }
        put_length(&mut out, flight.others.len());
        for url in &flight.others {
            put_bytes(&mut out, url.as_bytes());
        }
    }
    out
}

/// Opens a flight for the page `url`; those that are over are forgotten on the way.
pub(crate) fn open(board: &dyn Board, id: FlightId, client: u64, url: &str, now_ms: u64) -> bool {
    let (page, site) = (mark(&id, url), mark(&id, root(url)));
    update(board, &name(client), |value| {
        let mut flights = read(value).unwrap_or_default();
        flights.retain(|flight| now_ms.saturating_sub(flight.started_ms) < limits::FLIGHT_MS);
        let too_many = (flights.len() + 1).saturating_sub(limits::FLIGHTS_PER_LOG);
        flights.drain(..too_many.min(flights.len()));
        let (entries, others) = (Vec::new(), Vec::new());
        flights.push(Flight { id, client, started_ms: now_ms, page, site, entries, others });
        Some(write(&flights))
    })
}

/// The root of the site that `url` is on, which is all that other sites are told of a page
/// (<https://www.w3.org/TR/referrer-policy/>, strict-origin-when-cross-origin).
fn root(url: &str) -> &str {
    let host_at = "http://".len();
    let path_at = url.get(host_at..).and_then(|rest| rest.find('/'));
    path_at.and_then(|at| url.get(..=host_at + at)).unwrap_or(url)
}

/// Notes that a client asked for `url` on behalf of the page that `referrer` names; nobody had said that it would.
pub(crate) fn note(board: &dyn Board, client: u64, referrer: &str, url: &str, now_ms: u64) {
    update(board, &name(client), |value| {
        let mut flights = read(value).ok()?;
        let is_of = |flight: &Flight| [flight.page, flight.site].contains(&mark(&flight.id, referrer));
        let is_open = |flight: &Flight| now_ms.saturating_sub(flight.started_ms) < limits::FLIGHT_MS;
        let own = flights.iter_mut().rev().filter(|flight| flight.client == client && is_open(flight));
        let others = &mut own.into_iter().find(|flight| is_of(flight))?.others;
        let has_room = limits::have_room(others.iter().map(String::as_str), url);
        if !has_room || others.iter().any(|other| other == url) {
            return None;
        }
        others.push(url.to_owned());
        Some(write(&flights))
    });
}

/// Changes one flight, if it is still known.
pub(crate) fn change(board: &dyn Board, client: u64, id: &FlightId, mut change: impl FnMut(&mut Flight)) -> bool {
    update(board, &name(client), |value| {
        let mut flights = read(value).ok()?;
        let flight = flights.iter_mut().find(|flight| flight.id == *id)?;
        change(flight);
        Some(write(&flights))
    })
}

/// One flight, if it is still known.
pub(crate) fn flight(board: &dyn Board, client: u64, id: &FlightId) -> Option<Flight> {
    read(&board.get(&name(client)).0).ok()?.into_iter().find(|flight| flight.id == *id)
}

/// Where an object stands that a client may be about to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) flight: FlightId,
    pub(crate) index: usize,
    pub(crate) state: State,
}

/// The client's newest flight that has `url`.
pub(crate) fn expected(board: &dyn Board, client: u64, url: &str, now_ms: u64) -> Option<Expected> {
    let (value, version) = board.get(&name(client));
    if version == 0 {
        return None;
    }
    let flights = read(&value).ok()?;
    let own = flights
        .into_iter()
        .rev()
        .filter(|flight| flight.client == client && now_ms.saturating_sub(flight.started_ms) < limits::FLIGHT_MS);
    own.into_iter().find_map(|flight| {
        let wanted = mark(&flight.id, url);
        let index = flight.entries.iter().position(|entry| entry.mark == wanted)?;
        let state = flight.entries.into_iter().nth(index)?.state;
        Some(Expected { flight: flight.id, index, state })
    })
}

impl Flight {
    /// The entry `index`, which comes to be with all before it.
    pub(crate) fn entry(&mut self, index: usize) -> Option<&mut Entry> {
        if index >= limits::ENTRIES {
            return None;
        }
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, Entry::default);
        }
        self.entries.get_mut(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::memory::Memory;

    #[test]
    fn every_state_reads_back() {
        let states = [
            State::Unknown,
            State::Coming,
            State::Here { ident: [3; 24], moment: b"date".to_vec() },
            State::Withdrawn,
            State::Used,
            State::Lost,
        ];
        let entries = states.into_iter().map(|state| Entry { mark: [9; 16], state }).collect();
        let others = vec!["http://a.test/".to_owned(), String::new()];
        let (page, site) = ([2; 16], [3; 16]);
        let flights = vec![Flight { id: [1; 16], client: u64::MAX, started_ms: 1 << 41, page, site, entries, others }];
        assert_eq!(read(&write(&flights)), Ok(flights));
    }

    #[test]
    fn a_client_expects_what_is_on_its_way_to_it_and_nobody_elses() {
        let board = Memory::default();
        let (one, other) = (7, 7 + limits::LOGS);
        assert!(
            open(&board, [1; 16], one, "http://p.test/d/", 1000)
                && open(&board, [2; 16], other, "http://p.test/d/", 1000)
        );
        assert!(change(&board, one, &[1; 16], |flight| {
            if let Some(entry) = flight.entry(2) {
                *entry = Entry { mark: mark(&[1; 16], "http://a.test/"), state: State::Coming };
            }
        }));
        let found = expected(&board, one, "http://a.test/", 2000).unwrap();
        assert_eq!((found.flight, found.index, found.state), ([1; 16], 2, State::Coming));
        assert_eq!(expected(&board, one, "http://b.test/", 2000), None);
        assert_eq!(expected(&board, other, "http://a.test/", 2000), None);
        assert_eq!(expected(&board, one, "http://a.test/", 1000 + limits::FLIGHT_MS), None);
    }

    #[test]
    fn flights_that_are_over_or_too_many_are_forgotten() {
        let board = Memory::default();
        for number in 0..20 {
            assert!(open(&board, [number; 16], 5, "http://p.test/d/", u64::from(number)));
        }
        assert!(flight(&board, 5, &[11; 16]).is_none() && flight(&board, 5, &[12; 16]).is_some());
        assert!(open(&board, [99; 16], 5, "http://p.test/d/", limits::FLIGHT_MS * 2));
        assert!(flight(&board, 5, &[19; 16]).is_none() && flight(&board, 5, &[99; 16]).is_some());
    }

    #[test]
    fn what_is_asked_for_on_behalf_of_a_page_is_noted_with_its_newest_flight_once_and_within_bounds() {
        let board = Memory::default();
        assert!(open(&board, [1; 16], 5, "http://p.test/d/", 0) && open(&board, [2; 16], 5, "http://p.test/e", 0));
        for (client, referrer, url) in [
            (5, "http://p.test/d/", "http://p.test/one"),
            (5, "http://p.test/d/", "http://p.test/one"),
            (5, "http://p.test/", "http://cdn.test/two"),
            (5, "http://other.test/", "http://p.test/three"),
            (6, "http://p.test/", "http://p.test/four"),
            (5 + limits::LOGS, "http://p.test/", "http://p.test/five"),
        ] {
            note(&board, client, referrer, url, 1000);
        }
        note(&board, 5, "http://p.test/d/", "http://p.test/late", limits::FLIGHT_MS);
        let others = |id| flight(&board, 5, &[id; 16]).unwrap().others;
        assert_eq!(
            (others(1), others(2)),
            (vec!["http://p.test/one".to_owned()], vec!["http://cdn.test/two".to_owned()])
        );
        for number in 0..100 {
            note(&board, 5, "http://p.test/d/", &format!("http://p.test/{number}"), 1000);
        }
        assert_eq!(others(1).len(), limits::OTHERS);
        note(&board, 5, "http://p.test/e", &"x".repeat(limits::OTHERS_BYTES), 1000);
        assert_eq!(others(2).len(), 1);
    }
}
