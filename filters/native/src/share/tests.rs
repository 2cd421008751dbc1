//! Streams that wait for their turn, with an Envoy made of tables and the real thread.

#![allow(unsafe_code)] // streams of the fake are pointers, too

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use link_share::Direction;

use super::{Share, Shared};
use crate::abi::{Config, Stream};
use crate::fake::{BUFFER_LIMIT, fake, has_rung, hold_links, token};
use crate::worker::{Event, Then};

fn stream() -> Stream {
    unsafe { Stream::of(token()) }
}

/// Loads a configuration with one link of 1 MB a second. Tests run in parallel, so each has a link of its own name.
fn share(direction: &str, name: &str) -> Arc<Share> {
    let json = format!(
        r#"{{"direction":"{direction}","links":[{{"name":"{name}","bytes_per_second":1000000,"weights":[]}}]}}"#
    );
    Arc::new(Share::load(unsafe { Config::of(token()) }, json.as_bytes()).unwrap())
}

fn open(share: &Arc<Share>, remote: &str) -> Shared {
    let field = |name: &str, value: &str| (name.into(), value.into());
    fake(|fake| {
        fake.maps[0] = vec![field("x-longhaul-client", "192.0.2.7"), field("x-longhaul-remote", remote)];
        fake.calls.clear();
    });
    let shared = Shared::new(Arc::clone(share));
    assert_eq!(shared.hear(stream(), &Event::RequestHeaders(false)), Then::PassOn);
    shared
}

fn piece(shared: &Shared, bytes: usize) -> Then {
    fake(|fake| fake.received = vec![0; bytes]);
    shared.hear(stream(), &Event::ResponseBody(false))
}

fn wait_for_turn() {
    let (bell, start) = (fake(|fake| fake.bell), Instant::now());
    while !has_rung(bell) {
        assert!(start.elapsed() < Duration::from_secs(10), "nobody rang");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_piece_waits_for_its_turn_and_goes_on_once() {
    let share = share("response", "waits");
    let shared = open(&share, "waits");
    assert_eq!(piece(&shared, 200_000), Then::PassOn, "the link is idle");
    let start = Instant::now();
    assert_eq!(piece(&shared, 16_384), Then::Wait);
    assert_eq!(piece(&shared, 16_384), Then::Wait, "the rest is behind it");
    assert_eq!(shared.hear(stream(), &Event::ResponseTrailers), Then::Wait, "trailers overtake nothing");
    wait_for_turn();
    assert!(start.elapsed() >= Duration::from_millis(150), "200 KB take 0.2 s, and 0.05 s were saved");
    shared.turn(stream());
    shared.turn(stream());
    assert_eq!(fake(|fake| fake.calls.clone()), ["resume response"]);
    let counted: Vec<u64> = fake(|fake| fake.counters.iter().map(|(_, count)| *count).collect());
    assert_eq!(counted, [200_000, 32_768, 0], "at once, waited, renewals");
    assert_eq!(shared.hear(stream(), &Event::ResponseTrailers), Then::PassOn);
}

#[test]
fn a_download_that_waits_holds_as_much_as_one_turn_may_send() {
    let _links = hold_links();
    let link = |name: &str| format!(r#"{{"name":"{name}","bytes_per_second":400000,"weights":[]}}"#);
    let json = format!(r#"{{"direction":"response","links":[{},{}]}}"#, link("small"), link("bulk"));
    let share = Arc::new(Share::load(unsafe { Config::of(token()) }, json.as_bytes()).unwrap());
    let small = open(&share, "small");
    assert_eq!((piece(&small, 100_000), piece(&small, 9)), (Then::PassOn, Then::Wait));
    assert_eq!(fake(|fake| fake.calls.clone()), Vec::<String>::new(), "the objects of a page are held whole");
    let bulk = open(&share, "bulk");
    assert_eq!(piece(&bulk, 300_000), Then::PassOn);
    assert_eq!(piece(&bulk, 9), Then::Wait);
    assert_eq!(fake(|fake| fake.calls.clone()), ["buffer limit 20000"], "50 ms at the rate of the link");
}

#[test]
fn a_full_connection_holds_up_a_stream_and_its_own_buffer_does_not() {
    let share = share("response", "full");
    let shared = open(&share, "full");
    let hold = |bytes: usize| fake(|fake| fake.held = vec![0; bytes]);
    let limit = usize::try_from(BUFFER_LIMIT).unwrap();
    assert_eq!(piece(&shared, 100_000), Then::PassOn);
    assert_eq!(piece(&shared, limit + 1), Then::Wait);
    // Envoy tells of what it holds for the filter, and the turn comes all the same.
    hold(limit + 1);
    shared.hold_up(stream());
    wait_for_turn();
    hold(0);
    shared.release(stream());
    shared.turn(stream());
    // The connection is full, twice: the stream's own window, and the buffer of all streams.
    shared.hold_up(stream());
    shared.hold_up(stream());
    assert_eq!(piece(&shared, 1), Then::Wait, "though the link is idle");
    shared.release(stream());
    let bell = fake(|fake| fake.bell);
    thread::sleep(Duration::from_millis(100));
    let others = open(&share, "full");
    assert_eq!(piece(&others, 1), Then::PassOn, "nobody else waits");
    assert_eq!(fake(|fake| fake.calls.clone()), Vec::<String>::new());
    shared.release(stream());
    let start = Instant::now();
    while !has_rung(bell) && start.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(1));
    }
    shared.turn(stream());
    assert_eq!(fake(|fake| fake.calls.clone()), ["resume response"]);
}

#[test]
fn a_full_client_holds_up_no_request() {
    let share = share("request", "both ways");
    let shared = open(&share, "both ways");
    shared.hold_up(stream());
    fake(|fake| fake.received = vec![0; 9]);
    assert_eq!(shared.piece(stream(), Direction::Request), Then::PassOn);
    assert_eq!(shared.piece(stream(), Direction::Request), Then::PassOn);
}

#[test]
fn the_first_bytes_of_a_connection_name_its_client() {
    let share = share("response", "named");
    let introduced = |header: &[u8]| {
        let field = |name: &str, value: &str| (name.into(), value.into());
        fake(|fake| {
            fake.maps[0] = vec![field("x-longhaul-names", "client"), field("x-longhaul-remote", "named")];
            fake.received = header.to_vec();
        });
        let shared = Shared::new(Arc::clone(&share));
        assert_eq!(shared.hear(stream(), &Event::RequestHeaders(false)), Then::PassOn);
        assert_eq!(shared.piece(stream(), Direction::Request), Then::PassOn, "requests do not wait");
        shared
    };
    let header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xcb\0\x71\x01\x10\0\x01\xbb";
    let silent = introduced(&header[..20]);
    assert_eq!((piece(&silent, 900_000), piece(&silent, 900_000)), (Then::PassOn, Then::PassOn), "of nobody yet");
    fake(|fake| fake.received = header[20..].to_vec());
    assert_eq!(silent.piece(stream(), Direction::Request), Then::PassOn);
    assert_eq!((piece(&silent, 100_000), piece(&silent, 1)), (Then::PassOn, Then::Wait));
    wait_for_turn();
}

#[test]
fn only_the_half_that_crosses_the_link_waits() {
    let share = share("request", "uplink");
    let shared = open(&share, "uplink");
    let request = |bytes: usize| {
        fake(|fake| fake.received = vec![0; bytes]);
        shared.piece(stream(), Direction::Request)
    };
    assert_eq!(request(200_000), Then::PassOn);
    assert_eq!(piece(&shared, 200_000), Then::PassOn, "a response comes from the link");
    assert_eq!(request(1), Then::Wait);
    assert_eq!(request(1), Then::Wait);
    assert_eq!(shared.end(Direction::Request), Then::Wait);
    wait_for_turn();
    shared.turn(stream());
    assert_eq!(fake(|fake| fake.calls.clone()), ["resume request"]);
}

/// A piece of a request, while Envoy's buffer has so many bytes. Returns what the buffer has afterwards, too.
fn request(shared: &Shared, bytes: usize, kept: usize) -> (Then, usize) {
    fake(|fake| {
        fake.received = vec![0; bytes];
        fake.request_held.resize(kept, 0);
    });
    (shared.piece(stream(), Direction::Request), fake(|fake| fake.request_held.len()))
}

/// Envoy's router keeps a copy of what it has sent, for a retry, in the buffer of a piece that waits.
#[test]
fn what_envoy_keeps_for_a_retry_passes_at_once_and_is_not_sent_twice() {
    let share = share("request", "retry");
    let limit = usize::try_from(BUFFER_LIMIT).unwrap();
    let others = open(&share, "retry");
    fake(|fake| fake.received = vec![0; 500_000]);
    assert_eq!(others.piece(stream(), Direction::Request), Then::PassOn);
    let shared = open(&share, "retry");
    let request = |bytes, kept| request(&shared, bytes, kept);
    assert_eq!(request(limit, 0), (Then::PassOn, 0), "the link is in debt");
    assert_eq!(request(1, limit), (Then::PassOn, limit), "the router gives up with this piece");
    assert_eq!(request(9, limit), (Then::Wait, 0), "the copy goes, and the piece comes into the buffer");
    assert_eq!(request(9, 9), (Then::Wait, 9), "what waits stays");
}

/// Each of many uploads would put a whole buffer into the link's queue, and pages would wait behind them.
#[test]
fn a_tunnel_that_is_open_has_no_copy_and_its_pieces_wait() {
    let share = share("request", "tunnel");
    let others = open(&share, "tunnel");
    fake(|fake| fake.received = vec![0; 200_000]);
    assert_eq!(others.piece(stream(), Direction::Request), Then::PassOn);
    let shared = open(&share, "tunnel");
    let request = |bytes, kept| request(&shared, bytes, kept);
    assert_eq!(request(100, 0), (Then::PassOn, 0), "the response may come after the first bytes");
    assert_eq!(shared.hear(stream(), &Event::ResponseHeaders(false)), Then::PassOn);
    assert_eq!(request(9, 100), (Then::Wait, 0));
    wait_for_turn();
    shared.turn(stream());
    assert_eq!(fake(|fake| fake.calls.clone()), ["resume request"]);
}

#[test]
fn a_remote_without_a_link_is_not_limited_and_a_stream_that_ends_leaves_the_order() {
    let share = share("response", "leaves");
    let stranger = open(&share, "leaves.example");
    assert_eq!((piece(&stranger, 900_000), piece(&stranger, 900_000)), (Then::PassOn, Then::PassOn));
    let ended = open(&share, "leaves");
    assert_eq!(piece(&ended, 100_000), Then::PassOn);
    assert_eq!(piece(&ended, 900_000), Then::Wait);
    drop(ended);
    // Had it stayed, its 900 KB would come first.
    let (next, start) = (open(&share, "leaves"), Instant::now());
    assert_eq!(piece(&next, 40_000), Then::Wait, "more than first bytes");
    wait_for_turn();
    assert!(start.elapsed() < Duration::from_millis(500));
}

#[test]
fn a_new_configuration_changes_the_rate_of_a_link_that_runs() {
    let _links = hold_links();
    let shared = open(&share("response", "faster"), "faster");
    assert_eq!(piece(&shared, 1_000_000_000), Then::PassOn);
    assert_eq!(piece(&shared, 1), Then::Wait, "for a quarter of an hour");
    let json = r#"{"direction":"response","links":[{"name":"faster","bytes_per_second":1000000000000,"weights":[]}]}"#;
    Share::load(unsafe { Config::of(token()) }, json.as_bytes()).unwrap();
    wait_for_turn();
}
