//! The values that all workers of an end share, the bytes that they take at every moment, and the clock of the end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use shared_board::{Board, Memory};

use crate::laws::Broken;
use crate::orders::End;
use crate::origin::SECRET;

/// The bytes of bases: four pages of each of four sites (`delta::limits::PAGES`), and their list. Runs held 35,419 at most
/// (2026-11-28). Pages of the origins have up to 2,700 bytes.
const BASES_BYTES: usize = 44_000;
/// The bytes of one client's flights at the remote. 32 flights (`limits::FLIGHTS_PER_LOG`) of the origins' pages are
/// up to 80,600 bytes, with what their visitor requested (2026-11-28). Without that bound, one client could fill the board
/// with pages that it opens.
const CLIENT_BYTES: usize = 96_000;
/// The bytes of everything else: flights of all clients, lessons, and names of objects that a remote has. Five
/// clients hold up to 403,000 bytes of flights. Runs of 60 seeds held 228,527 at most (2026-11-28).
const OTHER_BYTES: usize = 460_000;
/// The bytes of a place beside its object: a line of the list with 24 bytes of a name, a number and a size, and the name of a
/// value. An empty place has a name, too. A shelf of 1 MiB holds about 250 of the origins' objects, and at most
/// 2048 (`limits::SHELF_OBJECTS`).
const PLACE_BYTES: usize = 48;

/// The board and the clock of an end.
#[derive(Debug)]
pub(crate) struct EndBoard {
    values: Memory,
    end: End,
    /// Bytes that objects may take.
    store_bytes: usize,
    held: RefCell<Held>,
    /// The first value for all clients that has a client's secret in it.
    secret: RefCell<Option<String>>,
    /// How far the clock of the end has stepped, in milliseconds.
    stepped_ms: Cell<i64>,
}

/// The bytes of a board by purpose.
#[derive(Debug, Default)]
struct Held {
    objects: usize,
    /// Places for objects.
    places: usize,
    bases: usize,
    others: usize,
    /// The flights of clients that share a list.
    clients: BTreeMap<String, usize>,
    /// The most that one of these lists had.
    most_of_client: usize,
}

/// The most bytes that a board held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Most {
    /// Objects.
    pub objects: usize,
    /// Bases of pages.
    pub bases: usize,
    /// Flights, lessons and names of objects.
    pub others: usize,
    /// Flights of one client.
    pub of_client: usize,
}

impl Most {
    /// The larger value of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            objects: self.objects.max(other.objects),
            bases: self.bases.max(other.bases),
            others: self.others.max(other.others),
            of_client: self.of_client.max(other.of_client),
        }
    }
}

impl EndBoard {
    pub(crate) fn new(end: End, store_bytes: u64) -> Self {
        let store_bytes = usize::try_from(store_bytes).unwrap_or(usize::MAX);
        let (values, held, secret, stepped_ms) = Default::default();
        Self { values, end, store_bytes, held, secret, stepped_ms }
    }

    /// Steps the clock.
    pub(crate) fn step(&self, ms: i64) {
        self.stepped_ms.set(self.stepped_ms.get().saturating_add(ms));
    }

    /// Returns the time of this end at a moment of the simulation.
    pub(crate) fn clock_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add_signed(self.stepped_ms.get())
    }

    /// Keeps only the values that `keep` names.
    pub(crate) fn retain(&self, keep: impl FnMut(&str) -> bool) {
        self.values.retain(keep);
        let mut held = Held::default();
        for (name, bytes) in self.values.sizes() {
            held.add(&name, 0, name.len() + bytes);
        }
        *self.held.borrow_mut() = held;
    }

    /// Judges the bytes until now, and returns them.
    pub(crate) fn judge(&self) -> Result<Most, Broken> {
        if let Some(name) = self.secret.take() {
            return Err(Broken::ForeignSecret(format!("the {:?} keeps it for all clients, as {name}", self.end)));
        }
        let held = self.held.borrow();
        let rows = [
            (held.objects, self.store_bytes.saturating_add(held.places * PLACE_BYTES), "of objects"),
            (held.bases, BASES_BYTES, "of bases"),
            (held.others, OTHER_BYTES, "of others"),
        ];
        if let Some((bytes, most, what)) = rows.into_iter().find(|(bytes, most, _)| bytes > most) {
            return Err(Broken::Memory(format!("the {:?} holds {bytes} bytes {what}, more than {most}", self.end)));
        }
        if held.most_of_client > CLIENT_BYTES {
            let seen = format!("the {:?} holds {} bytes of one client", self.end, held.most_of_client);
            return Err(Broken::ClientMemory(seen));
        }
        Ok(Most { objects: held.objects, bases: held.bases, others: held.others, of_client: held.most_of_client })
    }
}

impl Board for EndBoard {
    fn get(&self, name: &str) -> (Vec<u8>, u32) {
        self.values.get(name)
    }

    fn set(&self, name: &str, value: &[u8], version: u32) -> bool {
        let (before, known) = self.values.get(name);
        let is_set = self.values.set(name, value, version);
        if is_set {
            let before = if known == 0 { 0 } else { name.len() + before.len() };
            self.held.borrow_mut().add(name, before, name.len() + value.len());
            let is_for_all = name.starts_with("object/") || name.starts_with("base/");
            if is_for_all && value.windows(SECRET.len()).any(|part| part == SECRET) {
                self.secret.replace(Some(name.to_owned()));
            }
        }
        is_set
    }
}

impl Held {
    /// Replaces `before` bytes of a value by `after`.
    fn add(&mut self, name: &str, before: usize, after: usize) {
        let (kind, rest) = name.split_once('/').unwrap_or((name, ""));
        let sum = match kind {
            "object" | "shelf" => &mut self.objects,
            "base" | "bases" => &mut self.bases,
            _ => &mut self.others,
        };
        *sum = sum.saturating_add(after).saturating_sub(before);
        if kind == "object" {
            self.places = (self.places + usize::from(before == 0)).saturating_sub(usize::from(after == 0));
        }
        if let "flight" | "log" = kind {
            let list = rest.split('/').next().unwrap_or_default();
            let of_client = self.clients.entry(list.to_owned()).or_default();
            *of_client = of_client.saturating_add(after).saturating_sub(before);
            self.most_of_client = self.most_of_client.max(*of_client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_by_purpose_and_a_client_beyond_its_budget_is_seen() {
        let board = EndBoard::new(End::Remote, 100);
        for (name, bytes) in [("object/0", 50), ("object/0", 40), ("base/1", 30), ("flight/7/0", 20), ("flight/7/1", 5)]
        {
            assert!(board.set(name, &vec![0; bytes], 0));
        }
        let held = board.judge().unwrap();
        assert_eq!((held.objects, held.bases, held.others, held.of_client), (48, 36, 45, 45));
        board.retain(|name| name != "object/0");
        assert_eq!(board.judge().unwrap().objects, 0);
        board.set("flight/7/2", &vec![0; CLIENT_BYTES], 0);
        assert!(matches!(board.judge(), Err(Broken::ClientMemory(_))));
        let secret = crate::origin::secret("c1-s1");
        board.set("flight/7/3", secret.as_bytes(), 0);
        assert!(matches!(board.judge(), Err(Broken::ClientMemory(_))));
        board.set("base/2", secret.as_bytes(), 0);
        assert!(matches!(board.judge(), Err(Broken::ForeignSecret(_))));
        board.set("object/1", &[0; 9000], 0);
        assert!(matches!(board.judge(), Err(Broken::Memory(_))));
    }
}
