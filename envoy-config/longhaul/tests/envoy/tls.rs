//! TLS: connections that end here, that pass unread, and that are refused.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support::config::{Config, TLS};
use crate::support::dns::Dns;
use crate::support::envoy::{Envoy, PATIENCE, skip};
use crate::support::http::{connect_from, exchange, request};
use crate::support::loopback::Block;
use crate::support::origin::{Origin, Received, Reply};
use crate::support::tls::{Authority, connect, drain, protocol};
use crate::support::{eventually, http};

fn says(text: &'static str) -> impl Fn(&Received) -> Reply + Send + Sync {
    move |_| Reply::ok("content-type: text/plain\r\n", text)
}

/// A box with its own name, a portal whose key the operator holds, and an origin whose key the operator does not hold.
struct World {
    config: Config,
    trust: Authority,
    dns: Dns,
    /// The real address of the portal.
    portal: Origin,
    elsewhere: Origin,
}

/// The mapped origins' port. Pass-through goes to 443, which tests cannot bind.
const PORT: u16 = 8443;

impl World {
    fn new(more: &str) -> Self {
        let block = Block::new();
        let trust = Authority::new();
        let upstream = format!(
            "  map:\n    portal.test: '{portal}:{PORT}'\n    elsewhere.test: '{elsewhere}:{PORT}'\n    plain.test: '{plain}:8081'\n",
            portal = block.at(8),
            elsewhere = block.at(9),
            plain = block.at(10),
        );
        let terminate = "tls: { terminate: [ { names: [pep.test], cert: pep.pem, key: pep.key }, { names: [portal.test], cert: portal.pem, key: portal.key } ] }\n";
        let mut config = Config::with(block, "[80, 443, 8081]", &upstream, &format!("{terminate}{more}"));
        config.yaml = config.yaml.replace("proxy: { addresses: [", "proxy: { secure_names: [pep.test], addresses: [");
        trust.issue(&["pep.test"]).write(config.folder.path(), "pep");
        trust.issue(&["portal.test"]).write(config.folder.path(), "portal");
        config.trusted_ca = trust.write(&config.path("ca.pem"));
        let portal = Origin::start_tls((block.at(8), PORT), trust.issue(&["portal.test"]), says("the portal"));
        let elsewhere = Origin::start_tls((block.at(9), PORT), trust.issue(&["elsewhere.test"]), says("elsewhere"));
        let dns = Dns::start(
            block.at(2),
            &[("loopback.test", &[IpAddr::from([127, 0, 0, 1])]), ("ten.test", &[IpAddr::from([10, 0, 0, 1])])],
        );
        Self { config, trust, dns, portal, elsewhere }
    }

    fn tls(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), TLS)
    }

    /// Sends GET `/` of `host` on a TLS connection with the server name `name`.
    fn get(&self, name: &str, host: &str) -> http::Answer {
        let tls = connect(self.tls(), name, &self.trust, &[]).expect("a handshake");
        exchange(tls, &request("GET", "/", &[("host", host)])).expect("an answer")
    }
}

#[test]
fn a_name_whose_key_we_do_not_hold_is_passed_on_unread() {
    let world = World::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert_eq!(world.get("elsewhere.test", "elsewhere.test").text(), "elsewhere");
    // The handshake was the origin's: nothing of what it saw was added by us.
    assert_eq!(world.elsewhere.last().header("cdn-loop"), None);
}

#[test]
fn a_large_answer_passed_on_unread_comes_whole_though_the_origin_closes_behind_it() {
    let mut world = World::new("");
    let large = || "0123456789abcdef".repeat(500_000);
    world.elsewhere = {
        let address = world.elsewhere.address();
        drop(world.elsewhere);
        Origin::start_tls(address, world.trust.issue(&["elsewhere.test"]), move |_| {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n";
            Reply::Raw(format!("{head}{}", large()).into_bytes())
        })
    };
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let answer = world.get("elsewhere.test", "elsewhere.test");
    assert!(answer.text() == large(), "{} of {} bytes", answer.body.len(), large().len());
}

#[test]
fn a_name_that_resolves_to_a_refused_address_is_closed_without_a_connection() {
    let world = World::new("");
    let loopback = TcpListener::bind("127.0.0.1:0").expect("a listener that must stay alone");
    let Some(envoy) = Envoy::start(&world.config) else { return };
    for name in ["loopback.test", "ten.test", "nobody.test"] {
        assert!(connect(world.tls(), name, &world.trust, &[]).is_err(), "{name}");
        eventually("the name is looked up", || world.dns.asked(name) > 0);
    }
    assert_eq!(envoy.stat("cluster.origin_tcp.upstream_cx_total"), 0);
    assert_eq!(envoy.stat("http.tunnel.rbac.denied"), 2);
    drop(loopback);
}

#[test]
fn a_refused_server_name_is_closed_at_once() {
    let world = World::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for name in ["ten.test", "nobody.test", "0177.1", "a b"] {
        let mut stream = TcpStream::connect(world.tls()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let asked = Instant::now();
        stream.write_all(&client_hello(name)).unwrap();
        drain(&mut stream);
        assert!(asked.elapsed() < Duration::from_secs(2), "{name} is held for {:?}", asked.elapsed());
    }
}

#[test]
fn a_client_of_a_server_without_tls_gets_an_alert() {
    let world = World::new("");
    drop(world.elsewhere);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let mut stream = TcpStream::connect(SocketAddr::new(world.config.proxy(), TLS)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&client_hello("elsewhere.test")).unwrap();
    let mut said = Vec::new();
    // The end may be a reset: nobody has read the client's first message.
    let _ = stream.read_to_end(&mut said);
    // A record of TLS 1.2 with a fatal alert, `unrecognized_name` (RFC 8446 sections 5.1 and 6.2).
    assert_eq!(said, [0x15, 3, 3, 0, 2, 2, 112]);
}

#[test]
fn server_names_of_one_client_that_floods_cost_no_other_client_a_name() {
    let world = World::new("limits: { new_names_per_client: 64 }\n");
    if world.config.name_budget.is_none() {
        return skip("no name_budget.wasm: set LONGHAUL_NAME_BUDGET, or `make build`");
    }
    let Some(envoy) = Envoy::start(&world.config) else { return };
    let ask = |client: u32, name: &str| {
        let mut stream = connect_from(world.config.block.at(client), world.tls()).unwrap();
        stream.write_all(&client_hello(name)).unwrap();
        drain(&mut stream);
    };
    for number in 0..200 {
        ask(11, &format!("flood{number}.test"));
    }
    let looked_up = (0..200).filter(|number| world.dns.asked(&format!("flood{number}.test")) > 0).count();
    assert!((64..150).contains(&looked_up), "{looked_up}");
    for number in 0..20 {
        let name = format!("other{number}.test");
        ask(12, &name);
        assert!(world.dns.asked(&name) > 0, "{name}");
    }
    let counted = envoy.admin("/stats/prometheus?filter=name_budget_requests");
    let refused = format!("longhaul_name_budget_requests_total{{reason=\"refused\"}} {}", 200 - looked_up);
    assert!(counted.contains(&refused), "{refused}\n{counted}");
}

#[test]
fn a_server_name_that_is_an_address_or_nonsense_reaches_nothing() {
    let world = World::new("");
    let Some(envoy) = Envoy::start(&world.config) else { return };
    for name in ["127.0.0.1", "localhost", "0177.1", "inner", "origin_http", "-"] {
        let mut stream = TcpStream::connect(world.tls()).unwrap();
        stream.write_all(&client_hello(name)).unwrap();
        drain(&mut stream);
    }
    let tunnels = || envoy.stat("http.tunnel.downstream_rq_total");
    let before = tunnels();
    assert!(before >= 5, "a name, whatever it is, is asked for");
    for name in ["a:22", "a b", "a/b", "..", &"x".repeat(250), "elsewhere.test\nx", "a\r\nhost: b", "é.test", "\0"] {
        let mut stream = TcpStream::connect(world.tls()).unwrap();
        stream.write_all(&client_hello(name)).unwrap();
        drain(&mut stream);
    }
    assert!(tunnels() <= before + 1, "bytes that are no name are written into no request");
    assert_eq!(envoy.stat("cluster.origin_tcp.upstream_cx_total"), 0);
}

#[test]
fn our_own_name_and_a_terminated_one_speak_http_2_and_1() {
    let world = World::new("");
    let _plain = Origin::start((world.config.block.at(10), 8081), says("plain"));
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    for name in ["pep.test", "portal.test"] {
        let tls = connect(world.tls(), name, &world.trust, &["h2", "http/1.1"]).unwrap();
        assert_eq!(protocol(&tls).as_deref(), Some("h2"), "{name}");
        let tls = connect(world.tls(), name, &world.trust, &["http/1.1"]).unwrap();
        assert_eq!(protocol(&tls).as_deref(), Some("http/1.1"), "{name}");
    }
    // Both ask origins over https, because that is what the client asked with.
    assert_eq!(world.get("portal.test", "portal.test").text(), "the portal");
    assert!(world.portal.last().header("cdn-loop").is_some());
    assert_eq!(world.get("pep.test", "plain.test").status, 502, "an origin that has no TLS is not asked without");
}

#[test]
fn http_2_windows_are_the_derived_ones() {
    let world = World::new("transport: { stream_window: 1mib, connection_window: 4mib, concurrent_streams: 77 }\n");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let mut tls = connect(world.tls(), "pep.test", &world.trust, &["h2"]).unwrap();
    tls.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    tls.flush().unwrap();
    let (mut settings, mut window) = (Vec::new(), 0);
    while settings.is_empty() || window == 0 {
        let mut head = [0; 9];
        tls.read_exact(&mut head).expect("a frame");
        let mut body = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        tls.read_exact(&mut body).expect("a whole frame");
        match (head[3], head[4]) {
            (4, 0) => settings = body.chunks(6).map(|s| (s[1], u32::from_be_bytes([s[2], s[3], s[4], s[5]]))).collect(),
            (8, _) => window = u32::from_be_bytes([body[0], body[1], body[2], body[3]]),
            _ => {}
        }
    }
    assert!(settings.contains(&(3, 77)), "concurrent streams: {settings:?}");
    assert!(settings.contains(&(4, 1 << 20)), "stream window: {settings:?}");
    assert_eq!(window + 65_535, 4 << 20, "connection window");
}

#[test]
fn without_a_name_our_address_is_us() {
    let world = World::new("");
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let address = world.config.proxy().to_string();
    // Our certificate does not bear the address, so the client refuses it: but it was ours that came.
    let refused = connect(world.tls(), &address, &world.trust, &[]).expect_err("the name does not fit");
    assert!(refused.to_string().contains("pep.test"), "{refused}");
    // One that bears it is taken.
    world.trust.issue(&["pep.test", &address]).write(world.config.folder.path(), "pep");
    eventually("the renewed certificate is served", || connect(world.tls(), &address, &world.trust, &[]).is_ok());
}

#[test]
fn a_renewed_certificate_is_served_to_new_connections_and_cuts_no_old_one() {
    let world = World::new("");
    let Some(envoy) = Envoy::start(&world.config) else { return };
    let mut old = connect(world.tls(), "portal.test", &world.trust, &[]).unwrap();
    let renewed = Authority::new();
    renewed.issue(&["portal.test"]).write(world.config.folder.path(), "portal");
    eventually("the new certificate", || connect(world.tls(), "portal.test", &renewed, &[]).is_ok());
    let keep = request("GET", "/", &[("host", "portal.test"), ("connection", "keep-alive")]);
    assert_eq!(exchange(&mut old, &keep).unwrap().text(), "the portal");
    assert_eq!(envoy.stat("listener_manager.total_filter_chains_draining"), 0);
}

#[test]
fn without_a_certificate_every_name_is_passed_on_and_no_name_is_refused() {
    let mut world = World::new("");
    world.config.yaml = world.config.yaml.replace("secure_names: [pep.test], ", "");
    let at = world.config.yaml.find("tls: { terminate").unwrap();
    world.config.yaml.truncate(at);
    let Some(envoy) = Envoy::start(&world.config) else { return };
    assert_eq!(world.get("portal.test", "portal.test").text(), "the portal");
    assert!(world.portal.last().header("cdn-loop").is_none());
    assert!(connect(world.tls(), &world.config.proxy().to_string(), &world.trust, &[]).is_err());
    assert_eq!(envoy.stat("cluster.origin_tcp.upstream_cx_total"), 0);
}

#[test]
fn an_origin_whose_certificate_is_for_another_name_is_not_trusted() {
    let mut world = World::new("");
    world.portal = {
        let address = world.portal.address();
        let wrong = world.trust.issue(&["another.test"]);
        drop(world.portal);
        Origin::start_tls(address, wrong, says("an impostor"))
    };
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let answer = world.get("portal.test", "portal.test");
    assert_eq!(answer.status, 502);
    assert!(answer.text().contains("no connection to portal.test"), "{}", answer.text());
    assert!(world.portal.received().is_empty());
}

/// The start of a TLS 1.2 handshake with any text as `name`. No library would send most of these.
fn client_hello(name: &str) -> Vec<u8> {
    let name = name.as_bytes();
    let sized = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
    let entry = [&[0][..], &sized(name)].concat();
    let extension = [&[0, 0][..], &sized(&sized(&entry))].concat();
    let mut hello = vec![3, 3];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x2f, 1, 0]);
    hello.extend(sized(&extension));
    let size = u32::try_from(hello.len()).unwrap().to_be_bytes();
    let handshake = [&[1][..], &size[1..], &hello].concat();
    [&[22, 3, 1][..], &sized(&handshake)].concat()
}
