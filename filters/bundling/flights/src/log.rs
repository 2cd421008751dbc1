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
    pub(crate) entries: Vec<Entry>,
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
        flights.push(Flight { id, client, started_ms, entries });
    }
    Ok(flights)
}

fn write(flights: &[Flight]) -> Vec<u8> {
    let mut out = Vec::new();
    for flight in flights {
        out.extend_from_slice(&flight.id);
        out.extend_from_slice(&flight.client.to_le_bytes());
        put_number(&mut out, flight.started_ms);
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
    }
    out
}

/// Opens a flight; those that are over are forgotten on the way.
pub(crate) fn open(board: &dyn Board, id: FlightId, client: u64, now_ms: u64) -> bool {
    update(board, &name(client), |value| {
        let mut flights = read(value).unwrap_or_default();
        flights.retain(|flight| now_ms.saturating_sub(flight.started_ms) < limits::FLIGHT_MS);
        let too_many = (flights.len() + 1).saturating_sub(limits::FLIGHTS_PER_LOG);
        flights.drain(..too_many.min(flights.len()));
        flights.push(Flight { id, client, started_ms: now_ms, entries: Vec::new() });
        Some(write(&flights))
    })
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
        let flights = vec![Flight { id: [1; 16], client: u64::MAX, started_ms: 1 << 41, entries }];
        assert_eq!(read(&write(&flights)), Ok(flights));
    }

    #[test]
    fn a_client_expects_what_is_on_its_way_to_it_and_nobody_elses() {
        let board = Memory::default();
        let (one, other) = (7, 7 + limits::LOGS);
        assert!(open(&board, [1; 16], one, 1000) && open(&board, [2; 16], other, 1000));
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
            assert!(open(&board, [number; 16], 5, u64::from(number)));
        }
        assert!(flight(&board, 5, &[11; 16]).is_none() && flight(&board, 5, &[12; 16]).is_some());
        assert!(open(&board, [99; 16], 5, limits::FLIGHT_MS * 2));
        assert!(flight(&board, 5, &[19; 16]).is_none() && flight(&board, 5, &[99; 16]).is_some());
    }
}
