//! ACME challenges: those for the proxy's own names reach the ACME client, and nothing else does.

use std::net::SocketAddr;

use crate::support::config::{Config, HTTP, TLS};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::eventually;
use crate::support::http::{Answer, get, request, send};
use crate::support::origin::{Origin, Reply};
use crate::support::tls::{Authority, connect};
use crate::support::{http, loopback::Block};

/// The port of the listener for challenges alone.
const CHALLENGES: u16 = 8402;
/// The port of the ACME client.
const CLIENT: u16 = 8099;
const TOKEN: &str = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr_oA";

struct World {
    config: Config,
    trust: Authority,
    acme: String,
    client: Origin,
    site: Origin,
    _dns: Dns,
}

impl World {
    /// A box with a name of its own, a steered site, and an ACME client. `tls.acme` is not set yet.
    fn new() -> Self {
        let block = Block::new();
        let (client, site) = (block.at(9), block.at(8));
        let dns = Dns::start(block.at(2), &[("pep.test", &[block.at(1)])]);
        let upstream = format!("  map:\n    site.test: '{site}:8081'\n");
        let terminate = "tls: { terminate: [ { names: [pep.test], cert: pep.pem, key: pep.key } ] }\n";
        let mut config = Config::with(block, "[80, 443, 8081]", &upstream, terminate);
        config.edit("proxy: { addresses: [", "proxy: { secure_names: [pep.test], addresses: [");
        let trust = Authority::new();
        trust.issue(&["pep.test"]).write(config.folder.path(), "pep");
        let acme =
            format!(", acme: {{ forward: '{client}:{CLIENT}', listen: '{}:{CHALLENGES}' }} }}\n", config.proxy());
        let client = Origin::start((client, CLIENT), |request| {
            Reply::ok("set-cookie: a=b\r\ncontent-type: text/html\r\n", format!("authorization for {}", request.path))
        });
        let site = Origin::start((site, 8081), |_| Reply::ok("", "the site"));
        Self { config, trust, acme, client, site, _dns: dns }
    }

    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), port)
    }

    /// Sends everything that is no challenge for the proxy's own name. Returns the responses without their dates.
    fn other_requests(&self, port: u16) -> Vec<(String, u16, String)> {
        let challenge = format!("/.well-known/acme-challenge/{TOKEN}");
        let send = |host: &str, method: &str, path: &str, more: &[(&str, &str)]| {
            let headers: Vec<_> = [("host", host)].into_iter().chain(more.iter().copied()).collect();
            let text = request(method, path, &headers);
            let answer = send(self.at(port), &text).expect("an answer");
            (text.lines().next().unwrap_or_default().to_owned(), answer.status, answer.text())
        };
        let mut all = Vec::new();
        for path in [
            "/",
            "/.well-known/acme-challenge/",
            "/.well-known/acme-challenge",
            "/.well-known/acme-challenge/..",
            "/.well-known/acme-challenge/../../secret",
            "/.well-known/acme-challenge/a/../b",
            "/.well-known/acme-challenge/%2e%2e",
            "/.well-known/acme-challenge/a%2fb",
            "/.well-known/acme-challenge/a.b",
            "/.well-known/acme-challenge/token?query",
            "/.well-known//acme-challenge/token",
            "/x/.well-known/acme-challenge/token",
            "/.well-known/other/token",
        ] {
            all.push(send("pep.test", "GET", path, &[]));
        }
        for host in ["site.test", "other.test", "pep.test.site.test", "xpep.test", "pep.test:8081", "127.0.0.1"] {
            all.push(send(host, "GET", &challenge, &[]));
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            all.push(send("pep.test", method, &challenge, &[("content-length", "0")]));
        }
        all.push(send("pep.test", "GET", &challenge, &[("connection", "upgrade"), ("upgrade", "websocket")]));
        all
    }
}

fn is_the_authorization(answer: &Answer) {
    assert_eq!((answer.status, answer.text()), (200, format!("authorization for /.well-known/acme-challenge/{TOKEN}")));
    assert_eq!(answer.header("content-security-policy").as_deref(), Some("sandbox"));
    assert_eq!(answer.header("x-content-type-options").as_deref(), Some("nosniff"));
    assert_eq!(answer.header("set-cookie"), None);
}

#[test]
fn a_challenge_for_an_own_name_reaches_the_acme_client_and_all_else_is_as_without_it() {
    let mut world = World::new();
    let Some(config) = world.config.with_filter() else { return };
    world.config = config;
    let Some(envoy) = Envoy::start(&world.config) else { return };
    let challenge = format!("/.well-known/acme-challenge/{TOKEN}");
    let before = world.other_requests(HTTP);
    assert_eq!(get(world.at(HTTP), "pep.test", &challenge, &[]).status, 403, "no host in the path");
    let acme = world.acme.clone();
    world.config.edit("key: pep.key } ] }\n", &format!("key: pep.key }} ]{acme}"));
    envoy.apply(&world.config);
    eventually("the challenge is answered", || get(world.at(HTTP), "pep.test", &challenge, &[]).status == 200);
    for host in ["pep.test", "pep.test:80", "PEP.test"] {
        let asked = world.client.received().len();
        is_the_authorization(&get(
            world.at(HTTP),
            host,
            &challenge,
            &[("cookie", "a=b"), ("authorization", "Basic x")],
        ));
        assert_eq!(world.client.received().len(), asked + 1);
        let received = world.client.last();
        assert_eq!(received.header("host"), Some(host), "Envoy keeps the name");
        for name in ["cookie", "authorization", "x-longhaul-scheme", "x-longhaul-client", "x-forwarded-for"] {
            assert_eq!(received.header(name), None, "{name}");
        }
    }
    let head = send(world.at(HTTP), &request("HEAD", &challenge, &[("host", "pep.test")])).unwrap();
    assert_eq!(head.status, 200);

    let asked = world.client.received().len();
    assert_eq!(world.other_requests(HTTP), before);
    assert!(world.site.received().iter().any(|request| request.path == challenge), "a steered site has its challenges");
    let mut tls = connect(world.at(TLS), "pep.test", &world.trust, &["http/1.1"]).unwrap();
    let secure = http::exchange(&mut tls, &request("GET", &challenge, &[("host", "pep.test")])).unwrap();
    assert_eq!(secure.status, 403, "not over TLS");
    assert_eq!(world.client.received().len(), asked);
}

#[test]
fn the_listener_for_challenges_serves_nothing_else() {
    let mut world = World::new();
    let acme = world.acme.clone();
    world.config.edit("key: pep.key } ] }\n", &format!("key: pep.key }} ]{acme}"));
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    is_the_authorization(&get(world.at(CHALLENGES), "pep.test", &format!("/.well-known/acme-challenge/{TOKEN}"), &[]));
    for (request, status, text) in world.other_requests(CHALLENGES) {
        assert!(matches!(status, 403 | 404), "{status} to {request}: {text}");
    }
    for line in
        ["GET http://site.test/ HTTP/1.1\r\nhost: site.test", "CONNECT site.test:8081 HTTP/1.1\r\nhost: site.test:8081"]
    {
        let answer = send(world.at(CHALLENGES), &format!("{line}\r\nconnection: close\r\n\r\n")).unwrap();
        assert!(matches!(answer.status, 403 | 404), "{} to {line}", answer.status);
    }
    assert_eq!((world.client.received().len(), world.site.received().len()), (1, 0));
}
