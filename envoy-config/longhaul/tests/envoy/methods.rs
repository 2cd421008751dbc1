//! Methods, fragments and upgrades are the origin's business.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::{Envoy, PATIENCE};
use crate::support::http::{get, request, send};
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

#[test]
fn a_fragment_is_taken_off_a_path() {
    let config = Config::new("");
    let origin = Origin::start((config.block.at(8), 8081), |_| Reply::ok("content-type: text/plain\r\n", "done"));
    let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    for path in ["/a#b", "/a#", "/a#b?c=d#e", "/a"] {
        assert_eq!(get(http, HOST, path, &[]).status, 200, "{path}");
        assert_eq!(origin.last().path, "/a", "{path}");
    }
}

/// Responds to each request on a connection by its path, with the request line and fields in lower case as the body. An
/// upgrade to `/accept` changes the protocol, and the origin echoes what follows.
fn upgrading(at: SocketAddr) {
    let listener = TcpListener::bind(at).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let (mut head, mut bytes) = (Vec::new(), [0; 4096]);
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut bytes) {
                        Ok(size @ 1..) => head.extend_from_slice(&bytes[..size]),
                        _ => return,
                    }
                }
                let head = String::from_utf8_lossy(&head).to_lowercase();
                let offered = head.lines().find_map(|line| line.strip_prefix("upgrade: ")).map(str::to_owned);
                let reply = match (&offered, head.contains(" /accept ")) {
                    (Some(protocol), true) => {
                        format!("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\r\n")
                    }
                    _ => {
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{head}", head.len())
                    }
                };
                let _ = stream.write_all(reply.as_bytes());
                while let Ok(size @ 1..) = stream.read(&mut bytes) {
                    let _ = stream.write_all(&bytes[..size]);
                }
            });
        }
    });
}

/// Offers `protocol` and sends bytes once it is accepted. Returns the response as far as it came.
fn offer(http: SocketAddr, method: &str, path: &str, protocol: &str) -> String {
    let mut client = TcpStream::connect(http).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let fields = [("host", HOST), ("connection", "Upgrade, close"), ("upgrade", protocol)];
    client.write_all(request(method, path, &fields).as_bytes()).unwrap();
    let (mut came, mut bytes) = (String::new(), [0; 4096]);
    let mut pinged = false;
    while !came.ends_with("ping") {
        match client.read(&mut bytes) {
            Ok(size @ 1..) => came += &String::from_utf8_lossy(&bytes[..size]).to_lowercase(),
            _ => break,
        }
        if !pinged && came.starts_with("http/1.1 101") && came.contains("\r\n\r\n") {
            client.write_all(b"ping").unwrap();
            pinged = true;
        }
    }
    came
}

#[test]
fn an_upgrade_passes_or_is_ignored_and_never_costs_the_request() {
    let config = Config::new("");
    upgrading((config.block.at(8), 8081).into());
    let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    for method in ["GET", "POST"] {
        for protocol in ["websocket", "WebSocket", "tcp", "SPDY/3.1", "tailscale-control-protocol", "DERP", "PTTH/1.0"]
        {
            let came = offer(http, method, "/accept", protocol);
            assert!(came.starts_with("http/1.1 101") && came.ends_with("ping"), "{method} {protocol}: {came}");
            assert!(came.contains(&format!("upgrade: {}", protocol.to_lowercase())), "{method} {protocol}: {came}");
        }
        // Offers that a server may ignore. The origin sees none of them, and its response is that to the request.
        for protocol in
            ["TLS/1.2", "tls/1.0", "TLS/1.2, HTTP/1.1", "h2c", "HTTP/2.0", "foo", "tcpx", "tc", "websockets", "SPDY/3"]
        {
            let came = offer(http, method, "/accept", protocol);
            assert!(came.starts_with("http/1.1 200"), "{method} {protocol}: {came}");
            let seen = came.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            assert!(seen.starts_with(&format!("{} /accept ", method.to_lowercase())), "{method} {protocol}: {seen}");
            assert!(!seen.contains("upgrade"), "{method} {protocol}: {seen}");
        }
        // Of several offers, the known one is left.
        let came = offer(http, method, "/accept", "foo, tcp");
        assert!(came.starts_with("http/1.1 101") && came.contains("upgrade: tcp\r\n"), "{came}");
        // The origin does not change the protocol.
        let declined = offer(http, method, "/decline", "tcp");
        assert!(declined.starts_with("http/1.1 200") && declined.contains(" /decline "), "{method}: {declined}");
    }
}
