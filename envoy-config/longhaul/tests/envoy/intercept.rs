//! Connections to other hosts that a packet rule redirects here, as on a gateway.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::config::Config;
use crate::support::dns::Dns;
use crate::support::envoy::{Envoy, PATIENCE};
use crate::support::http::{exchange, request};
use crate::support::loopback::Block;
use crate::support::namespace::{connect_from, inside, run};
use crate::support::origin::{Origin, Reply};
use crate::support::tls::{Authority, connect_on, drain};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 50));
const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 12));
const ORIGIN: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 5));
const INSIDE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 1, 1));
const ADDRESSES: &[&str] =
    &["198.51.100.50/32", "198.51.100.12/32", "203.0.113.5/32", "203.0.113.77/32", "10.1.1.1/32"];

/// Redirects the client's connections to port 80 and 443 of other hosts to the box. One namespace is client, gateway
/// and Internet, so the rule knows the client by its address.
fn redirect() {
    run("nft", &["add", "table", "ip", "test"]);
    run("nft", &["add", "chain", "ip", "test", "out", "{ type nat hook output priority -100; }"]);
    for port in ["80", "443"] {
        run(
            "nft",
            &[
                "add",
                "rule",
                "ip",
                "test",
                "out",
                "ip",
                "saddr",
                "198.51.100.50",
                "ip",
                "daddr",
                "!=",
                "198.51.100.12",
                "tcp",
                "dport",
                port,
                "dnat",
                "to",
                &format!("198.51.100.12:{port}"),
            ],
        );
    }
}

fn config(trust: &Authority) -> Config {
    let mut config = Config::with(
        Block::new(),
        "[80, 443]",
        "",
        "tls: { terminate: [ { names: [pep.test], cert: pep.pem, key: pep.key } ] }\n",
    );
    let own = config.proxy();
    config.edit("intercept: none", "intercept: redirect");
    config.edit(&format!("addresses: [{own}]"), &format!("secure_names: [pep.test], addresses: [{PROXY}]"));
    let listen = format!("http: '{PROXY}:80', tls: '{PROXY}:443'");
    config.edit(&format!("http: '{own}:8080', tls: '{own}:8443'"), &listen);
    config.edit(&format!("allow_private: [{}]", config.block.net()), "allow_private: []");
    trust.issue(&["pep.test"]).write(config.folder.path(), "pep");
    config.trusted_ca = trust.write(&config.path("ca.pem"));
    config
}

/// A server of a protocol in which the client speaks first. It echoes the bytes that it gets, and counts connections.
fn echo(at: SocketAddr) -> Arc<AtomicUsize> {
    let listener = TcpListener::bind(at).unwrap();
    let came = Arc::new(AtomicUsize::new(0));
    thread::spawn({
        let came = came.clone();
        move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                came.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || {
                    let mut bytes = [0; 64];
                    while let Ok(size @ 1..) = stream.read(&mut bytes) {
                        let _ = stream.write_all(&bytes[..size]);
                    }
                });
            }
        }
    });
    came
}

fn client(to: SocketAddr) -> TcpStream {
    let stream = connect_from(CLIENT, to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn redirected_requests_are_served_by_name_and_other_protocols_go_where_they_were_meant_to_go() {
    inside(ADDRESSES, || {
        redirect();
        let trust = Authority::new();
        let config = config(&trust);
        let origin =
            Origin::start(SocketAddr::new(ORIGIN, 80), |_| Reply::ok("content-type: text/plain\r\n", "origin"));
        let _dns = Dns::start(config.block.at(2), &[("www.test", &[ORIGIN])]);
        let Some(envoy) = Envoy::start(&config) else { return };

        // By name, whatever address the client dialled.
        for dialled in [ORIGIN, IpAddr::from([203, 0, 113, 77])] {
            let answer =
                exchange(client(SocketAddr::new(dialled, 80)), &request("GET", "/", &[("host", "www.test")])).unwrap();
            assert_eq!(answer.text(), "origin", "{dialled}");
        }
        assert!(origin.last().header("cdn-loop").is_some());
        drop(origin);

        let came = echo(SocketAddr::new(ORIGIN, 80));
        let inside = echo(SocketAddr::new(INSIDE, 80));
        let mut stream = client(SocketAddr::new(ORIGIN, 80));
        stream.write_all(b"\x01not http\n").unwrap();
        let mut back = [0; 10];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"\x01not http\n");
        assert_eq!(came.load(Ordering::Relaxed), 1);

        // HTTP/2 without TLS goes on unread, as its origin speaks it.
        let mut stream = client(SocketAddr::new(ORIGIN, 80));
        stream.write_all(PREFACE).unwrap();
        let mut back = [0; PREFACE.len()];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(&back, PREFACE);
        assert_eq!(came.load(Ordering::Relaxed), 2);

        // Not to a private address, and not in a circle: what comes to the proxy itself is HTTP, or an error.
        for (refused, answer) in [(INSIDE, &b""[..]), (PROXY, b"HTTP/1.1 400")] {
            let mut stream = client(SocketAddr::new(refused, 80));
            stream.write_all(b"\x01not http\n").unwrap();
            let said = drain(&mut stream);
            assert!(said.starts_with(answer) && said.is_empty() == answer.is_empty(), "{refused}: {said:?}");
        }
        assert_eq!(inside.load(Ordering::Relaxed), 0);
        assert_eq!(envoy.stat("http.tunnel.downstream_cx_total"), 3);
    });
}

#[test]
fn a_request_without_a_host_goes_to_the_address_that_the_client_dialled() {
    inside(ADDRESSES, || {
        redirect();
        let trust = Authority::new();
        let config = config(&trust);
        let page = "<img src=/logo.png>";
        let origin =
            Origin::start(SocketAddr::new(ORIGIN, 80), move |_| Reply::ok("content-type: text/html\r\n", page));
        let private = echo(SocketAddr::new(INSIDE, 80));
        let _dns = Dns::start(config.block.at(2), &[("www.test", &[ORIGIN])]);
        let Some(_envoy) = Envoy::start(&config) else { return };
        let get = |to: IpAddr| exchange(client(SocketAddr::new(to, 80)), "GET / HTTP/1.0\r\n\r\n").unwrap();

        let answer = get(ORIGIN);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, page),
            "no URL names the page, so nothing in it moves"
        );
        assert_eq!(origin.last().header("host"), Some(format!("{ORIGIN}:80").as_str()));
        for refused in [INSIDE, PROXY] {
            assert_eq!(get(refused).status, 403, "{refused}");
        }
        assert_eq!(private.load(Ordering::Relaxed), 0);
        // With a Host, the name decides as before.
        let named = exchange(
            client(SocketAddr::new(IpAddr::from([203, 0, 113, 77]), 80)),
            "GET / HTTP/1.0\r\nhost: www.test\r\n\r\n",
        );
        assert_eq!(named.unwrap().status, 200);
        assert_eq!(origin.last().header("host"), Some("www.test"));
    });
}

/// The start of a connection of HTTP/2 (RFC 9113 section 3.4), with empty settings.
const PREFACE: &[u8; 33] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A steered client. There is no other host to pass its connection on to.
#[test]
fn a_client_that_dialled_the_proxy_gets_an_error_and_without_tls_no_http2() {
    inside(ADDRESSES, || {
        let trust = Authority::new();
        let config = config(&trust);
        let origin =
            Origin::start(SocketAddr::new(ORIGIN, 80), |_| Reply::ok("content-type: text/plain\r\n", "origin"));
        let _dns = Dns::start(config.block.at(2), &[("www.test", &[ORIGIN])]);
        let Some(envoy) = Envoy::start(&config) else { return };
        let says = |bytes: &[u8]| {
            let mut stream = client(SocketAddr::new(PROXY, 80));
            stream.write_all(bytes).unwrap();
            String::from_utf8_lossy(&drain(&mut stream)).into_owned()
        };
        for odd in [
            "\x01not http\n".as_bytes(),
            "GET /\u{e9} HTTP/1.1\r\nhost: www.test\r\n\r\n".as_bytes(),
            b"DESCRIBE rtsp://www.test/ RTSP/1.0\r\nCSeq: 1\r\n\r\n",
            b"OPTIONS sip:a@www.test SIP/2.0\r\n\r\n",
            b"SOURCE /mount ICE/1.0\r\n\r\n",
        ] {
            let said = says(odd);
            assert!(said.starts_with("HTTP/1.1 400 "), "{:?}: {said:?}", String::from_utf8_lossy(odd));
        }
        let plain = says(b"\r\nGET /after-a-blank-line HTTP/1.1\r\nhost: www.test\r\nconnection: close\r\n\r\n");
        assert!(plain.starts_with("HTTP/1.1 200 "), "{plain}");
        assert_eq!(origin.last().path, "/after-a-blank-line");
        // It continues at the origin's address.
        assert_eq!(says(PREFACE), "");
        assert_eq!(envoy.stat("http.tunnel.downstream_cx_total"), 0);
    });
}

#[test]
fn redirected_tls_without_a_name_goes_where_it_was_meant_to_go_and_to_us_if_that_is_us() {
    inside(ADDRESSES, || {
        redirect();
        let trust = Authority::new();
        let config = config(&trust);
        let dialled = ORIGIN.to_string();
        let origin = Origin::start_tls(SocketAddr::new(ORIGIN, 443), trust.issue(&["www.test", &dialled]), |_| {
            Reply::ok("content-type: text/plain\r\n", "origin")
        });
        let private = echo(SocketAddr::new(INSIDE, 443));
        let _dns = Dns::start(
            config.block.at(2),
            &[("www.test", &[ORIGIN]), ("inside.test", &[INSIDE]), ("itself.test", &[PROXY])],
        );
        let Some(_envoy) = Envoy::start(&config) else { return };
        let tls = |to: IpAddr, name: &str| connect_on(client(SocketAddr::new(to, 443)), name, &trust, &[]);

        let nameless = tls(ORIGIN, &dialled).expect("the origin's own certificate");
        assert_eq!(exchange(nameless, &request("GET", "/", &[("host", &dialled)])).unwrap().text(), "origin");
        let named = tls(IpAddr::from([203, 0, 113, 77]), "www.test").expect("by name, because nobody listens there");
        assert_eq!(exchange(named, &request("GET", "/", &[("host", "www.test")])).unwrap().text(), "origin");
        assert!(origin.last().header("cdn-loop").is_none(), "passed on unread");

        let ours = tls(PROXY, &PROXY.to_string()).expect_err("our certificate has no address in it");
        assert!(ours.to_string().contains("pep.test"), "{ours}");
        assert!(tls(PROXY, "pep.test").is_ok());

        assert!(tls(INSIDE, &INSIDE.to_string()).is_err());
        let nobody = IpAddr::from([203, 0, 113, 77]);
        assert!(tls(nobody, "inside.test").is_err());
        assert!(tls(nobody, "itself.test").is_err());
        assert!(tls(INSIDE, "inside.test").is_err());
        assert_eq!(private.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn tls_goes_to_the_address_that_the_client_dialled_and_by_name_where_our_dns_gave_it() {
    inside(ADDRESSES, || {
        redirect();
        let trust = Authority::new();
        let config = config(&trust);
        let names = ["www.test", "intranet", "moved.test", "inside.test", "un_der.test", "moved_under.test"];
        let says = |at: IpAddr, text: &'static str| {
            Origin::start_tls(SocketAddr::new(at, 443), trust.issue(&names), move |_| {
                Reply::ok("content-type: text/plain\r\n", text)
            })
        };
        let elsewhere = IpAddr::from([203, 0, 113, 77]);
        let (_here, _there) = (says(ORIGIN, "here"), says(elsewhere, "there"));
        let private = echo(SocketAddr::new(INSIDE, 443));
        let dns = Dns::start(
            config.block.at(2),
            &[
                ("www.test", &[ORIGIN]),
                ("moved.test", &[elsewhere]),
                ("inside.test", &[INSIDE]),
                ("un_der.test", &[ORIGIN]),
                ("moved_under.test", &[elsewhere]),
                ("in_side.test", &[INSIDE]),
            ],
        );
        let Some(envoy) = Envoy::start(&config) else { return };
        let get = |to: IpAddr, name: &str| {
            let tls = connect_on(client(SocketAddr::new(to, 443)), name, &trust, &[])?;
            Ok::<_, std::io::Error>(exchange(tls, &request("GET", "/", &[("host", name)])).unwrap().text())
        };

        assert_eq!(get(ORIGIN, "www.test").unwrap(), "here");
        // A hosts file, and a name that ECH shows in place of the true one.
        assert_eq!(get(elsewhere, "intranet").unwrap(), "there");
        assert_eq!(get(ORIGIN, "moved.test").unwrap(), "here");
        assert_eq!(dns.asked("moved.test"), 0, "the address says it all");
        // Our DNS gave the proxy's address.
        assert_eq!(get(PROXY, "www.test").unwrap(), "here");
        assert_eq!(get(PROXY, "moved.test").unwrap(), "there");
        assert!(get(PROXY, "intranet").is_err());
        // A name with an underscore is a name as others are.
        assert_eq!(get(ORIGIN, "un_der.test").unwrap(), "here");
        assert_eq!(get(PROXY, "un_der.test").unwrap(), "here");
        assert_eq!(get(ORIGIN, "moved_under.test").unwrap(), "here");
        assert_eq!(get(PROXY, "moved_under.test").unwrap(), "there");
        assert!(get(PROXY, "in_side.test").is_err());
        // The guard judges both.
        assert!(get(INSIDE, "inside.test").is_err());
        assert_eq!(get(INSIDE, "www.test").unwrap(), "here", "a private address is none that the box may dial");
        assert!(get(PROXY, "inside.test").is_err());
        assert_eq!(private.load(Ordering::Relaxed), 0);
        assert!(envoy.stat("http.tunnel.rbac.denied") > 0);
    });
}

#[test]
fn a_name_that_leads_back_to_an_unknown_own_address_is_requested_once() {
    inside(ADDRESSES, || {
        let trust = Authority::new();
        let mut config = config(&trust);
        config.edit(&format!("tls: '{PROXY}:443'"), "tls: '0.0.0.0:443'");
        // An address of this host that was added since.
        let _dns = Dns::start(config.block.at(2), &[("loop.test", &[IpAddr::from([203, 0, 113, 77])])]);
        let Some(envoy) = Envoy::start(&config) else { return };
        let stream = connect_from(CLIENT, SocketAddr::new(PROXY, 443)).unwrap();
        assert!(connect_on(stream, "loop.test", &trust, &[]).is_err());
        assert_eq!(envoy.stat("http.tunnel.downstream_rq_total"), 1, "it goes in a circle");
    });
}

/// A server that speaks first, and says no more.
fn greets(at: SocketAddr) {
    let listener = TcpListener::bind(at).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let _ = stream.write_all(b"220 hello\r\n");
                let _ = stream.read(&mut [0]);
            });
        }
    });
}

#[test]
fn a_server_that_speaks_first_is_heard_soon_and_a_browser_that_waits_keeps_its_connection() {
    inside(ADDRESSES, || {
        redirect();
        let trust = Authority::new();
        let mut config = config(&trust);
        config.edit("rtt: 600ms", "rtt: 20ms");
        let _origin =
            Origin::start(SocketAddr::new(ORIGIN, 80), |_| Reply::ok("content-type: text/plain\r\n", "origin"));
        let _dns = Dns::start(config.block.at(2), &[("www.test", &[ORIGIN])]);
        let greeting = IpAddr::from([203, 0, 113, 77]);
        for port in [80, 443] {
            greets(SocketAddr::new(greeting, port));
        }
        let Some(_envoy) = Envoy::start(&config) else { return };
        // Opened in advance, at the address that our DNS gave.
        let waiting = client(SocketAddr::new(PROXY, 80));
        for (port, within) in [(443, Duration::from_secs(1)), (80, Duration::from_secs(5))] {
            let asked = Instant::now();
            let mut stream = client(SocketAddr::new(greeting, port));
            let mut line = [0; 11];
            stream.read_exact(&mut line).unwrap();
            assert_eq!(&line, b"220 hello\r\n");
            assert!(asked.elapsed() < within, "port {port}: {:?}", asked.elapsed());
        }
        // The request comes after the time at which silent clients are passed on.
        assert_eq!(exchange(waiting, &request("GET", "/", &[("host", "www.test")])).unwrap().text(), "origin");
    });
}
