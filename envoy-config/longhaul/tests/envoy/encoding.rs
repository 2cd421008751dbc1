//! The proxy compresses some responses, decompresses some and passes others. A page never waits for its end.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use http_semantics::accept_encoding::takes_gzip;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::http::{Answer, get, get_in_pieces};
use crate::support::origin::{Origin, Progress, Received, Reply};
use crate::support::packing::{brotli, decoded, gzip};

const HOST: &str = "www.test:8081";
/// The header of today's browsers.
const BROWSER: (&str, &str) = ("accept-encoding", "gzip, deflate, br, zstd");

fn page() -> Vec<u8> {
    "<p>The quick brown fox jumps over the lazy dog.</p>\n".repeat(200).into_bytes()
}

/// Serves `/TYPE/CODING` with the page in that content encoding: in gzip to those who accept it, and in any other to
/// everybody. `labelled` is gzip for everybody.
fn typed(request: &Received) -> Reply {
    let mut parts = request.path.trim_start_matches('/').split('/');
    let kind = match parts.next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "application/javascript",
        Some("css") => "text/css",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    };
    let more = if request.path.ends_with("no-transform") { "cache-control: no-transform\r\n" } else { "" };
    let etag = "etag: \"strong\"\r\n";
    let accepted = request.header("accept-encoding").map(|value| (&b"accept-encoding"[..], value.as_bytes()));
    let takes_gzip = takes_gzip(&accepted.into_iter().collect());
    match parts.next() {
        Some("labelled") => {
            Reply::ok(&format!("content-type: {kind}\r\ncontent-encoding: gzip\r\n{etag}{more}"), gzip(&page()))
        }
        Some("gzip") if takes_gzip => Reply::ok(
            &format!("content-type: {kind}\r\ncontent-encoding: gzip\r\n{etag}{more}vary: Accept-Encoding\r\n"),
            gzip(&page()),
        ),
        Some("br") => {
            Reply::ok(&format!("content-type: {kind}\r\ncontent-encoding: br\r\n{etag}{more}"), brotli(&page()))
        }
        Some("liar") => Reply::ok(&format!("content-type: {kind}\r\ncontent-encoding: gzip\r\n"), page()),
        Some("cut") => {
            Reply::ok(&format!("content-type: {kind}\r\ncontent-encoding: gzip\r\n"), gzip(&page())[..100].to_vec())
        }
        _ => Reply::ok(&format!("content-type: {kind}\r\n{etag}{more}"), page()),
    }
}

struct World {
    config: Config,
    origin: Origin,
    _dns: Dns,
}

impl World {
    fn new(more: &str, behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        Self::of(Config::new(more), behaviour)
    }

    fn of(config: Config, behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let origin = Origin::start((config.block.at(8), 8081), behaviour);
        let dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
        Self { config, origin, _dns: dns }
    }

    fn http(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), HTTP)
    }

    /// Requests the page that `origin` sends, asserts its content encoding and its text, and returns the response.
    #[track_caller]
    fn encoded(&self, origin: &str, accepts: Option<&str>, expected: Option<&str>) -> Answer {
        let headers: Vec<_> = accepts.map(|a| ("accept-encoding", a)).into_iter().collect();
        let answer = self.get(&format!("/html/{origin}"), &headers);
        assert_eq!(answer.header("content-encoding").as_deref(), expected, "{origin} to {accepts:?}");
        assert_eq!(decoded(&answer), page(), "{origin} to {accepts:?}");
        answer
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        get(self.http(), HOST, path, headers)
    }
}

#[test]
fn a_client_gets_an_encoding_it_accepts_whatever_the_origin_sent() {
    for cache in ["", "cache: off\n"] {
        let Some(config) = Config::new(cache).with_filter() else { return };
        let world = World::of(config, typed);
        let Some(_envoy) = Envoy::start(&world.config) else { return };
        for (origin, best) in [("plain", "br"), ("gzip", "gzip")] {
            for (accepts, expected) in [
                (Some("gzip, deflate, br, zstd"), Some(best)),
                (Some("gzip"), Some("gzip")),
                (Some("br;q=0, gzip"), Some("gzip")),
                (Some("br, gzip;q=0"), Some("br")),
                (Some("identity"), None),
                (None, None),
            ] {
                let answer = world.encoded(origin, accepts, expected);
                let vary = answer.header("vary").unwrap_or_default().to_lowercase();
                assert_eq!(vary.matches("accept-encoding").count(), 1, "{origin} to {accepts:?}: {vary}");
            }
        }
    }
}

#[test]
fn unchanged_responses_keep_the_origins_content_encoding() {
    let world = World::new("", typed);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let sent = |path: &str| {
        let answer = world.get(path, &[BROWSER]);
        assert_eq!(decoded(&answer), page(), "{path}");
        (answer.header("content-encoding"), answer.header("etag"), answer.body)
    };
    let (coding, etag, body) = sent("/js/br");
    assert_eq!((coding.as_deref(), etag.as_deref()), (Some("br"), Some("\"strong\"")));
    assert_eq!(body, brotli(&page()), "byte for byte");
    let (coding, etag, body) = sent("/js/gzip");
    assert_eq!((coding.as_deref(), etag.as_deref()), (Some("gzip"), Some("\"strong\"")));
    assert_eq!(body, gzip(&page()), "byte for byte");
    let (coding, etag, _) = sent("/js/plain");
    // The cache stores it in this form.
    assert_eq!((coding.as_deref(), etag.as_deref()), (Some("gzip"), Some("W/\"strong\"")));
    for untouched in ["/png/plain", "/png/gzip", "/octets/gzip"] {
        let (_, etag, _) = sent(untouched);
        assert_eq!(etag.as_deref(), Some("\"strong\""), "{untouched}");
    }
}

/// Every byte counts on such a link, and its text costs little work.
#[test]
fn on_a_slow_link_scripts_in_gzip_leave_in_br() {
    let mut config = Config::new("");
    config.edit("down: 20mbit", "down: 2mbit");
    let world = World::of(config, typed);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for (path, accepts, expected) in [
        ("/js/gzip", BROWSER.1, Some("br")),
        ("/js/gzip", "gzip", Some("gzip")),
        ("/js/gzip", "br;q=0, gzip", Some("gzip")),
        ("/js/gzip", "br", Some("br")),
        ("/js/gzip", "identity", None),
        ("/js/gzip/no-transform", BROWSER.1, Some("gzip")),
        ("/css/gzip", BROWSER.1, Some("gzip")),
        ("/png/gzip", BROWSER.1, Some("gzip")),
    ] {
        let answer = world.get(path, &[("accept-encoding", accepts)]);
        assert_eq!(answer.header("content-encoding").as_deref(), expected, "{path} to {accepts}");
        assert_eq!(decoded(&answer), page(), "{path} to {accepts}");
    }
}

#[test]
fn a_client_that_accepts_no_encoding_can_read_everything() {
    let world = World::new("", typed);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for path in ["/js/gzip", "/png/gzip", "/html/gzip/no-transform", "/js/gzip/no-transform"] {
        let answer = world.get(path, &[]);
        assert_eq!(answer.header("content-encoding"), None, "{path}");
        assert_eq!(answer.body, page(), "{path}");
    }
    // As without Longhaul, it gets what the origin sends to everybody.
    for path in ["/js/labelled", "/octets/labelled"] {
        let answer = world.get(path, &[]);
        assert_eq!(
            (answer.header("content-encoding").as_deref(), answer.body),
            (Some("gzip"), gzip(&page())),
            "{path}"
        );
    }
}

/// The client did not request it. As without Longhaul, the client must read it.
#[test]
fn brotli_that_an_origin_sends_unasked_passes_as_it_is() {
    let world = World::new("", typed);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for path in ["/html/br", "/js/br", "/octets/br", "/html/br/no-transform"] {
        for headers in [&[BROWSER][..], &[("accept-encoding", "gzip")], &[]] {
            let answer = world.get(path, headers);
            assert_eq!(answer.header("content-encoding").as_deref(), Some("br"), "{path}");
            assert_eq!(answer.body, brotli(&page()), "{path}, byte for byte");
        }
    }
}

/// Serves `/TYPE/BYTES` in the best requested content encoding, as servers with brotli do. All bytes are equal: gzip
/// makes them 1,000 times smaller, brotli 100,000 times. `/TYPE/BYTES/CODING` always has that content encoding.
fn alike(request: &Received) -> Reply {
    let mut parts = request.path.trim_start_matches('/').split('/');
    let kind = if parts.next() == Some("html") { "text/html" } else { "application/javascript" };
    let raw = vec![b'a'; parts.next().and_then(|size| size.parse().ok()).unwrap_or(0)];
    let asked = request.header("accept-encoding").unwrap_or_default();
    let coding = parts.next().or_else(|| ["br", "gzip"].into_iter().find(|coding| asked.contains(coding)));
    let (coding, body) = match coding {
        Some("br") => ("content-encoding: br\r\n", brotli(&raw)),
        Some("gzip") => ("content-encoding: gzip\r\n", gzip(&raw)),
        Some(_) => ("content-encoding: zstd\r\n", zstd_of_alike(raw.len())),
        None => ("", raw),
    };
    Reply::ok(&format!("content-type: {kind}\r\ncache-control: max-age=60\r\n{coding}"), body)
}

/// A zstd frame (RFC 8878) of so many equal bytes. A block of four bytes stands for 128 KiB.
fn zstd_of_alike(size: usize) -> Vec<u8> {
    const BLOCK: usize = 128 << 10;
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for block in 0..size.div_ceil(BLOCK) {
        let (length, last) = ((size - block * BLOCK).min(BLOCK), (block + 1) * BLOCK >= size);
        let head = (length << 3) | (1 << 1) | usize::from(last);
        out.extend(head.to_le_bytes().iter().take(3));
        out.push(b'a');
    }
    out
}

#[test]
fn valid_brotli_above_100_to_1_is_not_cut_nor_is_gzip_or_zstd() {
    const SIZES: [usize; 2] = [100_000, 3_000_000];
    for filter in [false, true] {
        let config = Config::new("rewrite: { target: http }\n");
        let Some(config) = (if filter { config.with_filter() } else { Some(config) }) else { return };
        let world = World::of(config, alike);
        let Some(_envoy) = Envoy::start(&world.config) else { return };
        for kind in ["html", "js"] {
            for size in SIZES {
                let raw = vec![b'a'; size];
                for headers in [&[BROWSER][..], &[("accept-encoding", "gzip")], &[]] {
                    let answer = world.get(&format!("/{kind}/{size}"), headers);
                    assert!(answer.status == 200 && !answer.cut, "{kind} {size} {headers:?}");
                    assert_eq!(decoded(&answer).len(), size, "{kind} {headers:?}, filter: {filter}");
                    assert!(decoded(&answer) == raw, "{kind} {headers:?}");
                    for (coding, sent) in [("br", brotli(&raw)), ("zstd", zstd_of_alike(size))] {
                        let unasked = world.get(&format!("/{kind}/{size}/{coding}"), headers);
                        assert!(!unasked.cut && unasked.body == sent, "{kind} {size} {coding} {headers:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn no_transform_is_kept_where_the_client_can_read_it() {
    let world = World::new("", typed);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for (path, coding, bytes) in [
        ("/html/gzip/no-transform", Some("gzip"), gzip(&page())),
        ("/html/br/no-transform", Some("br"), brotli(&page())),
        ("/html/plain/no-transform", None, page()),
    ] {
        let answer = world.get(path, &[BROWSER]);
        assert_eq!(answer.header("content-encoding").as_deref(), coding, "{path}");
        assert_eq!(answer.body, bytes, "{path}");
    }
}

/// Pieces of one gzip stream. A client can decompress each of them when it comes.
fn gzip_pieces(pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut out = Vec::new();
    for piece in pieces {
        encoder.write_all(piece).unwrap();
        encoder.flush().unwrap();
        out.push(std::mem::take(encoder.get_mut()));
    }
    out.push(encoder.finish().unwrap());
    out
}

#[test]
fn every_piece_of_a_page_leaves_when_it_comes() {
    let pieces: Vec<_> = (0..4).map(|n| format!("<p>{n}</p>").into_bytes()).collect();
    for (cache, packed) in [("", false), ("", true), ("cache: off\n", false), ("cache: off\n", true)] {
        for coding in [None, Some("gzip"), Some("br")] {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncache-control: max-age=60\r\n{}",
                if packed { "content-encoding: gzip\r\n" } else { "" }
            );
            let sent = if packed { gzip_pieces(&pieces) } else { pieces.clone() };
            let progress = Arc::new(Progress::default());
            let seen = progress.clone();
            let world = World::new(cache, move |_| Reply::Awaited(head.clone(), sent.clone(), seen.clone()));
            let Some(_envoy) = Envoy::start(&world.config) else { return };
            let headers: Vec<_> = coding.map(|c| ("accept-encoding", c)).into_iter().collect();
            // The origin sends a piece once the client has had all before it, and breaks off if that never comes.
            let answer = get_in_pieces(world.http(), HOST, &headers, &mut || progress.add_one());
            assert!(!answer.cut, "a piece waited for the next one: {cache:?} {packed} {coding:?}");
            // This origin sends gzip to everybody.
            let expected = if packed { Some("gzip") } else { coding };
            assert_eq!(answer.header("content-encoding").as_deref(), expected);
            assert_eq!(decoded(&answer), pieces.concat());
        }
    }
}

#[test]
fn an_origin_with_a_wrong_content_encoding_breaks_its_own_page_only() {
    let world = World::new("", typed);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for (path, sent) in [("/html/cut", gzip(&page())[..100].to_vec()), ("/html/liar", page())] {
        let answer = world.get(path, &[]);
        assert_eq!((answer.header("content-encoding").as_deref(), answer.body), (Some("gzip"), sent), "{path}");
    }
    assert_eq!(decoded(&world.get("/html/gzip", &[BROWSER])), page());
}

#[test]
fn the_filter_decompresses_gzip_pages_and_neither_loses_nor_hides_damage() {
    let Some(config) = Config::new("rewrite: { target: http }\n").with_filter() else { return };
    let world = World::of(config, typed);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for origin in ["plain", "gzip", "liar"] {
        for (accepts, expected) in [
            (Some("gzip, deflate, br, zstd"), Some("br")),
            (Some("gzip"), Some("gzip")),
            (Some("identity"), None),
            (None, None),
        ] {
            let answer = world.encoded(origin, accepts, expected);
            assert!(!answer.cut, "{origin} to {accepts:?}");
        }
    }
    let cut = world.get("/html/cut", &[]);
    assert!(page().starts_with(&cut.body) && cut.cut, "{} bytes", cut.body.len());
    // A sheet is rewritten where it was moved, and elsewhere left as it came, with its lie.
    let moved = |path: &str| {
        let proxy = SocketAddr::new(world.config.proxy(), HTTP);
        let answer = get(proxy, &proxy.to_string(), path, &[BROWSER]);
        assert_eq!((answer.status, decoded(&answer)), (200, page()), "{path}");
    };
    moved(&format!("/{HOST}/css/gzip"));
    moved(&format!("/{HOST}/css/liar"));
    for (path, bytes) in [("/css/gzip", gzip(&page())), ("/css/liar", page())] {
        let in_place = world.get(path, &[BROWSER]);
        assert_eq!((in_place.header("content-encoding").as_deref(), in_place.body), (Some("gzip"), bytes), "{path}");
    }
    // Not rewritten, so it stays as it came, but for a client that could not read it.
    let untouched = world.get("/html/gzip/no-transform", &[BROWSER]);
    assert_eq!((untouched.header("content-encoding").as_deref(), untouched.body), (Some("gzip"), gzip(&page())));
    assert_eq!(world.get("/html/gzip/no-transform", &[]).body, page());
}

#[test]
fn ranges_are_the_origins() {
    let world = World::new("", |request| match request.header("range") {
        Some("bytes=100-199") => Reply::Whole(
            format!(
                "HTTP/1.1 206 Partial Content\r\ncontent-type: text/html\r\ncontent-range: bytes 100-199/{}\r\ncache-control: max-age=60\r\n",
                page().len()
            ),
            page()[100..200].to_vec(),
        ),
        Some(other) => panic!("range {other}"),
        None => Reply::ok("content-type: text/html\r\ncache-control: max-age=60\r\n", page()),
    });
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let range = |after| {
        let answer = world.get("/", &[BROWSER, ("range", "bytes=100-199")]);
        assert_eq!((answer.status, answer.header("content-encoding")), (206, None), "{after}");
        assert_eq!(answer.body, page()[100..200], "{after}");
    };
    range("nothing in the cache");
    let seen = &world.origin.received()[0];
    assert_eq!((seen.header("range"), seen.header("accept-encoding")), (Some("bytes=100-199"), Some("gzip")));
    world.origin.until_stored(|| assert_eq!(decoded(&world.get("/", &[BROWSER])), page()));
    let before = world.origin.received().len();
    range("all of it in the cache");
    assert_eq!(decoded(&world.get("/", &[BROWSER])), page());
    assert_eq!(world.origin.received().len(), before, "the second range comes from the cache");
}
