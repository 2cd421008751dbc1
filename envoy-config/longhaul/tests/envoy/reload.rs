//! Changes that travel without a listener, and those that need one.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::config::{Config, HTTP, TLS};
use crate::support::dns::Dns;
use crate::support::envoy::{Envoy, PATIENCE};
use crate::support::eventually;
use crate::support::http::{exchange, get, read_answer, request};
use crate::support::loopback::Block;
use crate::support::origin::{Origin, Reply};
use crate::support::tls::{Authority, connect};

fn listeners_touched(envoy: &Envoy) -> u64 {
    ["listener_modified", "listener_in_place_updated", "listener_added"]
        .iter()
        .map(|name| envoy.stat(&format!("listener_manager.{name}")))
        .sum()
}

#[test]
fn origins_ports_and_ranges_change_under_a_kept_connection() {
    let block = Block::new();
    let upstream = format!("  map: {{ one.test: '{}:8082' }}\n", block.at(8));
    let mut config = Config::with(block, "[80, 8081]", &upstream, "");
    let _one = Origin::start((block.at(8), 8082), |_| Reply::ok("content-type: text/plain\r\n", "one"));
    let _two = Origin::start((block.at(9), 8082), |_| Reply::ok("content-type: text/plain\r\n", "two"));
    let _dns = Dns::start(block.at(2), &[("named.test", &[block.at(9)])]);
    let Some(envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    let mut kept = TcpStream::connect(http).unwrap();
    kept.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut ask = |host: &str| {
        kept.write_all(request("GET", "/", &[("host", host), ("connection", "keep-alive")]).as_bytes()).unwrap();
        read_answer(&mut BufReader::new(&kept), false).expect("the connection is kept")
    };
    assert_eq!(ask("one.test").text(), "one");
    assert_eq!(ask("two.test").status, 502);
    assert_eq!(ask("named.test:8082").status, 403);
    let before = config.render();
    let touched = listeners_touched(&envoy);

    config.edit("map: { ", &format!("map: {{ two.test: '{}:8082', ", block.at(9)));
    config.edit("ports: [80, 8081]", "ports: [80, 8082]");
    assert_eq!(config.render().get("lds.yaml"), before.get("lds.yaml"));
    envoy.apply(&config);
    eventually("the new name is reached", || ask("two.test").text() == "two");
    eventually("the new port is reached", || ask("named.test:8082").text() == "two");

    config.edit(&format!("'{}:8082', ", block.at(9)), &format!("'{}:8082', ", block.at(8)));
    config.edit(&format!("allow_private: [{}]", block.net()), "allow_private: []");
    envoy.apply(&config);
    eventually("the name is elsewhere", || ask("two.test").text() == "one");
    eventually("the range is closed", || ask("named.test:8082").status == 403);
    assert_eq!(listeners_touched(&envoy), touched);
    assert_eq!(envoy.rejected(), Vec::<String>::new());
}

#[test]
fn a_new_certificate_adds_a_chain_and_leaves_the_others_and_their_connections_alone() {
    let block = Block::new();
    let trust = Authority::new();
    let upstream = format!("  map: {{ one.test: '{0}:8443', two.test: '{0}:8443' }}\n", block.at(8));
    let mut config = Config::with(
        block,
        "[443]",
        &upstream,
        "tls: { terminate: [ { names: [one.test], cert: one.pem, key: one.key } ] }\n",
    );
    for name in ["one", "two"] {
        trust.issue(&[&format!("{name}.test")]).write(config.folder.path(), name);
    }
    config.trusted_ca = trust.write(&config.path("ca.pem"));
    let origin = Origin::start_tls((block.at(8), 8443), trust.issue(&["one.test", "two.test"]), |_| {
        Reply::ok("content-type: text/plain\r\n", "origin")
    });
    let _dns = Dns::start(block.at(2), &[]);
    let Some(envoy) = Envoy::start(&config) else { return };
    let tls = SocketAddr::new(config.proxy(), TLS);
    let keep = |host: &str| request("GET", "/", &[("host", host), ("connection", "keep-alive")]);
    let mut one = connect(tls, "one.test", &trust, &[]).unwrap();
    let mut passed_on = connect(tls, "two.test", &trust, &[]).unwrap();
    assert_eq!(exchange(&mut one, &keep("one.test")).unwrap().text(), "origin");
    assert_eq!(exchange(&mut passed_on, &keep("two.test")).unwrap().text(), "origin");
    assert!(origin.last().header("cdn-loop").is_none(), "passed on unread");

    config.edit("key: one.key }", "key: one.key }, { names: [two.test], cert: two.pem, key: two.key }");
    envoy.apply(&config);
    eventually("the new name ends here", || {
        let mut two = connect(tls, "two.test", &trust, &[]).unwrap();
        exchange(&mut two, &keep("two.test")).unwrap();
        origin.last().header("cdn-loop").is_some()
    });
    assert_eq!(exchange(&mut one, &keep("one.test")).unwrap().text(), "origin");
    assert_eq!(exchange(&mut passed_on, &keep("two.test")).unwrap().text(), "origin");
    assert_eq!(envoy.stat("listener_manager.total_filter_chains_draining"), 0);
    assert_eq!(envoy.stat("listener_manager.listener_in_place_updated"), 2, "for TCP and for QUIC");
    assert_eq!(envoy.stat("listener_manager.listener_modified"), 2, "the same ones");
    assert_eq!(envoy.rejected(), Vec::<String>::new());
}

#[test]
fn other_resolvers_are_asked_after_a_change() {
    let mut config = Config::new("");
    let block = config.block;
    let _origin = Origin::start((block.at(8), 8081), |_| Reply::ok("content-type: text/plain\r\n", "here"));
    let first = Dns::start(block.at(2), &[]);
    let second = Dns::start(block.at(3), &[("www.test", &[block.at(8)])]);
    let Some(envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    assert_eq!(get(http, "www.test:8081", "/", &[]).status, 502);
    config.edit(&format!("'{}:5300'", block.at(2)), &format!("'{}:5300'", block.at(3)));
    envoy.apply(&config);
    eventually("the name is found", || get(http, "www.test:8081", "/", &[]).text() == "here");
    assert!(first.asked("www.test") > 0 && second.asked("www.test") > 0);
    assert_eq!(envoy.rejected(), Vec::<String>::new());
}
