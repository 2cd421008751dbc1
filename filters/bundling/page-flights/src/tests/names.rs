//! The hosts that pages name, and the resolver of the ground.

use super::{Pairs, World, borrowed, config, list};
use crate::{Answer, Call, Callee, Config, Count, End, GroundEnd, HOSTS_FIELD, Role};

/// A world whose ground tells a resolver.
fn world() -> World {
    let mut world = World::new();
    world.ground = GroundEnd::new(&Config { names: Some("pushed".to_owned()), ..config(Role::Ground) });
    world
}

fn page() -> Pairs {
    list(&[(":status", "200"), ("content-type", "text/html")])
}

/// Takes the ground's requests to the resolver.
fn told(world: &mut World) -> Vec<Call> {
    world.ground.take_calls().into_iter().filter(|call| call.to == Callee::Names).collect()
}

/// Loads a page in these pieces, and returns the lists that the resolver gets after each.
fn lists(world: &mut World, pieces: &[&str]) -> Vec<Vec<String>> {
    let stream = world.begin_visit(0, "client");
    assert!(world.ground.response(&world.board, stream, &borrowed(&page())));
    let mut lists = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        world.ground.body(stream, piece.as_bytes(), number + 1 == pieces.len(), world.now_ms);
        let calls = told(world);
        let of = |call: &Call| call.fields.iter().find(|(name, _)| *name == HOSTS_FIELD).unwrap().1.clone();
        lists.push(calls.iter().map(of).collect());
    }
    lists
}

#[test]
fn the_resolver_is_told_what_browsers_will_look_up() {
    let markup = "<link rel='canonical' href=//canonical.test/><link rel=preconnect href=//hint.test>\
        <link rel=dns-prefetch href=https://Early.test/><a href=//link.test/>x</a><form action=//form.test/></form>\
        <meta http-equiv=refresh content='5; url=//next.test/'><noscript><img src=//no.test/n.png></noscript>\
        <link rel=stylesheet href=https://css.test/a.css><script src=//js.test/a.js integrity=sha256-x></script>\
        <script type=module src=//module.test/a.js></script><script type=text/x src=//data.test/></script>\
        <img src=//192.0.2.7/a.png><img src=//WWW.test/a.png><img src=/a.png><img loading=lazy src=//lazy.test/a.png>\
        <style>@font-face{src:url(//font.test/a.woff2)}</style><iframe src=//frame.test/></iframe>";
    let expected = "www.test,hint.test,early.test,css.test,js.test,module.test,lazy.test,font.test,frame.test";
    assert_eq!(lists(&mut world(), &[markup]), [[expected.to_owned()]]);
}

#[test]
fn hosts_are_told_with_the_first_bytes_that_name_one_and_at_the_end() {
    let pieces = ["<p>", "<img src=//a.test/1>", "<img src=//b.test/1>", "<img src=//a.test/2><img src=//c.test/1>"];
    let told = lists(&mut world(), &pieces);
    assert_eq!(told, [vec![], vec!["www.test,a.test".to_owned()], vec![], vec!["www.test,b.test,c.test".to_owned()]]);
}

#[test]
fn a_page_that_names_nobody_tells_nothing() {
    let told = lists(&mut world(), &["<img src=/a.png>", "<img src=http://www.test/b.png>"]);
    assert!(told.iter().all(Vec::is_empty), "{told:?}");
}

#[test]
fn without_a_resolver_nothing_is_told() {
    let told = lists(&mut World::new(), &["<img src=//a.test/1>"]);
    assert!(told.iter().all(Vec::is_empty), "{told:?}");
}

#[test]
fn a_list_leaves_at_once_and_counts_by_its_response() {
    let mut world = world();
    for (answer, taken) in [("204", 1), ("404", 0), ("", 0)] {
        let stream = world.begin_visit(0, "client");
        assert!(world.ground.response(&world.board, stream, &borrowed(&page())));
        world.ground.body(stream, b"<img src=https://a.test/1>", true, world.now_ms);
        assert_eq!(world.ground.next_tick(), Some(crate::link::NEXT_TICK));
        let call = told(&mut world).swap_remove(0);
        let fields = [(&b":status"[..], answer.as_bytes())];
        let answer = if answer.is_empty() { Answer::Failed } else { Answer::Came(&fields, b"") };
        world.ground.answered(&world.board, call.id, &answer, world.now_ms);
        world.ground.answered(&world.board, call.id, &answer, world.now_ms);
        let counted = [Count::NamesTaken, Count::NamesFailed].map(|count| world.ground.counts().get(count));
        assert_eq!(counted, [taken, 1 - taken]);
        let _ = world.ground.counts().take();
    }
}
