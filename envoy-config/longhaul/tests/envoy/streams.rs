//! Everything besides a page that a connection may carry.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::{Envoy, PATIENCE};
use crate::support::eventually;
use crate::support::http::{get, read_answer, request, send};
use crate::support::origin::{Origin, Received, Reply};

const HOST: &str = "www.test:8081";

struct World {
    config: Config,
    dns: Dns,
}

impl World {
    fn new(more: &str) -> Self {
        let config = Config::new(more);
        let dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
        Self { config, dns }
    }

    fn origin(&self, behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Origin {
        Origin::start((self.config.block.at(8), 8081), behaviour)
    }

    fn http(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), HTTP)
    }
}

#[test]
fn a_websocket_is_opened_and_carries_bytes_both_ways() {
    let world = World::new("");
    let listener = TcpListener::bind((world.config.block.at(8), 8081)).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(String::from_utf8(head).unwrap().to_lowercase().contains("upgrade: websocket"));
        stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n")
            .unwrap();
        let mut bytes = [0; 64];
        while let Ok(size @ 1..) = stream.read(&mut bytes) {
            stream.write_all(&bytes[..size]).unwrap();
        }
    });
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let mut client = TcpStream::connect(world.http()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let upgrade = [
        ("host", HOST),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-version", "13"),
    ];
    client.write_all(request("GET", "/", &upgrade).as_bytes()).unwrap();
    let mut reader = BufReader::new(client.try_clone().unwrap());
    assert_eq!(read_answer(&mut reader, false).unwrap().status, 101);
    for message in [&b"one"[..], b"two"] {
        client.write_all(message).unwrap();
        let mut back = vec![0; message.len()];
        reader.read_exact(&mut back).unwrap();
        assert_eq!(back, message);
    }
}

#[test]
fn answers_without_a_body_have_none() {
    let world = World::new("");
    let origin = world.origin(|request| match request.path.as_str() {
        "/204" => Reply::Whole("HTTP/1.1 204 No Content\r\n".to_owned(), Vec::new()),
        _ if request.header("if-none-match").is_some() => {
            Reply::Raw(b"HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n".to_vec())
        }
        _ => Reply::ok("content-type: text/html\r\netag: \"1\"\r\n", "x".repeat(1000)),
    });
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let head = send(world.http(), &request("HEAD", "/", &[("host", HOST), ("accept-encoding", "br")])).unwrap();
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(get(world.http(), HOST, "/204", &[]).status, 204);
    let unchanged = get(world.http(), HOST, "/", &[("if-none-match", "W/\"1\"")]);
    assert_eq!((unchanged.status, unchanged.header("etag").as_deref()), (304, Some("\"1\"")));
    assert_eq!(origin.last().header("if-none-match"), Some("W/\"1\""));
}

#[test]
fn large_bodies_pass_whole_both_ways() {
    let world = World::new("");
    let large: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    let sent = large.clone();
    let origin = world.origin(move |_| Reply::ok("content-type: application/octet-stream\r\n", sent.clone()));
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let answer = get(world.http(), HOST, "/", &[]);
    assert!(answer.body == large && !answer.cut, "{} bytes", answer.body.len());
    let mut client = TcpStream::connect(world.http()).unwrap();
    let length = large.len().to_string();
    client.write_all(request("POST", "/", &[("host", HOST), ("content-length", &length)]).as_bytes()).unwrap();
    client.write_all(&large).unwrap();
    assert_eq!(read_answer(&mut BufReader::new(client), false).unwrap().status, 200);
    assert!(origin.last().body == large);
}

#[test]
fn an_origin_that_breaks_off_is_seen_to_break_off() {
    let world = World::new("");
    let _origin = world.origin(|_| {
        Reply::Raw(b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 100\r\n\r\nhalf".to_vec())
    });
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let answer = get(world.http(), HOST, "/", &[]);
    assert!(answer.cut, "a client must not take a part for the whole: {answer:?}");
    assert_eq!(answer.text(), "half");
}

#[test]
fn a_client_that_is_slow_in_a_header_is_cut_off_and_one_slow_in_a_body_is_not() {
    let world = World::new("transport: { handshake_timeout: 1s }\n");
    let origin = world.origin(|_| Reply::ok("content-type: text/plain\r\n", "ok"));
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    let mut loris = TcpStream::connect(world.http()).unwrap();
    loris.set_read_timeout(Some(PATIENCE)).unwrap();
    loris.write_all(b"GET / HTTP/1.1\r\nhost: w").unwrap();
    let cut_off = read_answer(&mut BufReader::new(&loris), false).unwrap();
    assert_eq!(cut_off.status, 408);

    let mut slow = TcpStream::connect(world.http()).unwrap();
    slow.write_all(request("POST", "/", &[("host", HOST), ("content-length", "3")]).as_bytes()).unwrap();
    for byte in [b"a", b"b", b"c"] {
        thread::sleep(Duration::from_millis(700));
        slow.write_all(byte).unwrap();
    }
    assert_eq!(read_answer(&mut BufReader::new(slow), false).unwrap().status, 200);
    assert_eq!(origin.received().len(), 1);
}

#[test]
fn clients_beyond_the_limit_are_turned_away_and_those_within_it_are_served() {
    let world = World::new("cache: off\nlimits: { connections: 3 }\n");
    let _origin = world.origin(|_| Reply::ok("content-type: text/plain\r\n", "ok"));
    let Some(envoy) = Envoy::start(&world.config) else { return };
    let ask = |mut stream: &TcpStream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request("GET", "/", &[("host", HOST), ("connection", "keep-alive")]).as_bytes())?;
        read_answer(&mut BufReader::new(stream), false)
    };
    let clients: Vec<_> = (0..3).map(|_| TcpStream::connect(world.http()).unwrap()).collect();
    for client in &clients {
        assert_eq!(ask(client).unwrap().text(), "ok", "connections between the hops are not clients");
    }
    assert!(ask(&TcpStream::connect(world.http()).unwrap()).is_err());
    assert!(envoy.admin("/ready").contains("LIVE"));
    drop(clients);
    eventually("a place is free again", || TcpStream::connect(world.http()).is_ok_and(|c| ask(&c).is_ok()));
}

#[test]
fn addresses_of_origins_are_known_after_a_restart() {
    let world = World::new("");
    let _origin = world.origin(|_| Reply::ok("content-type: text/plain\r\ncache-control: no-store\r\n", "ok"));
    let Some(envoy) = Envoy::start(&world.config) else { return };
    assert_eq!(get(world.http(), HOST, "/", &[]).text(), "ok");
    let kept =
        || std::fs::read_dir(world.config.path("state")).unwrap().flatten().any(|f| f.metadata().unwrap().len() > 0);
    eventually("the address is written down", kept);
    drop(envoy);
    let asked = world.dns.asked("www.test");
    drop(world.dns);
    let Some(_envoy) = Envoy::start(&world.config) else { return };
    assert!(asked > 0);
    assert_eq!(get(SocketAddr::new(world.config.proxy(), HTTP), HOST, "/", &[]).text(), "ok", "without a resolver");
}
