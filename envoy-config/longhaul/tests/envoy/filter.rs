//! The url-rewrite filter in its place: delivered, exchanged while running, counted.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::support::config::{Config, HTTP, module};
use crate::support::dns::Dns;
use crate::support::envoy::{Envoy, PATIENCE};
use crate::support::eventually;
use crate::support::http::{Answer, get, read_answer, request};
use crate::support::origin::{Origin, Received, Reply};

const HOST: &str = "www.test";
const OBJECT: &str = "<img src=\"http://img.test/a.png\">";
const INTEGRITY: &str = "<script src=\"http://img.test/a.js\" integrity=\"sha256-x\"></script>";
/// The pause between the pieces of a slow page.
const PAUSE: Duration = Duration::from_millis(100);

fn site(request: &Received) -> Reply {
    const HTML: &str = "content-type: text/html; charset=utf-8\r\n";
    match request.path.as_str() {
        "/a.png" => Reply::ok("content-type: image/png\r\ncache-control: max-age=60\r\n", "the picture"),
        "/slow" => Reply::Chunked(format!("HTTP/1.1 200 OK\r\n{HTML}"), PAUSE, vec![OBJECT.as_bytes().to_vec(); 30]),
        _ => Reply::ok(HTML, format!("<!doctype html>{OBJECT}{INTEGRITY}")),
    }
}

struct World {
    config: Config,
    origin: Origin,
    _dns: Dns,
}

impl World {
    fn new() -> Option<Self> {
        Self::with("rewrite: { target: http }\n")
    }

    fn with_wasm() -> Option<Self> {
        let world = Self::new()?;
        Some(Self { config: world.config.with_wasm(), ..world })
    }

    fn with(more: &str) -> Option<Self> {
        let mut config = Config::new(more).with_filter()?;
        let site_address = config.block.at(8);
        config.edit(
            "upstream:\n",
            &format!("upstream:\n  map: {{ www.test: '{site_address}:8081', img.test: '{site_address}:8081' }}\n"),
        );
        let origin = Origin::start((site_address, 8081), site);
        let dns = Dns::start(config.block.at(2), &[]);
        Some(Self { config, origin, _dns: dns })
    }

    fn http(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), HTTP)
    }

    fn page(&self) -> String {
        get(self.http(), HOST, "/", &[]).text()
    }

    /// Returns `OBJECT` with its moved URL.
    fn moved(&self) -> String {
        OBJECT.replace("http://", &format!("http://{}/", self.http()))
    }
}

#[test]
fn a_page_is_rewritten_its_objects_come_from_the_proxy_and_both_are_counted() {
    let Some(world) = World::new() else { return };
    let Some(envoy) = Envoy::start(&world.config) else { return };
    assert_eq!(world.page(), format!("<!doctype html>{}{INTEGRITY}", world.moved()));
    let own = world.http().to_string();
    let object = get(world.http(), &own, "/img.test/a.png", &[("cookie", "secret=1"), ("referer", "http://www.test/")]);
    assert_eq!((object.status, object.text().as_str()), (200, "the picture"), "{object:?}");
    let seen = world.origin.last();
    assert_eq!((seen.header("host"), seen.path.as_str()), (Some("img.test"), "/a.png"));
    assert_eq!(seen.header("cookie"), None);
    eventually("the counters are merged", || {
        let prometheus = envoy.admin("/stats/prometheus?filter=longhaul");
        let counted = |line: &str| prometheus.lines().any(|l| l == line);
        counted("longhaul_url_rewrite_pages_total{} 1")
            && counted("longhaul_url_rewrite_urls_moved_total{} 1")
            && counted("longhaul_url_rewrite_urls_left_total{reason=\"integrity\"} 1")
    });
    assert!(!envoy.log().contains("restricted proxy-wasm capability"), "{}", envoy.log());
}

#[test]
fn an_http_object_in_the_cache_is_not_served_for_the_https_one() {
    let Some(mut world) = World::new() else { return };
    let cache = world.config.path("cache");
    fs::create_dir_all(&cache).unwrap();
    writeln!(world.config.yaml, "cache: {{ dir: '{}', size: 64mib }}", cache.display()).unwrap();
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let own = world.http().to_string();
    let ask = |path: &str| get(world.http(), &own, path, &[]);
    assert_eq!(ask("/img.test/a.png").text(), "the picture");
    eventually("it is served from the cache", || ask("/img.test/a.png").header("age").is_some());
    assert_eq!(ask("/img.test:443/a.png").status, 502, "this origin has no TLS");
}

#[test]
fn a_request_that_the_filter_refuses_gets_one_line_and_reaches_no_origin() {
    let Some(world) = World::new() else { return };
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let own = world.http().to_string();
    for path in ["/img.test:22/", "/127.0.0.1/", "/%/", &format!("/{own}/")] {
        let answer = get(world.http(), &own, path, &[]);
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
        assert_eq!(answer.text().trim_end().lines().count(), 1, "{path}: {}", answer.text());
    }
    let navigation = [("sec-fetch-dest", "document"), ("referer", "http://www.img.test/")];
    let inside = get(world.http(), &own, "/img.test/", &navigation);
    assert_eq!((inside.status, inside.header("location").as_deref()), (307, Some("http://img.test/")));
    let outside = get(world.http(), &own, "/img.test/", &navigation[..1]);
    assert_eq!((outside.status, outside.header("location")), (403, None), "a page with a link, no redirect");
    assert!(outside.text().contains("img.test"), "{}", outside.text());
    assert_eq!(world.origin.connections(), 0);
}

/// Requests `/slow` on its own thread.
fn slow(world: &World) -> std::thread::JoinHandle<Answer> {
    let to = world.http();
    let asked = world.origin.received().len();
    let thread = std::thread::spawn(move || get(to, HOST, "/slow", &[]));
    eventually("the slow page is under way", || world.origin.received().len() > asked);
    thread
}

#[test]
fn another_configuration_is_applied_while_pages_stream_and_the_listeners_stay_as_they_are() {
    let Some(mut world) = World::new() else { return };
    let Some(envoy) = Envoy::start(&world.config) else { return };
    let streaming = slow(&world);
    let mut kept = TcpStream::connect(world.http()).unwrap();
    kept.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut ask_on_kept = || {
        let keep = request("GET", "/", &[("host", HOST), ("connection", "keep-alive")]);
        kept.write_all(keep.as_bytes()).unwrap();
        read_answer(&mut BufReader::new(&kept), false).expect("the connection is kept").text()
    };
    assert!(ask_on_kept().contains(&world.moved()));
    let before = world.config.render();
    let listeners =
        envoy.stat("listener_manager.listener_modified") + envoy.stat("listener_manager.listener_in_place_updated");

    world.config.edit(
        "rewrite: { target: http }",
        "rewrite: { target: http, exclude: [img.test] }\nlimits: { page_memory: 128kib }",
    );
    assert_eq!(world.config.render().get("lds.yaml"), before.get("lds.yaml"));
    envoy.apply(&world.config);
    eventually("new pages are left alone", || world.page().contains(OBJECT));
    assert!(ask_on_kept().contains(OBJECT), "on an old connection too");
    let slow = streaming.join().unwrap();
    assert_eq!(slow.text(), world.moved().repeat(30), "the page under way is finished as it was begun");
    assert!(!slow.cut);
    assert_eq!(envoy.rejected(), Vec::<String>::new());
    let after =
        envoy.stat("listener_manager.listener_modified") + envoy.stat("listener_manager.listener_in_place_updated");
    assert_eq!(after, listeners, "no listener was touched");
}

#[test]
fn a_filter_that_is_none_is_refused_and_the_old_one_goes_on() {
    let Some(mut world) = World::with_wasm() else { return };
    let Some(envoy) = Envoy::start(&world.config) else { return };
    let good = world.config.url_rewrite.clone().unwrap();
    let broken = world.config.path("broken.wasm");
    let bytes = fs::read(&good.path).unwrap();
    fs::write(&broken, &bytes[..bytes.len() / 2]).unwrap();
    world.config.url_rewrite = Some(module(broken));
    envoy.apply(&world.config);
    eventually("the filter is refused", || !envoy.rejected().is_empty());
    assert!(world.page().contains(&world.moved()));
}

#[test]
fn a_host_call_that_is_not_on_the_list_is_refused() {
    let Some(world) = World::with_wasm() else { return };
    let Some(envoy) = Envoy::start(&world.config) else { return };
    world.page();
    assert!(!envoy.log().contains("restricted proxy-wasm capability"), "{}", envoy.log());
    let tree = world.config.render();
    let ecds = tree.get("ecds/url-rewrite.yaml").unwrap();
    let lines: Vec<&str> = ecds.lines().filter(|line| line.trim() != "proxy_define_metric: {}").collect();
    let shorter = lines.join("\n") + "\n";
    assert_ne!(ecds, shorter);
    envoy.put(&tree.with("ecds/url-rewrite.yaml", shorter));
    eventually("the call is refused", || envoy.log().contains("restricted proxy-wasm capability"));
    assert!(world.page().contains(&world.moved()), "and the filter does without");
}

#[test]
fn a_new_filter_is_another_file_and_a_known_one_is_not_copied_again() {
    let Some(world) = World::with_wasm() else { return };
    let tree = world.config.render();
    let configured = tree.get("ecds/url-rewrite.yaml").unwrap();
    let place = tree.modules.iter().map(|module| &module.to).find(|to| configured.contains(to.as_str())).unwrap();
    let mut other = world.config.url_rewrite.clone().unwrap();
    other.sha256.replace_range(..4, "0000");
    let mut config = world.config;
    config.url_rewrite = Some(other);
    assert!(config.render().modules.iter().all(|module| module.to != *place));
}

#[test]
fn without_the_filter_pages_pass_and_our_own_address_is_refused() {
    let Some(mut world) = World::new() else { return };
    world.config.url_rewrite = None;
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert!(world.page().contains(OBJECT));
    let own = world.http().to_string();
    assert_eq!(get(world.http(), &own, "/img.test/a.png", &[]).status, 403);
}
