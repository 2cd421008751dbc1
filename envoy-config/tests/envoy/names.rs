//! New names cost Envoy's main thread time in proportion to the names it knows: those are bounded.

use std::net::SocketAddr;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::http::get;
use crate::support::origin::{Origin, Reply};

/// `max_hosts` of `part/dns_cache.yaml.j2`.
const MOST: usize = 4096;
const SAMPLE: usize = 200;

/// A name that this resolver knows, by its number.
fn name(number: usize) -> String {
    format!("n{number}.test")
}

/// Takes a minute: it fills the table. Prints what a new name costs with few names known and with all that there may be.
#[test]
#[ignore = "fills the table of names, a minute"]
fn a_new_name_costs_no_more_than_the_bound_on_names_allows() {
    let config = Config::new("cache: off\n");
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
