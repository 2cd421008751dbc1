//! The cache stores text compressed. Every client gets a content encoding that it accepts, and a hit costs no compression.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::http::{Answer, get};
use crate::support::origin::{Origin, Received, Reply};
use crate::support::packing::{decoded, gzip};

const HOST: &str = "www.test:8081";
const BROWSER: &str = "gzip, deflate, br, zstd";

fn text() -> Vec<u8> {
    "function f() { return 'The quick brown fox'; }\n".repeat(400).into_bytes()
}

/// Serves `/KIND.TYPE` plain, or in gzip if `KIND` is `packed`.
fn site(request: &Received) -> Reply {
    let (kind, extension) = request.path.trim_start_matches('/').split_once('.').unwrap_or_default();
    let media_type = match extension {
        "js" => "application/javascript",
        "css" => "text/css",
        "html" => "text/html",
        _ => "image/png",
    };
    let said = match kind {
        "private" => "private, max-age=600",
        "untouched" => "max-age=600, no-transform",
        "stale" => "max-age=1",
        _ => "max-age=600",
    };
    let head =
        format!("content-type: {media_type}\r\ncache-control: {said}\r\netag: \"1\"\r\nvary: Accept-Encoding\r\n");
    if request.header("if-none-match").is_some_and(|tags| tags.contains("\"1\"")) {
        return Reply::Raw(format!("HTTP/1.1 304 Not Modified\r\n{head}\r\n").into_bytes());
    }
    if request.header("range") == Some("bytes=10-19") {
        let range = format!("content-range: bytes 10-19/{}\r\n", text().len());
        return Reply::Whole(format!("HTTP/1.1 206 Partial Content\r\n{head}{range}"), text()[10..20].to_vec());
    }
    if kind == "packed" {
        return Reply::ok(&format!("{head}content-encoding: gzip\r\n"), gzip(&text()));
    }
    Reply::ok(&head, text())
}

struct World {
    config: Config,
    origin: Origin,
    _dns: Dns,
}

impl World {
    fn new(more: &str) -> Self {
        let mut config = Config::new(more);
        let cache = config.path("cache");
        std::fs::create_dir_all(&cache).unwrap();
        writeln!(config.yaml, "cache: {{ dir: '{}', size: 64mib }}", cache.display()).unwrap();
        let origin = Origin::start((config.block.at(8), 8081), site);
        let dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
        Self { config, origin, _dns: dns }
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        get(SocketAddr::new(self.config.proxy(), HTTP), HOST, path, headers)
    }

    /// Repeats a request until the response comes from the cache. Returns false if it never does.
    fn is_stored(&self, path: &str, accepts: &str) -> bool {
        (0..30).any(|_| {
            let before = self.origin.received().len();
            self.get(path, &[("accept-encoding", accepts)]);
            std::thread::sleep(std::time::Duration::from_millis(10));
            self.origin.received().len() == before
        })
    }

    /// Asserts what clients get, by their `Accept-Encoding`.
    fn assert_encodings(&self, path: &str, expected: &[(&str, Option<&str>)]) {
        for (accepts, encoding) in expected {
            let answer = self.get(path, &[("accept-encoding", accepts)]);
            assert_eq!(answer.header("content-encoding").as_deref(), *encoding, "{path} to {accepts:?}");
            assert!(decoded(&answer) == text(), "{path} to {accepts:?}");
            let vary = answer.header("vary").unwrap_or_default().to_lowercase();
            assert_eq!(vary.matches("accept-encoding").count(), 1, "{path} to {accepts:?}: {vary}");
        }
    }
}

/// Returns the number of bodies that the compressors compressed for clients.
fn compressed_for_clients(envoy: &Envoy) -> u64 {
    let stats = envoy.admin("/stats?filter=^http.edge_http.compressor.*response.compressed$");
    stats.lines().filter_map(|line| line.rsplit_once(": ")?.1.trim().parse::<u64>().ok()).sum()
}

#[test]
fn a_hit_costs_no_compression_and_every_client_can_read_it() {
    let world = World::new("");
    let Some(envoy) = Envoy::start(&world.config) else { return };
    for path in ["/plain.js", "/plain.css", "/packed.js"] {
        assert!(world.is_stored(path, BROWSER), "{path}");
        let asked = world.origin.received().len();
        let before = compressed_for_clients(&envoy);
        world
            .assert_encodings(path, &[(BROWSER, Some("gzip")), ("gzip", Some("gzip")), ("br;q=0, gzip", Some("gzip"))]);
        assert_eq!(world.origin.received().len(), asked, "{path}: all came from the cache");
        // Clients that do not accept gzip share a form of their own. One origin has none for them.
        for _ in 0..2 {
            let encoding = (path == "/packed.js").then_some("gzip");
            world.assert_encodings(path, &[("identity", encoding), ("*;q=0", encoding), ("", encoding)]);
        }
        assert_eq!(compressed_for_clients(&envoy), before, "{path}");
        assert_eq!(world.origin.received().len(), asked + 1, "{path}: all came from the cache");
    }
}

#[test]
fn a_stored_text_has_a_weak_etag_and_the_origin_validates_it() {
    let world = World::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert!(world.is_stored("/plain.js", "gzip"));
    // The form for others is the origin's, with its tag.
    for (accepts, etag) in [("gzip", "W/\"1\""), ("identity", "\"1\"")] {
        let answer = world.get("/plain.js", &[("accept-encoding", accepts)]);
        assert_eq!(answer.header("etag").as_deref(), Some(etag), "{accepts}");
        let again = world.get("/plain.js", &[("accept-encoding", accepts), ("if-none-match", "W/\"1\"")]);
        assert_eq!((again.status, again.body.len()), (304, 0), "{accepts}");
    }
    // The origin compressed this one, so it has its own tag.
    assert!(world.is_stored("/packed.js", "gzip"));
    assert_eq!(world.get("/packed.js", &[("accept-encoding", "gzip")]).header("etag").as_deref(), Some("\"1\""));
}

#[test]
fn a_validated_text_stays_compressed_with_its_weak_etag() {
    let world = World::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    world.is_stored("/stale.js", "gzip");
    let validated = |answer: &Answer| {
        let seen = world.origin.last();
        (seen.header("if-none-match") == Some("W/\"1\"")).then(|| answer.header("etag").unwrap_or_default())
    };
    let found = (0..40).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(150));
        let answer = world.get("/stale.js", &[("accept-encoding", "gzip")]);
        assert_eq!(answer.header("content-encoding").as_deref(), Some("gzip"));
        assert!(decoded(&answer) == text());
        validated(&answer)
    });
    assert_eq!(found.as_deref(), Some("W/\"1\""), "a strong tag would let a client join parts of both encodings");
}

#[test]
fn a_range_of_a_stored_text_is_one_of_the_plain_text() {
    let world = World::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert!(world.is_stored("/plain.js", "gzip"));
    let part = world.get("/plain.js", &[("accept-encoding", BROWSER), ("range", "bytes=10-19")]);
    assert_eq!((part.status, part.header("content-encoding")), (206, None));
    assert_eq!(part.body, text()[10..20]);
}

#[test]
fn pictures_pages_and_what_may_not_change_are_stored_as_they_came() {
    let world = World::new("");
    let Some(envoy) = Envoy::start(&world.config) else { return };
    for (path, etag) in [("/plain.png", "\"1\""), ("/untouched.js", "\"1\"")] {
        assert!(world.is_stored(path, BROWSER), "{path}");
        let answer = world.get(path, &[("accept-encoding", BROWSER)]);
        assert_eq!((answer.header("content-encoding"), answer.header("etag").as_deref()), (None, Some(etag)), "{path}");
        assert!(answer.body == text(), "{path}");
    }
    assert!(world.is_stored("/plain.html", BROWSER));
    world.assert_encodings("/plain.html", &[(BROWSER, Some("br")), ("gzip", Some("gzip")), ("identity", None)]);
    let compressed_for_the_store = || envoy.stat("http.inner.compressor.gzip.gzip.response.compressed");
    assert_eq!(compressed_for_the_store(), 0);
    // The first response shows that others for the URL are not stored.
    assert!(!world.is_stored("/private.js", BROWSER));
    world.assert_encodings("/private.js", &[(BROWSER, Some("br")), ("gzip", Some("gzip")), ("identity", None)]);
    assert_eq!(compressed_for_the_store(), 1);
}

#[test]
fn without_gzip_the_cache_stores_what_came() {
    let world = World::new("compress: { gzip: off }\n");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert!(world.is_stored("/plain.js", BROWSER));
    world.assert_encodings("/plain.js", &[(BROWSER, Some("br")), ("gzip", None), ("identity", None)]);
    assert_eq!(world.get("/plain.js", &[]).header("etag").as_deref(), Some("\"1\""));
}
