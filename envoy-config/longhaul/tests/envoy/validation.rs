//! Envoy accepts every kind of configuration.
//!
//! `--mode validate` reads the bootstrap and none of its references. So the listeners and clusters are also validated
//! as static resources. Kinds that need no privilege also start: only then does Envoy read routes, filters and secrets.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use longhaul_config::AccessLog;
use longhaul_render::{Artifacts, Emptied, RenderedTree};

use crate::support::config::{Config, render_yaml};
use crate::support::envoy::{Envoy, binary, write};
use crate::support::loopback::Block;
use crate::support::namespace::inside;
use crate::support::tls::Authority;

/// One kind of configuration: replacements in the usual one, and lines added at its end.
struct Kind {
    name: &'static str,
    edits: &'static [(&'static str, &'static str)],
    more: &'static str,
    /// True if it can start without privileges.
    starts: bool,
}

const fn kind(name: &'static str, edits: &'static [(&'static str, &'static str)], more: &'static str) -> Kind {
    Kind { name, edits, more, starts: true }
}

const TLS: &str = "tls: { terminate: [ { names: [pep.test, other.test], cert: pep.pem, key: pep.key }, { names: [portal.test], cert: portal.pem, key: portal.key } ] }\n";

const ADDRESS_TLS: &str = "tls: { terminate: [ { names: [198.51.100.12], cert: address.pem, key: address.key } ] }\n";

const KINDS: &[Kind] = &[
    kind("as usual", &[], ""),
    kind("no TLS listener", &[("tls: 'PROXY:8443'", "tls: off")], ""),
    kind("names of its own and of others", &[("proxy: {", "proxy: { secure_names: [pep.test],")], TLS),
    kind(
        "challenges for names of its own",
        &[("proxy: {", "proxy: { secure_names: [pep.test],")],
        "tls: { terminate: [ { names: [pep.test, other.test], cert: pep.pem, key: pep.key } ], acme: { forward: '127.0.0.1:8099', listen: '127.0.0.1:18402' } }\n",
    ),
    kind("only names of others", &[], TLS),
    kind("an address of its own and no name", &[("proxy: {", "proxy: { secure_names: [198.51.100.12],")], ADDRESS_TLS),
    kind("an address of others", &[], ADDRESS_TLS),
    kind("redirected", &[("intercept: none", "intercept: redirect")], ""),
    kind(
        "redirected, with names",
        &[("intercept: none", "intercept: redirect"), ("proxy: {", "proxy: { secure_names: [pep.test],")],
        TLS,
    ),
    Kind { starts: false, ..kind("transparent", &[("intercept: none", "intercept: tproxy")], TLS) },
    kind("a cache on disk", &[], "cache: { dir: cache, size: 1gib }\n"),
    kind("smaller images", &[], "cache: { dir: cache, size: 1gib }\npage: { images: { quality: 60 } }\n"),
    kind("a cache, and no page rewritten", &[], "cache: { dir: cache }\nrewrite: { level: off }\n"),
    kind("no cache", &[], "cache: off\n"),
    kind("a parent cache", &[], "cache: { parent: '192.0.2.7:3128' }\n"),
    kind("a ring of caches", &[], "cache: { parent: ['192.0.2.7:3128', '[2001:db8::7]:3128', '192.0.2.8:80'] }\n"),
    kind("only brotli", &[], "compress: { br: 11, gzip: off }\n"),
    kind("only gzip", &[], "compress: { br: off, gzip: 1 }\n"),
    kind("no compression", &[], "compress: { br: off, gzip: off }\n"),
    kind("nothing private", &[("allow_private: [BLOCK]", "allow_private: []")], ""),
    kind(
        "an upstream of every kind",
        &[(
            "allow_private: [BLOCK]",
            "allow_private: [BLOCK, fd00::/8, 10.0.0.0/8]\n  map: { a.test: '192.0.2.1:80', b.test: '192.0.2.1:80', c.test: '[2001:db8::1]:8080' }",
        )],
        "",
    ),
    kind(
        "IPv6",
        &[
            ("addresses: [PROXY]", "addresses: ['::1', PROXY]"),
            ("http: 'PROXY:8080'", "http: '[::1]:18089'"),
            ("resolvers: [", "resolvers: ['[2001:db8::53]:53', "),
        ],
        "",
    ),
    kind(
        "both families, also by HTTP/3",
        &[
            ("http: 'PROXY:8080'", "http: ['PROXY:18091', '[::1]:18091']"),
            ("tls: 'PROXY:8443'", "tls: ['PROXY:18092', '[::1]:18092']"),
        ],
        TLS,
    ),
    kind("a slow cell", &[("rtt: 600ms, down: 20mbit, up: 5mbit", "rtt: 400ms, down: 78kbit, up: 40kbit")], ""),
    kind("a fast link", &[("rtt: 600ms, down: 20mbit, up: 5mbit", "rtt: 40ms, down: 1gbit, up: 100mbit")], ""),
    kind("a tunnel", &[("rtt: 600ms, down: 20mbit, up: 5mbit", "rtt: 600ms, down: 20mbit, up: 5mbit, mtu: 1280")], ""),
    kind(
        "transport by hand",
        &[],
        "transport: { congestion_control: host, notsent_lowat: 16kib, stream_window: 64kib, connection_window: 1mib, client_idle_timeout: 90s }\n",
    ),
    kind("large limits", &[], "limits: { page_memory: 4mib, connections: 1000000, header_bytes: 8mib }\n"),
    kind("small limits", &[], "limits: { page_memory: 64kib, connections: 10, header_bytes: 4kib }\n"),
    kind("traced", &[], "tracing: { collector: '127.0.0.1:4318', sample_percent: 100 }\n"),
    kind("nothing rewritten", &[], "rewrite: { level: off }\n"),
    kind("everything rewritten to http", &[], "rewrite: { level: full, target: http, exclude: [bank.test] }\n"),
];

impl Kind {
    fn config(&self) -> Config {
        let block = Block::new();
        let mut config = Config::with(block, "[80, 443, 8081]", "", self.more);
        for (from, to) in self.edits {
            let fill = |text: &str| text.replace("PROXY", &block.at(1).to_string()).replace("BLOCK", &block.net());
            config.edit(&fill(from), &fill(to));
        }
        let trust = Authority::new();
        trust.issue(&["pep.test", "other.test"]).write(config.folder.path(), "pep");
        trust.issue(&["portal.test"]).write(config.folder.path(), "portal");
        trust.issue(&["198.51.100.12"]).write(config.folder.path(), "address");
        config
    }
}

/// Both ends of a pair and their links, with lines added to `split`.
const PAIRS: &[(&str, &str)] = &[
    ("remote", "peer: '198.51.100.40:8443'"),
    ("remote", "peer: '[2001:db8::40]:8443'"),
    ("remote", "peer: ['[2001:db8::40]:8443', '198.51.100.40:8443']"),
    ("remote", "peer: 'ground.test:8443'"),
    ("remote", "peer: '198.51.100.40:8443', when_down: direct"),
    ("remote", "peer: 'ground.test:8443', when_down: direct, warm: 0"),
    ("remote", "peer: 'ground.test:8443', transport: h3"),
    ("remote", "peer: 'ground.test:8443', transport: h3, when_down: direct"),
    ("remote on LTE", "peer: 'ground.test:8443', warm: 7"),
    ("remote on LTE", "peer: 'ground.test:8443', transport: h3"),
    // Files of an earlier release, whose ground opened the connections.
    ("remote", "dial: ground, peer: [ground.test]"),
    ("remote on LTE", "dial: ground, peer: [ground.test]"),
    ("remote", "dial: ground, peer: [ground.test, spare.test], listen: '192.0.2.1:9443', when_down: direct"),
    ("ground", "peer: [ship.test]"),
    ("ground", "dial: ground, peer: 'ship.test:8443'"),
    ("ground", "dial: ground, peer: '192.0.2.1:8443'"),
    ("ground", "peer: [ship.test], transport: h3"),
    ("remote over a tunnel", "peer: '198.51.100.40:8443'"),
    ("remote over a tunnel", "peer: 'ground.test:8443', transport: h3"),
    ("ground over a tunnel", "peer: [ship.test], transport: h3"),
    ("remote with emptied pools", "peer: '198.51.100.40:8443'"),
    ("remote on LTE with emptied pools", "peer: '198.51.100.40:8443'"),
    ("remote with shares", "peer: '198.51.100.40:8443'"),
    ("remote with other ports", "peer: '198.51.100.40:8443'"),
    ("remote with other ports by tproxy", "peer: 'ground.test:8443', transport: h3, when_down: direct"),
    ("remote with other ports, with groups", "peer: '198.51.100.40:8443', when_down: direct"),
    ("remote with groups", "peer: '198.51.100.40:8443', when_down: direct"),
    ("remote with groups", "peer: 'ground.test:8443', transport: h3"),
    ("remote without a log, with groups", "peer: '198.51.100.40:8443'"),
    ("remote without a log, with groups", "peer: '198.51.100.40:8443', warm: 0"),
    ("ground with shares", "peer: [ship.test]"),
    ("ground with shares", "peer: [ship.test, ferry.test, 'spiffe://fleet.test/barge/7'], transport: h3"),
];

/// A link on which streams of the pipe carry clients' bytes, and one on which connections do.
const LTE: &str = "rtt: 80ms, down: 8mbit, up: 2mbit";
const SATELLITE: &str = "rtt: 600ms, down: 20mbit, up: 5mbit";
const TUNNEL: &str = "rtt: 600ms, down: 20mbit, up: 5mbit, mtu: 1280";
const SHARED: &str = "rtt: 600ms, down: 20mbit, up: 5mbit, fill: auto";
const GROUPS: &str =
    "clients: [ { name: bridge, ranges: [192.0.2.0/28, '2001:db8::/64'], weight: 4 } ]\nlog: { who: on }\n";

#[test]
fn both_ends_of_a_pair_are_valid() {
    let Some(envoy) = binary() else { return };
    for (end, split) in PAIRS {
        let listen = match end {
            _ if end.contains("by tproxy") => "listen: { tcp: all, intercept: tproxy }\n",
            _ if end.contains("other ports") => "listen: { tcp: auto }\n",
            _ => "",
        };
        let links = [
            (" on LTE with emptied pools", LTE),
            (" with emptied pools", SATELLITE),
            (" on LTE", LTE),
            (" over a tunnel", TUNNEL),
            (" with shares", SHARED),
            (" without a log, with groups", SHARED),
            (" with other ports, with groups", SHARED),
            (" with other ports by tproxy", SATELLITE),
            (" with other ports", SATELLITE),
            (" with groups", SHARED),
            ("", SATELLITE),
        ];
        let on = |(suffix, link)| end.strip_suffix(suffix).map(|role| (role, link));
        let (role, link) = links.into_iter().find_map(on).unwrap();
        let groups = if end.ends_with("with groups") { GROUPS } else { "" };
        let config = Config::new("");
        let trust = Authority::new();
        trust.issue(&["ship.test"]).write(config.folder.path(), "pair");
        trust.write(&config.folder.path().join("pair-ca.pem"));
        let proxy = if role == "remote" { "proxy: { addresses: [198.51.100.12] }\n" } else { "" };
        let yaml = format!(
            "role: {role}\nlink: {{ {link} }}\n{proxy}{groups}{listen}upstream: {{ resolvers: [192.0.2.53] }}\n\
             split: {{ cert: pair.pem, key: pair.key, ca: pair-ca.pem, {split} }}\n"
        );
        let mut artifacts = Artifacts { resolver: Some(([127, 0, 0, 1], 8153).into()), ..config.artifacts() };
        if end.contains("without a log") {
            artifacts.access_log = AccessLog::Off;
        }
        let emptied = end.contains("emptied pools");
        if emptied {
            artifacts.emptied = Emptied { warm: 1, pipe: 2 };
        }
        let tree = render_yaml(&yaml, config.folder.path(), &artifacts);
        let clusters = tree.get("cds.yaml").unwrap_or_default();
        for mark in ["emptied: 1 }", "emptied: 2 }"] {
            assert_eq!(clusters.matches(mark).count(), usize::from(emptied), "{end}: {mark}");
        }
        write(&tree, &artifacts.root).expect("the tree is written");
        let file = artifacts.root.join("all.yaml");
        fs::write(&file, all_in_one(&tree)).expect("written");
        let output =
            Command::new(&envoy).args(["--mode", "validate", "-l", "error", "-c"]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{end}, {split}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The same configuration with listeners and clusters in the bootstrap, where `--mode validate` reads them.
fn all_in_one(tree: &RenderedTree) -> String {
    let section = |name: &str, file: &str| {
        let text = tree.get(file).expect("the file is rendered");
        let (_, resources) = text.split_once("resources:\n").expect("a list of resources");
        let mut out = format!("  {name}:\n");
        for line in resources.lines() {
            // A static resource has no type of its own.
            match line.strip_prefix("- \"@type\": ") {
                Some(_) => out += "  -\n",
                None => out.extend(["  ", line, "\n"]),
            }
        }
        out
    };
    let bootstrap = tree.get("bootstrap.yaml").expect("the bootstrap is rendered");
    let own: Vec<&str> = bootstrap
        .lines()
        .filter(|line| {
            !["dynamic_resources:", "  cds_config:", "  lds_config:"].iter().any(|start| line.starts_with(start))
        })
        .collect();
    format!(
        "{}\nstatic_resources:\n{}{}",
        own.join("\n"),
        section("clusters", "cds.yaml"),
        section("listeners", "lds.yaml")
    )
}

#[test]
fn every_kind_is_valid() {
    let Some(envoy) = binary() else { return };
    for kind in KINDS {
        let config = kind.config();
        let tree = config.render();
        let root = config.artifacts().root;
        write(&tree, &root).expect("the tree is written");
        fs::write(root.join("all.yaml"), all_in_one(&tree)).expect("written");
        for file in ["bootstrap.yaml", "all.yaml"] {
            let output = Command::new(&envoy)
                .args(["--mode", "validate", "-c"])
                .arg(root.join(file))
                .output()
                .expect("Envoy runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{} is refused ({file}):\n{said}", kind.name);
            assert!(!said.contains("eprecated"), "{} uses what is going away:\n{said}", kind.name);
        }
    }
}

/// The number of listeners in the rendered file: three or four inner ones, and HTTP. Some kinds add TLS over TCP and
/// QUIC, and challenges. The native engine adds one for filters' requests.
fn listeners(config: &Config) -> usize {
    let tree = config.render();
    let count = tree.get("lds.yaml").unwrap_or_default().matches("envoy.config.listener.v3.Listener\n").count();
    assert!((4..=10).contains(&count), "{count} listeners");
    count
}

/// The listeners that Envoy serves. It prints one line for each of their addresses.
fn served(envoy: &Envoy) -> usize {
    let page = envoy.admin("/listeners");
    page.lines().filter_map(|line| line.split_once("::")).map(|(name, _)| name).collect::<BTreeSet<_>>().len()
}

#[test]
fn every_kind_starts() {
    for kind in KINDS.iter().filter(|kind| kind.starts) {
        let config = kind.config();
        let Some(envoy) = Envoy::start(&config) else { return };
        assert_eq!(served(&envoy), listeners(&config), "{}", kind.name);
        assert!(!envoy.log().contains("eprecated"), "{}:\n{}", kind.name, envoy.log());
    }
}

/// Binding to addresses of other hosts needs a privilege.
#[test]
fn the_transparent_kind_starts_where_it_may() {
    inside(&[], || {
        let kind = KINDS.iter().find(|kind| !kind.starts).expect("one that needs privileges");
        let config = kind.config();
        let Some(envoy) = Envoy::start(&config) else { return };
        assert_eq!(served(&envoy), listeners(&config));
    });
}

#[test]
fn envoy_refuses_a_broken_bootstrap() {
    let Some(envoy) = binary() else { return };
    let config = KINDS[0].config();
    let root = config.artifacts().root;
    fs::create_dir_all(&root).expect("a folder");
    let broken = all_in_one(&config.render()).replace("codec_type: AUTO", "codec_type: TELEPATHY");
    fs::write(root.join("all.yaml"), broken).expect("written");
    let output =
        Command::new(envoy).args(["--mode", "validate", "-c"]).arg(root.join("all.yaml")).output().expect("Envoy runs");
    assert!(!output.status.success());
}

#[test]
fn rendering_is_repeatable_and_says_where_values_come_from() {
    let config = KINDS[0].config();
    let tree = config.render();
    assert_eq!(tree, config.render());
    let lds = tree.get("lds.yaml").unwrap();
    assert!(lds.contains("# 50 ms of 20mbit"), "the formula stands beside the value");
    // JSON has no comments.
    for (path, text) in tree.files.iter().filter(|(path, _)| *path != "objects.json") {
        assert!(
            text.starts_with("# Longhaul: "),
            "{path} says what it is: {}",
            text.lines().next().unwrap_or_default()
        );
        let trailing = text.lines().find(|line| line.ends_with(' '));
        assert_eq!(trailing, None, "{path}");
    }
}
