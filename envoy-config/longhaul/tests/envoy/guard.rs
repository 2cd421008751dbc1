//! The proxy refuses forbidden addresses with a reason, before it opens any connection.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::eventually;
use crate::support::http::{Answer, get, request, send};
use crate::support::loopback::Block;
use crate::support::origin::{Origin, Reply};

const PORT: u16 = 8081;

fn hello() -> impl Fn(&crate::support::origin::Received) -> Reply + Send + Sync {
    |_| Reply::ok("content-type: text/plain\r\n", "hello")
}

/// A box that may reach only the upper half of its block, with an origin in each half.
struct Divided {
    config: Config,
    allowed: Origin,
    refused: Origin,
    _dns: Dns,
}

impl Divided {
    fn new(more: &str) -> Self {
        let mut config = Config::new(more);
        let block = config.block;
        config.yaml = config.yaml.replace(&block.net(), &format!("{}/29", block.at(8)));
        let allowed = Origin::start((block.at(8), PORT), hello());
        let refused = Origin::start((block.at(3), PORT), hello());
        let dns = Dns::start(
            block.at(2),
            &[
                ("allowed.test", &[block.at(8)]),
                ("refused.test", &[block.at(3)]),
                ("ten.test", &[IpAddr::from([10, 1, 2, 3])]),
                ("mapped.test", &["::ffff:127.0.0.1".parse().unwrap()]),
                ("itself.test", &[block.at(1)]),
            ],
        );
        Self { config, allowed, refused, _dns: dns }
    }

    fn http(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), HTTP)
    }
}

fn assert_refused(answer: &Answer, reason: &str) {
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(answer.text().contains(reason), "{}", answer.text());
    assert_eq!(answer.text().trim_end().lines().count(), 1, "one line: {}", answer.text());
    assert_eq!(answer.header("content-type").as_deref(), Some("text/plain"));
}

#[test]
fn a_name_that_resolves_to_a_private_address_is_refused_without_a_connection_and_an_allowed_one_is_served() {
    let world = Divided::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let ask = |host: &str| get(world.http(), host, "/", &[]);
    assert_eq!(ask(&format!("allowed.test:{PORT}")).text(), "hello");
    for host in [format!("refused.test:{PORT}"), "ten.test".to_owned(), "mapped.test".to_owned()] {
        assert_refused(&ask(&host), "is not a public address");
    }
    assert_eq!(world.refused.connections(), 0);
    assert_eq!(world.allowed.received().len(), 1);
}

#[test]
fn the_guard_holds_on_one_hop_and_on_two_and_for_moved_urls() {
    for more in ["", "cache: { dir: CACHE, size: 64mib }\n"] {
        let mut world = Divided::new("");
        let folder = world.config.path("cache").display().to_string();
        world.config.yaml.push_str(&more.replace("CACHE", &folder));
        let Some(config) = world.config.with_filter() else { return };
        world.config = config;
        let Some(envoy) = Envoy::start(&world.config) else { return };
        let http = world.http();
        let us = http.to_string();
        let get_both = |host: &str| {
            [get(http, host, "/", &[]), get(http, &us, &format!("/{host}/a.png"), &[("sec-fetch-dest", "image")])]
        };
        for answer in get_both(&format!("allowed.test:{PORT}")) {
            assert_eq!(answer.text(), "hello", "{answer:?}");
        }
        for host in [format!("refused.test:{PORT}"), world.refused.address().to_string(), "ten.test".to_owned()] {
            for answer in get_both(&host) {
                assert_eq!(answer.status, 403, "{host} {answer:?}");
            }
        }
        // A request with credentials bypasses the cache, so it takes one hop. A WebSocket takes two hops.
        let upgrade = [("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13")];
        for fields in [&[("authorization", "Basic YTpi")][..], &upgrade, &[("x-longhaul-past", "1")], &upgrade[1..2]] {
            assert_refused(&get(http, &format!("refused.test:{PORT}"), "/", fields), "is not a public address");
        }
        assert_eq!(world.refused.connections(), 0);
        let through_inner = envoy.stat("http.inner.downstream_rq_total");
        get(http, &format!("allowed.test:{PORT}"), "/", &[("authorization", "Basic YTpi")]);
        assert_eq!(envoy.stat("http.inner.downstream_rq_total"), through_inner, "one hop");
        assert!(!envoy.log().contains("Did not find filter state"), "a warning a request would fill the log");
    }
}

#[test]
fn an_address_literal_is_judged_like_a_name() {
    let world = Divided::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let allowed = world.allowed.address();
    let refused = world.refused.address();
    assert_eq!(get(world.http(), &allowed.to_string(), "/", &[]).text(), "hello");
    for host in [
        refused.to_string(),
        format!("[::ffff:{}]:{PORT}", refused.ip()),
        format!("localhost:{PORT}"),
        "[::1]".to_owned(),
    ] {
        assert_refused(&get(world.http(), &host, "/", &[]), "is not a public address");
    }
    // An absolute URL in the request line is the same claim.
    let absolute = request("GET", &format!("http://{refused}/"), &[("host", "allowed.test:8081")]);
    assert_refused(&send(world.http(), &absolute).unwrap(), "is not a public address");
    assert_eq!(world.refused.connections(), 0);
}

#[test]
fn our_own_listeners_are_refused_even_where_their_range_is_allowed() {
    let config = Config::with(Block::new(), "[80, 8081, 8080, 8443, 5300]", "", "");
    let dns = Dns::start(config.block.at(2), &[("itself.test", &[config.proxy()])]);
    let Some(envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    for port in [8080, 8443] {
        assert_refused(&get(http, &format!("itself.test:{port}"), "/", &[]), "is this proxy itself");
        assert_refused(&get(http, &format!("{}:{port}", config.proxy()), "/", &[]), "is this proxy itself");
    }
    assert!(dns.asked("itself.test") > 0);
    assert_eq!(envoy.stat("cluster.origin_http.upstream_cx_total"), 0);
}

#[test]
fn services_on_the_proxys_own_host_are_refused_at_every_port_also_through_nat64() {
    let mut config = Config::with(Block::new(), "[80, 8081, 8080]", "", "");
    let public = IpAddr::from([203, 0, 113, 9]);
    config.local_addresses = vec![config.block.at(9), public];
    let beside_us = [config.proxy(), config.block.at(9)].map(|address| Origin::start((address, PORT), hello()));
    let elsewhere = Origin::start((config.block.at(8), PORT), hello());
    let _dns = Dns::start(
        config.block.at(2),
        &[
            ("itself.test", &[config.proxy()]),
            ("second.test", &[config.block.at(9)]),
            ("elsewhere.test", &[config.block.at(8)]),
            ("translated.test", &["64:ff9b::203.0.113.9".parse().unwrap()]),
        ],
    );
    let Some(envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    let second = SocketAddr::new(config.block.at(9), PORT).to_string();
    for host in
        [&format!("itself.test:{PORT}"), &format!("second.test:{PORT}"), &second, "translated.test", "203.0.113.9"]
    {
        assert_refused(&get(http, host, "/", &[]), "is this proxy itself");
    }
    assert_eq!(get(http, &format!("elsewhere.test:{PORT}"), "/", &[]).text(), "hello");
    assert_eq!(beside_us.each_ref().map(Origin::connections), [0, 0]);
    // An address that the operator allows by itself is reachable, but for our own listeners.
    let exactly = format!("allow_private: [{}/32, ", config.block.at(9));
    config.edit("allow_private: [", &exactly);
    envoy.apply(&config);
    eventually("the address is allowed", || get(http, &second, "/", &[]).text() == "hello");
    assert_refused(&get(http, &format!("{}:{HTTP}", config.block.at(9)), "/", &[]), "is this proxy itself");
    // What the operator denies is refused, whatever allows it.
    config.edit("allow_private: [", &format!("deny: [{}]\n  allow_private: [", elsewhere.address().ip()));
    envoy.apply(&config);
    let denied = || get(http, &format!("elsewhere.test:{PORT}"), "/", &[]);
    eventually("the address is denied", || denied().status == 403);
    assert_refused(&denied(), "the operator of this proxy denies");
}

#[test]
fn every_address_of_this_host_is_its_own_where_a_listener_is_bound_to_all() {
    let mut config = Config::with(Block::new(), "[80, 8081, 18080]", "", "");
    let elsewhere = config.block.at(9);
    let port = 18_080 + u16::try_from(std::process::id() % 1000).unwrap();
    config.yaml =
        config.yaml.replace(&format!("http: '{}:{HTTP}'", config.proxy()), &format!("http: '0.0.0.0:{port}'"));
    config.yaml = config.yaml.replace("18080", &port.to_string());
    config.local_addresses = vec![elsewhere];
    let _dns = Dns::start(config.block.at(2), &[]);
    let Some(envoy) = Envoy::start(&config) else { return };
    let answer = get(SocketAddr::new(config.proxy(), port), &format!("{elsewhere}:{port}"), "/", &[]);
    assert_refused(&answer, "is this proxy itself");
    assert_eq!(envoy.stat("cluster.origin_http.upstream_cx_total"), 0);
}

#[test]
fn a_port_that_is_not_listed_is_refused() {
    let world = Divided::new("");
    let other = Origin::start((world.config.block.at(8), 8082), hello());
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert_refused(&get(world.http(), "allowed.test:8082", "/", &[]), "may not be reached");
    assert_eq!(get(world.http(), &format!("allowed.test:{PORT}"), "/", &[]).status, 200);
    assert_eq!(other.connections(), 0);
}

#[test]
fn a_host_that_is_none_is_answered_without_a_connection() {
    let world = Divided::new("");
    let Some(envoy) = Envoy::start(&world.config) else { return };
    for host in ["", "a b", "2130706433:8081", "0x7f.1:8081", "allowed.test:99999", "allowed..test", "nobody.test"] {
        let answer = get(world.http(), host, "/", &[]);
        assert!(matches!(answer.status, 400 | 403 | 502), "{host}: {answer:?}");
        assert!(answer.text().trim_end().lines().count() <= 1, "{host}: {}", answer.text());
    }
    assert_eq!(envoy.stat("cluster.origin_http.upstream_cx_total"), 0);
}

/// Forms of addresses that `inet_aton` and browsers accept and that programs read differently. They are octal and
/// hexadecimal numbers, omitted parts, one number, and a final dot.
const NOT_CANONICAL: &[&str] = &[
    "012.0102.0.1",
    "0177.0.0.1:8080",
    "0177.0.0.01",
    "10.066.0.1",
    "0x7f.0.0.1",
    "0X7F.1",
    "0x7f000001:8081",
    "0x.1.2.3",
    "2130706433:8081",
    "017700000001",
    "127.1",
    "10.66.1:8081",
    "10.66.0.1.",
    "256.1.1.1",
    "1.2.3.4.5",
    "www.test.1",
    "www.test.0x7f",
    "0",
];

#[test]
fn a_host_that_programs_read_as_different_addresses_is_refused_on_every_way_and_reaches_no_parent() {
    let mut config = Config::new("");
    let parent = Origin::start((config.block.at(9), 3128), hello());
    config.edit("role: edge\n", &format!("role: edge\ncache: {{ parent: '{}' }}\n", parent.address()));
    let _dns = Dns::start(config.block.at(2), &[("allowed.test", &[config.block.at(8)])]);
    let Some(config) = config.with_filter() else { return };
    let Some(envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    let us = http.to_string();
    for host in NOT_CANONICAL {
        let absolute = request("GET", &format!("http://{host}/"), &[("host", "allowed.test:8081")]);
        // Some are refused earlier, by the filter.
        assert_eq!(get(http, host, "/", &[]).status, 403, "{host}");
        assert_eq!(send(http, &absolute).unwrap().status, 403, "{host}, absolute");
        assert_eq!(get(http, &us, &format!("/{host}/a.png"), &[]).status, 403, "{host}, moved");
    }
    assert_refused(&get(http, "012.0102.0.1", "/", &[]), "not every program reads 012.0102.0.1 as the same address");
    // Health checks are OPTIONS.
    let asked = || parent.received().iter().filter(|request| request.method == "GET").count();
    assert_eq!((asked(), envoy.stat("cluster.parents.upstream_rq_total")), (0, 0));
    assert_eq!(get(http, "allowed.test:8081", "/", &[]).text(), "hello");
    assert_eq!(get(http, &format!("{}:8081", config.block.at(8)), "/", &[]).text(), "hello");
    assert_eq!(get(http, "[::ffff:10.66.0.1]:8081", "/", &[]).status, 403);
    assert_eq!(asked(), 2);
}

#[test]
fn a_mapped_name_reaches_its_address_whatever_port_the_url_has_and_needs_no_resolver() {
    let block = Block::new();
    let origin = Origin::start((block.at(8), 9999), hello());
    let upstream = format!("  map: {{ mapped.test: '{}:9999' }}\n", block.at(8));
    let config = Config::with(block, "[80]", &upstream, "");
    let dns = Dns::start(block.at(2), &[]);
    let Some(envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    for host in ["mapped.test", "mapped.test:1234", "MAPPED.test"] {
        assert_eq!(get(http, host, "/", &[]).text(), "hello", "{host}");
    }
    assert_eq!(origin.received().len(), 3);
    assert_eq!(dns.asked("mapped.test"), 0);
    assert_ne!(get(http, "below.mapped.test", "/", &[]).status, 200);
    assert!(!envoy.log().contains("Did not find filter state"), "a warning a request would fill the log");
}

#[test]
fn a_request_that_has_been_here_before_is_refused() {
    let world = Divided::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let host = format!("allowed.test:{PORT}");
    get(world.http(), &host, "/", &[]);
    let mark = world.allowed.last().header("cdn-loop").expect("the mark").to_owned();
    let again = get(world.http(), &host, "/", &[("cdn-loop", &mark)]);
    assert_eq!(again.status, 508, "{again:?}");
    assert!(again.text().contains("in a circle") && again.text().contains("`id` of its own"), "{}", again.text());
    assert_eq!(get(world.http(), &host, "/", &[("cdn-loop", "another-cdn")]).status, 200);
    assert_eq!(world.allowed.received().len(), 2);
}

#[test]
fn connect_and_requests_made_to_confuse_are_refused_and_nothing_reaches_the_origin() {
    let world = Divided::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let host = format!("allowed.test:{PORT}");
    let both =
        format!("POST / HTTP/1.1\r\nhost: {host}\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n");
    let two = format!("POST / HTTP/1.1\r\nhost: {host}\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello");
    for confusing in [both, two, format!("CONNECT {host} HTTP/1.1\r\nhost: {host}\r\n\r\n")] {
        let answer = send(world.http(), &confusing).expect("an answer");
        assert!((400..500).contains(&answer.status), "{confusing}\n{answer:?}");
    }
    let large = "x".repeat(70_000);
    assert_eq!(get(world.http(), &host, "/", &[("x-large", &large)]).status, 431);
    assert_eq!(world.allowed.received().len(), 0);
    assert_eq!(get(world.http(), &host, "/", &[("x-large", &large[..40_000])]).status, 200);
}

#[test]
fn loopback_itself_is_refused_by_default() {
    let mut config = Config::new("");
    config.yaml = config.yaml.replace(&format!("allow_private: [{}]", config.block.net()), "allow_private: []");
    let origin = Origin::start((config.block.at(8), PORT), hello());
    let _dns = Dns::start(config.block.at(2), &[("allowed.test", &[config.block.at(8)])]);
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    assert_refused(&get(http, &format!("allowed.test:{PORT}"), "/", &[]), "is not a public address");
    assert_refused(&get(http, &format!("{}:{PORT}", Ipv4Addr::LOCALHOST), "/", &[]), "is not a public address");
    assert_eq!(origin.connections(), 0);
}
