//! The cached responses, and their cache keys.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::http::{Answer, get, request, send};
use crate::support::origin::{Origin, Received, Reply};

const HOST: &str = "www.test:8081";

/// Serves `/X/...` with the headers that `X` stands for, and with the number of the request as the body.
fn numbered(request: &Received) -> Reply {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let headers = match request.path.trim_start_matches('/').split('/').next() {
        Some("fresh") => "cache-control: max-age=60\r\netag: \"1\"\r\n",
        Some("vary-encoding") => "cache-control: max-age=60\r\nvary: Accept-Encoding\r\n",
        Some("vary-twice") => "cache-control: max-age=60\r\nvary: accept-encoding\r\nvary: Accept-Encoding\r\n",
        Some("vary-cookie") => "cache-control: max-age=60\r\nvary: Accept-Encoding, Cookie\r\n",
        Some("vary-origin") => "cache-control: max-age=60\r\nvary: Origin\r\nvary: accept-encoding\r\n",
        Some("vary-star") => "cache-control: max-age=60\r\nvary: *\r\n",
        Some("private") => "cache-control: private, max-age=60\r\n",
        Some("no-store") => "cache-control: no-store\r\n",
        _ => "",
    };
    Reply::ok(&format!("content-type: text/css\r\n{headers}"), number.to_string())
}

struct World {
    config: Config,
    origin: Origin,
    dns: Dns,
}

impl World {
    fn new(cache: &str) -> Self {
        let mut config = Config::new("");
        config.yaml += &cache.replace("DIR", config.path("cache").to_str().unwrap());
        std::fs::create_dir_all(config.path("cache")).unwrap();
        let origin = Origin::start((config.block.at(8), 8081), numbered);
        let dns = Dns::start(
            config.block.at(2),
            &[("www.test", &[config.block.at(8)]), ("other.test", &[config.block.at(8)])],
        );
        Self { config, origin, dns }
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        get(SocketAddr::new(self.config.proxy(), HTTP), HOST, path, headers)
    }

    /// Returns true if the cache serves the second of two successive requests.
    fn keeps(&self, path: &str) -> bool {
        let mut last = self.get(path, &[]).text();
        // What was asked for is still being written when it has been read; whoever asks meanwhile asks the origin.
        (0..30).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let before = std::mem::replace(&mut last, self.get(path, &[]).text());
            before == last
        })
    }
}

const DISK: &str = "cache: { dir: DIR, size: 64mib }\n";

#[test]
fn only_responses_that_may_be_cached_are_cached() {
    let world = World::new(DISK);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for path in ["/fresh", "/vary-encoding", "/vary-twice", "/vary-cookie", "/vary-origin"] {
        assert!(world.keeps(path), "{path}");
    }
    for path in ["/vary-star", "/private", "/no-store", "/unsaid"] {
        assert!(!world.keeps(path), "{path}");
    }
}

#[test]
fn a_vary_that_means_something_reaches_the_client() {
    let world = World::new(DISK);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert_eq!(world.get("/vary-cookie", &[]).header("vary").as_deref(), Some("Accept-Encoding, Cookie"));
    assert_eq!(world.get("/vary-origin", &[]).header("vary").as_deref(), Some("Origin,accept-encoding"));
    assert_eq!(world.get("/vary-star", &[]).header("vary").as_deref(), Some("*"));
}

#[test]
fn a_cached_response_states_its_age_and_serves_every_encoding() {
    let world = World::new(DISK);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert!(world.keeps("/fresh/age"));
    let kept = world.get("/fresh/age", &[]);
    assert!(kept.header("age").is_some(), "{kept:?}");
    for coding in ["br", "gzip", "gzip, deflate, br, zstd", "identity"] {
        assert_eq!(world.get("/fresh/age", &[("accept-encoding", coding)]).text(), kept.text(), "{coding}");
    }
}

#[test]
fn another_host_query_or_method_is_another_object_and_credentials_are_not_shared() {
    let world = World::new(DISK);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert!(world.keeps("/fresh/one"));
    let kept = world.get("/fresh/one", &[]).text();
    assert_ne!(world.get("/fresh/one?2", &[]).text(), kept);
    let http = SocketAddr::new(world.config.proxy(), HTTP);
    assert_ne!(get(http, "other.test:8081", "/fresh/one", &[]).text(), kept);
    assert_ne!(world.get("/fresh/one", &[("authorization", "Basic YTpi")]).text(), kept);
    assert_eq!(world.get("/fresh/one", &[]).text(), kept, "and the kept one is still there");
    let post = request("POST", "/fresh/one", &[("host", HOST), ("content-length", "0")]);
    assert_ne!(send(http, &post).unwrap().text(), kept);
}

#[test]
fn without_a_cache_every_request_reaches_the_origin() {
    let world = World::new("cache: off\n");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert!(!world.keeps("/fresh"));
}

#[test]
fn a_parent_gets_requests_for_http_objects_after_their_address_is_judged() {
    let mut world = World::new("");
    let block = world.config.block;
    let asked = Origin::start((block.at(9), 3128), |request| {
        Reply::ok("content-type: text/plain\r\n", format!("the parent was asked for {}", request.path))
    });
    writeln!(world.config.yaml, "cache: {{ parent: '{}:3128' }}", block.at(9)).unwrap();
    world.dns.set("inside.test", &["10.0.0.1".parse().unwrap()]);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert_eq!(world.get("/a?b", &[]).text(), format!("the parent was asked for http://{HOST}/a?b"));
    assert_eq!(asked.last().header("host"), Some(HOST));
    let http = SocketAddr::new(world.config.proxy(), HTTP);
    assert_eq!(get(http, "inside.test", "/", &[]).status, 403);
    assert_eq!(asked.received().iter().filter(|request| request.method == "GET").count(), 1);
    assert!(world.origin.received().is_empty());
    // A parent may share by rules of its own. What one client may have goes to the origin itself, if the guard allows it.
    for credential in [("cookie", "a=b"), ("authorization", "Basic YTpi")] {
        let before = world.origin.received().len();
        assert_eq!(world.get("/mine", &[credential]).status, 200);
        assert_eq!(world.origin.received().len(), before + 1, "{credential:?}");
        assert_eq!(get(http, "inside.test", "/", &[credential]).status, 403);
    }
    assert_eq!(asked.received().iter().filter(|request| request.method == "GET").count(), 1);
}
