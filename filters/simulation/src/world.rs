//! A run: the queue of what will happen, and the world that it happens to.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Add;
use std::rc::Rc;
use std::time::Duration;

use crate::board::Most;
use crate::browser;
use crate::exchange::{Asked, Exchange, Received, Sink, Wants};
use crate::fields::{Field, field, pair, words};
use crate::laws::Broken;
use crate::link::Link;
use crate::orders::{End, Order, SetUp};
use crate::origin::{Origins, PAGES, Path, SITES, Url, When, loaded, objects};
use crate::pair::Pair;
use crate::piece::Piece;
use crate::place::{FILTERS, GROUND_HEADERS, REMOTE_BUNDLING, REMOTE_HEADERS, VmKey};
use crate::vm::Surroundings;

/// Something that will happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// The next order.
    Order(usize),
    /// A client requests an object of a page.
    Object { client: u8, url: Url, page: Url },
    /// A request, or another attempt, goes to the router.
    Attempt { exchange: u64, attempt: u32 },
    /// A request arrives at the ground.
    AtGround { exchange: u64, attempt: u32, fields: Vec<Field> },
    /// A piece of a response comes from the origin.
    FromOrigin { exchange: u64, attempt: u32, piece: Piece },
    /// A piece of a response arrives at the remote.
    AtRemote { exchange: u64, attempt: u32, piece: Piece },
    /// A request of a module at the ground ends.
    Fetched { vm: VmKey, owner: u32, token: u32, answer: Option<(Vec<Field>, Vec<u8>)> },
    /// A piece of a response comes from the cache of the remote.
    FromCache { exchange: u64, piece: Piece },
    /// A request of a module at the remote has had its time.
    TimedOut { exchange: u64 },
    /// The root context's tick of a module, if it still has that period.
    Tick { vm: VmKey, period_ms: u64 },
}

/// The events and results of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Events that happened.
    pub steps: u64,
    /// Time of the link.
    pub simulated_ms: u64,
    /// Responses of clients.
    pub responses: u64,
    /// Responses that failed.
    pub failed: u64,
    /// Objects that the remote served from flights.
    pub from_flights: i64,
    /// Requests that crossed the link with compressed headers.
    pub packed: i64,
    /// Pages that crossed the link as differences.
    pub deltas: i64,
    /// Pages that the remote requested again, because it had lost a base.
    pub asked_again: i64,
    /// Lists of hosts that the ground told its resolver.
    pub told: u64,
    /// Responses that the cache of the remote served fresh, after the origin had validated them, after a flight had, and
    /// because the origin failed.
    pub from_cache: [u64; 4],
    /// Requests that bypassed the cache.
    pub bypassed: i64,
    /// The most memory that an end held.
    pub most: Most,
    /// A hash of everything that clients received, in order.
    pub received: u64,
}

impl Done {
    /// The time of the link in hours.
    pub fn hours(&self) -> f64 {
        Duration::from_millis(self.simulated_ms).as_secs_f64() / 3600.0
    }
}

impl Add for Done {
    type Output = Self;

    /// Joins two runs. The hash is no sum.
    fn add(self, other: Self) -> Self {
        Self {
            steps: self.steps + other.steps,
            simulated_ms: self.simulated_ms + other.simulated_ms,
            responses: self.responses + other.responses,
            failed: self.failed + other.failed,
            from_flights: self.from_flights + other.from_flights,
            packed: self.packed + other.packed,
            deltas: self.deltas + other.deltas,
            asked_again: self.asked_again + other.asked_again,
            told: self.told + other.told,
            from_cache: std::array::from_fn(|at| {
                self.from_cache.get(at).unwrap_or(&0) + other.from_cache.get(at).unwrap_or(&0)
            }),
            bypassed: self.bypassed + other.bypassed,
            most: self.most.max(other.most),
            received: self.received ^ other.received,
        }
    }
}

/// The time at which a run begins, by the clocks of the ends: far enough from zero for all steps back.
const BEGIN_MS: u64 = 1 << 40;
/// The time after the last order in which all requests must end.
const QUIET_MS: u64 = 400_000;
/// A request that began this long after something had happened must succeed, in milliseconds beside two round trips.
const GRACE_MS: u64 = 200;

/// A message that waits this long for a free link disturbs requests as an outage does: a page that is requested again
/// has 120 s (`pipe_encoding::limits::AGAIN_MS`) for both ways.
const LONG_QUEUE_MS: u64 = 60_000;

/// Fewer remembered clients than this do not include all of a run and of hostile remotes.
const FEW_CLIENTS: u32 = 64;

/// A run.
pub(crate) struct World {
    pub(crate) set_up: SetUp,
    orders: Vec<Order>,
    pub(crate) around: Surroundings,
    pub(crate) pair: Pair,
    pub(crate) link: Link,
    pub(crate) origins: Origins,
    /// The tag and the body that a client's own cache has of a URL.
    kept: BTreeMap<(u8, Url), (Vec<u8>, Vec<u8>)>,
    pub(crate) exchanges: BTreeMap<u64, Exchange>,
    /// The exchange and the place of a stream.
    pub(crate) owners: BTreeMap<(VmKey, u32), (u64, usize)>,
    /// The exchanges that modules of the remote wait for.
    pub(crate) callouts: BTreeMap<(VmKey, u32), u64>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    next_event: u64,
    pub(crate) next_exchange: u64,
    pub(crate) next_stream: u32,
    periods: BTreeMap<VmKey, u64>,
    /// The counters [`REACHED`] of each module that a stream has left.
    reached: BTreeMap<VmKey, Vec<i64>>,
    /// How far the clocks of the ends have stepped.
    stepped_ms: u64,
    /// The last time at which something happened to the link or to an end.
    disturbed_ms: u64,
    /// When a module's requests of a client were first repeated since the last disturbance.
    repeated_ms: BTreeMap<(u8, VmKey), u64>,
    /// Requests that crossed the link lately, for hostile remotes.
    pub(crate) seen: Vec<Vec<Field>>,
    pub(crate) done: Done,
    pub(crate) broken: Option<Broken>,
}

/// Runs orders.
///
/// # Errors
/// The law that was broken first.
pub fn run(seed: u64, set_up: &SetUp, orders: &[Order]) -> Result<Done, Broken> {
    let random = Rc::new(RefCell::new(fastrand::Rng::with_seed(seed)));
    let around = Surroundings { now_ms: Rc::new(Cell::new(BEGIN_MS)), random };
    let pair = Pair::new(set_up, &around).map_err(Broken::Hangs)?;
    let mut world = World {
        set_up: set_up.clone(),
        orders: orders.to_vec(),
        link: Link::new(set_up.rtt_ms, set_up.jitter_ms, set_up.up, set_up.down),
        around,
        pair,
        origins: Origins::new(set_up.caches),
        kept: BTreeMap::new(),
        exchanges: BTreeMap::new(),
        owners: BTreeMap::new(),
        callouts: BTreeMap::new(),
        queue: BinaryHeap::new(),
        events: BTreeMap::new(),
        next_event: 0,
        next_exchange: 1,
        next_stream: 2,
        periods: BTreeMap::new(),
        reached: BTreeMap::new(),
        stepped_ms: 0,
        disturbed_ms: 0,
        repeated_ms: BTreeMap::new(),
        seen: Vec::new(),
        done: Done::default(),
        broken: None,
    };
    let outcome = world.live();
    filter_host::serve(None);
    outcome.map(|()| world.done)
}

impl World {
    pub(crate) fn now_ms(&self) -> u64 {
        self.around.now_ms.get()
    }

    pub(crate) fn draw(&self, most: u64) -> u64 {
        self.around.random.borrow_mut().u64(0..=most)
    }

    pub(crate) fn at(&mut self, at_ms: u64, event: Event) {
        let number = self.next_event;
        self.next_event += 1;
        self.queue.push(Reverse((at_ms, number)));
        self.events.insert(number, event);
    }

    pub(crate) fn after(&mut self, delay_ms: u64, event: Event) {
        self.at(self.now_ms() + delay_ms, event);
    }

    fn live(&mut self) -> Result<(), Broken> {
        let began_ms = self.now_ms();
        self.after(0, Event::Order(0));
        let mut quiet_ms = None;
        while let Some(Reverse((at_ms, number))) = self.queue.pop() {
            let Some(event) = self.events.remove(&number) else { continue };
            if quiet_ms.is_some_and(|quiet_ms| at_ms > quiet_ms) {
                break;
            }
            self.around.now_ms.set(at_ms.max(self.now_ms()));
            self.happen(event);
            self.done.steps += 1;
            self.settle();
            if let Some(broken) = self.broken.take() {
                return Err(broken);
            }
            if quiet_ms.is_none() && self.orders_are_done() {
                quiet_ms = Some(self.now_ms().max(self.link.back_at_ms()) + QUIET_MS);
            }
            self.pair.judge_memory(&mut self.done.most)?;
        }
        self.done.simulated_ms = self.now_ms() - began_ms;
        for (vm, counts) in &self.reached {
            match (vm.place, counts.as_slice()) {
                (REMOTE_BUNDLING, [ready, awaited, deltas, asked_again, bypassed]) => {
                    self.done.bypassed += bypassed;
                    self.done.from_flights += ready + awaited;
                    self.done.deltas += deltas;
                    self.done.asked_again += asked_again;
                }
                (_, [packed]) => self.done.packed += packed,
                _ => {}
            }
        }
        let cache = &self.pair.cache;
        self.done.from_cache = [cache.hits, cache.revalidated, cache.validated_before, cache.spares];
        self.judge_end()
    }

    fn orders_are_done(&self) -> bool {
        !self.events.values().any(|event| matches!(event, Event::Order(_)))
    }

    fn judge_end(&mut self) -> Result<(), Broken> {
        self.pair.sweep();
        if let Some(exchange) = self.exchanges.values().find(|one| matches!(one.sink, Sink::Client(_))) {
            return Err(Broken::Hangs(format!("{:?}, attempt {}", exchange.sink, exchange.attempt)));
        }
        if let Some(exchange) = self.exchanges.values().next() {
            return Err(Broken::Hangs(format!("an exchange: {:?} {}", exchange.sink, words(&exchange.request))));
        }
        match self.pair.vms.iter().find(|(_, vm)| vm.open_streams() > 0) {
            Some((key, vm)) => Err(Broken::Hangs(format!("{} streams of {key:?}", vm.open_streams()))),
            None => Ok(()),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Order(number) => self.order(number),
            Event::Object { client, url, page } => self.ask(client, &url, Some(&page)),
            Event::Attempt { exchange, attempt } => {
                if self.is_current(exchange, attempt) {
                    self.route(exchange);
                }
            }
            Event::AtGround { exchange, attempt, fields } => self.arrive(exchange, attempt, fields),
            Event::FromOrigin { exchange, attempt, piece } => {
                if self.is_current(exchange, attempt) {
                    self.respond(exchange, FILTERS, piece);
                }
            }
            Event::AtRemote { exchange, attempt, piece } => {
                if self.is_current(exchange, attempt) {
                    self.hear_of_replaced(exchange);
                    self.respond(exchange, GROUND_HEADERS, piece);
                }
            }
            Event::FromCache { exchange, piece } => self.reach_client(exchange, piece),
            Event::Fetched { vm, owner, token, answer } => {
                if let Some(vm) = self.pair.vms.get_mut(&vm) {
                    vm.answered(owner, token, answer);
                }
            }
            Event::TimedOut { exchange } => {
                if let Some(Sink::Callout { vm, owner, token }) =
                    self.exchanges.get(&exchange).map(|it| it.sink.clone())
                {
                    self.end(exchange);
                    if let Some(vm) = self.pair.vms.get_mut(&vm) {
                        vm.answered(owner, token, None);
                    }
                }
            }
            Event::Tick { vm, period_ms } => {
                if self.periods.get(&vm) == Some(&period_ms)
                    && let Some(module) = self.pair.vms.get_mut(&vm)
                {
                    module.tick();
                    self.after(period_ms, Event::Tick { vm, period_ms });
                }
            }
        }
    }

    fn is_current(&self, exchange: u64, attempt: u32) -> bool {
        self.exchanges.get(&exchange).is_some_and(|it| it.attempt == attempt)
    }

    fn order(&mut self, number: usize) {
        let Some(order) = self.orders.get(number).cloned() else { return };
        let mut pause_ms = self.draw(400);
        match order {
            Order::Visit { client, site, page, is_personal } => {
                let path = if is_personal { Path::Personal(page) } else { Path::Page(page) };
                self.ask(client, &Url { site, path }, None);
            }
            Order::Change { site } => self.origins.change(site, self.now_ms()),
            Order::Outage { ms } => {
                self.link.cut(self.now_ms() + ms);
                self.disturb();
            }
            Order::Break { worker } => {
                self.disturb();
                self.break_pipe(worker % self.set_up.workers);
            }
            Order::Reset => self.reset_one(|exchange| !matches!(exchange.sink, Sink::Nobody)),
            Order::Leave => self.leave_one(),
            Order::Restart { end } => self.restart(end),
            Order::Reload { end } => {
                if end == End::Remote {
                    // A request that is repeated now has lost its first form with the old module.
                    self.disturb();
                }
                self.repeated_ms.clear();
                if let Err(reason) = self.pair.reload(end) {
                    self.broken = Some(Broken::Hangs(reason));
                }
            }
            Order::Forget { end } => self.pair.forget(end),
            Order::Crowd { client, pages } => {
                for number in 0..pages {
                    let url = Url { site: number % SITES, path: Path::Page(number / SITES % PAGES) };
                    self.ask(client, &url, None);
                }
            }
            Order::Forge { client } => self.forge(client),
            Order::Step { end, ms } => self.step(end, ms),
            Order::Hostile { messages } => (0..messages).for_each(|_| self.hostile()),
            Order::Wait { ms } => pause_ms += ms,
        }
        self.after(pause_ms, Event::Order(number + 1));
    }

    /// From now on until a round trip later, requests may fail.
    pub(crate) fn disturb(&mut self) {
        self.disturb_until(self.now_ms().max(self.link.back_at_ms()));
    }

    fn disturb_until(&mut self, at_ms: u64) {
        self.disturbed_ms = self.disturbed_ms.max(at_ms);
        self.repeated_ms.clear();
    }

    /// Notices a message that waits long for the link.
    pub(crate) fn judge_queue(&mut self, arrives_ms: u64) {
        if arrives_ms > self.now_ms().max(self.link.back_at_ms()) + LONG_QUEUE_MS {
            self.disturb_until(arrives_ms);
        }
    }

    /// A response of a module that the ground has replaced arrives, maybe behind a long queue. From now on the remote refers
    /// to an exchange that the new module does not hold, so the time to agree begins here.
    fn hear_of_replaced(&mut self, exchange: u64) {
        let place = self.exchanges.get_mut(&exchange).and_then(|exchange| exchange.place(GROUND_HEADERS));
        if let Some((vm, _)) = place.and_then(|place| place.stream)
            && self.pair.current(GROUND_HEADERS, vm.worker) != Some(vm)
        {
            self.repeated_ms.clear();
        }
    }

    /// The time for which requests may fail, or be repeated, after the ends have lost their common state.
    fn grace_ms(&self) -> u64 {
        2 * (self.set_up.rtt_ms + self.set_up.jitter_ms) + GRACE_MS
    }

    /// An end wants a client's request once more, because the other one did not understand it. That brings both to
    /// agreement, so a request that begins a round trip later is not repeated.
    pub(crate) fn repeat(&mut self, module: VmKey, asked: &Asked) {
        // An end that remembers few clients forgets the others at any time.
        if asked.is_forged || self.set_up.remembered_clients < FEW_CLIENTS {
            return;
        }
        let now_ms = self.now_ms();
        let first_ms = *self.repeated_ms.entry((asked.client, module)).or_insert(now_ms);
        if asked.at_ms > first_ms.max(self.disturbed_ms) + self.grace_ms() {
            let seen = format!("{asked:?} is repeated at {now_ms} ms, as another one was at {first_ms} ms");
            self.broken = Some(Broken::Disagree(seen));
        }
    }

    /// A client's request.
    fn ask(&mut self, client: u8, url: &Url, referer: Option<&Url>) {
        let (mut fields, cookie) = browser::request(client, url, referer);
        let wants = self.wants(client, url, &mut fields);
        let asked = Asked { client, url: url.clone(), cookie, at_ms: self.now_ms(), is_forged: false, wants };
        self.send(asked, fields);
    }

    /// Draws the part of a response that a client wants, and adds the fields that say so.
    fn wants(&self, client: u8, url: &Url, fields: &mut Vec<Field>) -> Wants {
        if !self.set_up.caches {
            return Wants::Whole;
        }
        for (_, cookie) in fields.iter_mut().filter(|(name, _)| name == b"cookie") {
            cookie.extend_from_slice(b"; theme=dark; last=7");
        }
        match self.draw(99) {
            0 => self.write_something(fields),
            1 => fields.extend([pair("connection", "upgrade"), pair("upgrade", "websocket")]),
            2 => fields.push(pair("x-long", &"token ".repeat(2_000))),
            3 => fields.push(pair("sec-purpose", "prefetch")),
            4 => fields.push(pair("origin", "http://s1.test")),
            5 => fields.push(pair("authorization", "Basic YTpi")),
            _ => {}
        }
        match (self.draw(11), self.kept.get(&(client, url.clone()))) {
            (0..=3, Some((tag, body))) => {
                fields.push((b"if-none-match".to_vec(), tag.clone()));
                Wants::Other(body.clone())
            }
            (4, _) if matches!(url.path, Path::Object(_)) => {
                let first = usize::try_from(self.draw(150)).unwrap_or(0);
                fields.push(pair("range", &format!("bytes={first}-{}", first + 39)));
                Wants::Part(first..first + 40)
            }
            (5, _) => {
                fields.push(pair("cache-control", "no-cache"));
                Wants::Whole
            }
            _ => Wants::Whole,
        }
    }

    /// Makes a request one with a body. Its bytes pass unread, so it has none here.
    fn write_something(&self, fields: &mut Vec<Field>) {
        fields.retain(|(name, _)| name != b":method");
        fields.insert(0, pair(":method", "POST"));
        fields.push(pair("content-length", if self.draw(1) > 0 { "9" } else { "90000" }));
    }

    fn send(&mut self, asked: Asked, fields: Vec<Field>) {
        let worker = self.around.random.borrow_mut().u8(0..self.set_up.workers);
        let id = self.begin(Sink::Client(asked), worker, fields);
        self.request(id, REMOTE_BUNDLING);
    }

    /// A client claims to be an end.
    fn forge(&mut self, client: u8) {
        let able = self.set_up.remote;
        for (fields, url) in browser::forged(client, able.bundling, able.headers) {
            let cookie = browser::cookie_of(&fields);
            self.send(
                Asked { client, url, cookie, at_ms: self.now_ms(), is_forged: true, wants: Wants::Whole },
                fields,
            );
        }
    }

    /// The clock of an end steps.
    fn step(&mut self, end: End, ms: i64) {
        self.stepped_ms = self.stepped_ms.saturating_add(ms.unsigned_abs());
        self.pair.step(end, ms);
    }

    pub(crate) fn begin(&mut self, sink: Sink, worker: u8, fields: Vec<Field>) -> u64 {
        let id = self.next_exchange;
        self.next_exchange += 1;
        self.exchanges.insert(id, Exchange::new(sink, worker, fields));
        id
    }

    /// The connection of a worker breaks: the ends see their streams reset.
    pub(crate) fn break_pipe(&mut self, worker: u8) {
        self.pair.connect(worker);
        let on_it: Vec<u64> = self.exchanges.iter().filter(|(_, it)| it.worker == worker).map(|(id, _)| *id).collect();
        for id in on_it {
            self.lose(id);
        }
    }

    fn reset_one(&mut self, which: impl Fn(&Exchange) -> bool) {
        let open: Vec<u64> = self.exchanges.iter().filter(|(_, it)| which(it)).map(|(id, _)| *id).collect();
        let chosen = self.around.random.borrow_mut().choice(open);
        if let Some(id) = chosen {
            self.disturb();
            self.lose(id);
        }
    }

    fn leave_one(&mut self) {
        let is_client = |it: &Exchange| matches!(it.sink, Sink::Client(_));
        let open: Vec<u64> = self.exchanges.iter().filter(|(_, it)| is_client(it)).map(|(id, _)| *id).collect();
        let chosen = self.around.random.borrow_mut().choice(open);
        if let Some(id) = chosen {
            self.end(id);
        }
    }

    fn restart(&mut self, end: End) {
        self.disturb();
        let all: Vec<u64> = self.exchanges.keys().copied().collect();
        for id in all {
            match end {
                End::Remote => self.end(id),
                End::Ground => self.lose(id),
            }
        }
        if let Err(reason) = self.pair.restart(end) {
            self.broken = Some(Broken::Hangs(reason));
        }
        self.owners.retain(|(vm, _), _| vm.end() != end);
        self.callouts.retain(|(vm, _), _| vm.end() != end);
    }

    /// Another remote sends what this one sent, changed.
    fn hostile(&mut self) {
        let random = Rc::clone(&self.around.random);
        let mut random = random.borrow_mut();
        let Some(mut fields) = random.choice(&self.seen).cloned() else { return };
        for (name, value) in &mut fields {
            if name.starts_with(b"x-longhaul-") && !value.is_empty() && random.bool() {
                let at = random.usize(0..value.len());
                if let Some(byte) = value.get_mut(at) {
                    *byte = random.choice(b"!,;=az09AZ-/ \xff".iter().copied()).unwrap_or(b'a');
                }
            }
        }
        let worker = random.u8(0..self.set_up.workers);
        drop(random);
        let id = self.begin(Sink::Nobody, worker, fields.clone());
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.pipe = u32::MAX;
            exchange.ground_worker = worker;
        }
        self.after(1, Event::AtGround { exchange: id, attempt: 0, fields });
    }

    /// A client has its response, or a part of one.
    pub(crate) fn received(&mut self, asked: &Asked, response: &Received<'_>) {
        let Received { status, fields, body, is_whole, is_stale } = *response;
        self.done.responses += 1;
        if asked.is_forged {
            return;
        }
        let is_undisturbed = asked.at_ms > self.disturbed_ms + self.grace_ms();
        for byte in body.iter().chain(&status.to_le_bytes()) {
            self.done.received = (self.done.received ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let is_wanted = match (&asked.wants, status) {
            // Another 404 is an error on the way.
            (_, 404) => asked.url.is_missing() && field(fields, "content-type").is_some(),
            (_, 200) | (Wants::Part(_), 206) | (Wants::Other(_), 304) => true,
            _ => false,
        };
        if !is_whole || !is_wanted {
            self.done.failed += 1;
            if is_undisturbed {
                let what = format!("{asked:?}: status {status}, {} bytes, whole: {is_whole}", body.len());
                self.broken = Some(Broken::FailedAlone(what));
            }
            return;
        }
        let when = When {
            at_ms: asked.at_ms,
            moment_ms: (4 * self.set_up.rtt_ms).max(1000),
            // The remote takes one round trip of a parcel for granted.
            uncertain_ms: self.set_up.rtt_ms + self.stepped_ms,
            is_stale,
        };
        if let Err(broken) = browser::judge_response(asked, response, &self.origins, when, self.now_ms()) {
            self.broken = Some(broken);
        }
        if let (200, Some(tag), true) = (status, field(fields, "etag"), self.set_up.caches) {
            self.kept.insert((asked.client, asked.url.clone()), (tag.to_vec(), body.to_vec()));
        }
        let more = if self.set_up.caches { loaded(&asked.url) } else { Vec::new() };
        for url in objects(&asked.url).into_iter().chain(more) {
            // A browser loads an image at once, or once its reader scrolls to it.
            let delay_ms = if self.draw(7) > 0 { self.draw(60) } else { self.draw(40_000) };
            if self.draw(9) > 0 {
                self.after(delay_ms, Event::Object { client: asked.client, url, page: asked.url.clone() });
            }
        }
    }

    /// Sets the ticks that modules want.
    pub(crate) fn set_ticks(&mut self) {
        let wanted: Vec<(VmKey, Option<u64>)> = self.pair.vms.iter().map(|(key, vm)| (*key, vm.tick_ms())).collect();
        for (vm, period_ms) in wanted {
            if self.periods.get(&vm).copied() == period_ms {
                continue;
            }
            match period_ms {
                Some(period_ms) => {
                    self.periods.insert(vm, period_ms);
                    self.after(period_ms, Event::Tick { vm, period_ms });
                }
                None => drop(self.periods.remove(&vm)),
            }
        }
    }

    /// The end of an exchange without a further word to whom it is for.
    pub(crate) fn end(&mut self, id: u64) {
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        if let Sink::Callout { vm, token, .. } = &exchange.sink {
            self.callouts.remove(&(*vm, *token));
        }
        for at in 0..FILTERS {
            self.close(&mut exchange, at);
        }
    }

    pub(crate) fn close(&mut self, exchange: &mut Exchange, at: usize) {
        let Some(place) = exchange.place(at) else { return };
        let stream = std::mem::take(place).stream;
        if let Some((vm, stream)) = stream {
            self.owners.remove(&(vm, stream));
            if let Some(module) = self.pair.vms.get_mut(&vm) {
                module.close(stream);
            }
            self.count(vm);
        }
    }

    /// Reads the counters that show that a run reaches something.
    fn count(&mut self, vm: VmKey) {
        let Some(module) = self.pair.vms.get(&vm) else { return };
        let names: &[&str] = match vm.place {
            REMOTE_BUNDLING => &REACHED[..5],
            REMOTE_HEADERS => &REACHED[5..],
            _ => &[],
        };
        let reached = names.iter().map(|name| module.count(name)).collect();
        self.reached.insert(vm, reached);
    }
}

/// Counters of the remote that show that a run reaches something: objects from flights, twice, pages as differences, pages
/// that were requested again, requests past the cache, and requests with compressed headers.
const REACHED: [&str; 6] = [
    "longhaul_bundling_answered_total_reason_ready",
    "longhaul_bundling_answered_total_reason_awaited",
    "longhaul_bundling_deltas_total",
    "longhaul_bundling_base_lost_total",
    "longhaul_bundling_bypassed_total",
    "longhaul_header_compression_packed_total",
];
