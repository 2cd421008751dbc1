//! Values that are valid and most likely a slip. Earlier releases accept these files, so each gets a warning.

use super::cases::{edge, remote, terminated, warned};
use super::{Case, LINK};

/// An edge that is accepted with a warning about these lines.
fn edge_with(class: &'static str, lines: &str, fault: &'static str, fix: &'static str) -> Case {
    warned(edge(class, lines, fault, fix))
}

fn link(values: &str, fault: &'static str, fix: &'static str) -> Case {
    edge_with("link", &format!("link: {{ {values} }}\n"), fault, fix)
}

fn upstream(values: &str, fault: &'static str, fix: &'static str) -> Case {
    edge_with("upstream", &format!("upstream: {{ resolvers: [192.0.2.53], {values} }}\n"), fault, fix)
}

fn cache(dir: &str, fault: &'static str) -> Case {
    edge_with("cache folder", &format!("cache: {{ dir: ▶{dir} }}\n"), fault, "write a folder of its own")
}

#[allow(clippy::too_many_lines, reason = "it is the table")]
pub(super) fn cases() -> Vec<Case> {
    vec![
        link("rtt: ▶0.6ms, down: 20mbit, up: 5mbit", "not that of a slow link", "write `0.6s`"),
        link("rtt: ▶600us, down: 20mbit, up: 5mbit", "slow links have 5ms to 5s", "write `600ms`"),
        link("rtt: ▶40s, down: 20mbit, up: 5mbit", "`link.rtt` of 40s", "write `40ms`"),
        link("rtt: 600ms, down: 5mbit, up: ▶20mbit", "4 times `link.down`: swapped", "write `down: 20mbit, up: 5mbit`"),
        link(
            "rtt: 600ms, down: 20kbit, up: ▶5mbit",
            "250 times `link.down`: swapped, or kbit for mbit?",
            "`down: 20mbit`",
        ),
        link(
            "rtt: 600ms, down: ▶20mbit, up: 5kbit",
            "4000 times `link.up`: kbit for mbit?",
            "write `down: 20kbit` or `up: 5mbit`",
        ),
        upstream("ports: ▶[80, 8080]", "without 443 refuses https", "write `[80, 8080, 443]`"),
        upstream("allow_private: [192.168.7.0/24, ▶0.0.0.0/0]", "switches the guard off", "list the ranges"),
        upstream("allow_private: [▶\"::/0\"]", "switches the guard off", "list the ranges"),
        upstream("allow_private: [▶128.0.0.0/1]", "switches the guard off", "list the ranges"),
        upstream("deny: [▶0.0.0.0/0]", "is every address", "list the ranges that clients may not reach"),
        edge_with("dns", "dns: { www: true, bypass: [▶\"::/0\"] }\n", "is every address", "list the clients"),
        edge_with(
            "resolver",
            "upstream: { resolvers: [192.0.2.53, ▶224.0.0.251:5353] }\n",
            "a multicast address",
            "such as `9.9.9.9`",
        ),
        edge_with(
            "resolver",
            "upstream: { resolvers: [▶0.0.0.0:5353] }\n",
            "an address to listen on",
            "such as `9.9.9.9`",
        ),
        edge_with(
            "parent",
            "cache: { parent: ▶255.255.255.255:3128 }\n",
            "the broadcast address",
            "such as `192.0.2.7:3128`",
        ),
        edge_with(
            "proxy address",
            "proxy: { addresses: [▶127.0.0.1] }\n",
            "each client's own machine",
            "the address of this box",
        ),
        cache("/", "a folder of the system"),
        cache("/var/cache/", "a folder of the system"),
        cache("/run/longhaul/cache", "empty after a reboot"),
        cache("/dev/shm/cache", "empty after a reboot"),
        edge_with(
            "whole domain",
            "dns: { domains: [▶whole-domain.txt] }\n",
            "`org` is a whole top-level domain",
            "such as `example.org`",
        ),
        edge_with(
            "whole domain",
            "dns: { www: true, except: [▶com] }\n",
            "it stands for every name below it",
            "such as `example.com`",
        ),
        edge_with(
            "whole domain",
            "rewrite: { exclude: [bank.example, ▶com] }\n",
            "`com` is a whole",
            "such as `example.com`",
        ),
        edge_with(
            "list and exception",
            "dns: { domains: [domains.txt], except: ▶[example.org] }\n",
            "removes all names of `dns.domains`",
            "remove the names",
        ),
        warned(terminated(
            "chain",
            "cert: ▶lone.pem, key: me.key",
            "the file has one certificate, and no authority of this machine signed it",
            "fullchain.pem",
        )),
        warned(terminated(
            "chain",
            "cert: ▶gap.pem, key: me.key",
            "no other certificate of the file is that of CN=Test Intermediate",
            "fullchain.pem",
        )),
        warned(remote(
            "peer's certificate",
            "split: { peer: ground.example:8443, cert: ▶of-the-ground.pem, key: me.key, ca: ca.pem }\nupstream: { resolvers: [192.0.2.53] }\n",
            "is for ground.example, the other end of this pair",
            "made for this end",
        )),
    ]
}

/// Values near the bounds that are no slips.
#[test]
fn what_is_plausible_gets_no_warning() {
    let folder = tempfile::tempdir().unwrap();
    super::write_files(folder.path());
    for lines in [
        "link: { rtt: 5ms, down: 20mbit, up: 40mbit }\n",
        "link: { rtt: 1ms, down: 1gbit, up: 1gbit }\n",
        "link: { rtt: 2.4s, down: 64kbit, up: 2400bit }\n",
        "upstream: { resolvers: [192.0.2.53], ports: [443, 8443] }\n",
        "upstream: { resolvers: [192.0.2.53], allow_private: [10.0.0.0/8, 192.168.0.0/16, \"fc00::/7\"] }\n",
        "upstream: { resolvers: [192.0.2.53], ports: [80] }\nlisten: { tls: off }\n",
        "cache: { dir: /mnt/cache }\n",
        "cache: { dir: /var/cache/longhaul }\n",
        "dns: { domains: [domains.txt], except: [www.example.org] }\n",
        "dns: { domains: [domains.txt], except: [\"*.example.org\"] }\n",
        "dns: { www: true, except: [lan, =com] }\n",
        "tls: { terminate: [ { names: [www.example.org], cert: fullchain.pem, key: me.key } ] }\n",
    ] {
        let yaml = edge("plausible", lines, "", "").yaml;
        assert_eq!(LINK.lines().count(), 1);
        let loaded = longhaul_config::load_text(&folder.path().join("longhaul.yaml"), yaml);
        let report = loaded.map_or_else(|error| panic!("{lines}: {error}"), |loaded| loaded.report);
        assert!(report.problems.is_empty(), "{lines}{}", report.render(false));
    }
}
