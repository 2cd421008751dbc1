//! The way of requests and responses through the filters, as Envoy takes them.

use filter_host::Half;
use filter_host::stream::Action;
use object_config::{OUTCOME, PRIVATE};

use crate::browser;
use crate::cache::{self, Way};
use crate::exchange::{Received, Sink};
use crate::fields::{Field, field, pair, words};
use crate::laws::Broken;
use crate::origin::br;
use crate::pair::NAMES;
use crate::piece::Piece;
use crate::place::{FILTERS, GROUND_BUNDLING, GROUND_HEADERS, REMOTE_BUNDLING, REMOTE_HEADERS, VmKey};
use crate::vm::Effect;
use crate::world::{Event, World};

/// The attempts of a request that may be repeated, and the pause before each.
const ATTEMPTS: u32 = 5;
const RETRY_MS: u64 = 50;
/// The time that an origin takes.
const ORIGIN_MS: u64 = 20;
/// Requests that hostile remotes choose from.
const SEEN: usize = 32;

impl World {
    /// Passes a request through the filters from `from` on.
    pub(crate) fn request(&mut self, id: u64, from: usize) {
        for at in from..FILTERS {
            if at == REMOTE_HEADERS && from == REMOTE_BUNDLING {
                return self.route_now(id);
            }
            if at == GROUND_HEADERS && from < GROUND_HEADERS {
                return self.cross(id);
            }
            if at == GROUND_BUNDLING {
                self.take_br(id);
                self.judge_unpacked(id);
            }
            if !self.pass_request(id, at) {
                return;
            }
        }
        self.at_origin(id);
    }

    /// Judges a client's request as the ground reads it.
    fn judge_unpacked(&mut self, id: u64) {
        let Some(exchange) = self.exchanges.get(&id).filter(|it| matches!(it.sink, Sink::Client(_))) else { return };
        let is_slot = field(&exchange.request, ":authority") == Some(page_flights::SLOT_AUTHORITY.as_bytes());
        let judged = browser::judge_message(&exchange.request);
        if is_slot && self.set_up.remote.bundling {
            self.broken = Some(Broken::Forged(format!("a slot of a client: {}", words(&exchange.request))));
        } else if let Err(broken) = judged {
            self.broken = Some(broken);
        }
    }

    /// The filter `takes_br` of the ground: a remote that decompresses br gets it.
    fn take_br(&mut self, id: u64) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.takes_br = field(&exchange.request, "x-longhaul-takes").is_some_and(|takes| takes.starts_with(b"br"));
        let accepted = exchange.request.iter_mut().find(|(name, _)| name == b"accept-encoding");
        if let Some((_, value)) = accepted.filter(|_| exchange.takes_br) {
            *value = [b"br, ", &**value].concat();
        }
    }

    /// Passes a request through one filter. False if it goes no further for now.
    fn pass_request(&mut self, id: u64, at: usize) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return false };
        let worker = if at < GROUND_HEADERS { exchange.worker } else { exchange.ground_worker };
        let Some(key) = self.pair.current(at, worker) else { return true };
        let stream = self.next_stream;
        self.next_stream += 1;
        let source = match &exchange.sink {
            Sink::Client(asked) => format!("10.0.0.{}:4000", asked.client),
            _ => String::new(),
        };
        let pipe = exchange.pipe.to_string();
        let properties: &[(&str, &str)] = match at {
            REMOTE_BUNDLING => &[("source\0address", &source)],
            REMOTE_HEADERS => &[("source\0address", &source), ("upstream\0local_address", &pipe)],
            _ => &[("connection\0id", &pipe)],
        };
        let Some(vm) = self.pair.vms.get_mut(&key) else { return true };
        vm.open(stream, exchange.request.clone(), properties);
        if let Some(place) = exchange.place(at) {
            place.stream = Some((key, stream));
        }
        self.owners.insert((key, stream), (id, at));
        let has_body = field(&exchange.request, "content-length").is_some();
        let (action, fields) = vm.request_headers(stream, !has_body);
        exchange.request = fields;
        if let Some(place) = exchange.place(at) {
            place.holds_request = action == Action::Pause;
        }
        action == Action::Continue
    }

    /// The router: a first attempt, unless the cache responds.
    fn route_now(&mut self, id: u64) {
        if self.is_answered_by_cache(id) {
            return;
        }
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            if self.set_up.remote.is_later {
                say_more(&mut exchange.request, &["x-longhaul-flight", "x-longhaul-takes", "x-longhaul-base"]);
            }
            exchange.routed.clone_from(&exchange.request);
        }
        self.route(id);
    }

    /// Asks the cache of the remote. True if it responds.
    fn is_answered_by_cache(&mut self, id: u64) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&id).filter(|it| matches!(it.sink, Sink::Client(_))) else {
            return false;
        };
        if !self.set_up.caches || !self.set_up.remote.bundling || !cache::is_led_here(&exchange.request) {
            cache::go_round(&mut exchange.request);
            return false;
        }
        let request = std::mem::take(&mut exchange.request);
        match self.pair.cache.request(request, self.pair.remote_ms()) {
            Way::On(request, fill) => {
                (exchange.request, exchange.fill) = (request, Some(fill));
                false
            }
            Way::Here(pieces) => {
                exchange.is_cached = true;
                for piece in pieces {
                    self.after(1, Event::FromCache { exchange: id, piece });
                }
                true
            }
        }
    }

    /// Passes a piece of a response through the cache of the remote.
    fn pass_cache(&mut self, id: u64, piece: Piece) -> Vec<Piece> {
        let now_ms = self.pair.remote_ms();
        match self.exchanges.get_mut(&id).and_then(|exchange| exchange.fill.as_mut()) {
            Some(fill) => self.pair.cache.response(fill, piece, now_ms),
            None => vec![piece],
        }
    }

    /// Passes a piece of a response through bundling to its client.
    pub(crate) fn reach_client(&mut self, id: u64, piece: Piece) {
        if let Some(piece) = self.pass_response(id, REMOTE_BUNDLING, piece) {
            self.deliver(id, piece);
        }
    }

    /// The router sends a request to the ground, once more or for the first time.
    pub(crate) fn route(&mut self, id: u64) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.request.clone_from(&exchange.routed);
        let pipe = self.pair.pipe(exchange.worker);
        (exchange.pipe, exchange.ground_worker) = (pipe.number, pipe.ground_worker);
        self.request(id, REMOTE_HEADERS);
    }

    /// Sends a request over the link.
    fn cross(&mut self, id: u64) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let (attempt, fields) = (exchange.attempt, exchange.request.clone());
        exchange.routed.clone_from(&fields);
        if self.seen.len() == SEEN {
            let at = usize::try_from(self.draw(SEEN as u64 - 1)).unwrap_or(0);
            self.seen.swap_remove(at);
        }
        self.seen.push(fields.clone());
        let (now_ms, bytes) = (self.now_ms(), bytes_of(&fields));
        let arrives_ms = self.link.send_up(now_ms, bytes, &mut self.around.random.borrow_mut());
        self.judge_queue(arrives_ms);
        self.at(arrives_ms, Event::AtGround { exchange: id, attempt, fields });
    }

    /// A request arrives at the ground.
    pub(crate) fn arrive(&mut self, id: u64, attempt: u32, fields: Vec<Field>) {
        let Some(exchange) = self.exchanges.get_mut(&id).filter(|it| it.attempt == attempt) else { return };
        let is_client = matches!(exchange.sink, Sink::Client(_));
        if is_client && let Err(broken) = browser::judge_message(&fields) {
            self.broken = Some(broken);
        }
        exchange.request = fields;
        self.request(id, GROUND_HEADERS);
    }

    /// The origin responds, in pieces.
    fn at_origin(&mut self, id: u64) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let (attempt, request) = (exchange.attempt, exchange.request.clone());
        let is_hostile = matches!(exchange.sink, Sink::Nobody);
        if let Err(broken) = browser::judge_request(&request)
            && !is_hostile
        {
            self.broken = Some(broken);
        }
        let mut response = self.origins.answer(&request, self.now_ms());
        if !self.set_up.ground.headers {
            // A ground without header compression has these rules of Envoy alone.
            response.fields.retain(|(name, _)| !name.starts_with(b"x-longhaul-"));
        }
        let mut delay_ms = self.draw(ORIGIN_MS);
        let is_empty = response.body.is_empty();
        self.after(
            delay_ms,
            Event::FromOrigin { exchange: id, attempt, piece: Piece::Headers(response.fields, is_empty) },
        );
        let pieces = 1 + usize::try_from(self.draw(2)).unwrap_or(0);
        let size = response.body.len().div_ceil(pieces).max(1);
        let count = response.body.len().div_ceil(size);
        for (number, bytes) in response.body.chunks(size).enumerate() {
            delay_ms += self.draw(10);
            let piece = Piece::Body(bytes.to_vec(), number + 1 == count);
            self.after(delay_ms, Event::FromOrigin { exchange: id, attempt, piece });
        }
    }

    /// Passes a piece of a response through the filters below `from`.
    pub(crate) fn respond(&mut self, id: u64, from: usize, mut piece: Piece) {
        for at in (0..from).rev() {
            if at == REMOTE_HEADERS && from > GROUND_HEADERS {
                return self.cross_back(id, piece);
            }
            if at == REMOTE_BUNDLING {
                if self.pass_router(id, &mut piece) {
                    for piece in self.pass_cache(id, piece) {
                        self.reach_client(id, piece);
                    }
                }
                return;
            }
            if let (GROUND_HEADERS, Piece::Headers(fields, _), true) = (at, &mut piece, self.set_up.ground.is_later) {
                say_more(fields, &["x-longhaul-base"]);
            }
            if at == GROUND_HEADERS {
                let Some(compressed) = self.compressed(id, piece) else { return };
                piece = compressed;
            }
            match self.pass_response(id, at, piece) {
                Some(passed) => piece = passed,
                None => return,
            }
        }
        self.deliver(id, piece);
    }

    /// Passes a piece through one filter. None if the filter holds it.
    fn pass_response(&mut self, id: u64, at: usize, piece: Piece) -> Option<Piece> {
        let exchange = self.exchanges.get_mut(&id)?;
        let place = exchange.place(at)?;
        let Some((key, stream)) = place.stream else { return Some(piece) };
        if place.held_headers.is_some() {
            place.behind.push_back(piece);
            return None;
        }
        let Some(vm) = self.pair.vms.get_mut(&key) else { return Some(piece) };
        match piece {
            Piece::Headers(fields, end) => {
                place.has_response = true;
                let (action, fields) = vm.response_headers(stream, fields, end);
                if action == Action::Pause {
                    place.held_headers = Some(end);
                    return None;
                }
                Some(Piece::Headers(fields, end))
            }
            Piece::Body(bytes, end) => {
                let passed = vm.response_body(stream, &bytes, end);
                place.holds_last = passed.is_none() && end;
                passed.map(|bytes| Piece::Body(bytes, end))
            }
            Piece::Reset => Some(Piece::Reset),
        }
    }

    /// Sends a piece over the link to the remote.
    fn cross_back(&mut self, id: u64, piece: Piece) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let bytes = match &piece {
            Piece::Headers(fields, _) => bytes_of(fields),
            Piece::Body(bytes, _) => bytes.len(),
            Piece::Reset => 0,
        };
        if let Piece::Headers(fields, _) = &piece
            && let Err(broken) = browser::judge_message(fields)
        {
            self.broken = Some(broken);
        }
        let now_ms = self.around.now_ms.get();
        let arrives_ms = self.link.send_down(now_ms, bytes, &mut self.around.random.borrow_mut());
        exchange.down_ms = exchange.down_ms.max(arrives_ms);
        let (at_ms, attempt) = (exchange.down_ms, exchange.attempt);
        self.judge_queue(at_ms);
        self.at(at_ms, Event::AtRemote { exchange: id, attempt, piece });
    }

    /// The compressor of the ground, between its filters.
    fn compressed(&mut self, id: u64, piece: Piece) -> Option<Piece> {
        let exchange = self.exchanges.get_mut(&id)?;
        match piece {
            Piece::Headers(mut fields, end) => {
                let is_text = field(&fields, "content-type").is_some_and(|kind| kind.starts_with(b"text/"));
                let is_plain =
                    field(&fields, "content-encoding").is_none() && field(&fields, "x-longhaul-br").is_none();
                if exchange.takes_br && is_text && is_plain && !end {
                    fields.retain(|(name, _)| name != b"content-length");
                    fields.push(pair("content-encoding", "br"));
                    // As Envoy's compressor does.
                    for (_, tag) in fields.iter_mut().filter(|(name, tag)| name == b"etag" && !tag.starts_with(b"W/")) {
                        *tag = [b"W/", &**tag].concat();
                    }
                    if self.set_up.caches {
                        fields.push(pair("vary", "Accept-Encoding"));
                    }
                    exchange.to_compress = Some(Vec::new());
                }
                Some(Piece::Headers(fields, end))
            }
            Piece::Body(bytes, end) => match &mut exchange.to_compress {
                None => Some(Piece::Body(bytes, end)),
                Some(text) => {
                    text.extend_from_slice(&bytes);
                    end.then(|| Piece::Body(br(text), true))
                }
            },
            Piece::Reset => Some(Piece::Reset),
        }
    }

    /// The router of the remote: it repeats what may be repeated. False if the response goes no further.
    fn pass_router(&mut self, id: u64, piece: &mut Piece) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return false };
        let (attempt, is_client) = (exchange.attempt, matches!(exchange.sink, Sink::Client(_)));
        let may_repeat = is_client && attempt + 1 < ATTEMPTS && !exchange.has_begun;
        match piece {
            Piece::Headers(fields, _) => {
                if may_repeat && field(fields, "x-longhaul-retry").is_some() {
                    let (sink, stream) =
                        (exchange.sink.clone(), exchange.place(REMOTE_HEADERS).and_then(|at| at.stream));
                    if let (Sink::Client(asked), Some((module, _))) = (sink, stream) {
                        self.repeat(module, &asked);
                    }
                    self.again(id, 0);
                    return false;
                }
                exchange.has_begun = true;
                fields.retain(|(name, _)| name != b"x-longhaul-headers" && name != b"x-longhaul-retry");
                true
            }
            Piece::Reset if may_repeat && field(&exchange.routed, "content-length").is_none() => {
                self.again(id, RETRY_MS << attempt);
                false
            }
            Piece::Reset if is_client && !exchange.has_begun => {
                exchange.has_begun = true;
                *piece = Piece::Headers(vec![pair(":status", "503")], true);
                true
            }
            Piece::Body(..) | Piece::Reset => true,
        }
    }

    /// Another attempt. All streams of the earlier one end.
    fn again(&mut self, id: u64, delay_ms: u64) {
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        for at in REMOTE_HEADERS..FILTERS {
            self.close(&mut exchange, at);
        }
        exchange.attempt += 1;
        exchange.to_compress = None;
        let attempt = exchange.attempt;
        self.exchanges.insert(id, exchange);
        self.after(delay_ms, Event::Attempt { exchange: id, attempt });
    }

    /// The connection loses an exchange: both ends see its stream reset.
    pub(crate) fn lose(&mut self, id: u64) {
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        if matches!(exchange.sink, Sink::Nobody) {
            self.exchanges.insert(id, exchange);
            return self.end(id);
        }
        if exchange.is_cached || exchange.place(REMOTE_BUNDLING).is_some_and(|place| place.holds_request) {
            // It has not reached the link.
            self.exchanges.insert(id, exchange);
            return;
        }
        for at in GROUND_HEADERS..FILTERS {
            self.close(&mut exchange, at);
        }
        exchange.attempt += 1;
        self.exchanges.insert(id, exchange);
        self.respond(id, GROUND_HEADERS, Piece::Reset);
    }

    /// A piece reaches whom it is for.
    fn deliver(&mut self, id: u64, piece: Piece) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let (is_end, is_whole) = match piece {
            Piece::Headers(fields, end) => {
                let status = field(&fields, ":status").and_then(|status| std::str::from_utf8(status).ok());
                exchange.status = status.and_then(|status| status.parse().ok()).unwrap_or(0);
                exchange.fields = fields;
                (end, end)
            }
            Piece::Body(bytes, end) => {
                exchange.body.extend_from_slice(&bytes);
                (end, end)
            }
            Piece::Reset => (true, false),
        };
        if !is_end {
            return;
        }
        let (sink, status) = (exchange.sink.clone(), exchange.status);
        let is_stale = exchange.fill.as_ref().is_some_and(|fill| fill.is_stale);
        // Envoy's rules for clients remove the words of the cache.
        exchange.fields.retain(|(name, _)| name != PRIVATE.as_bytes() && name != OUTCOME.as_bytes());
        let (fields, body) = (std::mem::take(&mut exchange.fields), std::mem::take(&mut exchange.body));
        self.end(id);
        match sink {
            Sink::Client(asked) => {
                let response = Received { status, fields: &fields, body: &body, is_whole, is_stale };
                self.received(&asked, &response);
            }
            Sink::Callout { vm, owner, token } => {
                if let Some(vm) = self.pair.vms.get_mut(&vm) {
                    vm.answered(owner, token, is_whole.then_some((fields, body)));
                }
            }
            Sink::Nobody => {}
        }
    }

    /// Carries out what the modules want, until they want nothing more.
    pub(crate) fn settle(&mut self) {
        loop {
            let wanted: Vec<(VmKey, Effect)> = self
                .pair
                .vms
                .iter()
                .flat_map(|(key, vm)| vm.take_effects().into_iter().map(|effect| (*key, effect)))
                .collect();
            if wanted.is_empty() {
                break;
            }
            for (key, effect) in wanted {
                self.carry_out(key, effect);
            }
        }
        self.set_ticks();
    }

    fn carry_out(&mut self, key: VmKey, effect: Effect) {
        match effect {
            Effect::Reply { stream, fields, body } => {
                if let Some((id, at)) = self.owners.get(&(key, stream)).copied() {
                    self.reply(id, at, fields, body);
                }
            }
            Effect::Resume { stream, half } => {
                if let Some((id, at)) = self.owners.get(&(key, stream)).copied() {
                    self.resume(id, at, half);
                }
            }
            Effect::Reset { stream } => {
                if let Some((id, at)) = self.owners.get(&(key, stream)).copied() {
                    self.reset(id, at);
                }
            }
            Effect::Call { token, owner, cluster, fields, .. } if cluster == NAMES => {
                self.tell_names(key, token, owner, &fields);
            }
            Effect::Call { token, owner, fields, timeout_ms, .. } => self.call(key, token, owner, fields, timeout_ms),
        }
    }

    /// A filter ends its stream with a response of its own.
    fn reply(&mut self, id: u64, at: usize, fields: Vec<Field>, body: Vec<u8>) {
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        for behind in at + 1..FILTERS {
            self.close(&mut exchange, behind);
        }
        exchange.attempt += 1;
        let mut from = at + 1;
        if let Some(place) = exchange.place(at) {
            place.holds_request = false;
            place.behind.clear();
            // A filter that replaces a response does not see its own.
            if place.held_headers.take().is_some() || place.has_response {
                from = at;
            }
        }
        self.exchanges.insert(id, exchange);
        let is_empty = body.is_empty();
        self.respond(id, from, Piece::Headers(fields, is_empty));
        if !is_empty {
            self.respond(id, from, Piece::Body(body, true));
        }
    }

    fn resume(&mut self, id: u64, at: usize, half: Half) {
        let Some(place) = self.exchanges.get_mut(&id).and_then(|exchange| exchange.place(at)) else { return };
        if half == Half::Request {
            if std::mem::take(&mut place.holds_request) {
                match at {
                    REMOTE_BUNDLING => self.route_now(id),
                    REMOTE_HEADERS => self.cross(id),
                    GROUND_BUNDLING => self.at_origin(id),
                    _ => self.request(id, at + 1),
                }
            }
            return;
        }
        if let Some(end) = place.held_headers.take() {
            let behind = std::mem::take(&mut place.behind);
            let Some((key, stream)) = place.stream else { return };
            let fields = self.pair.vms.get_mut(&key).map(|vm| vm.release_headers(stream)).unwrap_or_default();
            self.respond(id, at, Piece::Headers(fields, end));
            for piece in behind {
                self.respond(id, at + 1, piece);
            }
            return;
        }
        let (last, Some((key, stream))) = (std::mem::take(&mut place.holds_last), place.stream) else { return };
        let held = self.pair.vms.get_mut(&key).map(|vm| vm.take_body(stream)).unwrap_or_default();
        if !held.is_empty() || last {
            self.respond(id, at, Piece::Body(held, last));
        }
    }

    /// A filter resets a response.
    fn reset(&mut self, id: u64, at: usize) {
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        for behind in at..FILTERS {
            self.close(&mut exchange, behind);
        }
        exchange.attempt += 1;
        self.exchanges.insert(id, exchange);
        self.respond(id, at, Piece::Reset);
    }

    /// The ground tells its resolver which hosts a page names. The resolver may fail, and nothing waits for it.
    fn tell_names(&mut self, key: VmKey, token: u32, owner: u32, fields: &[Field]) {
        if key.place != GROUND_BUNDLING {
            self.broken = Some(Broken::LeakedHosts(format!("the remote tells {}", words(fields))));
        } else if let Err(broken) = browser::judge_hosts(fields) {
            self.broken = Some(broken);
        }
        self.done.told += 1;
        let answer = (!token.is_multiple_of(3)).then(|| (vec![pair(":status", "204")], Vec::new()));
        self.after(1, Event::Fetched { vm: key, owner, token, answer });
    }

    /// A module's own request. Those of the ground go to origins, those of the remote cross the link.
    fn call(&mut self, key: VmKey, token: u32, owner: u32, fields: Vec<Field>, timeout_ms: u64) {
        if key.place == GROUND_BUNDLING {
            if field(&fields, "cookie").is_some() {
                self.broken = Some(Broken::LentCredential(words(&fields)));
            } else if let Err(broken) = browser::judge_request(&fields) {
                self.broken = Some(broken);
            }
            let response = self.origins.answer(&fields, self.now_ms());
            let delay_ms = 1 + self.draw(ORIGIN_MS);
            let answer = Some((response.fields, response.body));
            return self.after(delay_ms, Event::Fetched { vm: key, owner, token, answer });
        }
        let sink = Sink::Callout { vm: key, owner, token };
        let id = self.begin(sink, key.worker, fields);
        self.callouts.insert((key, token), id);
        self.after(timeout_ms, Event::TimedOut { exchange: id });
        self.route_now(id);
    }
}

/// Adds to fields of an end what only a later version says. Fields are lists of items, or of parts.
fn say_more(fields: &mut [Field], names: &[&str]) {
    for (name, value) in fields.iter_mut().filter(|(name, _)| names.iter().any(|known| known.as_bytes() == name)) {
        let more: &[u8] = if name == b"x-longhaul-flight" { b";9;later" } else { b", later" };
        value.extend_from_slice(more);
    }
}

fn bytes_of(fields: &[Field]) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.len() + 2).sum()
}
