//! Objects in br, for clients that accept br and for clients that do not.

use super::{World, body, borrowed, config, list};
use crate::ground::{self, GroundEnd};
use crate::remote::{RemoteEnd, Verdict};
use crate::{Config, Count, End, FLIGHT_FIELD, Role, SLOT_AUTHORITY};
use http_semantics::Reply;

const SHEET: &str = "p{background:url(/3.png)}";

fn in_br(plain: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut &*plain, &mut packed, &brotli::enc::BrotliEncoderParams::default()).unwrap();
    packed
}

/// Returns a world whose style sheet is in br, and whose remote takes br.
fn world(sheet: Vec<u8>) -> World {
    let mut world = World::new();
    let (fields, body) = world.origin.get_mut("/a.css").unwrap();
    fields.extend(list(&[("content-encoding", "br"), ("etag", "\"x\"")]));
    *body = sheet;
    world.page_fields = list(&[("accept-encoding", "br, gzip, deflate")]);
    world
}

fn served(verdict: &Verdict) -> &Reply {
    let Verdict::Answer(reply) = verdict else { panic!("{verdict:?}") };
    reply
}

#[test]
fn an_object_in_br_reaches_every_client_in_an_encoding_that_it_accepts() {
    for (accepted, plain) in [("gzip, deflate", true), ("gzip, br", false)] {
        let mut world = world(in_br(SHEET.as_bytes()));
        world.visit(0, "client");
        assert_eq!(world.count(Count::UnfitEncoding), 0);
        assert!(world.fetched.contains(&"/3.png".to_owned()), "the ground reads the style sheet");
        assert!(world.requests.iter().all(|one| one.contains(&("x-longhaul-takes".to_owned(), "br".to_owned()))));
        let (_, verdict) = world.ask(0, "client", "/a.css", &[("accept-encoding", accepted)]);
        let Reply { fields, body, .. } = served(&verdict);
        let has = |name: &str, value: &str| fields.contains(&(name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        assert_eq!(has("content-encoding", "br"), !plain, "{accepted}");
        assert_eq!((has("etag", "W/\"x\""), has("vary", "Accept-Encoding")), (plain, plain), "{accepted}");
        assert_eq!(body == SHEET.as_bytes(), plain, "{accepted}");
    }
}

#[test]
fn an_object_that_is_not_br_crosses_the_link_when_it_is_requested() {
    let mut world = world(b"not br".to_vec());
    world.visit(0, "client");
    assert_eq!(world.ask(0, "client", "/a.css", &[]).1, Verdict::Pass);
    assert!(body(&world.ask(0, "client", "/1.png", &[]).1).is_some(), "other objects are served");
}

#[test]
fn without_a_remote_that_takes_br_an_object_in_br_is_unfit() {
    let mut world = world(in_br(SHEET.as_bytes()));
    world.page_fields.clear();
    world.visit(0, "client");
    assert_eq!(world.count(Count::UnfitEncoding), 1);
    assert!(world.requests.iter().flatten().all(|(name, _)| name != "x-longhaul-takes"));
}

#[test]
fn without_flights_no_page_opens_one_and_internal_names_mean_nothing() {
    let mut world = World::new();
    let off = |role| Config { flights: false, ..config(role) };
    world.workers[0] = RemoteEnd::new(&off(Role::Remote), [1; 32], [7; 8]);
    world.ground = GroundEnd::new(&off(Role::Ground));
    assert_eq!(world.ask(0, "client", "/", &[("accept", "text/html")]).1, Verdict::Pass);
    assert_eq!(world.ask(0, "client", "/", &[(FLIGHT_FIELD, "a;b;c")]).1, Verdict::PassWithout);
    let (_, slot) = world.ask(0, "client", "/x", &[(":authority", SLOT_AUTHORITY)]);
    assert_eq!(served(&slot).status, 404);
    let fields = list(&[(":method", "GET"), (":path", "/"), (FLIGHT_FIELD, "a;b;c")]);
    assert_eq!(world.ground.request(&world.board, 1, &borrowed(&fields), 0), ground::Verdict::Read);
    assert_eq!((world.workers[0].next_tick(), world.ground.next_tick()), (None, None));
}
