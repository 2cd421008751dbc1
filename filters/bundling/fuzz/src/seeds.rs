//! Seeds of the targets.

use page_flights::{Release, ground};
use pipe_encoding::Windows;
use pipe_encoding::delta::Sender;

use crate::world::{PAGE_STREAM, World};

/// A page that names the objects in [`OBJECTS`].
pub(crate) const PAGE: &[u8] = b"<link rel=stylesheet href=/a.css><script src=/s.js></script><img src=/1.png>";
pub(crate) const OBJECTS: [&str; 3] = ["/a.css", "/s.js", "/1.png"];

/// Returns parcels of a real flight. Every [`World`] draws the same names of flights, so that the parcels fit the first
/// flight of another world.
pub(crate) fn parcels() -> Vec<Vec<u8>> {
    let mut world = World::new();
    let field = world.open();
    assert!(world.begin(field.as_bytes()));
    let id = field.split(';').next().unwrap_or_default().to_owned();
    for _ in 0..8 {
        assert_eq!(world.say(format!("/{id}").as_bytes()).1, ground::Verdict::Hold);
    }
    world.far.body(PAGE_STREAM, PAGE, true, world.now_ms);
    let mut parcels = Vec::new();
    for _ in 0..10 {
        use page_flights::{Answer, End};
        world.now_ms += 100;
        world.far.tick(&world.far_values, world.now_ms);
        for call in world.far.take_calls() {
            let fields = [(&b":status"[..], &b"200"[..]), (b"content-type", b"text/css"), (b"date", b"d")];
            world.far.answered(&world.far_values, call.id, &Answer::Came(&fields, b"p{}"), world.now_ms);
        }
        for (_, release) in world.far.take_releases() {
            if let Release::Answer(reply) = release {
                parcels.push(reply.body);
            }
        }
    }
    assert!(parcels.iter().any(|parcel| parcel.len() > 60), "one with an object");
    parcels
}

/// Returns values of the header that opens a flight.
pub(crate) fn openings() -> Vec<Vec<u8>> {
    let good = format!("{};{};0000000a", "0a".repeat(16), "ff".repeat(8));
    vec![good.into_bytes(), b";".to_vec(), b"00;00;00".to_vec()]
}

/// Returns paths of slots and reports.
pub(crate) fn paths() -> Vec<Vec<u8>> {
    let id = "0a".repeat(16);
    let other = "other=http%3A%2F%2Fa.test%2Fx%3Fa%3Db";
    vec![
        format!("/{id}").into_bytes(),
        format!("/{id}?used=ff01&lost=02").into_bytes(),
        format!("/{id}?used=&lost=&{other}&other=http://b.test/").into_bytes(),
        other.as_bytes().to_vec(),
    ]
}

/// Returns pages.
pub(crate) fn pages() -> Vec<Vec<u8>> {
    vec![
        PAGE.to_vec(),
        b"<base href='http://x.test/d/'><img src=\"a b.png\"><style>@import 'i.css';p{background:url(p.png)}</style>"
            .to_vec(),
        b"<picture><source srcset=a.webp><img src=c.png></picture><body background=//b.test:81/b.gif>".to_vec(),
    ]
}

/// Returns responses of an origin.
pub(crate) fn objects() -> Vec<Vec<u8>> {
    vec![
        b":status: 200\ncontent-type: text/css\ncache-control: public, max-age=60\nvary: accept-encoding\ndate: d\n\np{background:url(/1.png)}".to_vec(),
        b":status: 200\ncontent-type: image/png\nset-cookie: a=b\n\nx".to_vec(),
        b":status: 200\ncontent-encoding: gzip\ncache-control: private\n\nx".to_vec(),
        b":status: 404\n\n".to_vec(),
    ]
}

/// Returns bodies in br.
pub(crate) fn bodies() -> Vec<Vec<u8>> {
    vec![b"\x8b\x01\x80text\x03".to_vec(), b"\x0b\x01\x80text".to_vec(), b"\x11\x11\x11".to_vec(), b"\x06".to_vec()]
}

/// The page that deltas refer to.
pub(crate) const BASE: &[u8] = b"<!doctype html><title>a page of the site</title><p>with a line of text";

/// Returns deltas of [`BASE`].
pub(crate) fn deltas() -> Vec<Vec<u8>> {
    let delta = |page: &[u8]| {
        let mut out = Vec::new();
        if let Some(mut sender) = Sender::new(BASE, &Windows::default()) {
            sender.write(page, &mut out);
            sender.finish(&mut out);
        }
        out
    };
    vec![delta(BASE), delta(b"<!doctype html><title>another page of the site</title>"), delta(b""), vec![0x11; 40]]
}

/// Returns a part, a length of pieces, and a base with its page.
pub(crate) fn pairs_of_pages() -> Vec<Vec<u8>> {
    let token = b"name=\"csrf\" value=\"0123456789abcdef0123456789abcdef\">";
    let page = [b"<p>words", &token[..]].concat();
    vec![
        [&[128, 2][..], &token[..36], &page].concat(),
        b"\x10\xffaaaaab0123456789".to_vec(),
        b"\x80\x01<p>a\x05<p>a\x05a\x05".to_vec(),
        b"\x00\x00page".to_vec(),
    ]
}

/// Returns configurations, good and bad.
pub(crate) fn configurations() -> Vec<Vec<u8>> {
    let good = &br#"{"role": "ground", "cluster": "fetch", "rtt_ms": 600, "down": 2500000, "up": 625000}"#[..];
    vec![good.to_vec(), b"{}".to_vec()]
}

/// Byte strings that matter to a target but rarely arise at random. cargo-fuzz inserts them into inputs.
pub(crate) const TOKENS: &[&[u8]] = &[
    b"\x01",
    b"\x02",
    b"\x03",
    b"\x05\x00",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\xbf\x01",
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
    b";",
    b"?used=",
    b"&lost=",
    b"&other=",
    b"http://",
    b"http%3A%2F%2F",
    b"%00",
    b"%ff",
    b"\n",
    b"\n\n",
    b"\ncache-control: private",
    b"\nset-cookie: a",
    b"\nvary: *",
    b"<img src=",
    b"<link rel=stylesheet href=",
    b"<base href=",
    b"<style>@import '",
    b"url(",
    b"\"",
    b"//",
    b"@",
];
