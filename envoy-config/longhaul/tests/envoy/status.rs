//! Status codes that are no response end at the hop beside the origin.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::h2;
use crate::support::http::{get, request, send};
use crate::support::origin::{Origin, Received, Reply};

const HOST: &str = "www.test:8081";

/// Serves `/CODE` with exactly that code.
fn coded(request: &Received) -> Reply {
    let code = request.path.trim_start_matches('/');
    let upgrade = if code == "101" { "upgrade: odd\r\nconnection: upgrade\r\n" } else { "content-length: 2\r\n" };
    Reply::Raw(format!("HTTP/1.1 {code} Odd\r\n{upgrade}\r\nhi").into_bytes())
}

#[test]
fn an_unasked_101_and_a_status_outside_200_to_599_are_502_and_end_no_shared_connection() {
    let mut config = Config::new("cache: { dir: DIR, size: 64mib }\n");
    config.yaml = config.yaml.replace("DIR", config.path("cache").to_str().unwrap());
    std::fs::create_dir_all(config.path("cache")).unwrap();
    let _origin = Origin::start((config.block.at(8), 8081), coded);
    let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    for code in ["101", "0", "000", "099", "99", "199", "600", "999", "1000", "65535"] {
        let answer = get(http, HOST, &format!("/{code}"), &[]);
        assert_eq!(answer.status, 502, "{code}: {answer:?}");
        let posted = request("POST", &format!("/{code}"), &[("host", HOST), ("content-length", "0")]);
        assert_eq!(send(http, &posted).unwrap().status, 502, "{code}");
        let stream = h2::get(http, "http", HOST, &format!("/{code}")).unwrap();
        assert!(stream.end == h2::End::Whole && stream.has_status(502), "{code}: {stream:?}");
    }
    for code in ["200", "206", "404", "418", "599"] {
        let answer = get(http, HOST, &format!("/{code}"), &[]);
        assert_eq!((answer.status.to_string().as_str(), answer.text().as_str()), (code, "hi"));
    }
}

#[test]
fn an_upgrade_with_an_odd_status_is_502() {
    let config = Config::new("");
    let _origin = Origin::start((config.block.at(8), 8081), coded);
    let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    for (code, expected) in [("0", 502), ("1000", 502), ("404", 404)] {
        let upgrade =
            request("GET", &format!("/{code}"), &[("host", HOST), ("connection", "Upgrade"), ("upgrade", "websocket")]);
        assert_eq!(send(http, &upgrade).unwrap().status, expected, "{code}");
    }
}

/// HTTP/2 between hops forbids fields that HTTP/1 origins send. Other clients' responses share such a connection.
#[test]
fn a_field_that_http2_forbids_ends_no_other_response() {
    let mut config = Config::new("cache: { dir: DIR, size: 64mib }\n");
    config.yaml = config.yaml.replace("DIR", config.path("cache").to_str().unwrap());
    std::fs::create_dir_all(config.path("cache")).unwrap();
    let _origin = Origin::start((config.block.at(8), 8081), |request: &Received| match request.path.as_str() {
        "/odd" => Reply::Raw(b"HTTP/1.1 200 OK\r\nte: x\r\ncontent-length: 2\r\n\r\nhi".to_vec()),
        _ => Reply::Chunked(
            "HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\n".to_owned(),
            Duration::from_millis(200),
            vec![b"piece".to_vec(); 8],
        ),
    });
    let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    let others: Vec<_> =
        (0..8).map(|number| std::thread::spawn(move || get(http, HOST, &format!("/slow/{number}"), &[]))).collect();
    std::thread::sleep(Duration::from_millis(400));
    for _ in 0..8 {
        get(http, HOST, "/odd", &[]);
    }
    for other in others {
        let answer = other.join().unwrap();
        assert_eq!((answer.status, answer.cut, answer.text()), (200, false, "piece".repeat(8)));
    }
}

#[test]
fn interim_responses_still_pass() {
    let config = Config::new("");
    let _origin = Origin::start((config.block.at(8), 8081), |_| {
        Reply::Raw(
            b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi".to_vec(),
        )
    });
    let _dns = Dns::start(config.block.at(2), &[("www.test", &[config.block.at(8)])]);
    let Some(_envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    let first = get(http, HOST, "/", &[]);
    assert!(matches!(first.status, 103 | 200), "{first:?}");
}
