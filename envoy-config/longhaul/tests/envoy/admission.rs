//! The requests that the cache sees: the faults that admission cures, each by its name.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::http::{Answer, get, request, send};
use crate::support::origin::{Origin, Received, Reply};

const HOST: &str = "www.test:8081";
const FRESH: &str = "cache-control: max-age=600\r\n";
const MIB: usize = 1 << 20;

/// Large enough to be seen in Envoy's heap, and more than the cache takes.
fn large(head: &str) -> Reply {
    Reply::Chunked(format!("HTTP/1.1 200 OK\r\n{head}"), Duration::ZERO, vec![vec![b'x'; MIB]; 24])
}

/// Serves `/KIND/...` as `KIND` says, with the number of the request as the body. `turns` is cacheable for as many
/// requests as `cacheable` says.
fn origin(request: &Received, cacheable: &AtomicUsize) -> Reply {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
    let fresh = |more: &str| Reply::ok(&format!("{FRESH}{more}"), number.clone());
    match request.path.trim_start_matches('/').split('/').next().unwrap_or_default() {
        "fresh" => fresh(""),
        "etag" if request.header("if-none-match").is_some() => {
            Reply::Raw(format!("HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n{FRESH}\r\n").into_bytes())
        }
        "etag" => fresh("etag: \"1\"\r\n"),
        "cookie" => fresh("set-cookie: a=b\r\n"),
        "public" => Reply::ok("cache-control: public, max-age=600\r\n", number),
        "aged" => fresh("age: 30\r\n"),
        "capitals" => Reply::ok("cache-control: Private, max-age=600\r\n", number),
        "part" => Reply::Whole(
            format!("HTTP/1.1 206 Partial Content\r\n{FRESH}content-range: bytes 0-0/9\r\n"),
            number.into_bytes(),
        ),
        "large" => large(""),
        "large-fresh" => large(FRESH),
        "large-length" => Reply::ok("", vec![b'x'; 24 * MIB]),
        "large-fresh-length" => Reply::ok(FRESH, vec![b'x'; 24 * MIB]),
        "turns" => match cacheable.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => fresh(""),
            Err(_) if request.path.ends_with("large") => large(""),
            Err(_) => Reply::Chunked(
                "HTTP/1.1 200 OK\r\n".to_owned(),
                Duration::ZERO,
                vec![format!("{number} not cacheable").into_bytes()],
            ),
        },
        _ => Reply::ok("", number),
    }
}

struct World {
    config: Config,
    origin: Origin,
    _dns: Dns,
    cacheable: std::sync::Arc<AtomicUsize>,
}

impl World {
    fn new() -> Self {
        let mut config = Config::new("");
        let cache = config.path("cache");
        writeln!(config.yaml, "cache: {{ dir: '{}', size: 64mib }}", cache.display()).unwrap();
        std::fs::create_dir_all(cache).unwrap();
        let cacheable = std::sync::Arc::new(AtomicUsize::new(0));
        let behaviour = std::sync::Arc::clone(&cacheable);
        let origin = Origin::start((config.block.at(8), 8081), move |request| origin(request, &behaviour));
        let dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
        Self { config, origin, _dns: dns, cacheable }
    }

    fn http(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), HTTP)
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        get(self.http(), HOST, path, headers)
    }

    fn asked(&self) -> usize {
        self.origin.received().len()
    }

    /// Repeats the request until the response comes from the cache. Returns its body, or None if it never does.
    fn held(&self, path: &str, headers: &[(&str, &str)]) -> Option<String> {
        let mut last = self.get(path, headers).text();
        for _ in 0..6 {
            let asked = self.asked();
            let next = self.get(path, headers).text();
            if self.asked() == asked && next == last {
                return Some(next);
            }
            last = next;
        }
        None
    }

    /// Returns the largest growth of Envoy's heap while so many clients request it and read nothing.
    fn slow_clients(&self, envoy: &Envoy, path: &str, clients: usize) -> f64 {
        let heap = || {
            let memory = envoy.admin("/memory");
            let allocated = memory.split("\"allocated\": \"").nth(1).and_then(|rest| rest.split('"').next());
            allocated.and_then(|bytes| bytes.parse::<u64>().ok()).expect("a heap")
        };
        let before = heap();
        let connections: Vec<TcpStream> = (0..clients)
            .map(|number| {
                let mut stream = TcpStream::connect(self.http()).unwrap();
                let path = if path.ends_with("large") { path.to_owned() } else { format!("{path}/{number}") };
                stream.write_all(request("GET", &path, &[("host", HOST)]).as_bytes()).unwrap();
                stream
            })
            .collect();
        let end = Instant::now() + Duration::from_millis(1_500);
        let mut most = before;
        while Instant::now() < end {
            most = most.max(heap());
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(connections);
        #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
        let grown = most.saturating_sub(before) as f64 / MIB as f64;
        eprintln!("{path}: {grown:.2} MiB for {clients} clients");
        grown
    }
}

#[test]
fn a_slow_client_fills_the_memory_through_the_cache() {
    let world = World::new();
    let Some(envoy) = Envoy::start(&world.config) else { return };
    // Buffers that every connection has are there once.
    world.slow_clients(&envoy, "/large/first", 1);
    for path in ["/large", "/large-length", "/large-fresh", "/large-fresh-length"] {
        let grown = world.slow_clients(&envoy, path, 4);
        assert!(grown < 4.0, "{path}: {grown:.2} MiB for four clients");
    }
    // Once more, now that something is known of it.
    world.cacheable.store(1, Ordering::Relaxed);
    assert_eq!(world.get("/turns/large", &[]).status, 200);
    let grown = world.slow_clients(&envoy, "/turns/large", 4);
    assert!(grown < 4.0, "an origin that changes its mind: {grown:.2} MiB");
}

#[test]
fn the_third_request_for_a_url_is_served_from_the_cache() {
    let world = World::new();
    let Some(envoy) = Envoy::start(&world.config) else { return };
    let bodies: Vec<String> = (0..4).map(|_| world.get("/fresh/third", &[]).text()).collect();
    assert_eq!(world.asked(), 2, "{bodies:?}");
    assert_eq!((&bodies[1], &bodies[1]), (&bodies[2], &bodies[3]));
    let counts = envoy.admin("/stats/prometheus?filter=cache_admission");
    for count in [
        "requests_total{reason=\"unknown\"} 1",
        "requests_total{reason=\"storable\"} 1",
        "requests_total{reason=\"held\"} 2",
        "lessons_total{reason=\"storable\"} 1",
        "lessons_total{reason=\"stored\"} 1",
    ] {
        assert!(counts.contains(&format!("longhaul_cache_admission_{count}\n")), "{count}: {counts}");
    }
}

#[test]
fn a_moved_object_is_admitted_under_its_true_url() {
    let world = World::new();
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let held = world.held("/fresh/moved", &[]).unwrap();
    let (own, asked) = (format!("{}:{HTTP}", world.config.proxy()), world.asked());
    let moved = |path: &str, headers: &[(&str, &str)]| get(world.http(), &own, &format!("/{HOST}{path}"), headers);
    // The filter removes the cookie and the reader's dictionaries, so neither keeps the request from the cache.
    let more = [("accept", "image/*"), ("cookie", "a=b"), ("available-dictionary", ":x:")];
    assert_eq!(moved("/fresh/moved", &more).text(), held);
    assert_eq!(world.asked(), asked);
    let other = moved("/fresh/other", &more);
    assert_ne!(other.text(), held, "{other:?}");
    assert_eq!(world.asked(), asked + 1);
}

#[test]
fn an_origin_that_changes_its_mind_is_noticed_by_nobody() {
    let world = World::new();
    let Some(envoy) = Envoy::start(&world.config) else { return };
    world.cacheable.store(1, Ordering::Relaxed);
    assert_eq!(world.get("/turns/a", &[]).status, 200);
    let before = world.asked();
    let changed = world.get("/turns/a", &[]);
    assert_eq!(changed.status, 200);
    assert!(changed.text().ends_with("not cacheable"), "{changed:?}");
    assert_eq!(world.asked() - before, 2, "one request more at the origin");
    assert!(changed.headers.iter().all(|(name, _)| !name.starts_with("x-longhaul")), "{changed:?}");
    let before = world.asked();
    assert!(world.get("/turns/a", &[]).text().ends_with("not cacheable"));
    assert_eq!(world.asked() - before, 1, "it is known now");
    world.cacheable.store(10, Ordering::Relaxed);
    assert!(world.held("/turns/a", &[]).is_some(), "and back");
    let cut = envoy.admin("/stats/prometheus?filter=cache_admission_judged");
    assert!(cut.contains("longhaul_cache_admission_judged_total{reason=\"cut\"} 1"), "{cut}");
}

#[test]
fn set_cookie_is_shared_through_the_cache() {
    let world = World::new();
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert_eq!(world.held("/cookie/a", &[]), None);
    assert_eq!(world.get("/cookie/a", &[]).header("set-cookie").as_deref(), Some("a=b"));
    assert_eq!(world.held("/capitals/a", &[]), None, "a directive in capitals is one");
    assert_eq!(world.held("/part/a", &[]), None, "a part that nobody asked for");
}

#[test]
fn a_response_to_a_request_with_a_cookie_is_shared() {
    let world = World::new();
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let alice = [("cookie", "user=alice")];
    assert_eq!(world.held("/fresh/page", &alice), None);
    let held = world.held("/fresh/page", &[]).expect("without a cookie it is anybody's");
    assert_ne!(world.get("/fresh/page", &alice).text(), held, "and not Alice's");
    let public = world.held("/public/page", &alice).expect("the origin says that it is");
    assert_eq!(world.get("/public/page", &[("cookie", "user=bob")]).text(), public);
}

#[test]
fn a_post_leaves_what_it_changes_in_the_cache() {
    let world = World::new();
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let held = world.held("/fresh/form", &[]).unwrap();
    let post = request("POST", "/fresh/form", &[("host", HOST), ("content-length", "0")]);
    assert_eq!(send(world.http(), &post).unwrap().status, 200);
    let own_word = [("cache-control", "max-stale=5")];
    for more in [&[][..], &own_word, &own_word, &[]] {
        assert_ne!(world.get("/fresh/form", more).text(), held);
    }
    assert_eq!(world.origin.last().header("cache-control"), Some("max-stale=5"), "the origin reads it too");
}

#[test]
fn the_origins_age_is_dropped_on_a_miss() {
    let world = World::new();
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for number in 0..4 {
        let age = world.get("/aged/a", &[]).header("age").and_then(|age| age.parse::<u32>().ok());
        assert!(age.is_some_and(|age| (30..60).contains(&age)), "{number}: {age:?}");
    }
    assert_eq!(world.asked(), 2);
}

#[test]
fn unkeyed_headers_reach_what_others_get() {
    let world = World::new();
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for header in ["x-forwarded-host", "x-original-url", "x-rewrite-url", "x-anything"] {
        let path = format!("/fresh/{header}");
        assert_eq!(world.held(&path, &[(header, "evil")]), None, "{header}");
        let held = world.held(&path, &[]).unwrap();
        assert_ne!(world.get(&path, &[(header, "evil")]).text(), held, "{header}");
    }
    // Our own marks, from a client, say nothing.
    let held = world.held("/fresh/marks", &[]).unwrap();
    for way in ["hit", "fill"] {
        assert_eq!(world.get("/large-length", &[("x-longhaul-cache", way), ("x-longhaul-judge", "own")]).status, 200);
    }
    assert_eq!(world.get("/fresh/marks", &[("x-longhaul-cache", "past")]).text(), held);
}

#[test]
fn only_if_cached_asks_the_origin() {
    let world = World::new();
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let only = [("cache-control", "only-if-cached")];
    assert_eq!(world.get("/fresh/only", &only).status, 504);
    assert_eq!(world.asked(), 0);
    let held = world.held("/fresh/only", &[]).unwrap();
    assert_eq!(world.get("/fresh/only", &only).text(), held);
}

#[test]
fn after_a_restart_what_is_on_disk_is_used_once_its_origin_confirms_it() {
    let world = World::new();
    let Some(envoy) = Envoy::start(&world.config) else { return };
    let held = world.held("/etag/a", &[]).unwrap();
    drop(envoy);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert_ne!(world.get("/etag/a", &[]).text(), held, "nothing is known of it yet");
    assert_eq!(world.get("/etag/a", &[]).text(), held, "confirmed");
    assert_eq!(world.origin.last().header("if-none-match"), Some("\"1\""));
    assert_eq!(world.origin.last().header("cache-control"), None, "the origin's own caches are not told to look away");
    let asked = world.asked();
    assert_eq!(world.get("/etag/a", &[]).text(), held);
    assert_eq!(world.asked(), asked);
}
