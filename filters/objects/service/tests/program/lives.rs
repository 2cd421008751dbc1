//! Ends, restarts and neighbours of the program.

use crate::bed::{Bed, bytes, wait};
use crate::origin::{Answer, Gate};

const FRESH: &str = "cache-control: max-age=60\netag: \"1\"";

#[test]
fn a_restart_serves_what_is_stored() {
    let mut bed = Bed::new();
    let fields = format!("{FRESH}\nvary: accept-language");
    bed.stores("/small", FRESH, b"a");
    bed.stores("/large", FRESH, &bytes(300_000));
    bed.origin.plays("/vary", ["en", "de"].map(|body| Answer::whole(&fields, body.as_bytes())));
    let languages = [("accept-language: en", "en"), ("accept-language: de", "de")];
    for (asked, body) in languages {
        assert_eq!(bed.get("/vary", asked).text(), body);
    }
    wait("all are stored", || bed.files().len() == 5);
    bed.restart();
    bed.origin.close();
    assert!(bed.get("/small", "").body == b"a" && bed.get("/large", "").body == bytes(300_000));
    for (asked, body) in languages {
        assert_eq!(bed.get("/vary", asked).text(), body);
    }
}

#[test]
fn a_kill_within_a_body_leaves_no_torn_response() {
    let body = bytes(300_000);
    let some = &body[..200_000];
    for broken in [Answer::sized(FRESH, body.len()).send(some), Answer::chunked(FRESH).chunk(some)] {
        let mut bed = Bed::new();
        let gate = Gate::default();
        bed.stores("/", "cache-control: max-age=60\netag: \"0\"\nage: 100", b"old");
        bed.origin.plays("/", [broken.wait(&gate).close(), Answer::whole(FRESH, &body)]);
        let mut client = bed.send("/", "");
        client.read(some.len());
        bed.program.kill();
        assert!(!client.end().is_whole);
        bed.restart();
        gate.open();
        assert_eq!(bed.files().len(), 1, "the old response");
        for _ in 0..2 {
            let reply = bed.get("/", "");
            assert!(reply.is_whole && reply.body == body);
            bed.is_kept("/");
        }
        assert_eq!(bed.origin.count("/"), 3);
    }
}

#[test]
fn the_program_ends_after_the_requests_under_way() {
    let mut bed = Bed::new();
    let gates = [Gate::default(), Gate::default()];
    bed.stores("/stored", FRESH, b"a");
    let body = bytes(300_000);
    let slow = Answer::sized(FRESH, body.len()).send(&body[..1000]).wait(&gates[0]).send(&body[1000..]);
    bed.origin.plays("/body", [slow]);
    bed.origin.plays("/head", [Answer::after(&gates[1], Answer::whole("cache-control: private", &body))]);
    let mut clients = [bed.send("/body", ""), bed.send("/body", ""), bed.send("/head", "")];
    clients[0].read(1000);
    clients[1].read(1000);
    bed.asks("/head", 1);
    bed.program.ask_to_end();
    wait("the program ends", || bed.program.refuses());
    assert!(bed.program.ended().is_none());
    gates.iter().for_each(Gate::open);
    for client in clients {
        let reply = client.end();
        assert!(reply.is_whole && reply.body == body);
    }
    wait("the program ends", || bed.program.ended().is_some());
    assert!(bed.program.ended().unwrap().success());
}

#[test]
fn two_programs_share_a_folder() {
    let bed = Bed::new();
    let other = bed.another("other");
    for body in [bytes(100), bytes(200_000)] {
        let path = format!("/{}", body.len());
        bed.stores(&path, FRESH, &body);
        let reply = other.get(&path, "");
        assert!(reply.is_stored() && reply.body == body);
        let new: Vec<u8> = body.iter().rev().copied().collect();
        bed.origin.plays(&path, [Answer::whole(FRESH, &new)]);
        assert!(other.get(&path, "cache-control: no-cache").body == new);
        wait("the other program's response is there", || bed.get(&path, "").body == new);
        assert_eq!(bed.origin.count(&path), 2);
    }
    let stale = "cache-control: max-age=60\netag: \"1\"\nage: 100";
    bed.stores("/stale", stale, b"a");
    bed.origin.plays("/stale", [Answer::status("304 Not Modified", "cache-control: max-age=61\netag: \"1\"", b"")]);
    for program in [&other, &bed.program, &other] {
        let reply = program.get("/stale", "");
        assert_eq!((reply.text(), reply.field("cache-control")), ("a", Some("max-age=61")));
    }
    assert_eq!(bed.origin.count("/stale"), 2);
}
