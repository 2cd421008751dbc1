//! Methods are the origin's business.

use std::net::SocketAddr;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::http::{request, send};
use crate::support::origin::{Origin, Reply};

const HOST: &str = "www.test:8081";

#[test]
fn a_method_that_envoy_does_not_know_reaches_the_origin() {
    for cache in ["", "cache: off\n"] {
        let config = Config::new(cache);
        let origin = Origin::start((config.block.at(8), 8081), |_| Reply::ok("content-type: text/plain\r\n", "done"));
        let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
        let Some(_envoy) = Envoy::start(&config) else { return };
        let http = SocketAddr::new(config.proxy(), HTTP);
        // Envoy refuses a QUERY that does not say what it holds, as servers must.
        let sent = [("host", HOST), ("content-type", "application/sql"), ("content-length", "0")];
        for method in ["QUERY", "VERSION-CONTROL", "RPC_IN_DATA", "BITS_POST", "DESCRIBE", "X", "get"] {
            let answer = send(http, &request(method, "/", &sent)).unwrap();
            assert_eq!((answer.status, answer.text().as_str()), (200, "done"), "{method}");
            assert_eq!(origin.last().method, method);
        }
        let none = send(http, &request("G(T", "/", &[("host", HOST)])).unwrap();
        assert_eq!(none.status, 400, "no token is no method");
        assert_eq!(origin.received().len(), 7);
    }
}
