//! A changed body is described truly, and an unchanged one keeps every field. Ranges are never decoded or encoded.
//!
//! [`CHANGERS`] names every filter of a rendered configuration that can change a body. A new one fails a test here until it
//! is in that table with its case.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;

use http_semantics::accept_encoding::takes_gzip;
use http_semantics::body_fields::{Change, ROWS, Row, gone};

use crate::support::config::{Config, HTTP, render_yaml};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::http::{Answer, get, request, send};
use crate::support::origin::{Origin, Received, Reply};
use crate::support::packing::{brotli, decoded, gzip};
use crate::support::tls::Authority;

const HOST: &str = "www.test:8081";
const BROWSER: &str = "gzip, deflate, br, zstd";

/// Every filter that can change a body, with the place of its test.
const CHANGERS: [(&str, &str); 8] = [
    ("compressor_br", "this file"),
    ("compressor_gzip", "this file"),
    ("compress_stored", "this file"),
    ("gzip_to_br", "this file"),
    ("url-rewrite", "this file"),
    ("bundling", "integration/e2e/test_pair_encoding.py, test_deltas.py"),
    ("object-reader", "integration/e2e/test_object_reader.py: stored responses, as the cache stores them"),
    ("longhaul-images", "integration/e2e/test_images.py: a program behind the cluster images"),
];

/// Filters of Longhaul's and in Lua that change no body: they read and change headers alone, or let pieces wait.
const LEAVE_BODIES: [&str; 8] = [
    "changed",
    "filter-calls",
    "guard",
    "header-compression",
    "header-compression-direct",
    "link-share",
    "name-budget",
    "upgrade_end",
];

/// The text of every body. It has a URL that url-rewrite moves, and is longer than the ranges below when compressed.
fn text() -> Vec<u8> {
    let line = |n: u32| format!("p {{ background: url(http://img.test/{n}.png) }}<img src=http://img.test/b.png>\n");
    (0..300).map(line).collect::<String>().into_bytes()
}

/// Returns the values of all fields about a body, as lines of a header.
fn described() -> String {
    let mut lines = "etag: \"strong\"\r\naccept-ranges: bytes\r\n".to_owned();
    for row in ROWS.iter().filter(|row| row.is_digest || row.name.starts_with("signature")) {
        write!(lines, "{}: sha-256=:YQ==:\r\n", row.name).unwrap();
    }
    lines
}

/// Serves `/FORM/NAME.TYPE`. The form is `negotiated` (gzip for those who accept it), `plain`, or a content encoding with
/// which the server labels the file for everybody.
fn site(request: &Received) -> Reply {
    let (form, file) = request.path.trim_start_matches('/').split_once('/').unwrap_or_default();
    let kind = match file.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html",
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("tgz") => "application/x-tar",
        Some("gz") => "text/plain",
        _ => "application/octet-stream",
    };
    let accepted = request.header("accept-encoding").map(|value| (&b"accept-encoding"[..], value.as_bytes()));
    let takes_gzip = takes_gzip(&accepted.into_iter().collect());
    let coding = match form {
        "negotiated" if takes_gzip => Some("gzip"),
        "negotiated" | "plain" => None,
        label => Some(label),
    };
    let body = match coding {
        Some("gzip" | "x-gzip") => gzip(&text()),
        Some("br") => brotli(&text()),
        _ => text(),
    };
    let mut head = format!("content-type: {kind}\r\ncache-control: max-age=600\r\n{}", described());
    if let Some(coding) = coding {
        write!(head, "content-encoding: {coding}\r\n").unwrap();
    }
    if form == "negotiated" {
        head += "vary: Accept-Encoding\r\n";
    }
    let length = body.len();
    match request.header("range") {
        Some("bytes=100-199") => Reply::Whole(
            format!("HTTP/1.1 206 Partial Content\r\n{head}content-range: bytes 100-199/{length}\r\n"),
            body.get(100..200).unwrap_or_default().to_vec(),
        ),
        Some("bytes=999999999-") => Reply::Whole(
            format!("HTTP/1.1 416 Range Not Satisfiable\r\n{head}content-range: bytes */{length}\r\n"),
            body,
        ),
        _ => Reply::ok(&head, body),
    }
}

struct World {
    config: Config,
    origin: Origin,
    _dns: Dns,
}

impl World {
    fn of(mut config: Config) -> Self {
        let cache = config.path("cache");
        std::fs::create_dir_all(&cache).unwrap();
        writeln!(config.yaml, "cache: {{ dir: '{}', size: 64mib }}", cache.display()).unwrap();
        let origin = Origin::start((config.block.at(8), 8081), site);
        let dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
        Self { config, origin, _dns: dns }
    }

    fn proxy(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), HTTP)
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        get(self.proxy(), HOST, path, headers)
    }

    fn direct(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        get(self.origin.address(), HOST, path, headers)
    }

    /// Repeats a request until no more of them reaches the origin, at most a few times.
    fn warm(&self, path: &str, headers: &[(&str, &str)]) -> bool {
        (0..30).any(|_| {
            let before = self.origin.received().len();
            self.get(path, headers);
            std::thread::sleep(std::time::Duration::from_millis(10));
            self.origin.received().len() == before
        })
    }

    /// Asserts that the response has changed in this way, and that its fields say so.
    #[track_caller]
    fn assert_changed(&self, change: Change, path: &str, accepts: Option<&str>, coding: Option<&str>) {
        let headers: Vec<_> = accepts.map(|accepts| ("accept-encoding", accepts)).into_iter().collect();
        let answer = self.get(path, &headers);
        let name = format!("{path} to {accepts:?}");
        assert_eq!((answer.status, answer.cut), (200, false), "{name}");
        assert_eq!(answer.header("content-encoding").as_deref(), coding, "{name}");
        assert_eq!(decoded(&answer) == text(), change != Change::Content, "{name}");
        assert_eq!(stale(change, &answer), [""; 0], "{name}");
    }

    /// Asserts that the response is the origin's own.
    #[track_caller]
    fn assert_unchanged(&self, path: &str, headers: &[(&str, &str)]) {
        let (answer, direct) = (self.get(path, headers), self.direct(path, headers));
        assert_eq!(differences(&answer, &direct), [""; 0], "{path} {headers:?}");
    }
}

/// Returns the fields that are untrue after a change, and those that were removed though they are true.
fn stale(change: Change, answer: &Answer) -> Vec<&'static str> {
    let is_stale = |row: &&Row| {
        let has = answer.header(row.name);
        match row.name {
            "content-length" => has.is_some_and(|length| length != answer.body.len().to_string()),
            "content-encoding" => false,
            "etag" => !has.is_some_and(|tag| tag.starts_with("W/\"strong")),
            "content-range" => has.is_some(),
            name if gone(change).any(|gone| gone == name) => has.is_some(),
            _ => has.is_none(),
        }
    };
    ROWS.iter().filter(is_stale).map(|row| row.name).collect()
}

/// Returns the parts of a response that differ from the origin's.
fn differences(answer: &Answer, direct: &Answer) -> Vec<&'static str> {
    let fields = ROWS.iter().map(|row| row.name).filter(|name| answer.header(name) != direct.header(name));
    let status = (answer.status != direct.status).then_some("status");
    fields.chain(status).chain((answer.body != direct.body).then_some("body")).collect()
}

#[test]
fn every_filter_that_changes_bodies_is_in_the_table() {
    let mut found: BTreeSet<String> = BTreeSet::new();
    let known: BTreeSet<&str> = CHANGERS.iter().map(|(name, _)| *name).chain(LEAVE_BODIES).collect();
    for (slow, more) in [(false, ""), (true, ""), (false, "rewrite: { level: off }\n")] {
        let Some(mut config) = Config::new(more).with_filter() else { return };
        if slow {
            config.edit("down: 20mbit", "down: 2mbit");
        }
        let cache = config.path("cache");
        writeln!(config.yaml, "cache: {{ dir: '{}', size: 64mib }}", cache.display()).unwrap();
        found.extend(changing_filters(config.render().get("lds.yaml").unwrap()));
    }
    for role in ["remote", "ground"] {
        let Some(config) = Config::new("").with_filter() else { return };
        let trust = Authority::new();
        trust.issue(&["ship.test"]).write(config.folder.path(), "pair");
        trust.write(&config.folder.path().join("pair-ca.pem"));
        let (peer, proxy) = match role {
            "remote" => ("'198.51.100.40:8443'", "proxy: { addresses: [198.51.100.12] }\n"),
            _ => ("[ship.test]", ""),
        };
        let yaml = format!(
            "role: {role}\nlink: {{ rtt: 600ms, down: 2mbit, up: 5mbit }}\n{proxy}upstream: {{ resolvers: [192.0.2.53] }}\n\
             split: {{ cert: pair.pem, key: pair.key, ca: pair-ca.pem, peer: {peer} }}\n"
        );
        let artifacts = config.artifacts();
        found.extend(changing_filters(render_yaml(&yaml, config.folder.path(), &artifacts).get("lds.yaml").unwrap()));
    }
    let unknown: Vec<&String> = found.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}: add them to CHANGERS, with a test, or to LEAVE_BODIES");
    for name in ["compressor_br", "compressor_gzip", "compress_stored", "gzip_to_br", "url-rewrite"] {
        assert!(found.contains(name), "{name} is not rendered any more: {found:?}");
    }
}

/// Returns the names of the HTTP filters that may change a body: compressors, decompressors, and Longhaul's own.
fn changing_filters(listeners: &str) -> BTreeSet<String> {
    let marks = ["http.compressor.v3", "http.decompressor.v3", "config_discovery:", "http.wasm.v3", "ext_proc", "lua"];
    let mut found = BTreeSet::new();
    let mut open: Vec<(usize, String)> = Vec::new();
    for line in listeners.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let indent = line.len() - line.trim_start().len();
        if line.trim_start().starts_with("- ") {
            open.retain(|(at, _)| *at < indent);
        }
        if let Some(name) = line.trim_start().strip_prefix("- name: ") {
            open.push((indent, name.trim_matches('"').to_owned()));
        }
        if marks.iter().any(|mark| line.contains(mark)) {
            found.extend(open.last().map(|(_, name)| name.clone()));
        }
    }
    found
}

#[test]
fn what_envoy_compresses_and_decompresses_is_described_truly() {
    let world = World::of(Config::new(""));
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    world.assert_changed(Change::Encoding, "/plain/1.js", Some(BROWSER), Some("gzip"));
    world.assert_changed(Change::Encoding, "/plain/1.html", Some("gzip"), Some("gzip"));
    // Neighbours: a client without an encoding, what the origin compressed, and what does not shrink.
    for (path, accepts) in [
        ("/plain/1.json", None),
        ("/plain/2.json", Some("identity")),
        ("/negotiated/3.json", Some("gzip")),
        ("/gzip/4.json", Some(BROWSER)),
        ("/plain/1", Some(BROWSER)),
        ("/gzip/1.tgz", None),
        ("/x-gzip/1.tgz", Some("identity")),
        ("/gzip/1.gz", None),
        ("/br/1.bin", None),
        ("/plain/1.png", Some(BROWSER)),
    ] {
        let headers: Vec<_> = accepts.map(|accepts| ("accept-encoding", accepts)).into_iter().collect();
        for _ in 0..4 {
            world.assert_unchanged(path, &headers);
        }
    }
    // What is stored for clients that accept gzip is compressed. Others have a form of their own.
    assert!(world.warm("/plain/2.js", &[("accept-encoding", "gzip")]));
    world.assert_changed(Change::Encoding, "/plain/2.js", Some("gzip"), Some("gzip"));
    assert!(world.warm("/negotiated/2.js", &[("accept-encoding", "gzip")]));
    world.assert_unchanged("/negotiated/2.js", &[("accept-encoding", "gzip")]);
    for path in ["/plain/2.js", "/negotiated/2.js"] {
        for accepts in [&[("accept-encoding", "identity")][..], &[]] {
            world.assert_unchanged(path, accepts);
        }
    }
    let head = send(world.proxy(), &request("HEAD", "/negotiated/2.js", &[("host", HOST)])).unwrap();
    assert_eq!(head.header("content-encoding"), None);
}

#[test]
fn on_a_slow_link_what_leaves_in_br_is_described_truly() {
    let mut config = Config::new("");
    config.edit("down: 20mbit", "down: 2mbit");
    let world = World::of(config);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    world.assert_changed(Change::Encoding, "/negotiated/1.js", Some(BROWSER), Some("br"));
    world.assert_unchanged("/negotiated/1.js", &[("accept-encoding", "gzip")]);
    world.assert_unchanged("/gzip/1.tgz", &[("accept-encoding", BROWSER)]);
}

#[test]
fn what_url_rewrite_changes_is_described_truly() {
    let Some(config) = Config::new("rewrite: { target: http }\n").with_filter() else { return };
    let world = World::of(config);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for form in ["plain", "negotiated", "gzip"] {
        for (accepts, coding) in [(Some(BROWSER), Some("br")), (Some("gzip"), Some("gzip")), (None, None)] {
            world.assert_changed(Change::Content, &format!("/{form}/1.html"), accepts, coding);
        }
    }
    // A style sheet under its own URL may have a hash in its page, so it stays.
    world.assert_unchanged("/plain/1.css", &[]);
    world.assert_unchanged("/br/1.html", &[]);
    let moved = get(world.proxy(), &world.proxy().to_string(), &format!("/{HOST}/plain/1.css"), &[]);
    assert_eq!(stale(Change::Content, &moved), [""; 0], "{moved:?}");
    assert_ne!(moved.body, text());
}

/// Returns the ranges that differ from the origin's: types x encodings x what the client accepts x the state of the cache.
fn ranges_wrong(world: &World, types: &[&str]) -> (Vec<String>, usize) {
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for kind in types {
        for form in ["plain", "negotiated", "gzip", "x-gzip", "br"] {
            for accepts in [None, Some("identity"), Some("gzip"), Some("br, gzip"), Some("gzip;q=0"), Some("*")] {
                let headers: Vec<_> = accepts.map(|accepts| ("accept-encoding", accepts)).into_iter().collect();
                let path = format!("/{form}/{}.{kind}", accepts.map_or(0, str::len));
                for state in ["cold", "second", "stored"] {
                    match state {
                        "second" => drop(world.get(&path, &headers)),
                        // No other form can be stored.
                        "stored" if matches!(form, "plain" | "negotiated") => {
                            world.warm(&path, &[("accept-encoding", "gzip")]);
                        }
                        _ => {}
                    }
                    for range in ["bytes=100-199", "bytes=999999999-"] {
                        let with_range: Vec<_> = headers.iter().copied().chain([("range", range)]).collect();
                        let differs = differences(&world.get(&path, &with_range), &world.direct(&path, &with_range));
                        asked += 1;
                        if !differs.is_empty() {
                            wrong.push(format!("{path} {accepts:?} {state} {range}: {differs:?}"));
                        }
                    }
                }
            }
        }
    }
    (wrong, asked)
}

#[test]
fn a_range_is_the_origins_whatever_the_cache_holds() {
    let Some(config) = Config::new("rewrite: { target: http }\n").with_filter() else { return };
    let world = World::of(config);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let (wrong, asked) = ranges_wrong(&world, &["html", "js", "tgz"]);
    assert!(asked >= 100 && wrong.is_empty(), "{} of {asked} wrong: {wrong:#?}", wrong.len());
}

#[test]
fn an_origin_hears_its_clients_acceptance_and_never_more() {
    let Some(config) = Config::new("rewrite: { target: http }\n").with_filter() else { return };
    let world = World::of(config);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for (number, (accepts, heard)) in [
        // The cache asks for a form that every client of the kind can read.
        (None, Some("identity")),
        (Some("identity"), Some("identity")),
        (Some("gzip"), Some("gzip")),
        (Some(BROWSER), Some("gzip")),
        (Some("br"), Some("identity")),
        (Some("gzip;q=0, *"), Some("identity")),
        (Some("*"), Some("gzip")),
    ]
    .into_iter()
    .enumerate()
    {
        let headers: Vec<_> = accepts.map(|accepts| ("accept-encoding", accepts)).into_iter().collect();
        world.get(&format!("/plain/{number}.js"), &headers);
        assert_eq!(world.origin.last().header("accept-encoding"), heard, "{accepts:?}");
        // A range of a response that is not stored is the origin's alone.
        world.get(&format!("/plain/range-{number}.js"), &[&headers[..], &[("range", "bytes=100-199")]].concat());
        let heard = heard.filter(|_| accepts.is_some());
        assert_eq!(world.origin.last().header("accept-encoding"), heard, "{accepts:?}, a range");
    }
}

/// HTTP/1 drops them, so a server that sends trailers to those who accept them must not believe that they arrive.
#[test]
fn no_origin_is_asked_for_trailers_that_cannot_pass() {
    let world = World::of(Config::new(""));
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for path in ["/plain/1.js", "/plain/1.js", "/plain/1.html"] {
        assert_eq!(world.get(path, &[("te", "trailers"), ("x-other", "1")]).status, 200);
        let seen = world.origin.last();
        assert_eq!((seen.header("te"), seen.header("x-other")), (None, Some("1")));
    }
}
