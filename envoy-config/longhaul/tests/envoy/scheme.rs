//! The scheme of a request is that of its listener, and the client cannot change it. The cache key contains it.

use std::net::SocketAddr;

use crate::support::config::{Config, HTTP, TLS};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::h2;
use crate::support::http::{exchange, get, request, send};
use crate::support::origin::{Origin, Received, Reply};
use crate::support::tls::{Authority, connect};

const HOST: &str = "www.test:8081";

fn cacheable(text: &'static str) -> impl Fn(&Received) -> Reply + Send + Sync {
    move |_| Reply::ok("content-type: text/css\r\ncache-control: max-age=60\r\n", text)
}

struct World {
    config: Config,
    trust: Authority,
    _dns: Dns,
}

impl World {
    fn new() -> Self {
        let mut config = Config::new(
            "tls: { terminate: [ { names: [pep.test], cert: pep.pem, key: pep.key } ] }\ncache: { dir: DIR, size: 64mib }\n",
        );
        config.yaml = config.yaml.replace("DIR", config.path("cache").to_str().unwrap());
        config.yaml = config.yaml.replace("proxy: { addresses: [", "proxy: { secure_names: [pep.test], addresses: [");
        std::fs::create_dir_all(config.path("cache")).unwrap();
        let trust = Authority::new();
        trust.issue(&["pep.test"]).write(config.folder.path(), "pep");
        config.trusted_ca = trust.write(&config.path("ca.pem"));
        let dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
        Self { config, trust, _dns: dns }
    }

    fn http(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), HTTP)
    }

    /// The body of `target`, requested on the TLS listener.
    fn over_tls(&self, target: &str) -> String {
        let to = SocketAddr::new(self.config.proxy(), TLS);
        let tls = connect(to, "pep.test", &self.trust, &[]).expect("a handshake");
        exchange(tls, &request("GET", target, &[("host", HOST)])).expect("a response").text()
    }
}

#[test]
fn a_client_that_writes_https_on_the_http_listener_does_not_poison_the_cache_of_https() {
    let world = World::new();
    // One address speaks plain HTTP now and would speak TLS to whoever asked for it.
    let origin = Origin::start((world.config.block.at(8), 8081), cacheable("over http"));
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    origin.until_stored(|| {
        let stream = h2::get(world.http(), "https", HOST, "/a.css").unwrap();
        assert_eq!((stream.end, stream.body.as_slice()), (h2::End::Whole, &b"over http"[..]), "{stream:?}");
    });
    let asked = origin.received().len();
    assert_ne!(world.over_tls("/a.css"), "over http", "plain http was served as https");
    // What was stored is an object of http, and serves clients of http.
    assert_eq!(get(world.http(), HOST, "/a.css", &[]).text(), "over http");
    assert_eq!(origin.received().len(), asked, "one object has one key");
    // HTTP/1 says it in an absolute form, which Envoy refuses by itself.
    let absolute = request("GET", &format!("https://{HOST}/b.css"), &[("host", HOST)]);
    assert_eq!(send(world.http(), &absolute).unwrap().status, 403);
}

#[test]
fn a_client_that_writes_http_on_the_tls_listener_does_not_put_https_objects_into_the_cache_of_http() {
    let world = World::new();
    let identity = world.trust.issue(&["www.test"]);
    let origin = Origin::start_tls((world.config.block.at(8), 8081), identity, cacheable("over https"));
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    origin.until_stored(|| assert_eq!(world.over_tls(&format!("http://{HOST}/a.css")), "over https"));
    let asked = origin.received().len();
    assert_ne!(get(world.http(), HOST, "/a.css", &[]).text(), "over https", "an https object was served as http");
    assert_eq!(world.over_tls("/a.css"), "over https");
    assert_eq!(origin.received().len(), asked, "one object has one key");
}
