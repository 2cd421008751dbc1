//! Objects in br, for clients that accept br and for clients that do not.

use super::{World, body, list};
use crate::remote::Verdict;
use crate::{Count, Reply};

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
        assert_eq!(world.count(Count::UnfitCoding), 0);
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
    assert_eq!(world.count(Count::UnfitCoding), 1);
    assert!(world.requests.iter().flatten().all(|(name, _)| name != "x-longhaul-takes"));
}
