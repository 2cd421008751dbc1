//! The ground's half of the protocol. It decompresses requests, compresses responses, and remembers the exchanges that
//! the remote announces.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use crate::block::Block;
use crate::coder::{Decoder, Encoder};
use crate::dictionary::Dictionary;
use crate::error::{DecodeError, Unpackable};
use crate::exchange::{Exchange, Side, View};
use crate::limits;
use crate::message::{self, FollowingHead, Kind, OpeningHead, VIEWS};
use crate::scene::Setting;
use crate::session;

/// The ground's half of the protocol.
#[derive(Debug)]
pub struct Ground {
    dictionary: Rc<Dictionary>,
    limit: usize,
    pipes: HashMap<Vec<u8>, Pipe>,
    clock: u64,
}

/// The state of the remote at the other end of one connection.
#[derive(Debug)]
struct Pipe {
    session: u32,
    clients: HashMap<u64, Client>,
}

/// The state of one client of that remote.
#[derive(Debug)]
struct Client {
    epoch: u64,
    used: u64,
    /// The latest views, newest last.
    views: VecDeque<Rc<View>>,
    /// Complete exchanges that no view holds yet, by number.
    completed: BTreeMap<u64, Rc<Exchange>>,
}

impl Client {
    fn new(epoch: u64) -> Self {
        Self { epoch, used: 0, views: VecDeque::from([session::empty_view()]), completed: BTreeMap::new() }
    }
}

/// Views of one client that pending messages may still name.
const VIEWS_KEPT: usize = 16;

/// The state that a request announces besides its headers.
enum News {
    /// A client begins, or continues without references.
    Client,
    /// The view that the request refers to, and the views that it makes.
    Views(Rc<View>, Vec<Rc<View>>),
}

/// A decompressed request, with the state that compresses its response.
#[derive(Debug, Clone)]
pub struct Answering {
    pipe: Vec<u8>,
    session: u32,
    client: u64,
    epoch: u64,
    number: u64,
    view: Rc<View>,
    request: Block,
}

impl Answering {
    /// Returns the request.
    pub fn request(&self) -> &Block {
        &self.request
    }

    /// Reads a response to the request as the remote would, without the remote's later state. For tests that check
    /// responses.
    ///
    /// # Errors
    /// The errors of [`crate::Remote::unpack`].
    pub fn read_answer(&self, dictionary: &Dictionary, field: &[u8]) -> Result<Block, DecodeError> {
        let seed = message::seed(self.session, self.client, self.epoch, self.number, self.view.number);
        session::unpack_answer(dictionary, &self.view, &self.request, seed, field)
    }
}

impl Ground {
    /// Returns a ground that remembers at most `clients` clients, over all its connections.
    pub fn new(dictionary: Rc<Dictionary>, clients: usize) -> Self {
        Self { dictionary, limit: clients.max(1), pipes: HashMap::new(), clock: 0 }
    }

    /// Decompresses a request that came in on the connection `pipe`. The ground remembers its content only if the check
    /// holds, so a broken message has no other effect.
    pub fn unpack(&mut self, pipe: &[u8], field: &[u8]) -> Result<Answering, DecodeError> {
        let (kind, _) = message::open(field)?;
        let digits = session::digits_of(field)?;
        let digits = digits.get(1..).unwrap_or_default();
        let dictionary = Rc::clone(&self.dictionary);
        let mut coder = Decoder::new(&dictionary, digits);
        self.clock += 1;
        let (session, id, epoch, number, news) = match kind {
            Kind::Opening => {
                let head = OpeningHead::default().code(&mut coder);
                (head.session, head.client, head.epoch, head.exchange, News::Client)
            }
            Kind::Following => {
                let head = FollowingHead::default().code(&mut coder)?;
                let known = self.pipes.get(pipe).ok_or(DecodeError::UnknownHistory)?;
                let client = known.clients.get(&head.client).ok_or(DecodeError::UnknownHistory)?;
                let (view, made) = client.view(&head)?;
                let number = view.newest_number().saturating_add(head.exchange).saturating_add(1);
                (known.session, head.client, client.epoch, number, News::Views(view, made))
            }
            other => return Err(DecodeError::UnexpectedKind(other as u8)),
        };
        let view = match &news {
            News::Client => session::empty_view(),
            News::Views(view, _) => Rc::clone(view),
        };
        let seed = message::seed(session, id, epoch, number, view.number);
        let setting = Setting { side: Side::Request, view: &view, request: None };
        let request = session::unpack_block(coder, &dictionary, setting, seed)?;
        match news {
            News::Client => self.open(pipe, session, id, epoch),
            News::Views(_, made) => self.follow(pipe, id, made),
        }
        Ok(Answering { pipe: pipe.to_vec(), session, client: id, epoch, number, view, request })
    }

    /// Compresses the response to a request.
    pub fn pack(&mut self, answering: Answering, block: Block) -> Result<Vec<u8>, Unpackable> {
        let Answering { pipe, session, client, epoch, number, view, request } = answering;
        let seed = message::seed(session, client, epoch, number, view.number);
        let coder = Encoder::new(&self.dictionary);
        let setting = Setting { side: Side::Response, view: &view, request: Some(&request) };
        let field = session::pack_block(coder, message::first(Kind::Answer), &self.dictionary, setting, &block, seed)?;
        let exchange = Exchange::new(number, Rc::new(request), block);
        let known = self.pipes.get_mut(&pipe).filter(|pipe| pipe.session == session);
        let known = known.and_then(|pipe| pipe.clients.get_mut(&client)).filter(|client| client.epoch == epoch);
        if let Some(client) = known.filter(|_| exchange.bytes() <= limits::EXCHANGE_BYTES) {
            client.complete(number, exchange);
        }
        Ok(field)
    }

    /// Returns the most exchanges, and the most bytes of them, that wait for one client.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let clients = self.pipes.values().flat_map(|pipe| pipe.clients.values());
        let one = |client: &Client| {
            (client.completed.len(), client.completed.values().map(|exchange| exchange.bytes()).sum::<usize>())
        };
        clients.map(one).fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)))
    }

    /// Makes room for a client that opens, and forgets the earlier client of the same number.
    fn open(&mut self, pipe: &[u8], session: u32, id: u64, epoch: u64) {
        let clock = self.clock;
        let known = self.pipes.entry(pipe.to_vec()).or_insert_with(|| Pipe { session, clients: HashMap::new() });
        if known.session != session {
            // The remote has restarted.
            known.session = session;
            known.clients.clear();
        }
        let client = known.clients.entry(id).or_insert_with(|| Client::new(epoch));
        if client.epoch != epoch {
            *client = Client::new(epoch);
        }
        client.used = clock;
        self.make_room();
    }

    /// Keeps the views that a request has made.
    fn follow(&mut self, pipe: &[u8], id: u64, made: Vec<Rc<View>>) {
        let known = self.pipes.get_mut(pipe).and_then(|pipe| pipe.clients.get_mut(&id));
        let Some(client) = known else { return };
        client.used = self.clock;
        for view in made {
            client.completed.remove(&view.newest_number());
            client.views.push_back(view);
            if client.views.len() > VIEWS_KEPT {
                client.views.pop_front();
            }
        }
    }

    /// Drops the least recently used clients until the limit holds, and every connection without clients.
    fn make_room(&mut self) {
        let count = |pipes: &HashMap<Vec<u8>, Pipe>| pipes.values().map(|pipe| pipe.clients.len()).sum::<usize>();
        while count(&self.pipes) > self.limit {
            let clients = self
                .pipes
                .iter()
                .flat_map(|(pipe, known)| known.clients.iter().map(move |(id, client)| (client.used, pipe, *id)));
            let Some((_, pipe, id)) = clients.min() else { return };
            let pipe = pipe.clone();
            if let Some(known) = self.pipes.get_mut(&pipe) {
                known.clients.remove(&id);
            }
            self.pipes.retain(|_, pipe| !pipe.clients.is_empty());
        }
    }
}

impl Client {
    /// Keeps a complete exchange until the remote puts it into a view. The oldest ones make room.
    fn complete(&mut self, number: u64, exchange: Exchange) {
        self.completed.insert(number, Rc::new(exchange));
        let mut bytes: usize = self.completed.values().map(|exchange| exchange.bytes()).sum();
        while self.completed.len() > limits::PENDING || bytes > limits::PENDING_BYTES {
            let Some((_, oldest)) = self.completed.pop_first() else { return };
            bytes = bytes.saturating_sub(oldest.bytes());
        }
    }

    /// Returns the view that a request refers to, and the views after the latest one that it makes by appending
    /// exchanges.
    fn view(&self, head: &FollowingHead) -> Result<(Rc<View>, Vec<Rc<View>>), DecodeError> {
        let latest = self.views.back().ok_or(DecodeError::UnknownHistory)?;
        let wanted = nearest(latest.number, head.view);
        let appended = u64::try_from(head.appended.len()).unwrap_or(0);
        let before = wanted.checked_sub(appended).ok_or(DecodeError::UnknownHistory)?;
        let find = |number: u64| self.views.iter().find(|view| view.number == number);
        let mut newest = find(before).ok_or(DecodeError::UnknownHistory)?.newest_number();
        let mut made: Vec<Rc<View>> = Vec::new();
        for (number, difference) in (before + 1..).zip(&head.appended) {
            newest = newest.saturating_add_signed(*difference).saturating_add(1);
            if number > latest.number {
                let exchange = self.completed.get(&newest).ok_or(DecodeError::UnknownHistory)?;
                made.push(Rc::new(made.last().unwrap_or(latest).with(Rc::clone(exchange))));
            }
        }
        let view = made.last().filter(|view| view.number == wanted).or_else(|| find(wanted));
        let view = view.map(Rc::clone).ok_or(DecodeError::UnknownHistory)?;
        Ok((view, made))
    }
}

/// Returns the number nearest to `latest` that equals `low` modulo [`VIEWS`].
fn nearest(latest: u64, low: u64) -> u64 {
    let ahead = (low + VIEWS - latest % VIEWS) % VIEWS;
    let number = latest + ahead;
    if ahead > VIEWS / 2 { number.saturating_sub(VIEWS) } else { number }
}
