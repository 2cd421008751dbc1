//! Flights of clients as the remote knows them: which objects are on their way to which client.
//!
//! The value `log/N` of the board, for N from 0 to a limit, lists the flights of some clients. `flight/N/PLACE` holds
//! the objects of one flight. `turn/N` is empty, and is set after every change of either. A worker that waits for an
//! object compares its version: that costs a few bytes.

use crate::digest::{FlightId, Ident, Mark, authority, key, mark, object_mark, root};
use crate::limits;
use crate::wire::{Malformed, Reader, put_bytes, put_length, put_number};
use shared_board::{Board, update};

/// The state of one object of a flight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// The object is not announced yet: parcels may overtake each other.
    #[default]
    Unknown,
    /// The object is on its way.
    Coming,
    /// The object is on the shelf. It was fetched at `since_ms`. `moment` holds the headers of its response alone.
    Here { ident: Ident, since_ms: u64, moment: Vec<u8> },
    /// The object will not come.
    Withdrawn,
    /// The cache of this remote has the object. `lines` say what a 304 would say, since `since_ms`.
    Valid { since_ms: u64, lines: Vec<u8> },
    /// A browser has requested the object.
    Used,
    /// The object was here, or was reported to be, and is not any more.
    Lost,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mark: Mark,
    pub(crate) state: State,
}

/// The objects of one flight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) id: FlightId,
    pub(crate) entries: Vec<Entry>,
    /// URLs that were requested on the flight's behalf and are in no manifest.
    pub(crate) others: Vec<String>,
    /// Hashes of hosts from which the flight serves nothing any more: the client has sent them unsafe requests.
    pub(crate) written: Vec<u64>,
}

/// One flight in the list of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    id: FlightId,
    client: u64,
    started_ms: u64,
    /// The mark of the page's URL. Requests on the page's behalf have this URL, or the root URL of its site, as
    /// `Referer`.
    page: Mark,
    /// The mark of the root URL.
    site: Mark,
    /// The place of its objects.
    place: u8,
}

impl Line {
    /// Returns true if the flight is not over. No clock of a proxy steps back. If one does anyway, the flight is over:
    /// otherwise it would last too long.
    fn is_open(&self, now_ms: u64) -> bool {
        now_ms
            .saturating_add(CLOCK_MS)
            .checked_sub(self.started_ms)
            .is_some_and(|age| age < limits::FLIGHT_MS + CLOCK_MS)
    }
}

/// The difference between the moments at which two workers read the clock, in milliseconds.
const CLOCK_MS: u64 = 100;

/// Returns the name of a client, from its address.
pub(crate) fn client_key(client: &[u8]) -> u64 {
    key(client)
}

fn bucket(client: u64) -> u64 {
    client % limits::LOGS
}

fn list_name(client: u64) -> String {
    format!("log/{}", bucket(client))
}

fn flight_name(client: u64, place: u8) -> String {
    format!("flight/{}/{place}", bucket(client))
}

fn turn_name(client: u64) -> String {
    format!("turn/{}", bucket(client))
}

/// Returns a number that changes with every change of the client's flights.
pub(crate) fn turn(board: &dyn Board, client: u64) -> u32 {
    board.get(&turn_name(client)).1
}

fn has_changed(board: &dyn Board, client: u64) {
    board.set(&turn_name(client), &[], 0);
}

fn read_lines(value: &[u8]) -> Result<Vec<Line>, Malformed> {
    let mut reader = Reader(value);
    let mut lines = Vec::new();
    while !reader.is_empty() {
        lines.push(Line {
            id: reader.array()?,
            client: u64::from_le_bytes(reader.array()?),
            started_ms: reader.number()?,
            page: reader.array()?,
            site: reader.array()?,
            place: reader.byte()?,
        });
    }
    Ok(lines)
}

fn write_lines(lines: &[Line]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        out.extend_from_slice(&line.id);
        out.extend_from_slice(&line.client.to_le_bytes());
        put_number(&mut out, line.started_ms);
        out.extend_from_slice(&line.page);
        out.extend_from_slice(&line.site);
        out.push(line.place);
    }
    out
}

fn read(value: &[u8]) -> Result<Flight, Malformed> {
    let mut reader = Reader(value);
    let mut flight = Flight { id: reader.array()?, ..Flight::default() };
    for _ in 0..reader.length()?.min(limits::ENTRIES) {
        let mark = reader.array()?;
        let state = match reader.byte()? {
            1 => State::Coming,
            2 => {
                let (ident, since_ms) = (reader.array()?, reader.number()?);
                State::Here { ident, since_ms, moment: reader.bytes()?.to_vec() }
            }
            3 => State::Withdrawn,
            4 => State::Used,
            5 => State::Lost,
            6 => State::Valid { since_ms: reader.number()?, lines: reader.bytes()?.to_vec() },
            _ => State::Unknown,
        };
        flight.entries.push(Entry { mark, state });
    }
    for _ in 0..reader.length()?.min(limits::OTHERS) {
        flight.others.push(String::from_utf8(reader.bytes()?.to_vec()).map_err(|_| Malformed)?);
    }
    for _ in 0..reader.length()?.min(limits::WRITTEN) {
        flight.written.push(u64::from_le_bytes(reader.array()?));
    }
    Ok(flight)
}

fn write(flight: &Flight) -> Vec<u8> {
    let mut out = flight.id.to_vec();
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
            State::Valid { .. } => 6,
        });
        match &entry.state {
            State::Here { ident, since_ms, moment } => {
                out.extend_from_slice(ident);
                put_number(&mut out, *since_ms);
                put_bytes(&mut out, moment);
            }
            State::Valid { since_ms, lines } => {
                put_number(&mut out, *since_ms);
                put_bytes(&mut out, lines);
            }
            State::Unknown | State::Coming | State::Withdrawn | State::Used | State::Lost => {}
        }
    }
    put_length(&mut out, flight.others.len());
    for url in &flight.others {
        put_bytes(&mut out, url.as_bytes());
    }
    put_length(&mut out, flight.written.len());
    for host in &flight.written {
        out.extend_from_slice(&host.to_le_bytes());
    }
    out
}

/// Opens a flight for the page `url`. Removes flights that are over. If there are too many, it removes the oldest
/// flight of the client that has the most, so that one client's pages do not end another's. Returns false if it did not
/// succeed.
pub(crate) fn open(board: &dyn Board, id: FlightId, client: u64, url: &str, now_ms: u64) -> bool {
    let (page, site) = (mark(&id, url), mark(&id, root(url)));
    let (mut place, mut freed) = (0, Vec::new());
    let listed = update(board, &list_name(client), |value| {
        let mut lines = read_lines(value).unwrap_or_default();
        freed = lines.iter().filter(|line| !line.is_open(now_ms)).map(|line| line.place).collect();
        lines.retain(|line| line.is_open(now_ms));
        while lines.len() >= limits::FLIGHTS_PER_LOG
            && let Some(at) = oldest_of_most(&lines)
        {
            freed.push(lines.remove(at).place);
        }
        place = (0..=u8::MAX).find(|place| lines.iter().all(|line| line.place != *place)).unwrap_or_default();
        lines.push(Line { id, client, started_ms: now_ms, page, site, place });
        Some(write_lines(&lines))
    });
    if !listed {
        return false;
    }
    for place in freed {
        board.set(&flight_name(client, place), &[], 0);
    }
    let is_open = board.set(&flight_name(client, place), &write(&Flight { id, ..Flight::default() }), 0);
    has_changed(board, client);
    is_open
}

fn oldest_of_most(lines: &[Line]) -> Option<usize> {
    let of = |client: u64| lines.iter().filter(|line| line.client == client).count();
    let most = lines.iter().map(|line| of(line.client)).max()?;
    lines.iter().position(|line| of(line.client) == most)
}

/// Removes a flight that is over.
pub(crate) fn close(board: &dyn Board, client: u64, id: &FlightId) {
    let mut freed = None;
    update(board, &list_name(client), |value| {
        let mut lines = read_lines(value).ok()?;
        let at = lines.iter().position(|line| line.id == *id)?;
        freed = Some(lines.remove(at).place);
        Some(write_lines(&lines))
    });
    if let Some(place) = freed {
        // Another flight may have begun in this place: only this flight is removed.
        update(board, &flight_name(client, place), |value| value.starts_with(id).then(Vec::new));
        has_changed(board, client);
    }
}

fn lines_of(board: &dyn Board, client: u64) -> Vec<Line> {
    let mut lines = read_lines(&board.get(&list_name(client)).0).unwrap_or_default();
    lines.retain(|line| line.client == client);
    lines
}

fn change_at(board: &dyn Board, client: u64, line: &Line, mut change: impl FnMut(&mut Flight) -> bool) -> bool {
    let mut has_it = false;
    let mut is_other = false;
    let done = update(board, &flight_name(client, line.place), |value| {
        let mut flight = read(value).ok().filter(|flight| flight.id == line.id)?;
        has_it = true;
        is_other = change(&mut flight);
        is_other.then(|| write(&flight))
    });
    if is_other {
        has_changed(board, client);
    }
    done && has_it
}

/// Notes that a client requested `url` on behalf of the page that `referrer` names, although no flight announced it.
pub(crate) fn note(board: &dyn Board, client: u64, referrer: &str, url: &str, now_ms: u64) {
    // A request for a URL in a style sheet has the style sheet as `Referer`.
    let path = referrer.split(['?', '#']).next().unwrap_or_default();
    let referrer = if path.to_ascii_lowercase().ends_with(".css") { root(referrer) } else { referrer };
    let is_of = |line: &&Line| [line.page, line.site].contains(&mark(&line.id, referrer)) && line.is_open(now_ms);
    let lines = lines_of(board, client);
    let Some(line) = lines.iter().rev().find(is_of) else { return };
    change_at(board, client, line, |flight| {
        let has_room = limits::have_room(flight.others.iter().map(String::as_str), url);
        let is_new = has_room && flight.others.iter().all(|other| other != url);
        if is_new {
            flight.others.push(url.to_owned());
        }
        is_new
    });
}

/// Notes that a client has sent an unsafe request to the host of `url`. Objects fetched earlier may differ from what
/// the host would send now.
pub(crate) fn written(board: &dyn Board, client: u64, url: &str, now_ms: u64) {
    let host = key(authority(url).as_bytes());
    for line in lines_of(board, client).iter().filter(|line| line.is_open(now_ms)) {
        change_at(board, client, line, |flight| {
            let is_new = !flight.written.contains(&host);
            if is_new && flight.written.len() < limits::WRITTEN {
                flight.written.push(host);
            } else if is_new {
                flight.entries.clear();
            }
            is_new
        });
    }
}

/// Changes one flight. Returns false if it is not known any more, or could not be changed.
pub(crate) fn change(board: &dyn Board, client: u64, id: &FlightId, mut change: impl FnMut(&mut Flight)) -> bool {
    let lines = lines_of(board, client);
    let Some(line) = lines.iter().find(|line| line.id == *id) else { return false };
    change_at(board, client, line, |flight| {
        change(flight);
        true
    })
}

/// Returns one flight, if it is still known.
pub(crate) fn flight(board: &dyn Board, client: u64, id: &FlightId) -> Option<Flight> {
    let line = lines_of(board, client).into_iter().find(|line| line.id == *id)?;
    read(&board.get(&flight_name(client, line.place)).0).ok().filter(|flight| flight.id == *id)
}

/// An object in a client's flights that a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) flight: FlightId,
    pub(crate) index: usize,
    pub(crate) state: State,
}

/// Returns the object at `url` in a client's flights for a request with this `Referer`. It is the newest object that
/// can serve the request, or else the newest of any state.
///
/// An object was fetched on behalf of one site, and serves only requests on behalf of that site. A request without
/// `Referer` counts for the newest page.
pub(crate) fn expected(
    board: &dyn Board,
    client: u64,
    referrer: Option<&str>,
    url: &str,
    now_ms: u64,
) -> Option<Expected> {
    let host = key(authority(url).as_bytes());
    let mut lines = lines_of(board, client);
    lines.retain(|line| line.is_open(now_ms));
    lines.reverse();
    let site_of = |line: &Line| referrer.map_or(line.site, |referrer| mark(&line.id, root(referrer)));
    if lines.iter().any(|line| site_of(line) == line.site) {
        lines.retain(|line| site_of(line) == line.site);
    }
    // Without `Referer`, only the newest page counts. For a style sheet on another site, a few pages do.
    lines.truncate(if referrer.is_some() { limits::PAGES_ASKED } else { 1 });
    let mut first = None;
    for line in lines {
        let Ok(flight) = read(&board.get(&flight_name(client, line.place)).0) else { continue };
        if flight.id != line.id || flight.written.contains(&host) {
            continue;
        }
        let wanted = object_mark(&line.id, &site_of(&line), url);
        let Some(index) = flight.entries.iter().position(|entry| entry.mark == wanted) else { continue };
        let Some(Entry { state, .. }) = flight.entries.into_iter().nth(index) else { continue };
        let found = Expected { flight: line.id, index, state };
        if matches!(found.state, State::Coming | State::Here { .. } | State::Valid { .. }) {
            return Some(found);
        }
        first.get_or_insert(found);
    }
    first
}

impl Flight {
    /// Returns the entry `index`. Creates it and all entries before it if needed.
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
    use proptest::prelude::*;
    use shared_board::Memory;

    const PAGE: &str = "http://p.test/d/";

    #[test]
    fn every_state_reads_back() {
        let states = [
            State::Unknown,
            State::Coming,
            State::Here { ident: [3; 24], since_ms: 1 << 41, moment: b"date".to_vec() },
            State::Withdrawn,
            State::Used,
            State::Lost,
            State::Valid { since_ms: 7, lines: b"date".to_vec() },
        ];
        let entries = states.into_iter().map(|state| Entry { mark: [9; 16], state }).collect();
        let others = vec!["http://a.test/".to_owned(), String::new()];
        let flight = Flight { id: [1; 16], entries, others, written: vec![7, u64::MAX] };
        assert_eq!(read(&write(&flight)), Ok(flight));
        let (page, site) = ([2; 16], [3; 16]);
        let line = Line { id: [1; 16], client: u64::MAX, started_ms: 1 << 41, page, site, place: 31 };
        assert_eq!(read_lines(&write_lines(&[line, line])), Ok(vec![line, line]));
    }

    /// Announces `url` in a flight for `page`.
    fn announce(board: &Memory, client: u64, id: FlightId, page: &str, url: &str) {
        assert!(change(board, client, &id, |flight| {
            let mark = object_mark(&id, &mark(&id, root(page)), url);
            let index = flight.entries.len();
            if let Some(entry) = flight.entry(index) {
                *entry = Entry { mark, state: State::Coming };
            }
        }));
    }

    #[test]
    fn a_client_expects_what_is_on_its_way_to_it_and_nobody_elses() {
        let board = Memory::default();
        let (one, other) = (7, 7 + limits::LOGS);
        assert!(open(&board, [1; 16], one, PAGE, 1000) && open(&board, [2; 16], other, PAGE, 1000));
        announce(&board, one, [1; 16], PAGE, "http://a.test/");
        let expect = |client, url, now_ms| expected(&board, client, Some(PAGE), url, now_ms);
        let found = expect(one, "http://a.test/", 2000).unwrap();
        assert_eq!((found.flight, found.index, found.state), ([1; 16], 0, State::Coming));
        assert_eq!(expect(one, "http://b.test/", 2000), None);
        assert_eq!(expect(other, "http://a.test/", 2000), None);
        assert_eq!(expect(one, "http://a.test/", 1000 + limits::FLIGHT_MS), None);
        assert_eq!(expect(one, "http://a.test/", 1000 - 2 * CLOCK_MS), None, "the clock stepped back");
    }

    #[test]
    fn an_object_is_for_requests_on_behalf_of_the_site_that_it_was_fetched_for() {
        let board = Memory::default();
        assert!(open(&board, [1; 16], 5, PAGE, 0));
        announce(&board, 5, [1; 16], PAGE, "http://a.test/x");
        announce(&board, 5, [1; 16], "http://cdn.test/s.css", "http://cdn.test/f");
        let is_there = |referrer, url| expected(&board, 5, referrer, url, 0).is_some();
        for (referrer, x, f) in [
            (Some(PAGE), true, false),
            (Some("http://p.test/"), true, false),
            (Some("http://p.test/another"), true, false),
            (Some("http://q.test/"), false, false),
            (Some("http://cdn.test/s.css"), false, true),
            (None, true, false),
        ] {
            assert_eq!(
                (is_there(referrer, "http://a.test/x"), is_there(referrer, "http://cdn.test/f")),
                (x, f),
                "{referrer:?}"
            );
        }
        assert!(open(&board, [2; 16], 5, "http://q.test/", 0));
        assert!(expected(&board, 5, None, "http://a.test/x", 0).is_none(), "another page is the newest");
    }

    #[test]
    fn a_write_to_a_host_withdraws_what_came_from_it() {
        let board = Memory::default();
        assert!(open(&board, [1; 16], 5, PAGE, 0) && open(&board, [2; 16], 6, PAGE, 0));
        for (client, id) in [(5, [1; 16]), (6, [2; 16])] {
            announce(&board, client, id, PAGE, "http://a.test/x");
            announce(&board, client, id, PAGE, "http://b.test/x");
        }
        written(&board, 5, "http://a.test/form", 0);
        let is_there = |client, url| expected(&board, client, Some(PAGE), url, 0).is_some();
        assert_eq!((is_there(5, "http://a.test/x"), is_there(5, "http://b.test/x")), (false, true));
        assert!(is_there(6, "http://a.test/x"), "another client's");
        for number in 0..20 {
            written(&board, 5, &format!("http://{number}.test/"), 0);
        }
        assert!(!is_there(5, "http://b.test/x"), "too many to tell");
    }

    #[test]
    fn flights_that_are_over_or_too_many_are_removed() {
        let board = Memory::default();
        let most = u8::try_from(limits::FLIGHTS_PER_LOG).unwrap();
        for number in 0..most + 8 {
            assert!(open(&board, [number; 16], 5, PAGE, u64::from(number)));
        }
        assert!(flight(&board, 5, &[7; 16]).is_none() && flight(&board, 5, &[8; 16]).is_some());
        close(&board, 5, &[8; 16]);
        assert!(flight(&board, 5, &[8; 16]).is_none());
        assert!(open(&board, [99; 16], 5, PAGE, limits::FLIGHT_MS * 2));
        assert!(flight(&board, 5, &[9; 16]).is_none() && flight(&board, 5, &[99; 16]).is_some());
        let sizes = board.sizes();
        assert!(sizes.len() <= limits::FLIGHTS_PER_LOG + 2, "{sizes:?}");
        assert!(sizes.iter().map(|(_, bytes)| bytes).sum::<usize>() < 200);
    }

    #[test]
    fn eight_flights_a_bucket_are_shared_by_all_clients_behind_one_address() {
        let board = Memory::default();
        for number in 0..20 {
            let page = format!("http://{number}.test/");
            assert!(open(&board, [number; 16], 5, &page, 0));
            announce(&board, 5, [number; 16], &page, "http://a.test/x");
        }
        for number in 0..20 {
            let referrer = format!("http://{number}.test/");
            assert!(expected(&board, 5, Some(&referrer), "http://a.test/x", 0).is_some(), "{number}");
        }
        // A client that opens many pages ends its own flights.
        assert!(open(&board, [100; 16], 5 + limits::LOGS, PAGE, 0));
        for number in 30..90 {
            assert!(open(&board, [number; 16], 5, PAGE, 0));
        }
        assert!(flight(&board, 5 + limits::LOGS, &[100; 16]).is_some());
    }

    #[test]
    fn of_two_visits_behind_one_address_each_finds_its_own() {
        let board = Memory::default();
        for id in [[1; 16], [2; 16]] {
            assert!(open(&board, id, 5, PAGE, 0));
            announce(&board, 5, id, PAGE, "http://a.test/x");
        }
        for id in [[2; 16], [1; 16]] {
            let found = expected(&board, 5, Some(PAGE), "http://a.test/x", 0).unwrap();
            assert_eq!((found.flight, &found.state), (id, &State::Coming));
            change(&board, 5, &id, |flight| flight.entries[0].state = State::Used);
        }
        assert_eq!(expected(&board, 5, Some(PAGE), "http://a.test/x", 0).unwrap().state, State::Used);
    }

    #[test]
    fn a_held_request_sees_every_change() {
        let board = Memory::default();
        let mut last = turn(&board, 5);
        let mut is_new = || std::mem::replace(&mut last, turn(&board, 5)) != turn(&board, 5);
        assert!(!is_new());
        assert!(open(&board, [1; 16], 5, PAGE, 0) && is_new());
        announce(&board, 5, [1; 16], PAGE, "http://a.test/x");
        assert!(is_new());
        written(&board, 5, "http://a.test/", 0);
        assert!(is_new());
        expected(&board, 5, None, "http://a.test/x", 0);
        assert!(!is_new());
        close(&board, 5, &[1; 16]);
        assert!(is_new());
    }

    #[test]
    fn requests_on_behalf_of_a_page_are_noted_once_with_its_newest_flight_and_bounded() {
        let board = Memory::default();
        assert!(open(&board, [1; 16], 5, PAGE, 0) && open(&board, [2; 16], 5, "http://p.test/e", 0));
        for (client, referrer, url) in [
            (5, PAGE, "http://p.test/one"),
            (5, PAGE, "http://p.test/one"),
            (5, "http://p.test/", "http://cdn.test/two"),
            (5, "http://other.test/", "http://p.test/three"),
            (6, "http://p.test/", "http://p.test/four"),
            (5 + limits::LOGS, "http://p.test/", "http://p.test/five"),
        ] {
            note(&board, client, referrer, url, 1000);
        }
        note(&board, 5, PAGE, "http://p.test/late", limits::FLIGHT_MS);
        let others = |id| flight(&board, 5, &[id; 16]).unwrap().others;
        assert_eq!(
            (others(1), others(2)),
            (vec!["http://p.test/one".to_owned()], vec!["http://cdn.test/two".to_owned()])
        );
        for number in 0..100 {
            note(&board, 5, PAGE, &format!("http://p.test/{number}"), 1000);
        }
        assert_eq!(others(1).len(), limits::OTHERS);
        note(&board, 5, "http://p.test/e", &"x".repeat(limits::OTHERS_BYTES), 1000);
        assert_eq!(others(2).len(), 1);
    }

    proptest! {
        #[test]
        fn hostile_values_are_refused_or_bounded(value: Vec<u8>) {
            let _ = read_lines(&value);
            if let Ok(flight) = read(&value) {
                prop_assert!(flight.entries.len() <= limits::ENTRIES && flight.others.len() <= limits::OTHERS);
            }
        }
    }
}
