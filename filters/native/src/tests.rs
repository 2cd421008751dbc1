//! The glue against an Envoy made of tables.

#![allow(unsafe_code)] // streams of the fake are pointers, too

use std::rc::Rc;
use std::sync::Arc;

use filter_host::body::{self, Buffer};
use filter_host::callout;
use filter_host::headers::Pairs;
use filter_host::headers::{self, Map};
use filter_host::metrics::Metrics;
use filter_host::root::Filter;
use filter_host::stream::{Action, HttpStream};
use filter_host::{Slice, context, property, reply};
use http_semantics::Reply;

use crate::abi::{self, CALLBACKS};
use crate::config::Config;
use crate::fake::{Callback, fake, token};
use crate::filters::Kind;
use crate::outgoing::Outgoing;
use crate::worker::{Event, Then, Worker};

/// A filter whose streams do what the request's path says.
struct Scripted;

struct Script {
    id: u32,
    path: Vec<u8>,
}

impl Filter for Scripted {
    const NAME: &'static str = "scripted";

    fn configure(json: &[u8], metrics: &Metrics, _: u32) -> Result<Self, String> {
        metrics.counter("configured_total").add(1);
        if json == b"refused" { Err("scripted: refused".to_owned()) } else { Ok(Self) }
    }

    fn stream(self: &Rc<Self>, id: u32) -> Box<dyn HttpStream> {
        Box::new(Script { id, path: Vec::new() })
    }

    fn tick(&self) {
        // The first stream is the one whose request a test holds, and the second one that whose response it holds.
        let _ = context::on_behalf_of(1, 0, context::continue_request);
        let _ = context::on_behalf_of(2, 0, context::continue_response);
        let _ = callout::send("fetch", &[(":path", "/")], std::time::Duration::from_secs(1));
    }
}

impl HttpStream for Script {
    #[allow(clippy::panic)] // its purpose
    fn request_headers(&mut self, _: bool) -> Action {
        self.path = headers::get(Map::Request, ":path").unwrap().unwrap_or_default();
        match self.path.as_slice() {
            b"/panic" => panic!("asked to"),
            b"/hold" => return Action::Pause,
            b"/reply" => {
                reply::send(&Reply::empty(403), "scripted").unwrap();
                assert_eq!(
                    fake(|fake| fake.calls.clone()),
                    Vec::<String>::new(),
                    "it waits for the end of filter code"
                );
                return Action::Pause;
            }
            b"/own" => {
                context::on_behalf_of(self.id, self.id, context::continue_request).unwrap();
                return Action::Pause;
            }
            b"/edit" => {
                headers::set(Map::Request, ":path", b"/edited").unwrap();
                headers::add(Map::Request, "a", b"1").unwrap();
                headers::remove(Map::Request, "b").unwrap();
                headers::add(Map::Request, "empty", b"").unwrap();
                assert_eq!(property::get(&["source", "address"]).unwrap().unwrap(), b"192.0.2.7:4711");
                assert_eq!(property::get(&["connection", "id"]).unwrap().unwrap(), [2, 1, 0, 0, 0, 0, 0, 0]);
                property::set("longhaul_moved", b"3").unwrap();
            }
            _ => {}
        }
        Action::Continue
    }

    #[allow(clippy::panic)] // its purpose
    fn response_body(&mut self, size: usize, end: bool) -> Action {
        if self.path == b"/pieces/held" && !end {
            return Action::Pause;
        }
        if self.path == b"/where-it-may" {
            return if body::may_hold() { Action::Pause } else { Action::Continue };
        }
        if self.path.starts_with(b"/pieces") {
            let (stays, mut out) = (self.path.ends_with(b"as-they-came"), Vec::new());
            let upper = &mut |piece: &[u8], last: bool, out: &mut Vec<u8>| {
                out.extend(piece.to_ascii_uppercase());
                out.extend_from_slice(if last { b"." } else { b"" });
                !stays
            };
            let outcome = body::rewrite(Buffer::ResponseBody, size, &mut out, upper);
            assert_eq!((outcome, out.len()), (Ok(()), 0));
            return Action::Continue;
        }
        let bytes = body::read(Buffer::ResponseBody, size).unwrap();
        assert_eq!(bytes.len(), size);
        match self.path.as_slice() {
            b"/whole" if !end => Action::Pause,
            b"/whole" => {
                body::replace(Buffer::ResponseBody, size, &bytes.to_ascii_uppercase()).unwrap();
                Action::Continue
            }
            b"/late" | b"/late-changed" if end => panic!("asked to"),
            b"/late-changed" => {
                body::replace(Buffer::ResponseBody, size, b"x").unwrap();
                Action::Continue
            }
            b"/break" => {
                body::break_off().unwrap();
                Action::Continue
            }
            _ => Action::Continue,
        }
    }
}

fn stream() -> abi::Stream {
    unsafe { abi::Stream::of(token()) }
}

fn config(json: &[u8]) -> Result<Box<Config>, String> {
    Config::of_kind(unsafe { abi::Config::of(token()) }, Kind::of::<Scripted>("scripted"), "scripted", json)
}

/// Begins a request, and returns its worker, its id, and what follows its headers.
fn request(path: &str) -> (Arc<Worker>, u32, Then) {
    let config = Box::leak(config(b"").unwrap());
    let worker = config.worker(0).unwrap();
    let (id, then) = next_request(&worker, path);
    (worker, id, then)
}

fn next_request(worker: &Worker, path: &str) -> (u32, Then) {
    fake(|fake| {
        fake.maps = Default::default();
        fake.maps[0] = vec![(b":path".to_vec(), path.into()), (b"b".to_vec(), b"2".to_vec())];
    });
    let (id, panicked) = worker.open();
    assert!(!panicked);
    (id, worker.hook(id, stream(), Event::RequestHeaders(true)).finish(stream()).then)
}

fn piece(worker: &Worker, id: u32, bytes: &[u8], end: bool) -> (Then, Vec<u8>) {
    fake(|fake| fake.received = bytes.to_vec());
    let then = worker.hook(id, stream(), Event::ResponseBody(end)).finish(stream()).then;
    let received = fake(|fake| {
        let received = std::mem::take(&mut fake.received);
        match then {
            Then::Hold => {
                fake.held.extend_from_slice(&received);
                Vec::new()
            }
            Then::PassOn => [std::mem::take(&mut fake.held), received].concat(),
            Then::Wait | Then::Drop => Vec::new(),
        }
    });
    (then, received)
}

fn calls() -> Vec<String> {
    fake(|fake| std::mem::take(&mut fake.calls))
}

#[test]
fn headers_properties_and_filter_state_are_those_of_the_stream() {
    let (_, _, then) = request("/edit");
    assert_eq!(then, Then::PassOn);
    let (map, state) = fake(|fake| (fake.maps[0].clone(), fake.state.clone()));
    let expected = [(":path", "/edited"), ("a", "1"), ("empty", " ")];
    assert_eq!(map, expected.map(|(name, value)| (name.into(), value.into())));
    assert_eq!(state, [(b"wasm.longhaul_moved".to_vec(), b"3".to_vec())]);
    assert!(calls().contains(&"route again".to_owned()));
}

#[test]
fn a_reply_waits_until_no_filter_code_runs() {
    let (_, _, then) = request("/reply");
    assert_eq!((then, calls()), (Then::Drop, vec!["reply 403 scripted".to_owned()]));
}

#[test]
fn nothing_is_held_behind_the_bytes_of_another_filter() {
    let (worker, id, _) = request("/where-it-may");
    fake(|fake| fake.held = b"another's".to_vec());
    assert_eq!(worker.hook(id, stream(), Event::ResponseBody(false)).finish(stream()).then, Then::PassOn);
    fake(|fake| fake.held.clear());
    assert_eq!(piece(&worker, id, b"own", false).0, Then::Hold);
    assert_eq!(piece(&worker, id, b" and more", true).0, Then::Hold, "behind bytes of its own");
    // A filter that holds all the same would mix both.
    let (worker, id, _) = request("/whole");
    fake(|fake| fake.held = b"another's".to_vec());
    calls();
    assert_eq!(worker.hook(id, stream(), Event::ResponseBody(false)).finish(stream()).then, Then::Drop);
    assert_eq!(calls(), ["reset longhaul_broken_off"]);
}

#[test]
fn a_release_that_comes_behind_the_next_piece_releases_nothing() {
    let (worker, _, _) = request("/");
    let (id, _) = next_request(&worker, "/where-it-may");
    assert_eq!(piece(&worker, id, b"held", false).0, Then::Hold);
    // The filter has released it, and Envoy has not heard of it yet.
    assert!(worker.tick());
    assert_eq!(
        piece(&worker, id, b", next", false),
        (Then::PassOn, b"held, next".to_vec()),
        "it sees the new bytes alone"
    );
    calls();
    worker.mail(id).finish(stream());
    assert_eq!(calls(), Vec::<String>::new(), "another filter may hold them now");
    assert_eq!(piece(&worker, id, b"again", false).0, Then::Hold);
    assert!(worker.tick());
    calls();
    worker.mail(id).finish(stream());
    assert_eq!(calls(), ["resume response"]);
}

#[test]
fn a_body_is_rewritten_in_pieces_that_keep_their_order() {
    let letters = |size: usize| -> Vec<u8> { (b'a'..=b'z').cycle().take(size).collect() };
    for size in [0, 1, 16_384, 40_000] {
        let (worker, id, _) = request("/pieces");
        let (then, bytes) = piece(&worker, id, &letters(size), true);
        let expected = [letters(size), b".".to_vec()].concat().to_ascii_uppercase();
        assert!(then == Then::PassOn && bytes == expected, "{size}: {} bytes", bytes.len());
        let (worker, id, _) = request("/pieces/as-they-came");
        assert!(piece(&worker, id, &letters(size), true) == (Then::PassOn, letters(size)), "{size}");
    }
    let (worker, id, _) = request("/pieces/held");
    assert_eq!(piece(&worker, id, b"first, ", false).0, Then::Hold);
    assert_eq!(piece(&worker, id, b"and last", true), (Then::PassOn, b"FIRST, AND LAST.".to_vec()));
}

/// Sends a response of three chunks and a bit. `act` happens while a part is sent.
fn send(act: impl Fn(&Outgoing) + 'static) -> (Rc<Outgoing>, Vec<String>) {
    let bytes: Arc<[u8]> = vec![0; 800_000].into();
    let body = vec![Slice::of(&bytes, 0..600_000), Slice::of(&bytes, 0..0), Slice::of(&bytes, 600_000..800_000)];
    let response = Rc::new(Outgoing::new(Pairs::of(&[(":status", "200")]), body));
    let inner = Rc::downgrade(&response);
    fake(|fake| fake.while_sending = Some(Callback(Rc::new(move || act(&inner.upgrade().unwrap())))));
    response.start(stream());
    (response, calls())
}

const HEAD: &str = "response with 1 fields";

#[test]
fn a_response_is_sent_whole_to_a_client_that_takes_it() {
    let (_, said) = send(|_| {});
    assert_eq!(said, [HEAD, "262144 bytes", "262144 bytes", "75712 bytes", "200000 bytes, end"]);
    Outgoing::new(Pairs::of(&[(":status", "304")]), Vec::new()).start(stream());
    assert_eq!(calls(), [format!("{HEAD}, end")]);
}

#[test]
fn a_response_waits_for_every_full_buffer_of_a_slow_client() {
    let (response, said) = send(|response| {
        response.hold_back();
        response.hold_back();
    });
    assert_eq!(said, [HEAD, "262144 bytes"]);
    response.release(stream());
    assert_eq!(calls(), Vec::<String>::new());
    response.release(stream());
    assert_eq!(calls(), ["ring"], "nothing is sent in the hook itself");
    response.go_on(stream());
    assert_eq!(calls(), ["262144 bytes"]);
    response.end();
    response.release(stream());
    response.release(stream());
    response.go_on(stream());
    assert_eq!(calls(), Vec::<String>::new(), "the stream has ended");
}

#[test]
fn a_buffer_that_empties_while_a_part_is_sent_does_not_send_twice() {
    let (_, said) = send(|response| {
        response.hold_back();
        response.release(stream());
        response.go_on(stream());
    });
    let sent: Vec<_> = said.iter().filter(|call| *call != "ring").collect();
    assert_eq!(sent, [HEAD, "262144 bytes", "262144 bytes", "75712 bytes", "200000 bytes, end"]);
}

#[test]
fn nothing_is_sent_after_a_stream_that_ends_while_a_part_is_sent() {
    let (_, said) = send(Outgoing::end);
    assert_eq!(said, [HEAD, "262144 bytes"]);
}

#[test]
fn a_held_request_is_released_on_its_own_worker() {
    let (worker, id, then) = request("/hold");
    assert_eq!((id, then), (1, Then::Hold));
    assert!(worker.tick());
    assert_eq!(calls(), ["ring", "main thread calls filter_calls_0"]);
    worker.mail(id).finish(stream());
    assert_eq!(calls(), ["resume request"]);
    // It is not held any more, so another release does nothing.
    assert!(worker.tick());
    worker.mail(id).finish(stream());
    assert!(!calls().contains(&"resume request".to_owned()));
    assert!(!worker.close(id));
    assert!(worker.tick());
    assert_eq!(calls(), ["main thread calls filter_calls_0"], "the stream is gone");
}

#[test]
fn a_stream_that_releases_itself_is_not_held() {
    assert_eq!(request("/own").2, Then::PassOn);
    assert_eq!(calls(), Vec::<String>::new());
}

#[test]
fn a_held_body_is_read_and_replaced_as_a_whole() {
    let (worker, id, _) = request("/whole");
    assert_eq!(piece(&worker, id, b"one ", false), (Then::Hold, Vec::new()));
    assert_eq!(piece(&worker, id, b"two", true), (Then::PassOn, b"ONE TWO".to_vec()));
}

#[test]
fn a_body_that_breaks_off_resets_the_stream() {
    let (worker, id, _) = request("/break");
    assert_eq!(piece(&worker, id, b"x", false).0, Then::Drop);
    assert_eq!(calls(), ["reset longhaul_broken_off"]);
}

#[test]
fn a_panic_costs_one_stream() {
    let (worker, _, then) = request("/panic");
    assert_eq!(then, Then::Drop);
    assert_eq!(calls().last().unwrap(), "reply 500 longhaul_filter_panicked");
    assert!(worker.has_panicked());
    // Another stream of the same worker goes on, and so does one that had begun.
    assert_eq!(next_request(&worker, "/").1, Then::PassOn);
}

#[test]
fn a_body_passes_as_it_comes_after_a_panic_only_if_nothing_was_changed() {
    let (worker, id, _) = request("/late");
    assert_eq!(piece(&worker, id, b"one", false), (Then::PassOn, b"one".to_vec()));
    assert_eq!(piece(&worker, id, b"two", true), (Then::PassOn, b"two".to_vec()));
    let (worker, id, _) = request("/late-changed");
    assert_eq!(piece(&worker, id, b"one", false), (Then::PassOn, b"x".to_vec()));
    assert_eq!(piece(&worker, id, b"two", true).0, Then::Drop);
    assert!(calls().contains(&"reset longhaul_broken_off".to_owned()));
}

#[test]
fn new_streams_get_a_fresh_filter_after_a_panic() {
    let config = config(b"").unwrap();
    let first = config.worker(0).unwrap();
    assert!(Arc::ptr_eq(&first, &config.worker(0).unwrap()));
    next_request(&first, "/panic");
    assert!(!Arc::ptr_eq(&first, &config.worker(0).unwrap()));
    let counters = fake(|fake| fake.counters.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    assert_eq!(counters, ["longhaul_scripted_panics_total", "longhaul_scripted_configured_total"], "defined once");
}

#[test]
fn a_configuration_is_refused_with_the_filters_reason() {
    assert_eq!(config(b"refused").unwrap_err(), "scripted: refused");
    let other = Config::load(unsafe { abi::Config::of(token()) }, "other@board", b"");
    assert!(other.unwrap_err().contains("no filter \"other\""));
}

/// Envoy refuses a module that calls an unknown function. The names are in the table of strings of the program.
#[test]
fn the_pinned_envoy_exports_every_function_that_the_module_calls() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/dist/envoy");
    let path = std::env::var("LONGHAUL_ENVOY").unwrap_or_else(|_| beside.to_owned());
    let Ok(program) = std::fs::read(&path) else {
        assert!(std::env::var("LONGHAUL_REQUIRE_ALL").is_err(), "{path} is not there");
        return;
    };
    let mut missing: Vec<&str> = CALLBACKS.to_vec();
    for name in program.split(|byte| *byte == 0) {
        missing.retain(|wanted| wanted.as_bytes() != name);
    }
    assert_eq!(missing, Vec::<&str>::new());
}
