//! The remote's half of the protocol. It compresses requests, decompresses responses, and decides which exchanges both
//! ends remember.
//!
//! A request may refer only to exchanges whose response has come back: by then the ground held the request, and the
//! remote holds the response. So the response is the acknowledgement, and it costs no byte. The shared past belongs to
//! one client and to one connection of the pipe, because the ground's state lives in the worker that serves the
//! connection.
//!
//! A response refers to the view that its request named. The stream holds that view until it ends, so the response
//! always decompresses.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::block::Block;
use crate::coder::Encoder;
use crate::dictionary::Dictionary;
use crate::error::{DecodeError, Unpackable};
use crate::exchange::{Exchange, Side, View};
use crate::limits;
use crate::message::{self, APPENDED, EPOCHS, FollowingHead, Kind, OpeningHead, VIEWS};
use crate::scene::Setting;
use crate::session;

/// The remote's half of the protocol.
#[derive(Debug)]
pub struct Remote {
    dictionary: Rc<Dictionary>,
    session: u32,
    limit: usize,
    clients: HashMap<Vec<u8>, usize>,
    slots: Vec<Client>,
    clock: u64,
}

/// The state of one client.
#[derive(Debug, Default)]
struct Client {
    key: Vec<u8>,
    epoch: u64,
    next: u64,
    used: u64,
    logs: Vec<(Vec<u8>, Log)>,
}

/// The shared past of one client on one connection of the pipe.
#[derive(Debug)]
struct Log {
    view: Rc<View>,
    /// The number of the latest view that the ground is known to have.
    confirmed: u64,
    /// The differences that made the later views, one for each view after `confirmed`.
    appended: VecDeque<i64>,
    /// Complete exchanges that no view holds yet; `complete` bounds them.
    completed: VecDeque<Rc<Exchange>>,
    completed_bytes: usize,
}

impl Log {
    fn new() -> Self {
        Self {
            view: session::empty_view(),
            confirmed: 0,
            appended: VecDeque::new(),
            completed: VecDeque::new(),
            completed_bytes: 0,
        }
    }

    /// Keeps a complete exchange for a view. The oldest ones make room: a view would drop them, or the ground has
    /// dropped them.
    fn complete(&mut self, exchange: Exchange) {
        self.completed_bytes += exchange.bytes();
        self.completed.push_back(Rc::new(exchange));
        while self.completed.len() > limits::PENDING || self.completed_bytes > limits::VIEW_BYTES {
            if self.next_completed().is_none() {
                return;
            }
        }
    }

    fn next_completed(&mut self) -> Option<Rc<Exchange>> {
        let exchange = self.completed.pop_front()?;
        self.completed_bytes = self.completed_bytes.saturating_sub(exchange.bytes());
        Some(exchange)
    }

    /// Moves completed exchanges into the view, at most as many as one message can announce.
    fn advance(&mut self, next: u64) {
        while self.appended.len() < APPENDED {
            let Some(exchange) = self.next_completed() else { return };
            if next.saturating_sub(exchange.number()) > limits::LATEST_PENDING {
                continue;
            }
            self.appended.push_back(difference(self.view.newest_number(), exchange.number()));
            self.view = Rc::new(self.view.with(exchange));
        }
    }

    fn confirm(&mut self, view: u64) {
        while self.confirmed < view {
            self.confirmed += 1;
            self.appended.pop_front();
        }
    }
}

/// Returns the difference of `number` from `before + 1`.
fn difference(before: u64, number: u64) -> i64 {
    i64::try_from(number).unwrap_or(0) - i64::try_from(before).unwrap_or(0) - 1
}

/// A pending request, with the state that decompresses its response.
#[derive(Debug, Clone)]
pub struct Pending {
    session: u32,
    slot: usize,
    epoch: u64,
    number: u64,
    following: bool,
    view: Rc<View>,
    request: Rc<Block>,
}

impl Pending {
    /// Returns true if the request refers to exchanges that the ground should remember.
    pub(crate) fn refers(&self) -> bool {
        self.following
    }
}

/// Connections of the pipe for which the remote remembers a client.
const LOGS: usize = 4;

impl Remote {
    /// Returns a remote that remembers at most `clients` clients. `session` is a random number. It distinguishes this
    /// remote from an earlier one on the same connections.
    pub fn new(dictionary: Rc<Dictionary>, session: u32, clients: usize) -> Self {
        Self { dictionary, session, limit: clients.max(1), clients: HashMap::new(), slots: Vec::new(), clock: 0 }
    }

    /// Compresses a request of `client`. `pipe` is the connection that it will use, if it may refer to earlier
    /// exchanges. Any ground can decompress a request without `pipe`.
    pub fn pack(
        &mut self,
        client: &[u8],
        pipe: Option<&[u8]>,
        block: Rc<Block>,
    ) -> Result<(Vec<u8>, Pending), Unpackable> {
        let slot = self.slot(client);
        let dictionary = Rc::clone(&self.dictionary);
        let session = self.session;
        let client = self.slots.get_mut(slot).ok_or(Unpackable::TooLarge)?;
        client.next += 1;
        let (number, epoch) = (client.next, client.epoch);
        let id = u64::try_from(slot).unwrap_or(0);
        let log = pipe.and_then(|pipe| client.logs.iter_mut().find(|(key, _)| key == pipe)).map(|(_, log)| log);
        let mut coder = Encoder::new(&dictionary);
        let (kind, view) = if let Some(log) = log {
            log.advance(number);
            let head = FollowingHead {
                client: id,
                view: log.view.number % VIEWS,
                appended: log.appended.iter().copied().collect(),
                exchange: number.saturating_sub(log.view.newest_number() + 1),
            };
            head.code(&mut coder).map_err(|_| Unpackable::TooLarge)?;
            (Kind::Following, Rc::clone(&log.view))
        } else {
            OpeningHead { session, client: id, epoch, exchange: number }.code(&mut coder);
            (Kind::Opening, session::empty_view())
        };
        let seed = message::seed(session, id, epoch, number, view.number);
        let setting = Setting { side: Side::Request, view: &view, request: None };
        let field = session::pack_block(coder, message::first(kind), &dictionary, setting, &block, seed)?;
        let following = kind == Kind::Following;
        Ok((field, Pending { session, slot, epoch, number, following, view, request: block }))
    }

    /// Decompresses the response to a request. `pipe` is the connection that it came in on. Later requests may refer to
    /// the exchange from now on.
    pub fn unpack(&mut self, pending: Pending, pipe: &[u8], field: &[u8]) -> Result<Block, DecodeError> {
        let Pending { session, slot, epoch, number, view, request, .. } = pending;
        let id = u64::try_from(slot).unwrap_or(0);
        let seed = message::seed(session, id, epoch, number, view.number);
        let response = session::unpack_answer(&self.dictionary, &view, &request, seed, field)?;
        let current = session == self.session;
        if let Some(client) = self.slots.get_mut(slot).filter(|client| current && client.epoch == epoch) {
            let exchange = Exchange::new(number, request, response.clone());
            if let Some(log) = client.log(pipe) {
                log.confirm(view.number);
                if exchange.bytes() <= limits::EXCHANGE_BYTES {
                    log.complete(exchange);
                }
            }
        }
        Ok(response)
    }

    /// Forgets the shared past of the client that sent this request, because the ground does not hold it.
    pub fn forget(&mut self, pending: &Pending) {
        let current = pending.session == self.session;
        let client = self.slots.get_mut(pending.slot);
        if client.is_some_and(|client| current && client.epoch == pending.epoch) {
            self.restart(pending.slot);
        }
    }

    /// Restarts a client, or another one in its place. When the epochs of a number are used up, the remote begins the
    /// next session with all clients. So a ground never confuses the pasts of two clients.
    fn restart(&mut self, slot: usize) {
        let Some(client) = self.slots.get_mut(slot) else { return };
        client.restart();
        if client.epoch == 0 {
            self.session = self.session.wrapping_add(1);
            for client in &mut self.slots {
                client.logs.clear();
            }
        }
    }

    /// Returns the slot of the client. If there is none, the least recently used client makes room.
    fn slot(&mut self, key: &[u8]) -> usize {
        self.clock += 1;
        let clock = self.clock;
        if let Some(slot) = self.clients.get(key).copied() {
            if let Some(client) = self.slots.get_mut(slot) {
                client.used = clock;
            }
            return slot;
        }
        let slot = if self.slots.len() < self.limit {
            self.slots.push(Client::default());
            self.slots.len() - 1
        } else {
            let oldest = self.slots.iter().enumerate().min_by_key(|(_, client)| client.used);
            oldest.map_or(0, |(slot, _)| slot)
        };
        self.restart(slot);
        if let Some(client) = self.slots.get_mut(slot) {
            self.clients.remove(&client.key);
            client.key = key.to_vec();
            client.used = clock;
        }
        self.clients.insert(key.to_vec(), slot);
        slot
    }
}

impl Client {
    fn restart(&mut self) {
        self.epoch = (self.epoch + 1) % EPOCHS;
        self.logs.clear();
        self.next = 0;
    }

    /// Returns the log of a connection. If there is none, the oldest log makes room.
    fn log(&mut self, pipe: &[u8]) -> Option<&mut Log> {
        let found = self.logs.iter().position(|(key, _)| key == pipe);
        let at = found.unwrap_or_else(|| {
            if self.logs.len() >= LOGS {
                self.logs.remove(0);
            }
            self.logs.push((pipe.to_vec(), Log::new()));
            self.logs.len() - 1
        });
        self.logs.get_mut(at).map(|(_, log)| log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::Ground;
    use proptest::prelude::*;

    fn block(fields: &[(&str, &str)]) -> Block {
        Block::from_fields(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))).unwrap()
    }

    fn request(number: usize, padding: usize) -> Rc<Block> {
        let path = format!("/{number}?{}", "x".repeat(padding));
        Rc::new(block(&[(":method", "POST"), (":scheme", "http"), (":authority", "www.example.org"), (":path", &path)]))
    }

    impl Log {
        /// Returns the number and the bytes of exchanges held beside the view.
        fn waiting(&self) -> (usize, usize) {
            (self.completed.len(), self.completed.iter().map(|exchange| exchange.bytes()).sum())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4))]

        /// Requests whose connection is unknown announce nothing, so the completed exchanges must not wait for them.
        #[test]
        fn the_remotes_memory_stays_bounded_under_uploads(
            refers in 0..=1000_u64,
            padding in prop_oneof![Just(0_usize), Just(200), Just(1500)],
            seed in any::<u64>(),
        ) {
            let dictionary = Rc::new(Dictionary::first().unwrap());
            let mut remote = Remote::new(Rc::clone(&dictionary), 1, 4);
            let mut ground = Ground::new(dictionary, 4);
            let mut random = seed | 1;
            let mut draw = || {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random
            };
            let mut under_way = VecDeque::new();
            for number in 0..600 {
                let named = draw() % 1000 < refers;
                let pipe = named.then_some(&b"pipe"[..]);
                let (field, pending) = remote.pack(b"client", pipe, request(number, padding)).unwrap();
                match ground.unpack(b"pipe", &field) {
                    Ok(answering) => under_way.push_back((answering, pending)),
                    Err(error) => {
                        prop_assert_eq!(error, DecodeError::UnknownHistory);
                        remote.forget(&pending);
                    }
                }
                // Responses arrive in an order of their own.
                while under_way.len() > 5 {
                    let at = usize::try_from(draw()).unwrap_or(0) % under_way.len();
                    let (answering, pending) = under_way.remove(at).unwrap();
                    let response = [(":status", "200"), ("server", "nginx"), ("date", "Sat, 14 Nov 2026 09:12:41 GMT")];
                    let field = ground.pack(answering, block(&response)).unwrap();
                    prop_assert!(remote.unpack(pending, b"pipe", &field).is_ok());
                }
                for client in &remote.slots {
                    for (_, log) in &client.logs {
                        let (count, bytes) = log.waiting();
                        prop_assert!(count <= limits::PENDING && bytes <= limits::VIEW_BYTES, "{count}, {bytes}");
                        prop_assert!(log.appended.len() <= APPENDED);
                    }
                }
                let (count, bytes) = ground.waiting();
                prop_assert!(count <= limits::PENDING && bytes <= limits::PENDING_BYTES, "{count}, {bytes}");
            }
        }
    }
}
