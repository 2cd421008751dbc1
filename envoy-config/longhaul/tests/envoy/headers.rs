//! Origins and clients see as little of us as possible.

use std::net::SocketAddr;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::http::{get, request, send};
use crate::support::origin::{Origin, Received, Reply};

const HOST: &str = "www.test:8081";

struct World {
    config: Config,
    origin: Origin,
    dns: Dns,
}

impl World {
    fn new(more: &str) -> Self {
        let config = Config::new(more);
        let origin = Origin::start((config.block.at(8), 8081), |_| {
            // The last two would be words of one of our ends to the other.
            Reply::ok(
                "server: theirs\r\nx-theirs: 1\r\ncontent-type: image/png\r\ncache-control: no-store\r\n\
                 x-longhaul-headers: -\r\nX-Longhaul-Retry: 1\r\n",
                "png",
            )
        });
        let dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
        Self { config, origin, dns }
    }

    fn http(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), HTTP)
    }
}

/// Covers every header that the client did not send. It runs with the cache and without, because the cache sends
/// requests of its own.
#[test]
fn only_the_loop_mark_and_the_content_encodings_reach_an_origin() {
    for cache in ["", "cache: off\n"] {
        let world = World::new(cache);
        let Some(_envoy) = Envoy::start(&world.config) else { return };
        let sent = [("host", HOST), ("user-agent", "test"), ("accept", "*/*"), ("accept-encoding", "gzip")];
        for method in ["GET", "POST"] {
            let mut headers = sent.to_vec();
            if method == "POST" {
                headers.push(("content-length", "0"));
            }
            assert_eq!(send(world.http(), &request(method, "/a?b=c%2F../d", &headers)).unwrap().status, 200);
            let seen = world.origin.last();
            assert_eq!((seen.method.as_str(), seen.path.as_str()), (method, "/a?b=c%2F../d"));
            let mut names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            names.retain(|name| *name != "content-length");
            assert_eq!(names, ["accept", "accept-encoding", "cdn-loop", "host", "user-agent"], "cache: {cache:?}");
            assert_eq!(seen.header("accept-encoding"), Some("gzip"));
            let mark = seen.header("cdn-loop").unwrap();
            assert!(mark.starts_with("longhaul-") && !mark.contains('.') && !mark.contains(':'), "{mark}");
        }
    }
}

#[test]
fn a_client_cannot_speak_for_the_proxy() {
    let world = World::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let spoofed = [
        ("x-longhaul-scheme", "https"),
        ("X-Longhaul-Anything", "1"),
        ("x-envoy-original-dst-host", "127.0.0.1:1"),
        ("x-envoy-upstream-alt-stat-name", "a"),
        ("x-envoy-retry-on", "5xx"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-for", "192.0.2.1"),
    ];
    let answer = get(world.http(), HOST, "/", &spoofed);
    assert_eq!((answer.status, answer.text().as_str()), (200, "png"), "asked over http all the same");
    for (name, _) in spoofed {
        assert_eq!(world.origin.last().header(&name.to_lowercase()), None, "{name}");
    }
}

#[test]
fn headers_of_the_page_and_the_origin_pass_untouched_but_for_those_in_our_name() {
    let world = World::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let own = [("x-request-id", "theirs"), ("under_score", "kept"), ("cookie", "a=b"), ("referer", "http://www.test/")];
    let answer = get(world.http(), HOST, "/", &own);
    for (name, value) in own {
        assert_eq!(world.origin.last().header(name), Some(value), "{name}");
    }
    assert_eq!(answer.header("server").as_deref(), Some("theirs"));
    assert_eq!(answer.header("x-theirs").as_deref(), Some("1"));
    let added: Vec<_> =
        answer.headers.iter().filter(|(name, _)| name.starts_with("x-envoy") || name == "via").collect();
    assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("x-longhaul-")), "{answer:?}");
    assert!(added.is_empty(), "{added:?}");
}

#[test]
fn old_clients_are_served() {
    let world = World::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let with_host = send(world.http(), &format!("GET / HTTP/1.0\r\nhost: {HOST}\r\n\r\n")).unwrap();
    assert_eq!(with_host.status, 200);
    let without = send(world.http(), "GET / HTTP/1.0\r\n\r\n").unwrap();
    assert!((400..600).contains(&without.status), "{without:?}");
}

#[test]
fn failures_of_an_origin_are_said_in_one_line() {
    let world = World::new("");
    let block = world.config.block;
    let _closes = Origin::start((block.at(9), 8081), |_| Reply::Raw(Vec::new()));
    let _babbles = Origin::start((block.at(10), 8081), |_| Reply::Raw(b"SSH-2.0-babble\r\n".to_vec()));
    world.dns.set("closes.test", &[block.at(9)]);
    world.dns.set("babbles.test", &[block.at(10)]);
    world.dns.set("nobody-there.test", &[block.at(11)]);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for (host, says) in [
        ("nobody-there.test:8081", "no connection to nobody-there.test:8081"),
        ("closes.test:8081", "closed the connection before it answered"),
        ("babbles.test:8081", "answered with something that is not HTTP"),
        ("no-such-name.test:8081", "could not be resolved"),
    ] {
        let answer = get(world.http(), host, "/", &[]);
        assert_eq!(answer.status, 502, "{host}: {answer:?}");
        assert!(answer.text().starts_with("502 ") && answer.text().contains(says), "{host}: {}", answer.text());
        assert_eq!(answer.text().trim_end().lines().count(), 1);
        assert_eq!(answer.header("cache-control").as_deref(), Some("no-store"));
    }
}

/// Each inner hop has room for the fields that the outer hop adds. The hop `fetch` lacked it, when requests
/// filled the cache through it: every second request was refused, and the object was never stored.
#[test]
fn a_request_with_many_fields_and_one_just_below_the_limit_is_served_and_cached() {
    let mut config = Config::new("cache: { dir: DIR, size: 64mib }\n");
    config.yaml = config.yaml.replace("DIR", config.path("cache").to_str().unwrap());
    std::fs::create_dir_all(config.path("cache")).unwrap();
    let origin = Origin::start((config.block.at(8), 8081), |_| {
        Reply::ok("content-type: image/png\r\ncache-control: max-age=600\r\n", "png")
    });
    let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    // Fields of these names do not keep a request from the cache.
    let many = |count: usize| (0..count).map(|number| (format!("sec-field-{number}"), "v".to_owned())).collect();
    let large = |bytes: usize| vec![("sec-large".to_owned(), "v".repeat(bytes))];
    let ask = |path: &str, fields: &Vec<(String, String)>| {
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        get(http, HOST, path, &fields).status
    };
    let limits: [(&str, Vec<(String, String)>); 5] = [
        ("/180", many(180)),
        ("/190", many(190)),
        // With the pseudo-fields and `host`.
        ("/195", many(195)),
        ("/65250", large(65_250)),
        ("/65400", large(65_400)),
    ];
    for (path, fields) in &limits {
        let statuses: Vec<u16> = (0..6).map(|_| ask(path, fields)).collect();
        assert_eq!(statuses, [200; 6], "{path}");
        let asked = origin.received().iter().filter(|request| request.path == **path).count();
        assert!((1..=2).contains(&asked), "{path}: {asked} requests reached the origin, so it was not cached");
    }
    assert_eq!(ask("/400", &many(400)), 431, "the outer hop has its limit");
    assert_eq!(ask("/70000", &large(70_000)), 431);
}

/// Browsers accept 256 KiB of fields, however many.
#[test]
fn a_response_with_as_many_fields_as_browsers_accept_is_served_on_every_way() {
    let mut config = Config::new("cache: { dir: DIR, size: 64mib }\n");
    config.yaml = config.yaml.replace("DIR", config.path("cache").to_str().unwrap());
    std::fs::create_dir_all(config.path("cache")).unwrap();
    // The path ends in `/COUNT/SIZE`: the number of fields, and the bytes of each.
    let _origin = Origin::start((config.block.at(8), 8081), |request: &Received| {
        let mut words = request.path.split('/').skip(2).map(|word| word.parse::<usize>().unwrap_or(0));
        let (count, size) = (words.next().unwrap_or(0), words.next().unwrap_or(0));
        let value = "v".repeat(size);
        let mut fields = (0..count).map(|number| format!("x-{number}: {value}\r\n")).collect::<Vec<_>>().concat();
        fields += if request.path.starts_with("/cached") {
            "cache-control: max-age=600\r\n"
        } else {
            "cache-control: no-store\r\n"
        };
        Reply::ok(&(fields + "content-type: text/plain\r\n"), "ok")
    });
    let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    for shape in ["201/1", "990/1", "90/1000", "250/1000"] {
        for way in ["cached", "private"] {
            for again in 0..3 {
                let answer = get(http, HOST, &format!("/{way}/{shape}"), &[]);
                let own = answer.headers.iter().filter(|(name, _)| name.starts_with("x-")).count();
                let count = shape.split('/').next().unwrap();
                assert_eq!(
                    (answer.status, own.to_string().as_str(), answer.text().as_str()),
                    (200, count, "ok"),
                    "{way} {shape} {again}"
                );
            }
        }
        let posted = request("POST", &format!("/private/{shape}"), &[("host", HOST), ("content-length", "0")]);
        assert_eq!(send(http, &posted).unwrap().status, 200, "{shape}");
    }
    assert_eq!(get(http, HOST, "/private/1100/1", &[]).status, 502, "a response without end stays bounded");
}
