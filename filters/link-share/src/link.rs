//! The order of the streams of one link, in one direction.

use std::collections::HashMap;
use std::time::Duration;

use crate::Subscriber;
use crate::account::{ALL, Account, BULK, StreamId};
use crate::allowance::Allowance;
use crate::burst::{self, FIRST, Rank};
use crate::cost::on_link;

/// The time of silence after which a stream counts as new: a person typed the next command, or opened the next page.
const PAUSE: Duration = Duration::from_secs(1);

/// The time for which one turn of a large stream may fill the link. All others wait for as long.
const TURN: Duration = Duration::from_millis(50);

/// The bytes that a large stream may hold on any link. On a slow one, turns of [`TURN`] would be all headers.
const LEAST_HELD: u64 = 16 * 1024;

/// The time in which a connection sends what it may still have when a large stream has its turn, and the least such bytes.
const UNSENT: Duration = Duration::from_millis(50);
const LEAST_UNSENT: u64 = 4 * 1024;

/// The time between two looks at the connections, while one of them has more.
const LOOK: Duration = Duration::from_millis(50);

/// The bytes of pages that pass downloads, for each byte of a download.
const PAGES_TO_DOWNLOADS: u64 = 3;

/// The parts of a byte in virtual time, for a client of one tenth. Fewer would be wrong by a hundredth for small pieces.
const PARTS: u128 = 10_000;

/// The number of clients without a stream that are remembered while they are ahead of the others.
const MOST_ABSENT: usize = 4096;

/// The treatment of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent now.
    Pass,
    /// It waits, until [`Link::turns`] returns its stream.
    Wait,
}

#[derive(Debug)]
struct Stream {
    client: Subscriber,
    tenths: u32,
    /// Bytes sent since the last pause.
    sent: u64,
    sent_at: Duration,
    /// The bytes that wait.
    waits: Option<u64>,
    connection: Connection,
}

/// The state of the connection that a stream crosses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    /// It takes bytes, and a piece passes where the link is free.
    Free,
    /// It takes no more bytes.
    Full,
    /// It takes bytes again, and the stream has had no turn since.
    FreeAgain,
}

impl Stream {
    /// Returns true if the stream is among those that have a turn.
    fn is_in_order(&self) -> bool {
        self.waits.is_some() && self.connection != Connection::Full
    }
}

/// The order of the streams of a link.
#[derive(Debug)]
pub struct Link {
    allowance: Allowance,
    streams: HashMap<StreamId, Stream>,
    accounts: HashMap<Subscriber, Account>,
    /// The virtual time of the client that was served last.
    virtual_time: u128,
    /// The number of streams that wait for a turn.
    waiting: usize,
    /// The bytes of pages that may pass before the next piece of a download.
    before_downloads: u64,
    /// True while a connection has more to send than [`UNSENT`].
    is_backed_up: bool,
    next_id: u64,
}

impl Link {
    /// Returns an idle link of `bytes_per_second`, or without a limit. Times are those of any clock that does not step.
    #[must_use]
    pub fn new(bytes_per_second: Option<u64>, now: Duration) -> Self {
        Self {
            allowance: Allowance::new(bytes_per_second, now),
            streams: HashMap::new(),
            accounts: HashMap::new(),
            virtual_time: 0,
            waiting: 0,
            before_downloads: 0,
            is_backed_up: false,
            next_id: 0,
        }
    }

    /// Changes the rate.
    pub fn set_rate(&mut self, bytes_per_second: Option<u64>, now: Duration) {
        if bytes_per_second != self.allowance.rate() {
            self.allowance.set_rate(bytes_per_second, now);
        }
    }

    /// Changes the weights of all streams, in tenths of the usual one.
    pub fn weigh(&mut self, tenths: impl Fn(Subscriber) -> u32) {
        for stream in self.streams.values_mut() {
            stream.tenths = tenths(stream.client).max(1);
        }
    }

    /// Adds a stream of a client with a weight in tenths of the usual one.
    pub fn open(&mut self, client: Subscriber, tenths: u32, now: Duration) -> StreamId {
        let id = StreamId(self.next_id);
        self.next_id += 1;
        let (tenths, connection) = (tenths.max(1), Connection::Free);
        let stream = Stream { client, tenths, sent: 0, sent_at: now, waits: None, connection };
        self.streams.insert(id, stream);
        self.accounts.entry(client).or_default().streams += 1;
        id
    }

    /// Removes a stream. It may wait, and then its bytes are never sent.
    pub fn close(&mut self, id: StreamId, now: Duration) {
        let Some(stream) = self.streams.remove(&id) else { return };
        if let Some(account) = self.accounts.get_mut(&stream.client) {
            account.streams = account.streams.saturating_sub(1);
            account.holding = account.holding.saturating_sub(usize::from(stream.waits.is_some()));
            if stream.is_in_order() {
                account.leave(id);
                self.waiting = self.waiting.saturating_sub(1);
            }
        }
        self.forget(now);
    }

    /// Forgets clients without a stream, unless they are ahead of the others or have less than a new client: a client that opens a
    /// stream for each request would lose its debt each time.
    fn forget(&mut self, now: Duration) {
        let (virtual_time, allowance) = (self.virtual_time, &self.allowance);
        self.accounts.retain(|_, account| {
            account.streams > 0 || account.served > virtual_time || !account.burst.is_as_new(now, allowance)
        });
        if self.accounts.values().filter(|account| account.streams == 0).count() > MOST_ABSENT {
            self.accounts.retain(|_, account| account.streams > 0);
        }
    }

    /// Takes a piece of `bytes` that a stream has. A stream that waits has more bytes then.
    pub fn offer(&mut self, id: StreamId, bytes: u64, now: Duration) -> Verdict {
        // What the link owes shrinks as the allowance is read.
        let has_any = self.allowance.has_any(now);
        let is_free = self.waiting == 0 && !self.is_backed_up && has_any;
        self.resume(id, now);
        let Some(stream) = self.streams.get_mut(&id) else { return Verdict::Pass };
        if let Some(waits) = &mut stream.waits {
            *waits = waits.saturating_add(bytes);
            return Verdict::Wait;
        }
        if now.saturating_sub(stream.sent_at) >= PAUSE {
            stream.sent = 0;
        }
        if bytes == 0 || (is_free && stream.connection == Connection::Free) {
            self.charge(id, bytes, now);
            return Verdict::Pass;
        }
        if self.may_borrow(id, bytes) {
            self.borrow(id, bytes, now);
            return Verdict::Pass;
        }
        let Some(stream) = self.streams.get_mut(&id) else { return Verdict::Pass };
        stream.waits = Some(bytes);
        if let Some(account) = self.accounts.get_mut(&stream.client) {
            account.holding += 1;
            if stream.is_in_order() {
                account.wait(id, stream.sent);
                self.waiting += 1;
            }
        }
        Verdict::Wait
    }

    /// Counts the silence of a stream's client, which has more to send, if nothing of it waits.
    fn resume(&mut self, id: StreamId, now: Duration) {
        let Some(stream) = self.streams.get(&id) else { return };
        if let Some(account) = self.accounts.get_mut(&stream.client).filter(|account| account.holding == 0) {
            account.burst.resume(now, &self.allowance);
        }
    }

    /// The connection of a stream takes no more bytes. Bytes that had their turn would wait in the connection, where they are in
    /// nobody's order and the bytes of a page come behind those of a download. So the stream waits, and others have their turn.
    ///
    /// With room again, its next piece waits for a turn, too. The first stream that Envoy reads would fill the connection, and that
    /// may be the same one each time.
    pub fn hold_up(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.is_in_order()
            && let Some(account) = self.accounts.get_mut(&stream.client)
        {
            account.leave(id);
            self.waiting = self.waiting.saturating_sub(1);
        }
        stream.connection = Connection::Full;
    }

    /// The connection of a stream takes bytes again. The stream has the first place among those of its client and its class.
    pub fn release(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.connection != Connection::Full {
            return;
        }
        stream.connection = Connection::FreeAgain;
        if stream.is_in_order()
            && let Some(account) = self.accounts.get_mut(&stream.client)
        {
            account.wait_first(id, stream.sent);
            self.waiting += 1;
        }
    }

    /// Takes the most bytes that a connection over the link has not sent yet. BBR pauses a connection for a round trip every
    /// ten seconds, and a limit of almost the whole link never drains what has come meanwhile. The bytes of a page would stand
    /// behind it. So large streams wait for it.
    pub fn set_unsent(&mut self, bytes: u64) {
        let most = self.allowance.in_time(UNSENT).map_or(u64::MAX, |bytes| bytes.max(LEAST_UNSENT));
        self.is_backed_up = bytes > most;
    }

    /// Counts a piece of `bytes` that a stream sends before all pieces that wait.
    pub fn pass(&mut self, id: StreamId, bytes: u64, now: Duration) {
        // The allowance grows as it is read.
        self.allowance.has_any(now);
        self.resume(id, now);
        self.charge(id, bytes, now);
    }

    /// Returns true if a piece may pass while the link pays for a turn of a large stream. That takes a quarter of a second of a
    /// slow uplink, and a page over https waits for it in each of its round trips.
    ///
    /// Only the first bytes of a stream may. The link owes two turns at most. A client is one turn ahead of those that wait at most,
    /// or two turns while only its own streams wait: one is that of its own upload.
    fn may_borrow(&self, id: StreamId, bytes: u64) -> bool {
        let Some(stream) = self.streams.get(&id) else { return false };
        let Some(account) = self.accounts.get(&stream.client) else { return false };
        let (cost, turn) = (on_link(bytes), on_link(self.turn_bytes()));
        let owed_at_most = turn.saturating_mul(2);
        let ahead_at_most = if self.waiting > account.waiting() { turn } else { owed_at_most };
        let ahead = account.served.saturating_sub(self.virtual_time);
        stream.connection == Connection::Free
            && stream.sent.saturating_add(bytes) <= FIRST
            && self.allowance.owed().saturating_add(cost) <= owed_at_most
            && ahead.saturating_add(in_parts(cost, stream.tenths)) <= in_parts(ahead_at_most, stream.tenths)
    }

    /// Sends a piece before its client's turn. The clients that wait stay where they are in the order.
    fn borrow(&mut self, id: StreamId, bytes: u64, now: Duration) {
        let virtual_time = self.virtual_time;
        self.charge(id, bytes, now);
        self.virtual_time = virtual_time;
    }

    fn charge(&mut self, id: StreamId, bytes: u64, now: Duration) {
        let most_saved = burst::most(&self.allowance);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let cost = on_link(bytes);
        self.allowance.take(cost);
        stream.sent = stream.sent.saturating_add(bytes);
        stream.sent_at = now;
        if stream.connection == Connection::FreeAgain {
            stream.connection = Connection::Free;
        }
        let Some(account) = self.accounts.get_mut(&stream.client) else { return };
        let unsaved = account.burst.pay(cost, stream.tenths, most_saved, now);
        if unsaved == 0 {
            return;
        }
        let start = account.served.max(self.virtual_time);
        account.served = start.saturating_add(in_parts(unsaved, stream.tenths));
        self.virtual_time = start;
    }

    /// Returns the next stream that may send all that it holds, if one may at `now`.
    pub fn turn(&mut self, now: Duration) -> Option<StreamId> {
        if self.waiting == 0 || !self.allowance.has_any(now) {
            return None;
        }
        let classes = if self.is_backed_up { 1 } else { ALL };
        let (client, rank) = self.next_client(classes)?;
        let account = self.accounts.get_mut(&client)?;
        let id = account.next(classes)?;
        account.holding = account.holding.saturating_sub(1);
        self.waiting = self.waiting.saturating_sub(1);
        let bytes = self.streams.get_mut(&id).and_then(|stream| stream.waits.take()).unwrap_or_default();
        self.before_downloads = match rank {
            Rank::Rest => on_link(bytes).saturating_mul(PAGES_TO_DOWNLOADS),
            Rank::First | Rank::Page { .. } => self.before_downloads.saturating_sub(on_link(bytes)),
        };
        self.charge(id, bytes, now);
        Some(id)
    }

    /// Returns the client that is next among those with a stream of the first `classes` that waits, and its rank.
    fn next_client(&self, classes: usize) -> Option<(Subscriber, Rank)> {
        let (is_download_due, most_saved) = (self.before_downloads == 0, burst::most(&self.allowance));
        let waiting =
            self.accounts.iter().filter(|(_, account)| account.has_waiting(classes)).map(|(client, account)| {
                let rank = account.burst.rank(most_saved);
                // Clients that have returned from idleness are equal, and their order must not depend on the table's.
                (is_download_due && rank != Rank::Rest, rank, account.served.max(self.virtual_time), *client)
            });
        waiting.min().map(|(_, rank, _, client)| (client, rank))
    }

    /// Returns the bytes that a large stream may hold while it waits, because its turn sends all of them. None: the stream is
    /// small, and may hold what its buffer takes.
    #[must_use]
    pub fn most_held(&self, id: StreamId) -> Option<u64> {
        let is_bulk = self.streams.get(&id).is_some_and(|stream| stream.sent >= BULK);
        is_bulk.then(|| self.turn_bytes())
    }

    /// Returns the bytes of one turn of a large stream.
    fn turn_bytes(&self) -> u64 {
        self.allowance.in_time(TURN).map_or(LEAST_HELD, |bytes| bytes.max(LEAST_HELD))
    }

    /// Returns the time from the last look until [`Self::turn`] may have a stream. None: no stream waits for a turn.
    #[must_use]
    pub fn until_turn(&self) -> Option<Duration> {
        let least = if self.is_backed_up { LOOK } else { Duration::ZERO };
        (self.waiting > 0).then(|| self.allowance.wait().max(least))
    }
}

/// Returns the virtual time that bytes on the link take of a client with a weight in tenths.
fn in_parts(bytes: u64, tenths: u32) -> u128 {
    u128::from(bytes) * PARTS / u128::from(tenths)
}
