//! Prints which objects of a page the ground would fetch, as a JSON list of URLs.
//!
//! Reads `{"url", "objects": {URL: {"type", "file"}}}` from the standard input, where the page is one of the objects.
//! An object that is not listed is an empty image.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use page_flights::{Answer, Config, End, FLIGHT_FIELD, GroundEnd};
use serde::Deserialize;
use shared_board::Memory;

#[derive(Deserialize)]
struct Visit {
    url: String,
    objects: HashMap<String, Object>,
}

#[derive(Deserialize)]
struct Object {
    r#type: String,
    file: PathBuf,
}

/// A link that leaves room for every object of a page.
const CONFIG: &[u8] = br#"{"role": "ground", "cluster": "fetch", "rtt_ms": 600, "down": 250000000, "up": 62500000}"#;
const PAGE: u32 = 1;
/// The length of the pieces in which the page arrives.
const PIECE_BYTES: usize = 16 << 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let visit: Visit = serde_json::from_reader(io::stdin())?;
    let (board, mut ground, mut now_ms) = (Memory::default(), GroundEnd::new(&Config::from_json(CONFIG)?), 1000);
    let rest = visit.url.strip_prefix("http://").ok_or("not an http URL")?;
    let (authority, path) = rest.split_at(rest.find('/').ok_or("no path")?);
    let opening = format!("{};{};{}", "0a".repeat(16), "0b".repeat(8), "0c".repeat(4));
    let request: [(&[u8], &[u8]); 6] = [
        (b":method", b"GET"),
        (b":authority", authority.as_bytes()),
        (b":path", path.as_bytes()),
        (b"accept", b"text/html,image/webp,*/*;q=0.8"),
        (b"accept-encoding", b"gzip"),
        (FLIGHT_FIELD.as_bytes(), opening.as_bytes()),
    ];
    ground.request(&board, PAGE, &request, now_ms);
    let page = visit.objects.get(&visit.url).ok_or("the page is not among the objects")?;
    ground.response(&board, PAGE, &[(b":status", b"200"), (b"content-type", page.r#type.as_bytes())]);
    let mut fetched = Vec::new();
    let mut turn = |ground: &mut GroundEnd| {
        now_ms += 5;
        ground.tick(&board, now_ms);
        for call in ground.take_calls() {
            let of = |wanted| call.fields.iter().find(|(name, _)| *name == wanted).map_or("", |(_, value)| value);
            let url = format!("http://{}{}", of(":authority"), of(":path"));
            let object = visit.objects.get(&url);
            let (kind, body) = object.map_or(("image/png", Vec::new()), |object| {
                (&object.r#type, fs::read(&object.file).unwrap_or_default())
            });
            let fields: [(&[u8], &[u8]); 2] = [(b":status", b"200"), (b"content-type", kind.as_bytes())];
            ground.answered(&board, call.id, &Answer::Came(&fields, &body), now_ms);
            fetched.push(url);
        }
    };
    let body = fs::read(&page.file)?;
    let mut pieces = body.chunks(PIECE_BYTES).peekable();
    while let Some(piece) = pieces.next() {
        ground.body(PAGE, piece, pieces.peek().is_none(), 0);
        turn(&mut ground);
    }
    for _ in 0..50 {
        turn(&mut ground);
    }
    serde_json::to_writer(io::stdout(), &fetched)?;
    Ok(())
}
