//! New names cost Envoy's main thread time in proportion to the known ones. These are bounded: in all and for a client.

use std::io::{BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::thread;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::{Envoy, skip};
use crate::support::http::{connect_from, get, read_answer, request};
use crate::support::origin::{Origin, Reply};

/// `max_hosts` of `part/dns_cache.yaml.j2`.
const MOST: usize = 4096;
const SAMPLE: usize = 200;

/// A name that this resolver knows, by its number.
fn name(number: usize) -> String {
    format!("n{number}.test")
}

/// The statuses of one request for each of these names, all on one connection of the client at `from`.
fn ask_from(from: IpAddr, http: SocketAddr, numbers: impl Iterator<Item = usize>) -> Vec<u16> {
    let mut stream = BufReader::new(connect_from(from, http).expect("a connection"));
    let ask = |number| {
        let host = format!("{}:8081", name(number));
        let text = request("GET", "/", &[("host", &host), ("connection", "keep-alive")]);
        stream.get_mut().write_all(text.as_bytes()).expect("the request is sent");
        let answer = read_answer(&mut stream, false).expect("an answer");
        if answer.status == 429 {
            assert!(answer.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok_and(|s| s > 0)));
            assert_eq!(answer.header("cache-control").as_deref(), Some("no-store"));
            assert!(answer.text().contains("too many new names"), "{}", answer.text());
        }
        answer.status
    };
    numbers.map(ask).collect()
}

/// One client requests 5,000 names on 16 connections. Then another one requests a hundred new ones. The proxy refuses
/// names beyond the budget of the first client to that client alone.
#[test]
fn a_client_that_floods_costs_no_other_client_a_name() {
    const FLOOD: usize = 5000;
    const CONNECTIONS: usize = 16;
    const OTHERS: Range<usize> = FLOOD..FLOOD + 100;
    let config = Config::new("cache: off\n");
    if config.name_budget.is_none() {
        return skip("no name_budget.wasm: set LONGHAUL_NAME_BUDGET, or `make build`");
    }
    let _origin = Origin::start((config.block.at(8), 8081), |request| {
        for ours in ["x-longhaul-client", "x-longhaul-scheme"] {
            assert_eq!(request.header(ours), None, "no field of the proxy reaches an origin");
        }
        Reply::ok("", "hello")
    });
    let dns = Dns::start(config.block.at(2), &[]);
    for number in 0..OTHERS.end {
        dns.set(&name(number), &[config.block.at(8)]);
    }
    let Some(envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    let (flooder, other) = (config.block.at(11), config.block.at(12));
    let before = ask_from(flooder, http, 0..5);
    assert_eq!(before, [200; 5]);
    let flood = thread::scope(|scope| {
        let connections: Vec<_> = (0..CONNECTIONS)
            .map(|first| scope.spawn(move || ask_from(flooder, http, (first..FLOOD).step_by(CONNECTIONS))))
            .collect();
        connections.into_iter().flat_map(|asks| asks.join().expect("it asked")).collect::<Vec<_>>()
    });
    let count = |status| flood.iter().filter(|it| **it == status).count();
    eprintln!("of {FLOOD} names of the flooding client {} passed, {} were refused", count(200), count(429));
    assert_eq!(ask_from(other, http, OTHERS), [200; 100], "another client's new names");
    assert_eq!(ask_from(flooder, http, 0..5), [200; 5], "what the flooding client knew");
    assert_eq!(count(200) + count(429), FLOOD);
    assert!((600..1600).contains(&count(200)), "{}", count(200));
    let refused = envoy.admin("/stats/prometheus?filter=name_budget_requests");
    let line = format!("longhaul_name_budget_requests_total{{reason=\"refused\"}} {}", count(429));
    assert!(refused.contains(&line), "{line}\n{refused}");
}

/// Takes a minute, because it fills the table. Prints the cost of a new name with few known names and with the most.
#[test]
#[ignore = "fills the table of names, a minute"]
fn a_new_name_costs_no_more_than_the_bound_on_names_allows() {
    let mut config = Config::new("cache: off\n");
    // One client asks for all of them.
    config.name_budget = None;
    let _origin = Origin::start((config.block.at(8), 8081), |_| Reply::ok("", "hello"));
    let dns = Dns::start(config.block.at(2), &[]);
    for number in 0..MOST + 2 * SAMPLE {
        dns.set(&name(number), &[config.block.at(8)]);
    }
    let Some(envoy) = Envoy::start(&config) else { return };
    let http = SocketAddr::new(config.proxy(), HTTP);
    let ask = |number: usize| get(http, &format!("{}:8081", name(number)), "/", &[]).status;
    let cost = |from: usize| {
        let before = envoy.main_thread();
        for number in from..from + SAMPLE {
            assert_eq!(ask(number), 200, "{number}");
        }
        envoy.main_thread().saturating_sub(before).as_secs_f64() * 1e3 / f64::from(u32::try_from(SAMPLE).unwrap())
    };
    let few = cost(0);
    let middle = cost(SAMPLE);
    let mut asked = 2 * SAMPLE;
    // Names that nobody asks for are forgotten after a minute: on a slow machine the table never fills.
    while asked < MOST - SAMPLE {
        ask(asked);
        asked += 1;
    }
    let many = cost(asked);
    eprintln!(
        "a new name costs the main thread {few:.2} ms, {middle:.2} ms with {SAMPLE} known, {many:.2} ms with {asked} asked for"
    );
    eprintln!("new_name_cpu_at_10k_names_vs_200 {:.2}", many / middle);
    assert!(many < 15.0, "{many} ms");
}
