//! The ground's half of the protocol: unpacks requests, packs responses, and remembers what the remote tells it to.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use crate::block::Block;
use crate::coder::{Decoder, Encoder};
use crate::dictionary::Dictionary;
use crate::error::{DecodeError, Unpackable};
use crate::exchange::{Exchange, Side, View};
use crate::limits;
use crate::message::{self, EPOCHS, FollowingHead, Kind, OpeningHead, VIEWS};
use crate::session;
use crate::walk::Setting;

/// The ground's half.
#[derive(Debug)]
pub struct Ground {
    dictionary: Rc<Dictionary>,
    limit: usize,
    pipes: HashMap<Vec<u8>, Pipe>,
    clock: u64,
}

/// What is known of the remote at the other end of one connection.
#[derive(Debug)]
struct Pipe {
    session: u32,
    used: u64,
    clients: HashMap<u64, Client>,
}

/// What is known of one client of that remote.
#[derive(Debug)]
struct Client {
    epoch: u64,
    used: u64,
    /// The latest views, newest last.
    views: VecDeque<Rc<View>>,
    /// Complete exchanges that are not in a view yet, by number.
    completed: BTreeMap<u64, Rc<Exchange>>,
}

impl Client {
    fn new(epoch: u64) -> Self {
        Self { epoch, used: 0, views: VecDeque::from([session::empty_view()]), completed: BTreeMap::new() }
    }
}

/// Views of one client that messages under way may still name.
const VIEWS_KEPT: usize = 16;

/// A request that was unpacked: what its response needs to be packed.
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
    /// The request.
    pub fn request(&self) -> &Block {
        &self.request
    }
}

impl Ground {
    /// A ground that remembers at most `clients` of them, over all its connections.
    pub fn new(dictionary: Rc<Dictionary>, clients: usize) -> Self {
        Self { dictionary, limit: clients.max(1), pipes: HashMap::new(), clock: 0 }
    }

    /// Unpacks a request that came in on the connection `pipe`.
    pub fn unpack(&mut self, pipe: &[u8], field: &[u8]) -> Result<Answering, DecodeError> {
        let (kind, _) = message::open(field)?;
        let digits = session::digits_of(field)?;
        let digits = digits.get(1..).unwrap_or_default();
        let dictionary = Rc::clone(&self.dictionary);
        let mut coder = Decoder::new(&dictionary, digits);
        self.clock += 1;
        let (session, id, epoch, number, view) = match kind {
            Kind::Opening => {
                let head = OpeningHead::default().code(&mut coder);
                self.open(pipe, head);
                (head.session, head.client, head.epoch, head.exchange, session::empty_view())
            }
            Kind::Following => {
                let head = FollowingHead::default().code(&mut coder)?;
                self.follow(pipe, &head)?
            }
            other => return Err(DecodeError::UnexpectedKind(other as u8)),
        };
        let seed = message::seed(session, id, epoch, number, view.number);
        let request = session::unpack_block(
            coder,
            &dictionary,
            Setting { side: Side::Request, view: &view, request: None },
            seed,
        )?;
        Ok(Answering { pipe: pipe.to_vec(), session, client: id, epoch, number, view, request })
    }

    /// Packs the response to a request.
    pub fn pack(&mut self, answering: Answering, block: Block) -> Result<Vec<u8>, Unpackable> {
        let Answering { pipe, session, client, epoch, number, view, request } = answering;
        let seed = message::seed(session, client, epoch, number, view.number);
        let coder = Encoder::new(&self.dictionary);
        let setting = Setting { side: Side::Response, view: &view, request: Some(&request) };
        let field = session::pack_block(coder, message::first(Kind::Answer), &self.dictionary, setting, &block, seed)?;
        let exchange = Exchange::new(number, request, block);
        let known = self.pipes.get_mut(&pipe).filter(|pipe| pipe.session == session);
        let known = known.and_then(|pipe| pipe.clients.get_mut(&client)).filter(|client| client.epoch == epoch);
        if let Some(client) = known.filter(|_| exchange.bytes() <= limits::EXCHANGE_BYTES) {
            client.completed.insert(number, Rc::new(exchange));
            while client.completed.len() > limits::PENDING {
                client.completed.pop_first();
            }
        }
        Ok(field)
    }

    /// Makes room for a client that opens, and forgets who had its number before.
    fn open(&mut self, pipe: &[u8], head: OpeningHead) {
        let clock = self.clock;
        let known = self.pipes.entry(pipe.to_vec()).or_insert_with(|| Pipe {
            session: head.session,
            used: clock,
            clients: HashMap::new(),
        });
        if known.session != head.session {
            // The remote has restarted.
            known.session = head.session;
            known.clients.clear();
        }
        known.used = clock;
        let client = known.clients.entry(head.client).or_insert_with(|| Client::new(head.epoch));
        if client.epoch != head.epoch % EPOCHS {
            *client = Client::new(head.epoch);
        }
        client.used = clock;
        self.make_room();
    }

    /// The view a request refers to, after the exchanges that it says to append.
    fn follow(&mut self, pipe: &[u8], head: &FollowingHead) -> Result<(u32, u64, u64, u64, Rc<View>), DecodeError> {
        let clock = self.clock;
        let pipe = self.pipes.get_mut(pipe).ok_or(DecodeError::UnknownHistory)?;
        pipe.used = clock;
        let session = pipe.session;
        let client = pipe.clients.get_mut(&head.client).ok_or(DecodeError::UnknownHistory)?;
        client.used = clock;
        let view = client.view(head)?;
        let number = view.newest_number().saturating_add(head.exchange).saturating_add(1);
        Ok((session, head.client, client.epoch, number, view))
    }

    /// Forgets the client that has been silent for longest while there are too many; a connection without clients goes too.
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
    fn view(&mut self, head: &FollowingHead) -> Result<Rc<View>, DecodeError> {
        let latest = self.views.back().map_or(0, |view| view.number);
        let wanted = nearest(latest, head.view);
        let appended = u64::try_from(head.appended.len()).unwrap_or(0);
        let before = wanted.checked_sub(appended).ok_or(DecodeError::UnknownHistory)?;
        let find = |views: &VecDeque<Rc<View>>, number: u64| {
            views.iter().find(|view| view.number == number).map(Rc::clone).ok_or(DecodeError::UnknownHistory)
        };
        let mut newest = find(&self.views, before)?.newest_number();
        for (number, difference) in (before + 1..).zip(&head.appended) {
            newest = newest.saturating_add_signed(*difference).saturating_add(1);
            if number <= latest {
                continue;
            }
            let exchange = self.completed.remove(&newest).ok_or(DecodeError::UnknownHistory)?;
            let view = self.views.back().map(|view| view.with(exchange)).ok_or(DecodeError::UnknownHistory)?;
            self.views.push_back(Rc::new(view));
            if self.views.len() > VIEWS_KEPT {
                self.views.pop_front();
            }
        }
        find(&self.views, wanted)
    }
}

/// The number nearest to `latest` that is `low` modulo [`VIEWS`].
fn nearest(latest: u64, low: u64) -> u64 {
    let ahead = (low + VIEWS - latest % VIEWS) % VIEWS;
    let number = latest + ahead;
    if ahead > VIEWS / 2 { number.saturating_sub(VIEWS) } else { number }
}
