//! The cases, by the class of the mistake.

use super::{Case, LINK, PROXY, UPSTREAM, Verdict};

/// A whole file that is refused.
pub(super) fn file(class: &'static str, yaml: impl Into<String>, fault: &'static str, fix: &'static str) -> Case {
    Case { class, yaml: yaml.into(), verdict: Verdict::Refused, fault, fix }
}

/// An edge that is correct except for these lines.
pub(super) fn edge(class: &'static str, lines: &str, fault: &'static str, fix: &'static str) -> Case {
    let missing = [LINK, PROXY, UPSTREAM].into_iter().filter(|line| {
        let group = line.split(':').next().unwrap_or_default();
        !lines.contains(&format!("{group}:"))
    });
    file(class, format!("{lines}{}", missing.collect::<String>()), fault, fix)
}

/// A remote that is correct except for these lines.
pub(super) fn remote(class: &'static str, lines: &str, fault: &'static str, fix: &'static str) -> Case {
    let split = "split: { peer: 192.0.2.1:8443, cert: me.pem, key: me.key, ca: ca.pem }\n";
    let split = if lines.contains("split:") { "" } else { split };
    file(class, format!("role: remote\n{LINK}{PROXY}dns: {{ www: true }}\n{split}{lines}"), fault, fix)
}

pub(super) fn terminated(class: &'static str, files: &str, fault: &'static str, fix: &'static str) -> Case {
    edge(class, &format!("tls: {{ terminate: [ {{ names: [www.example.org], {files} }} ] }}\n"), fault, fix)
}

pub(super) fn warned(case: Case) -> Case {
    Case { verdict: Verdict::Warned, ..case }
}

#[allow(clippy::too_many_lines, reason = "it is the table")]
pub(super) fn cases() -> Vec<Case> {
    let many: Vec<String> = (0..20_000).map(|at| format!("192.0.{}.{}", at / 250, at % 250)).collect();
    let (accepted, excess) = many.split_at(15);
    let many = format!("upstream: {{ resolvers: [{}, ▶{}] }}\n", accepted.join(", "), excess.join(", "));
    vec![
        edge("port alone", "listen: { http: ▶8080 }\n", "found `8080`", "write `0.0.0.0:8080`"),
        edge("port alone", "listen: { http: ▶\":8080\" }\n", "found `:8080`", "write `0.0.0.0:8080`"),
        edge("port alone", "listen: { metrics: ▶9902 }\n", "found `9902`", "write `127.0.0.1:9902`"),
        edge("port alone", "listen:\n  http: ▶'*:8080'\n", "ADDRESS:PORT", "write `0.0.0.0:8080`"),
        edge("port out of range", "listen: { http: ▶0.0.0.0:80800 }\n", "found `0.0.0.0:80800`", "from 1 to 65535"),
        edge(
            "port out of range",
            "upstream: { resolvers: [192.0.2.53], ports: [80, ▶65536] }\n",
            "found `65536`",
            "from 1 to 65535",
        ),
        edge("port out of range", "listen: { dns: ▶0.0.0.0:0 }\n", "found `0.0.0.0:0`", "from 1 to 65535"),
        edge("socket", "listen: { http: ▶0.0.0.0 }\n", "ADDRESS:PORT", "add a port: `0.0.0.0:80`"),
        edge("socket", "listen: { tls: ▶\"::\" }\n", "ADDRESS:PORT", "\"[::]:443\""),
        edge("socket", "listen: { http: ▶localhost:8080 }\n", "found `localhost:8080`", "write `127.0.0.1:8080`"),
        edge("socket", "listen:\n  http: ▶[::]:80\n", "without quotes", "\"[::]:80\""),
        edge(
            "smart quotes",
            "listen: { http: ▶“0.0.0.0:8080” }\n",
            "found `“0.0.0.0:8080”`",
            "write straight quotes, or none: `0.0.0.0:8080`",
        ),
        edge("smart quotes", "link: { rtt: ▶‘600ms’, down: 20mbit, up: 5mbit }\n", "found `‘600ms’`", "`600ms`"),
        edge("scheme", "tracing: { collector: ▶http://192.0.2.9:4318 }\n", "ADDRESS:PORT", "write `192.0.2.9:4318`"),
        edge(
            "scheme",
            "tracing: { collector: ▶http://collector.example.net:4318/v1/traces }\n",
            "ADDRESS:PORT",
            "127.0.0.1:4318",
        ),
        edge("scheme", "cache: { parent: ▶http://192.0.2.7:3128 }\n", "HOST:PORT", "write `192.0.2.7:3128`"),
        remote(
            "peer without a port",
            "split: { peer: ▶ground.example, cert: me.pem, key: me.key, ca: ca.pem }\nupstream: { resolvers: [192.0.2.53] }\n",
            "HOST:PORT such as ground.example:8443",
            "add the port: `ground.example:8443`",
        ),
        remote(
            "peer without a port",
            "split: { peer: ▶192.0.2.1, cert: me.pem, key: me.key, ca: ca.pem }\n",
            "found `192.0.2.1`",
            "add the port: `192.0.2.1:8443`",
        ),
        remote(
            "peer without a port",
            "split: { peer: ▶https://ground.example:8443, cert: me.pem, key: me.key, ca: ca.pem }\nupstream: { resolvers: [192.0.2.53] }\n",
            "HOST:PORT",
            "write `ground.example:8443`",
        ),
        edge(
            "resolver",
            "upstream: { resolvers: [▶https://dns.example.net/dns-query] }\n",
            "found `https://dns.example.net/dns-query`",
            "DNS over HTTPS, TLS or QUIC is not supported: write the address",
        ),
        edge(
            "resolver",
            "upstream: { resolvers: [▶dns.example.net] }\n",
            "an IP address",
            "a name would need a resolver itself",
        ),
        edge(
            "resolver",
            "upstream: { resolvers: [▶/etc/resolv.conf] }\n",
            "an IP address",
            "addresses after `nameserver`",
        ),
        edge("resolver", "upstream: { resolvers: ▶9.9.9.9 }\n", "expected a list", "write `[9.9.9.9]`"),
        edge("too many", &many, "at most 15 resolvers, found 20000", "remove this one and all behind it"),
        edge("list file", "dns: { domains: [▶example.org] }\n", "a file with one name a line", "write it into a file"),
        edge("list file", "dns: { domains: [▶domains.lst] }\n", "a file with one name a line", "write it into a file"),
        edge("list file", "dns: { domains: [▶missing.txt] }\n", "cannot be read", "relative to the folder"),
        edge("list file", "dns: { domains: ▶domains.txt }\n", "expected a list", "write `[domains.txt]`"),
        edge("list file", "dns: { except: [▶*.bank.example] }\n", "without quotes", "\"*.bank.example\""),
        edge(
            "variable",
            "cache: { dir: ▶\"${CACHE_DIR}\" }\n",
            "only a shell expands this",
            "variables are not expanded",
        ),
        edge("variable", "listen: { http: ▶\"${HOST}:80\" }\n", "found `${HOST}:80`", "variables are not expanded"),
        edge("variable", "cache: { dir: ▶~/cache }\n", "only a shell expands this", "write the whole path"),
        edge(
            "missing space",
            "link:\n  ▶rtt:600ms\n  down: 20mbit\n  up: 5mbit\n",
            "no space after `rtt:`",
            "write `rtt: 600ms`",
        ),
        edge(
            "missing space",
            "link:\n  rtt: 600ms\n  ▶down:20mbit\n  up: 5mbit\n",
            "no space after `down:`",
            "write `down: 20mbit`",
        ),
        edge(
            "missing space",
            "link: { ▶rtt:600ms, down: 20mbit, up: 5mbit }\n",
            "no space after `rtt:`",
            "write `rtt: 600ms`",
        ),
        edge("missing space", "▶role:edge\n", "no space after `role:`", "write `role: edge`"),
        edge(
            "missing space",
            "link:\n  ▶rtt:\u{a0}600ms\n  down: 20mbit\n  up: 5mbit\n",
            "no-break space",
            "write `rtt: 600ms`",
        ),
        edge(
            "missing space",
            "link: { ▶rtt:\u{a0}600ms, down: 20mbit, up: 5mbit }\n",
            "no space after `rtt:`",
            "write `rtt: 600ms`",
        ),
        file("missing space", "▶role:edge\n", "no space after `role:`", "write `role: edge`"),
        edge("equals sign", "▶role = edge\n", "`=` after `role`", "write `role: edge`"),
        file(
            "one slip, one error",
            format!("▶{PROXY}{UPSTREAM}"),
            "`link` is missing",
            "add `link: { rtt: 600ms, down: 20mbit, up: 5mbit }`",
        ),
        file(
            "one slip, one error",
            format!("▶Link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\n{PROXY}{UPSTREAM}"),
            "unknown key `Link`",
            "did you mean `link`?",
        ),
        file(
            "one slip, one error",
            format!("▶role: remote\n{LINK}{PROXY}"),
            "`split` is missing",
            "add `split: { peer: ground.example:8443,",
        ),
        file(
            "one slip, one error",
            format!("▶role: ground\n{LINK}{UPSTREAM}"),
            "`split` is missing",
            "add `split: { peer: [ship.example],",
        ),
        remote(
            "one slip, one error",
            "▶Split: { peer: 192.0.2.1:8443, cert: me.pem, key: me.key, ca: ca.pem }\n",
            "unknown key `Split`",
            "did you mean `split`?",
        )
        .without("split: {"),
        remote(
            "one slip, one error",
            "",
            "expected one of: edge, remote, ground, found `Remote`",
            "did you mean `remote`?",
        )
        .with("role: remote", "role: ▶Remote"),
        edge(
            "unknown key",
            "▶proxies: { addresses: [198.51.100.12] }\n",
            "unknown key `proxies`",
            "did you mean `proxy`?",
        )
        .without(PROXY),
        edge(
            "unknown key",
            "link: { ▶latency: 600ms, down: 20mbit, up: 5mbit }\n",
            "unknown key `link.latency`",
            "did you mean `rtt`?",
        ),
        edge(
            "unknown key",
            "upstream: { ▶nameservers: [192.0.2.53] }\n",
            "unknown key `upstream.nameservers`",
            "did you mean `resolvers`?",
        ),
        edge(
            "unknown key",
            "proxy: { ▶address: [198.51.100.12] }\n",
            "unknown key `proxy.address`",
            "did you mean `addresses`?",
        ),
        edge(
            "unknown key",
            "link: { rtt: 600ms, down: 20mbit, up: 5mbit, ▶colour: red }\n",
            "unknown key `link.colour`",
            "known here: rtt, down, up",
        ),
        edge(
            "indentation",
            "listen:\n  http: 0.0.0.0:80\n▶metrics: 127.0.0.1:9153\n",
            "unknown key `metrics`",
            "write `metrics` below `listen:`",
        ),
        edge(
            "indentation",
            "link:\n  rtt: 600ms\n   ▶down: 20mbit\n  up: 5mbit\n",
            "indented by 3 spaces",
            "the same number of spaces",
        ),
        edge("indentation", "link:\n▶\trtt: 600ms\n", "a tab", "indent with two spaces"),
        edge(
            "indentation",
            "link: { rtt: 600ms, down: 20mbit, up: 5mbit, ▶role: edge }\n",
            "unknown key `link.role`",
            "at the top of the file",
        ),
        edge("unit", "link: { rtt: 600ms, down: ▶20Mbps, up: 5mbit }\n", "found `20Mbps`", "write `20mbit`"),
        edge("unit", "link: { rtt: 600ms, down: ▶20 Mbit/s, up: 5mbit }\n", "found `20 Mbit/s`", "write `20mbit`"),
        edge("unit", "link: { rtt: 600ms, down: ▶2MB/s, up: 5mbit }\n", "found `2MB/s`", "write `16mbit`"),
        edge("unit", "link: { rtt: ▶600, down: 20mbit, up: 5mbit }\n", "a number without a unit", "`600ms`"),
        edge("unit", "link: { rtt: ▶600 msec, down: 20mbit, up: 5mbit }\n", "found `600 msec`", "write `600ms`"),
        edge("unit", "cache: { size: ▶2G }\n", "found `2G`", "write `2gib`"),
        edge("unit", "link:\n  rtt: ▶0,6s\n  down: 20mbit\n  up: 5mbit\n", "found `0,6s`", "write `0.6s`"),
        edge("number", "limits: { connections: ▶50_000 }\n", "found `50_000`", "write `50000`"),
        edge(
            "range",
            "link: { rtt: 600ms, down: 20mbit, up: 5mbit, fill: ▶10% }\n",
            "a part of the link from 25% to 100%",
            "write `fill: auto`",
        ),
        edge(
            "name",
            "link: { rtt: 600ms, down: 20mbit, up: 5mbit, device: ▶192.0.2.1/24 }\n",
            "the name of one network interface, or `off`",
            "write a name such as `wan0`",
        ),
        edge(
            "number",
            "link: { rtt: 600ms, down: 20mbit, up: 5mbit, mtu: ▶12800 }\n",
            "found `12800`",
            "from 576 to 9216",
        ),
        edge(
            "number",
            "link: { rtt: 600ms, down: 20mbit, up: 5mbit, mtu: ▶1280b }\n",
            "found `1280b`",
            "from 576 to 9216",
        ),
        edge("number", "limits: { connections: ▶50k }\n", "found `50k`", "write `50000`"),
        edge("number", "upstream: { resolvers: [192.0.2.53], ports: [▶http] }\n", "found `http`", "write `80`"),
        edge(
            "address",
            "proxy: { addresses: [▶198.51.100.12:80] }\n",
            "an IP address",
            "write `198.51.100.12`: no port",
        ),
        edge("address", "proxy: { addresses: [▶198.51.100.12/24] }\n", "an IP address", "write `198.51.100.12`"),
        edge("address", "proxy: { addresses: [▶198.51.100.300] }\n", "an IP address", "from 0 to 255"),
        edge("address", "proxy: { addresses: [▶pep.example.net] }\n", "an IP address", "names are not accepted here"),
        edge(
            "range",
            "upstream: { resolvers: [192.0.2.53], deny: [▶203.0.113.0/255.255.255.0] }\n",
            "an address range",
            "write `203.0.113.0/24`",
        ),
        edge(
            "range",
            "upstream: { resolvers: [192.0.2.53], deny: [▶203.0.113.0/33] }\n",
            "an address range",
            "from 0 to 32",
        ),
        edge(
            "range",
            "upstream: { resolvers: [192.0.2.53], deny: [▶203.0.113.7/24] }\n",
            "bits set behind",
            "write `203.0.113.0/24`",
        ),
        edge(
            "host name",
            "rewrite: { exclude: [▶\"https://bank.example/\"] }\n",
            "a host name",
            "write `bank.example`",
        ),
        edge("host name", "rewrite: { exclude: [▶\"*.bank.example\"] }\n", "a host name", "write `bank.example`"),
        edge("group", "cache: ▶on\n", "expected a group of keys", "write `cache: { dir: ... }`"),
        edge("group", "rewrite: ▶full\n", "expected a group of keys", "write `rewrite: { level: full }`"),
        edge("group", "dns: ▶off\n", "expected a group of keys", "write `listen: { dns: off }`"),
        edge("word", "rewrite: { level: ▶Full }\n", "found `Full`", "did you mean `full`?"),
        edge(
            "word",
            "listen: { intercept: ▶transparent }\n",
            "found `transparent`",
            "write one of: redirect, tproxy, none",
        ),
        edge("word", "transport: { http3: ▶maybe }\n", "found `maybe`", "write `on` or `off`"),
        edge(
            "YAML",
            "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\nproxy: ▶{ addresses: [198.51.100.12]\nupstream: { resolvers: [192.0.2.53] }\n",
            "`{` is not closed",
            "add `}`",
        ),
        edge("YAML", "proxy: { addresses: ▶[198.51.100.12 }\n", "`[` is not closed", "add `]`"),
        edge("YAML", "cache: { dir: ▶\"/var/cache/longhaul }\n", "`\"` is not closed", "add `\"`"),
        edge(
            "YAML",
            "rewrite: { level: safe }\n▶rewrite: { level: full }\n",
            "`rewrite` is set twice",
            "keep one of the two",
        ),
        file(
            "YAML",
            format!("link: ▶&link {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\n{PROXY}{UPSTREAM}"),
            "anchors and aliases",
            "write the value out",
        ),
        file("YAML", "▶", "the file is empty", "longhaul.yaml(5)"),
        edge("value", "dns: { www: true, ttl: ▶[1h, 60s] }\n", "1h is more than 1m", "write the smaller one first"),
        edge(
            "value",
            "upstream: { resolvers: [▶127.0.0.1] }\n",
            "this box's own DNS",
            "name a resolver on the wired side",
        ),
        terminated(
            "certificate",
            "cert: ▶me.der, key: me.key",
            "a certificate in DER",
            "openssl x509 -inform der -in me.der -out me.pem",
        ),
        terminated("certificate", "cert: ▶me.p12, key: me.key", "a PKCS #12 file", "openssl pkcs12 -nodes -in me.p12"),
        terminated("certificate", "cert: ▶me.csr, key: me.key", "without a certificate", "this is a request"),
        terminated("certificate", "cert: ▶me.key, key: me.key", "without a certificate", "name it under `key`"),
        terminated(
            "certificate",
            "cert: ▶other-name.pem, key: me.key",
            "is not for www.example.org",
            "browsers would refuse it",
        ),
        terminated(
            "key",
            "cert: me.pem, key: ▶me.key.der",
            "a private key in DER",
            "openssl pkey -inform der -in me.key.der",
        ),
        terminated(
            "key",
            "cert: me.pem, key: ▶locked.key",
            "without a private key",
            "openssl pkey -in locked.key -out plain.key",
        ),
        terminated("key", "cert: me.pem, key: ▶me.pem", "without a private key", "name it under `cert`"),
        terminated(
            "key",
            "cert: me.pem, key: ▶other.key",
            "is not the key of its certificate",
            "the key with which the certificate was requested",
        ),
        remote(
            "key",
            "split: { peer: 192.0.2.1:8443, cert: me.pem, key: ▶other.key, ca: ca.pem }\n",
            "is not the key of its certificate",
            "the key with which the certificate was requested",
        ),
        remote(
            "authority",
            "split: { peer: 192.0.2.1:8443, cert: me.pem, key: me.key, ca: ▶other-ca.pem }\n",
            "has not signed",
            "or name the authority that signed both ends' certificates",
        ),
        warned(terminated("validity", "cert: ▶early.pem, key: me.key", "is not valid yet", "set this machine's clock")),
        warned(terminated("validity", "cert: ▶ending.pem, key: me.key", "ends soon", "renew it before that day")),
        warned(terminated("validity", "cert: ▶expired.pem, key: me.key", "has expired", "renew it")),
        warned(remote("no effect", "upstream: { resolvers: ▶[192.0.2.53] }\n", "has no effect", "remove `upstream`")),
        warned(edge(
            "no effect",
            "rewrite: { level: ▶off }\ncache: off\ncompress: off\n",
            "changes no page",
            "remove `level: off`",
        )),
        warned(edge(
            "no effect",
            "listen: { intercept: ▶none }\n",
            "no client is sent to this box",
            "write `intercept: redirect`",
        )),
    ]
}
