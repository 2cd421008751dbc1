//! The laws that hold for every input, one function for each target. A function panics if its law is broken.

use fuzz_driver::Target;
use http_semantics::{FieldList, Fields, Reply};
use page_flights::{Answer, Config, End, ground, remote};

use pipe_encoding::delta::{Receiver, Sender};
use pipe_encoding::{Body, Exchange, Windows, limits};

use shared_board::Memory;

use crate::seeds;
use crate::world::{PAGE_STREAM, World, is_bounded};

/// All targets.
pub const TARGETS: &[Target] = &[
    ("parcel", parcel, seeds::parcels),
    ("opening", opening, seeds::openings),
    ("path", path, seeds::paths),
    ("page", page, seeds::pages),
    ("object", object, seeds::objects),
    ("config", configuration, seeds::configurations),
    ("body", body, seeds::bodies),
    ("delta", delta, seeds::deltas),
    ("encoder", encoder, seeds::pairs_of_pages),
];

/// Tests parcels of a ground that lies, plain, in gzip and in br. Memory stays bounded, no request waits for ever, and the
/// next page is served.
pub fn parcel(data: &[u8]) {
    for coding in [&b""[..], b"gzip", b"br"] {
        let mut world = World::new();
        world.open();
        let calls = world.near.take_calls();
        let fields = [(&b":status"[..], &b"200"[..]), (b"content-encoding", coding)];
        let fields = if coding.is_empty() { &fields[..1] } else { &fields[..] };
        for call in calls.iter().take(2) {
            world.near.answered(&world.near_values, call.id, &Answer::Came(fields, data), world.now_ms);
        }
        is_bounded(&world.near_values);
        for path in seeds::OBJECTS {
            let (stream, verdict) = world.ask(path.as_bytes(), b"*/*");
            if verdict == remote::Verdict::Hold {
                world.near.tick(&world.near_values, world.now_ms + 60_000);
                assert!(
                    world.near.take_releases().iter().any(|(released, _)| *released == stream),
                    "it waits for ever"
                );
            }
        }
        drop(world.open());
    }
}

/// Tests the header that opens a flight, as any client may write it.
pub fn opening(data: &[u8]) {
    let mut world = World::new();
    let is_read = world.begin(data);
    if is_read {
        world.far.body(PAGE_STREAM, seeds::PAGE, true, world.now_ms);
    }
    world.far.tick(&world.far_values, world.now_ms);
    world.far.gone(PAGE_STREAM);
    assert_eq!(is_read, !world.far.take_calls().is_empty(), "a page that is read has its objects fetched, no other");
}

/// Tests the paths of slots and reports. Each request is held, or gets a response at once. Lessons from a report lead to
/// plain requests only.
pub fn path(data: &[u8]) {
    let mut world = World::new();
    for _ in 0..4 {
        let field = world.open();
        let id = field.split(';').next().unwrap_or_default().to_owned();
        assert!(world.begin(field.as_bytes()));
        world.far.body(PAGE_STREAM, b"<p>", true, world.now_ms);
        world.far.gone(PAGE_STREAM);
        for _ in 0..3 {
            world.turn(|_| None);
        }
        let (_, verdict) = world.say(data);
        let is_mine = String::from_utf8_lossy(data).trim_start_matches('/').starts_with(&id);
        assert!(is_mine || verdict != ground::Verdict::Hold, "a slot of no flight is held");
        // The input as a part of a report on this flight. A report is never held.
        let report = [b"/", id.as_bytes(), b"?used=&", data].concat();
        let (_, verdict) = world.say(&report);
        assert!(matches!(verdict, ground::Verdict::Answer(_)), "a report waits for nothing");
        world.now_ms += 20_000;
    }
}

/// Tests a page in two pieces. All requests are plain, and no more than a flight has room for.
pub fn page(data: &[u8]) {
    let mut world = World::new();
    let field = world.open();
    assert!(world.begin(field.as_bytes()));
    let (first, rest) = data.split_at(data.len() / 2);
    world.far.body(PAGE_STREAM, first, false, world.now_ms);
    // The tick releases the first piece. So the next call passes the second piece alone.
    let mut fetched = 0;
    let mut origin = |_: &str| {
        fetched += 1;
        None
    };
    world.turn(&mut origin);
    world.far.body(PAGE_STREAM, rest, true, world.now_ms);
    for _ in 0..20 {
        world.turn(&mut origin);
    }
    assert!(fetched <= 192, "{fetched} objects of one page");
    is_bounded(&world.far_values);
}

/// Runs a flight with an origin's response: lines of headers, an empty line and a body. Returns its headers, its body,
/// and the remote's response to a browser.
pub(crate) fn fetched(data: &[u8]) -> (FieldList, Vec<u8>, Option<Reply>) {
    let (head, body) = match data.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&data[..at], &data[at + 2..]),
        None => (data, &b""[..]),
    };
    let fields: FieldList = head
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let colon = line.windows(2).skip(1).position(|pair| pair == b": ")? + 1;
            Some((line[..colon].to_ascii_lowercase(), line[colon + 2..].to_vec()))
        })
        .collect();
    let mut world = World::new();
    let field = world.open();
    assert!(world.begin(field.as_bytes()));
    world.far.body(PAGE_STREAM, seeds::PAGE, true, world.now_ms);
    for _ in 0..30 {
        world.turn(|path| (path == seeds::OBJECTS[0]).then(|| (fields.clone(), body.to_vec())));
    }
    is_bounded(&world.near_values);
    is_bounded(&world.far_values);
    let reply = world.object(seeds::OBJECTS[0]);
    (fields, body.to_vec(), reply)
}

/// Tests objects: a browser gets only what the origin sent for every client.
pub fn object(data: &[u8]) {
    let (fields, body, Some(reply)) = fetched(data) else { return };
    assert!(reply.body == body, "another body than the origin's");
    let lists = |wanted: &str, token: &[u8]| {
        let mut values = fields.iter().filter(|(name, _)| name == wanted.as_bytes());
        values.any(|(_, value)| {
            value.to_ascii_lowercase().split(|byte| *byte == b',').any(|one| one.trim_ascii() == token)
        })
    };
    assert!(!lists("cache-control", b"private") && !lists("cache-control", b"no-store"), "meant for one client");
    assert!(!fields.iter().any(|(name, _)| name == b"set-cookie"), "a cookie for whoever asked first");
    for (name, value) in &reply.fields {
        assert!(fields.contains(&(name.clone(), value.clone())), "a header that the origin did not send");
    }
}

/// Tests the filter's configuration.
pub fn configuration(data: &[u8]) {
    if let Ok(config) = Config::from_json(data) {
        assert!(config.down > 0 && config.up > 0);
    }
}

/// Tests bodies in br. A body is the same in one piece and in pieces of seven bytes, or its client sees that it is
/// incomplete.
pub fn body(data: &[u8]) {
    let whole = pipe_encoding::decode(data, limits::BYTES_AT_ONCE);
    let mut exchange = Exchange::of(&Fields::default(), &Windows::default()).expect("any client takes a plain body");
    let board = Memory::default();
    exchange.response(&board, &Fields::from(&[(&b":status"[..], &b"200"[..]), (b"content-encoding", b"br")][..]));
    let mut out = Vec::new();
    let mut pieces = data.chunks(7).peekable();
    while let Some(piece) = pieces.next() {
        match exchange.body(&board, piece, pieces.peek().is_none()) {
            Body::Pass => panic!("br reaches a client that does not accept it"),
            Body::Replace(plain) => out.extend(plain),
            Body::BreakOff => {
                assert!(whole.is_err(), "a good body breaks off");
                return;
            }
        }
        if out.len() > limits::BYTES_AT_ONCE {
            return;
        }
    }
    assert!(data.is_empty() || whole.as_deref() == Ok(&*out), "another body in pieces");
}

/// Tests deltas of a ground that lies. In one piece and in pieces of seven bytes they are the same page, or an error.
/// Memory stays bounded.
pub fn delta(data: &[u8]) {
    let read = |piece_bytes: usize| {
        let mut receiver = Receiver::new(seeds::BASE.to_vec(), &Windows::default());
        let mut page = Vec::new();
        for piece in data.chunks(piece_bytes) {
            receiver.write(piece, &mut page, limits::BYTES_AT_ONCE).ok()?;
            if page.len() > limits::BYTES_AT_ONCE {
                return None;
            }
        }
        receiver.finish().ok().map(|name| (name, page))
    };
    let (whole, pieces) = (read(data.len().max(1)), read(7));
    if let (Some(whole), Some(pieces)) = (whole, pieces) {
        assert_eq!(whole, pieces, "another page in pieces");
    }
}

/// Tests the encoder of deltas with a base and flushes. The first byte says which part of the rest is the base, and the
/// second one how long the pieces are. The receiver gets the page.
pub fn encoder(data: &[u8]) {
    let [part, piece_bytes, rest @ ..] = data else { return };
    let (base, page) = rest.split_at(rest.len() * usize::from(*part) / 256);
    let windows = Windows::default();
    let mut sender = Sender::new(base, &windows).expect("one encoder has memory");
    let mut packed = Vec::new();
    for piece in page.chunks(1 + usize::from(*piece_bytes) * 4) {
        sender.write(piece, &mut packed);
    }
    let sent = sender.finish(&mut packed);
    let mut receiver = Receiver::new(base.to_vec(), &windows);
    let mut got = Vec::new();
    receiver.write(&packed, &mut got, limits::BYTES_AT_ONCE).expect("a delta is read");
    assert_eq!((receiver.finish(), &*got), (Ok(sent), page), "another page");
}
