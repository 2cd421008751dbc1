//! Connections to origins: reused, shared by all clients, bounded for each origin. Safe requests are retried.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::eventually;
use crate::support::http::{get, request, send};
use crate::support::origin::{Origin, Received, Reply};

const HOST: &str = "www.test:8081";

struct World {
    config: Config,
    origin: Origin,
    _dns: Dns,
}

impl World {
    fn new(more: &str, behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let config = Config::new(&format!("cache: off\n{more}"));
        let origin = Origin::start((config.block.at(8), 8081), behaviour);
        let dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
        Self { config, origin, _dns: dns }
    }

    fn http(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), HTTP)
    }
}

fn ok() -> Reply {
    Reply::ok("content-type: text/plain\r\n", "ok")
}

#[test]
fn clients_share_a_few_connections_and_one_look_up() {
    let world = World::new("", |_| ok());
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for _ in 0..60 {
        assert_eq!(get(world.http(), HOST, "/", &[]).text(), "ok");
    }
    assert_eq!(world.origin.received().len(), 60);
    // Two workers, each with one in use and one ready.
    assert!(world.origin.connections() <= 4, "{}", world.origin.connections());
}

#[test]
fn an_origin_gets_no_more_connections_than_it_may_and_nobody_is_turned_away() {
    let now = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let world = World::new("transport: { upstream_connections: 4 }\n", {
        let (now, most) = (now.clone(), most.clone());
        move |_| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // The first ones wait for others, which on a busy machine may take their time to come.
            eventually("several at one time", || most.load(Ordering::SeqCst) >= 3);
            thread::sleep(Duration::from_millis(30));
            now.fetch_sub(1, Ordering::SeqCst);
            ok()
        }
    });
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let http = world.http();
    let clients: Vec<_> = (0..40).map(|_| thread::spawn(move || get(http, HOST, "/", &[]).status)).collect();
    for client in clients {
        assert_eq!(client.join().unwrap(), 200);
    }
    // Each worker may have one whatever the bound says.
    assert!(most.load(Ordering::SeqCst) <= 5, "{} at one time", most.load(Ordering::SeqCst));
    assert!(most.load(Ordering::SeqCst) >= 3, "{} at one time", most.load(Ordering::SeqCst));
}

/// Closes the connection without a response at the first request of each path.
fn flaky() -> impl Fn(&Received) -> Reply + Send + Sync {
    let seen: Mutex<Vec<String>> = Mutex::default();
    move |request| {
        let mut seen = seen.lock().unwrap();
        let key = format!("{} {}", request.method, request.path);
        let first = !seen.contains(&key);
        seen.push(key);
        if first { Reply::Raw(Vec::new()) } else { ok() }
    }
}

#[test]
fn only_safe_requests_are_retried_and_only_once() {
    let world = World::new("", flaky());
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert_eq!(get(world.http(), HOST, "/get", &[]).status, 200);
    let post = request("POST", "/post", &[("host", HOST), ("content-length", "4")]) + "body";
    assert_eq!(send(world.http(), &post).unwrap().status, 502);
    let count = |path: &str| world.origin.received().iter().filter(|r| r.path == path).count();
    assert_eq!((count("/get"), count("/post")), (2, 1));
}
