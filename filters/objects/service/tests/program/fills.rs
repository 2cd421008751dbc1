//! Bodies on their way, and their readers.

use std::thread;

use crate::bed::{Bed, Sizes, bytes, wait};
use crate::client::Reply;
use crate::origin::{Answer, Gate};

const FRESH: &str = "cache-control: max-age=60\netag: \"1\"";

#[test]
fn fifty_clients_at_one_miss_cost_one_request() {
    let bed = Bed::new();
    let body = bytes(400_000);
    let (head, middle) = (Gate::default(), Gate::default());
    let slow = Answer::sized(FRESH, body.len()).send(&body[..150_000]).wait(&middle).send(&body[150_000..]);
    bed.origin.plays("/", [Answer::after(&head, slow)]);
    let mut clients: Vec<_> = (0..30).map(|_| bed.send("/", "")).collect();
    bed.settle();
    head.open();
    clients.extend((0..20).map(|_| bed.send("/", "")));
    clients[49].head();
    middle.open();
    let replies: Vec<Reply> = thread::scope(|scope| {
        let threads: Vec<_> = clients.into_iter().map(|client| scope.spawn(|| client.end())).collect();
        threads.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(replies.iter().all(|reply| reply.is_whole && reply.body == body));
    assert!(replies.iter().filter(|reply| !reply.is_stored()).count() <= 1, "all but the first one have an age");
    assert_eq!(bed.origin.count("/"), 1);
}

#[test]
fn readers_start_before_the_body_ends() {
    let bed = Bed::new();
    for (path, is_sized) in [("/sized", true), ("/chunked", false)] {
        let gate = Gate::default();
        let slow = if is_sized {
            Answer::sized(FRESH, 10).send(b"first").wait(&gate).send(b"-last")
        } else {
            Answer::chunked(FRESH).chunk(b"first").wait(&gate).chunk(b"-last").chunk(b"")
        };
        bed.origin.plays(path, [slow]);
        let mut clients = [bed.send(path, ""), bed.send(path, ""), bed.send(path, "")];
        for client in &mut clients {
            assert_eq!(client.read(5), b"first");
        }
        assert!(bed.files().is_empty() || path != "/sized");
        gate.open();
        for reply in clients.map(crate::client::Client::end) {
            assert_eq!((reply.text(), reply.is_whole), ("first-last", true));
        }
        bed.is_kept(path);
        assert_eq!(bed.origin.count(path), 1);
    }
}

#[test]
fn a_first_client_that_leaves_or_stalls_harms_no_other() {
    let bed = Bed::new();
    let body = bytes(5_000_000);
    for (path, does_leave) in [("/leaves", true), ("/stalls", false)] {
        let gate = Gate::default();
        let slow = Answer::sized(FRESH, body.len()).send(&body[..1000]).wait(&gate).send(&body[1000..]);
        bed.origin.plays(path, [slow]);
        let mut first = Some(bed.send(path, ""));
        first.as_mut().unwrap().read(1000);
        let mut second = bed.send(path, "");
        second.read(1000);
        if does_leave {
            first = None;
            bed.settle();
        }
        gate.open();
        let second = second.end();
        assert!(second.is_whole && second.body == body, "{path}");
        bed.is_kept(path);
        assert!(bed.get(path, "").body == body);
        assert!(first.is_none_or(|first| first.end().body == body));
        assert_eq!(bed.origin.count(path), 1);
    }
}

#[test]
fn a_response_without_any_client_is_stored() {
    let bed = Bed::new();
    let gate = Gate::default();
    bed.origin.plays("/", [Answer::after(&gate, Answer::whole(FRESH, b"a"))]);
    let client = bed.send("/", "");
    bed.asks("/", 1);
    drop(client);
    bed.settle();
    gate.open();
    bed.is_kept("/");
    assert_eq!(bed.get("/", "").text(), "a");
    assert_eq!(bed.origin.count("/"), 1);
}

#[test]
fn a_body_that_breaks_off_is_whole_for_nobody_and_is_not_stored() {
    let bed = Bed::new();
    let (some, body) = (bytes(150_000), bytes(200_000));
    for (path, answer, end) in [
        ("/sized", Answer::sized(FRESH, body.len()).send(&some), &b""[..]),
        ("/chunked", Answer::chunked(FRESH).chunk(&some), b""),
        ("/in-a-chunk", Answer::chunked(FRESH).chunk(&some), b"ffff\r\nabc"),
        ("/no-chunk", Answer::chunked(FRESH).chunk(&some), b"no chunk\r\n"),
    ] {
        let gate = Gate::default();
        bed.origin.plays(path, [answer.wait(&gate).send(end).close(), Answer::whole(FRESH, &body)]);
        let mut first = bed.send(path, "");
        first.read(1);
        let mut second = bed.send(path, "");
        second.read(1);
        gate.open();
        for reply in [first.end(), second.end()] {
            assert!(!reply.is_whole && reply.body.len() < body.len(), "{path}");
            assert!(some.starts_with(&reply.body[..reply.body.len().min(some.len())]), "{path}");
        }
        assert_eq!(bed.origin.count(path), 1);
        assert!(bed.files().is_empty(), "{path}");
        let reply = bed.get(path, "");
        assert!(reply.is_whole && reply.body == body, "{path}");
        assert_eq!(bed.origin.count(path), 2);
        bed.is_kept(path);
        std::fs::remove_file(&bed.files()[0]).unwrap();
    }
}

#[test]
fn a_body_that_breaks_off_leaves_the_stored_response() {
    let bed = Bed::new();
    bed.stores("/", FRESH, b"old");
    bed.origin.plays("/", [Answer::sized(FRESH, 9).send(b"new").close()]);
    assert!(!bed.get("/", "cache-control: no-cache").is_whole);
    let reply = bed.get("/", "");
    assert_eq!((reply.text(), reply.is_stored()), ("old", true));
}

#[test]
fn a_body_above_the_limit_passes_whole_and_is_not_stored() {
    let sizes = Sizes { object: 300_000, ..Sizes::default() };
    let bed = Bed::with(sizes, &[]);
    for (length, is_stored) in [(300_000, true), (300_001, false), (2_000_000, false)] {
        let body = bytes(length);
        let chunked = body.chunks(70_000).fold(Answer::chunked(FRESH), Answer::chunk).chunk(b"");
        for (kind, answer) in [("sized", Answer::whole(FRESH, &body)), ("chunked", chunked)] {
            let path = format!("/{kind}-{length}");
            bed.origin.plays(&path, [answer]);
            let passes = || {
                let reply = bed.get(&path, "");
                assert!(reply.is_whole && reply.body == body, "{path}");
            };
            passes();
            if is_stored {
                bed.is_kept(&path);
                passes();
                assert_eq!(bed.origin.count(&path), 1, "{path}");
            } else {
                wait("a request that asks the origin again", || {
                    passes();
                    bed.origin.count(&path) >= 2
                });
            }
            assert_eq!(bed.files().len(), usize::from(is_stored), "{path}");
            bed.files().into_iter().for_each(|file| std::fs::remove_file(file).unwrap());
        }
    }
    wait("nothing is in the making", || std::fs::read_dir(bed.store().join("new")).unwrap().count() == 0);
}
