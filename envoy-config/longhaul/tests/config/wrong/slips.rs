//! Slips of the pen that a message about something else would hide.

use super::Case;
use super::cases::{edge, file, remote, terminated};
use super::{LINK, PROXY, UPSTREAM};

fn link(values: &str, fault: &'static str, fix: &'static str) -> Case {
    edge("quantity", &format!("link: {{ {values} }}\n"), fault, fix)
}

fn resolver(written: &str, fault: &'static str, fix: &'static str) -> Case {
    edge("resolver", &format!("upstream: {{ resolvers: [{written}] }}\n"), fault, fix)
}

fn ports(written: &str, fault: &'static str, fix: &'static str) -> Case {
    edge("ports", &format!("upstream: {{ resolvers: [192.0.2.53], ports: {written} }}\n"), fault, fix)
}

#[allow(clippy::too_many_lines, reason = "it is the table")]
pub(super) fn cases() -> Vec<Case> {
    vec![
        link("rtt: ▶0,6s, down: 20mbit, up: 5mbit", "found `0,6s`", "write `0.6s`"),
        link("rtt: 600ms, down: 20mbit, up: ▶1,5mbit", "found `1,5mbit`", "write `1.5mbit`"),
        link("rtt: ▶0, down: 20mbit, up: 5mbit", "a number without a unit", "units: us, ms, s"),
        link("rtt: ▶0ms, down: 20mbit, up: 5mbit", "expected 1us to 1m, found 0s", "such as `600ms`"),
        link(
            "rtt: ▶600s, down: 20mbit, up: 5mbit",
            "expected 1us to 1m, found 10m",
            "write `600ms` if the unit is wrong",
        ),
        link("rtt: 600ms, down: 20mbit, up: ▶500bit", "expected 1kbit or more", "write `500kbit`"),
        edge("quantity", "limits: { connections: ▶50,000 }\n", "found `50,000`", "write `50000`"),
        edge("percent", "tracing: { collector: 192.0.2.9:4318, sample_percent: ▶5% }\n", "found `5%`", "write `5`"),
        edge("percent", "compare: ▶5\n", "found `5`", "write `compare: 5%`"),
        edge("percent", "compare: ▶80%\n", "found `80%`", "write `compare: 5%`"),
        ports("[▶8000-8002]", "found `8000-8002`", "write `8000, 8001, 8002`"),
        ports("[80, 443, ▶1024-65535]", "found `1024-65535`", "such as `1024, 1025`"),
        ports("▶80-443", "expected a list", "such as `[80, 443]`"),
        ports("▶\"80, 443\"", "expected a list", "write `[80, 443]`"),
        file(
            "tab",
            format!("link:\n  ▶rtt:\t600ms\n  down: 20mbit\n  up: 5mbit\n{PROXY}{UPSTREAM}"),
            "a tab behind `rtt:`",
            "write `rtt: 600ms`",
        ),
        file(
            "tab",
            format!("link: {{ ▶rtt:\t600ms, down: 20mbit, up: 5mbit }}\n{PROXY}{UPSTREAM}"),
            "a tab behind `rtt:`",
            "write `rtt: 600ms`",
        ),
        resolver("▶192.0.2.53/24", "found `192.0.2.53/24`", "write `192.0.2.53`: one address"),
        resolver("▶[2001:db8::53]:53", "without quotes", "\"[2001:db8::53]:53\""),
        resolver("▶\"192.0.2.53:53:53\"", "found `192.0.2.53:53:53`", "write an address"),
        edge("IPv6", "proxy: { addresses: [▶[2001:db8::12]] }\n", "found a list", "write `2001:db8::12`"),
        edge("IPv6", "proxy: { addresses: [▶\"[2001:db8::12]\"] }\n", "found `[2001:db8::12]`", "write `2001:db8::12`"),
        edge("IPv6", "listen: { http: [▶[::]:80] }\n", "without quotes", "\"[::]:80\""),
        edge(
            "variable",
            "proxy: { addresses: [▶${ADDRESS}] }\n",
            "`${ADDRESS}` is not replaced",
            "variables are not expanded",
        ),
        edge(
            "variable",
            "link: { rtt: ▶${RTT}, down: 20mbit, up: 5mbit }\n",
            "`${RTT}` is not replaced",
            "variables are not expanded",
        ),
        edge(
            "variable",
            "proxy: { addresses: [▶{{ address }}] }\n",
            "`{{ address }}` is not replaced",
            "variables are not expanded",
        ),
        edge(
            "variable",
            "dns: { except: [▶\"${LISTS}/except.txt\"] }\n",
            "only a shell expands this",
            "variables are not expanded",
        ),
        edge(
            "scheme",
            "dns: { www: true, except: [▶https://bank.example/login] }\n",
            "found `https://bank.example/login`",
            "write `bank.example`",
        ),
        edge(
            "scheme",
            "dns: { domains: [▶https://www.example.org] }\n",
            "a file with one name a line",
            "write it into a file",
        ),
        edge(
            "scheme",
            "proxy: { addresses: [▶http://198.51.100.12/] }\n",
            "found `http://198.51.100.12/`",
            "write `198.51.100.12`",
        ),
        edge(
            "wildcard",
            "rewrite: { exclude: [▶\"*.example.org\"] }\n",
            "found `*.example.org`",
            "write `example.org`",
        ),
        edge(
            "wildcard",
            "tls: { terminate: [ { names: [▶\"*.example.org\"], cert: me.pem, key: me.key } ] }\n",
            "found `*.example.org`",
            "such as `www.example.org`",
        ),
        edge("list", "dns: { domains: [▶several.txt] }\n", "a blank, a comma or a semicolon in it", "one name a line"),
        terminated("chain", "cert: ▶reversed.pem, key: me.key", "the first certificate in", "put yours first"),
        remote(
            "chain",
            "split: { peer: 192.0.2.1:8443, cert: ▶pair-reversed.pem, key: me.key, ca: ca.pem }\n",
            "is an authority",
            "put yours first",
        ),
        file(
            "ground",
            format!(
                "role: ground\n{LINK}{UPSTREAM}split: {{ peer: [▶https://ship.example], cert: me.pem, key: me.key, ca: ca.pem }}\n"
            ),
            "found `https://ship.example`",
            "write `ship.example`",
        ),
    ]
}
