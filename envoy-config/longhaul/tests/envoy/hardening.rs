//! Requests that two parsers could read in two ways. The box refuses them, so no origin reads them in another way.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::{Envoy, PATIENCE};
use crate::support::h2;
use crate::support::http::{get, read_answer, request, send};
use crate::support::origin::{Origin, Reply};

/// Lines of a POST's head, its body, and its fault. Bytes after the end of a body would be the smuggled request.
const AMBIGUOUS: &[(&str, &str, &str)] = &[
    ("content-length: 5\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n", "two lengths"),
    ("transfer-encoding: chunked\r\ncontent-length: 5\r\n", "0\r\n\r\n", "two lengths, the other way round"),
    ("content-length: 5\r\ncontent-length: 6\r\n", "hello", "two different sizes"),
    ("content-length: 5, 6\r\n", "hello", "two different sizes in one line"),
    ("content-length: +5\r\n", "hello", "a size with a sign"),
    ("content-length: -5\r\n", "hello", "a negative size"),
    ("content-length: 0x5\r\n", "hello", "a size in hex"),
    ("content-length: 5 5\r\n", "hello", "a size in two words"),
    ("content-length : 5\r\n", "hello", "a blank before the colon"),
    ("transfer-encoding : chunked\r\n", "0\r\n\r\n", "a blank before the colon of the coding"),
    ("transfer-encoding: xchunked\r\n", "0\r\n\r\n", "a coding that is none"),
    ("transfer-encoding: chunked, identity\r\n", "0\r\n\r\n", "chunked is not the last coding"),
    ("transfer-encoding: \x0bchunked\r\n", "0\r\n\r\n", "a control character in the coding"),
    ("x-a: b\0c\r\ncontent-length: 0\r\n", "", "a NUL in a value"),
    ("x a: b\r\ncontent-length: 0\r\n", "", "a blank in a name"),
    ("transfer-encoding: chunked\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "a chunk's size with a prefix"),
    ("transfer-encoding: chunked\r\n", "-1\r\nhello\r\n0\r\n\r\n", "a chunk's size with a sign"),
    ("transfer-encoding: chunked\r\n", "fffffffffffffffff\r\nhello\r\n0\r\n\r\n", "a chunk's size beyond 64 bits"),
];

#[test]
fn a_request_that_can_be_read_in_two_ways_is_refused_and_what_hides_behind_it_reaches_nobody() {
    let config = Config::new("");
    let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
    let origin = Origin::start((config.block.at(8), 8081), |_| Reply::ok("content-type: text/plain\r\n", "ok"));
    let Some(envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    let mut accepted = Vec::new();
    for (head, body, what) in AMBIGUOUS {
        let mut client = TcpStream::connect(http).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let hidden = "GET /smuggled HTTP/1.1\r\nhost: www.test:8081\r\n\r\n";
        let request = format!("POST /ambiguous HTTP/1.1\r\nhost: www.test:8081\r\n{head}\r\n{body}{hidden}");
        client.write_all(request.as_bytes()).unwrap();
        // A reset before the answer was read is a refusal, too.
        if let Ok(answer) = read_answer(&mut BufReader::new(client), false)
            && !(400..=501).contains(&answer.status)
        {
            accepted.push((what, answer.status));
        }
        let paths: Vec<_> = origin.received().into_iter().map(|received| received.path).collect();
        assert!(!paths.iter().any(|path| path == "/smuggled"), "{what}: {paths:?}");
    }
    assert_eq!(accepted, []);
    assert_eq!(get(http, "www.test:8081", "/honest", &[]).text(), "ok", "and it serves on");
    assert!(envoy.stat("http.edge_http.downstream_cx_protocol_error") > 0);
}

#[test]
fn a_bare_cr_does_not_begin_a_header_for_whoever_reads_it_so() {
    let config = Config::new("");
    let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
    let origin = Origin::start((config.block.at(8), 8081), |_| Reply::ok("content-type: text/plain\r\n", "ok"));
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    assert_eq!(get(http, "www.test:8081", "/", &[("x-a", "b\rtransfer-encoding: chunked")]).status, 200);
    // RFC 9112 section 2.2 wants it refused or replaced by a blank. Envoy takes it out: nobody reads two lines there.
    assert_eq!(origin.last().header("x-a"), Some("btransfer-encoding: chunked"));
    assert_eq!(origin.last().header("transfer-encoding"), None);
}

#[test]
fn the_overload_manager_and_the_watchdog_are_active() {
    let config = Config::new("");
    let Some(envoy) = Envoy::start(&config) else { return };
    assert!(envoy.admin("/stats?filter=overload").contains("fixed_heap.pressure"), "memory is watched");
    let running = envoy.admin("/config_dump?resource=&mask=bootstrap");
    for part in ["worker_watchdog", "kill_timeout", "reset_high_memory_stream", "shrink_heap", "tcp_listener_accept"] {
        assert!(running.contains(part), "{part} is not in force:\n{running}");
    }
}

#[test]
fn a_raw_path_and_an_endless_url_are_answered_with_an_error_and_no_reset() {
    let Some(config) = Config::new("").with_filter() else { return };
    let _dns = Dns::start(config.block.at(2), &[]);
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    let own = http.to_string();
    let long = format!("/{}", "x".repeat(70_000));
    for (host, path, expected) in [
        (own.as_str(), "/\u{e9}t\u{e9}.test/a.png", 400..405),
        (own.as_str(), "/www.test/\u{e9}", 200..600),
        (own.as_str(), long.as_str(), 400..432),
        ("www.test", "/\u{e9}", 200..600),
        ("www.test", long.as_str(), 400..432),
    ] {
        let answer = send(http, &request("GET", path, &[("host", host)]));
        let status = answer.as_ref().map(|answer| answer.status);
        assert!(status.is_ok_and(|status| expected.contains(&status)), "{host} {path:.20}: {answer:?}");
    }
    for (host, path) in
        [(own.as_str(), "/\u{e9}.test/a.png"), (own.as_str(), "/www.test/\u{e9}"), ("www.test", "/\u{e9}")]
    {
        let stream = h2::get(http, "http", host, path).unwrap();
        assert_ne!(stream.end, h2::End::GoneAway, "{host} {path}: the connection that others share is gone");
    }
}
