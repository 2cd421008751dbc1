//! The rows, in the order in which documents list them.

use std::time::Duration;

use super::DefaultValue::{Derived, Is, Required, Unless};
use super::ValueType::{
    Boolean, Form, Number, NumberOrAuto, NumberOrWord, Numbers, Rate as RateFrom, Size, Time, Words,
};
use super::{DefaultValue, Key, ValueType};
use crate::units::Rate;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The bounds of a round-trip time. A value beyond them has the wrong unit.
const RTT: ValueType = Time { min: Duration::from_micros(1), max: Duration::from_mins(1) };
const RATE: ValueType = RateFrom { min: Rate { bits_per_second: 1_000 } };
/// A switch, in either spelling.
const SWITCH: ValueType = Words(&["off", "false", "on", "true"]);

const fn key(name: &'static str, value: ValueType, default: DefaultValue, doc: &'static str) -> Key {
    Key { name, value, default, doc }
}

/// Every key.
pub(crate) const KEYS: &[Key] = &[
    key(
        "role",
        Words(&["edge", "remote", "ground"]),
        Is("edge"),
        "`edge`: one box on the wired side of the slow link. `remote` and `ground`: [a pair](PAIR.md#a-pair), one box at each end of the link",
    ),
    key(
        "id",
        Form("letters, digits, `.`, `-`, `_`"),
        Derived("the host name"),
        "the name of this box in Envoy's node id. Origins see a hash of it in `CDN-Loop`, by which boxes with equal files tell their requests apart",
    ),
    key(
        "workers",
        NumberOrAuto { min: 1, max: 1024 },
        Is("auto"),
        "Envoy's worker threads. `auto`: one for each processor that this box may use, by its affinity and the limit of its control group, rounded up ([how](../docs/src/sizing.md#limits-of-a-container))",
    ),
    key(
        "engine",
        Words(&["wasm", "native", "auto"]),
        Is("auto"),
        "what runs the filters in Envoy. `wasm`: sandboxed modules, for every Envoy. `native`: one module of machine code in Envoy's own process, with less processor time and memory, with shares that follow the link, and without a sandbox ([how](../filters/native/README.md)). `auto`: `native` where the module is installed and Envoy loads it, except at a remote with several workers and `page.bundle`, else `wasm`. `render` writes `wasm` unless the file says `native`",
    ),
    key("link.rtt", RTT, Required("600ms"), "the round trip over the slow link without queueing"),
    key("link.down", RATE, Required("20mbit"), "the rate of the link to clients"),
    key("link.up", RATE, Required("5mbit"), "the rate of the link from clients"),
    key(
        "link.price",
        Words(&["free", "metered"]),
        Is("free"),
        "`metered`: each byte on the link costs money, so compression goes to the level with the least bytes, and a pair without clients sends its probes and health checks every 4 minutes (below 60 KB an hour)",
    ),
    key(
        "link.mtu",
        // The size that every host takes (RFC 1122 section 3.3.2), and that of jumbo frames.
        NumberOrAuto { min: 576, max: 9216 },
        Is("auto"),
        "the largest packet that crosses the link whole, in bytes. The TCP connections over the link use smaller packets in both directions, and so does the pipe with `transport: h3`. `auto`: the kernel finds the size. `longhaul netcheck` names it where larger packets vanish, as on some tunnels ([how](../docs/src/netcheck.md#packets-that-vanish))",
    ),
    key(
        "link.fill",
        Form("`auto`, `off`, `25%` to `100%`"),
        Is("off"),
        "a pair, at both ends: the part of the link that Longhaul sends at most, with all headers. Each client has an equal share of it ([how](../docs/src/neighbours.md)). `auto`: 94%, which leaves the queue of the modem empty; `longhaul pair init` writes it. `off`: no limit and no shares, because a limit below the true rate wastes the link",
    ),
    key(
        "link.device",
        Form("the name of an interface, `off`"),
        Is("off"),
        "the network interface that leads to the link, and to nothing else. `longhaul host` gives it the kernel's fair queue, at 95% of the rate in which this box sends. So clients share the link also for what bypasses Longhaul ([how](../docs/src/neighbours.md#the-device-of-the-link))",
    ),
    key(
        "compare",
        Form("`1%` to `50%`, `off`"),
        Is("off"),
        "the share of clients, chosen by a hash of their address, that a packet rule of `longhaul host` and the DNS leave alone. `longhaul status` compares their connections with those of a group of the same size ([how](../docs/src/does-it-help.md)). Not at a ground",
    ),
    key(
        "clients",
        Form("list of `{ name, ranges, weight, quota, beyond }`"),
        Is("[]"),
        "a remote with `link.fill`: groups of clients, of which some have a larger share of the link, or a quota ([how](../docs/src/groups.md)). A client in no group has weight 1. The ground hears of weights from the remote",
    ),
    key(
        "clients.name",
        Form("letters, digits, `-`, `_`"),
        Required("bridge"),
        "the name of the group, in `status` and metrics",
    ),
    key(
        "clients.ranges",
        Form("list of addresses and ranges"),
        Required("[192.0.2.0/28]"),
        "its clients; no address is in two groups, and all groups together have at most 128 ranges",
    ),
    key(
        "clients.weight",
        Number { min: 1, max: 100 },
        Is("1"),
        "the weight of each client of the group: one of weight 4 has four times the share of one of weight 1, if both want more than they have",
    ),
    key(
        "clients.quota",
        Form("`SIZE/day`, `SIZE/week`, `SIZE/month`, `off`"),
        Is("off"),
        "the bytes that all clients of the group have together, in both directions, such as `20gib/day`. Days, weeks (from Monday on) and months begin at midnight in UTC",
    ),
    key(
        "clients.beyond",
        Words(&["slow"]),
        Is("slow"),
        "the treatment of a group beyond its quota. `slow`: each client has a tenth of its weight until the next day, week or month. Nothing is refused or replaced",
    ),
    key(
        "proxy.addresses",
        Form("list of addresses and ranges"),
        Required("[198.51.100.12]"),
        "the addresses where clients reach this box: first in DNS responses, and http targets of moved URLs. Behind them, a range such as `198.18.0.0/16` that leads to this box as a whole, at most one of each family. Then each server has an address of its own in DNS responses; without one, names of a second server get this box's address only where no certificate covers names of both ([why](../coredns-plugin/README.md#servers-apart)). Several addresses of one family are shards. The URLs in a page move only if the client's connection has the family of an address here. Not at a ground, which no client sees",
    ),
    key(
        "proxy.secure_names",
        Form("list of names or addresses"),
        Is("[]"),
        "its https names or addresses; each needs a certificate under `tls.terminate`. Several addresses need one certificate together: a browser's first packet names a host, never an address",
    ),
    key(
        "proxy.siblings",
        Form("list of addresses"),
        Is("[]"),
        "addresses of the other boxes with the same `proxy.addresses`, on networks that both are part of. A connection that began at one of them goes on there when its client [moves to this box](../docs/src/high-availability.md#a-client-that-moves-to-another-box). Packet rules of `longhaul host` do it",
    ),
    key(
        "listen.http",
        Form("`ADDRESS:PORT`, or a list of them"),
        Is("[0.0.0.0:80, \"[::]:80\"]"),
        "the sockets for http, with one port. A port other than 80 appears in moved URLs",
    ),
    key(
        "listen.tls",
        Form("`ADDRESS:PORT`, or a list of them, `off`"),
        Is("[0.0.0.0:443, \"[::]:443\"]"),
        "the sockets for TLS, with one port. With `tls.terminate` it is a UDP port too (HTTP/3)",
    ),
    key(
        "listen.dns",
        Form("`auto`, `ADDRESS:PORT`, or a list of them, `off`"),
        Is("auto"),
        "the sockets for DNS, over UDP and TCP. `auto`: port 53 of every address. If another program has it at some address, as systemd-resolved has it at 127.0.0.53, the addresses where it is free. `0.0.0.0` and `[::]` each serve both families",
    ),
    key(
        "listen.tcp",
        Form("`auto`, `all`, a list of ports, `off`"),
        Is("off"),
        "remote: other TCP ports of clients that cross the pipe, to the address that the client dialled ([how](PAIR.md#other-tcp-ports)). `auto`: ssh (22), mail (110, 143, 465, 587, 993, 995) and chat (5222, 5223, 5228); `longhaul pair init` writes it. `upstream.ports` of the ground must list them. Never 25. The listener has port 4170",
    ),
    key(
        "listen.metrics",
        Form("`ADDRESS:PORT`, `off`"),
        Is("127.0.0.1:9153"),
        "[the metrics](METRICS.md#scraping) of Envoy and CoreDNS at `/metrics`, read-only. If the default is in use, `run` starts without the page; it does not if another socket is in use",
    ),
    key(
        "listen.status",
        Form("`ADDRESS:PORT`, `off`"),
        Is("127.0.0.1:9900"),
        "[the status page](#the-status-page): HTML at `/`, JSON at `/status.json`, both read-only. If the default is in use, `run` starts without the page; it does not if another socket is in use",
    ),
    key(
        "listen.health",
        Form("`ADDRESS:PORT`, `off`"),
        Is("off"),
        "[a health endpoint](../docs/src/high-availability.md#the-health-endpoint) for load balancers: `/ready` and `/live`, under any host name",
    ),
    key(
        "listen.image_metrics",
        Form("`ADDRESS:PORT`, `off`"),
        Is("off"),
        "Prometheus metrics of the program that recodes images ([METRICS.md](METRICS.md))",
    ),
    key(
        "listen.intercept",
        Words(&["redirect", "tproxy", "none"]),
        Is("redirect"),
        "how client packets for other addresses arrive: by a `redirect` or a `tproxy` rule of `longhaul host`. `none`: clients are sent here by DNS alone",
    ),
    key(
        "drain.wait",
        Time { min: Duration::ZERO, max: Duration::from_mins(10) },
        Unless { is: "0s", case: "with `listen.health`", then: "5s" },
        "on SIGTERM, the time in which this box serves on, so that load balancers notice its end first",
    ),
    key(
        "drain.time",
        Time { min: Duration::ZERO, max: Duration::from_hours(1) },
        Is("30s"),
        "after the wait, the longest time for requests under way. New connections are refused, and the box ends once no client waits for anything. A second signal ends it at once",
    ),
    key(
        "log.access",
        Form("`off`, `on`, `stderr`, a path"),
        Is("off"),
        "[the access log](METRICS.md#the-access-log): a JSON object a line for each request, and for each connection that passes unread. `on`: `/var/log/longhaul/access.log` under systemd, and `access.log` in the state folder otherwise",
    ),
    key(
        "log.keep",
        Time { min: Duration::from_hours(1), max: Duration::from_hours(24 * 3650) },
        Is("7d"),
        "the age at which rotated files are deleted. `longhaul run` rotates the file each day, at midnight in UTC",
    ),
    key(
        "log.size",
        Size { min: 4 * KIB, max: 1 << 40 },
        Is("100mib"),
        "the size at which the file is rotated before its day ends",
    ),
    key(
        "log.clients",
        Words(&["cut", "whole"]),
        Is("cut"),
        "clients' addresses in the log. `cut`: their first 24 bits, as in `192.0.2.0/24` or `2001:d00::/24`",
    ),
    key(
        "log.who",
        SWITCH,
        Is("off"),
        "a remote: the bytes of each client and site, each hour, for `longhaul log --who` ([how](../docs/src/groups.md#who-used-the-data)). The file is of mode 0640, and has `log.keep`",
    ),
    key(
        "notify.command",
        Form("`off`, a path, or a list of a path and arguments"),
        Is("off"),
        "a program that is started when [a problem](#while-it-runs) begins and when it ends, as the user of the service ([how](../docs/src/notices.md)). Its environment says which; no shell reads the line",
    ),
    key(
        "upstream.resolvers",
        Form("list of `ADDRESS[:PORT]`"),
        Required("[192.0.2.53]"),
        "the resolvers that know the names of origins; never this box's own DNS. A remote may leave them out",
    ),
    key(
        "upstream.ports",
        Numbers { min: 1, max: 65_535 },
        Is("[80, 443]"),
        "the ports that clients may reach through the proxy",
    ),
    key(
        "upstream.allow_private",
        Form("list of ranges"),
        Is("[]"),
        "private ranges that clients may reach anyway. An address of this host is reachable only if it stands here as a single address, and never at the ports of Longhaul's listeners",
    ),
    key(
        "upstream.deny",
        Form("list of ranges"),
        Is("[]"),
        "ranges that clients may not reach, even if another key allows them. Examples are the public address of this box behind a NAT, and NAT64 prefixes of the network",
    ),
    key(
        "upstream.map",
        Form("`NAME: ADDRESS:PORT`, several"),
        Is("{}"),
        "origins that are reached at this address instead of by DNS",
    ),
    key(
        "rewrite.level",
        Words(&["off", "safe", "full"]),
        Unless { is: "safe", case: "at a pair, whose handshakes end at the remote", then: "off" },
        "the URLs that may move. `safe`: images, icons, classic scripts and style sheets of other hosts. `full`: the page's own host, media and fonts too",
    ),
    key(
        "rewrite.target",
        Words(&["auto", "https", "http"]),
        Is("auto"),
        "the kind of proxy name that URLs move to. `auto`: the kind that the link model expects to gain",
    ),
    key("rewrite.exclude", Form("list of names"), Is("[]"), "names that are never touched, with all names below them"),
    key(
        "dns.domains",
        Form("list of files"),
        Is("[]"),
        "files with the names that are steered, one a line: `example.org` and below, `=example.org`, `*.example.org`, `#` comments",
    ),
    key(
        "dns.except",
        Form("list of names and files"),
        Is("[]"),
        "names that are never steered; they win over `domains`",
    ),
    key("dns.www", Boolean, Is("false"), "also any name whose first label is `www`"),
    key(
        "dns.mode",
        Words(&["prepend", "replace"]),
        Is("prepend"),
        "`replace` leaves the origin's addresses out of the response",
    ),
    key(
        "dns.max_origin",
        Number { min: 1, max: 64 },
        Is("4"),
        "the most addresses of the origin behind the proxy's own; not with `mode: replace`",
    ),
    key(
        "dns.ttl",
        Form("a time, or a list of two"),
        Unless { is: "[60s, 1h]", case: "with `mode: replace`", then: "30s" },
        "the smallest and the largest TTL, or one TTL, in whole seconds from `1s` to `7d`",
    ),
    key(
        "dns.aaaa",
        Words(&["nodata", "pass"]),
        Is("nodata"),
        "the response to AAAA queries where the proxy has no IPv6 address. `pass`: the true response, so clients with IPv6 bypass the proxy",
    ),
    key(
        "dns.https",
        Words(&["nodata", "strip", "pass"]),
        Is("nodata"),
        "the response to HTTPS queries (type 65). `strip` removes addresses, ECH and HTTP/3 from the record",
    ),
    key(
        "dns.dnssec",
        Words(&["skip", "break"]),
        Is("skip"),
        "the responses that a client may validate. `skip` leaves them as they are. `break` steers them, and their validation fails",
    ),
    key(
        "dns.canary",
        Boolean,
        Is("true"),
        "the names by which Firefox and Apple's private relay look for a network with its own DNS get no data, so browsers keep using this server. `false`: they get the true response",
    ),
    key(
        "dns.encrypted",
        Words(&["auto", "off"]),
        Is("auto"),
        "lookups over TLS, QUIC and HTTPS for clients, on ports 853 and 8443. `auto`: where `listen.dns` is on port 53 at an address of `proxy.addresses`, and a name under `proxy.secure_names` has a certificate ([how](../docs/src/encrypted-lookups.md)). Only at an edge",
    ),
    key(
        "dns.remember",
        Form("a time from `1h` to `30d`, `off`"),
        Is("7d"),
        "how long a remote keeps the responses of DNS, also over a restart. One beyond its TTL is served at once with a TTL of 30 s, and queried again in the background ([how](../coredns-plugin/remember/README.md)). Only at a remote",
    ),
    key(
        "dns.push",
        Boolean,
        Is("true"),
        "a ground sends a remote the responses for names that usually follow the one that was asked, and, while the link is idle and not metered, those for names that many clients ask ([how](../coredns-plugin/push/README.md)). So a new name of a page costs no round trip. Both ends must have it, and a remote must remember names. Not at an edge",
    ),
    key(
        "dns.instant",
        Words(&["auto", "on", "off"]),
        Is("auto"),
        "remote with `listen.intercept`: a browser's first lookup of a name is answered at once, with an address of the name's own. Lookups of other programs wait for the true response. `auto` is `off` for now ([gains and risks](../docs/src/instant-responses.md))",
    ),
    key(
        "dns.instant_range",
        Form("a range"),
        Is("198.18.0.0/15"),
        "the addresses that names have until the true response is here, also those of `split.instant_answers`. No packet to them leaves towards the link. Part of 198.18.0.0/15, of 240.0.0.0/4 or of a range for documentation",
    ),
    key("dns.reload", Form("a time, `off`"), Is("5s"), "how often the DNS server looks for changed lists"),
    key("dns.health", Boolean, Is("true"), "steering stops while the proxy does not respond"),
    key("dns.bypass", Form("list of ranges"), Is("[]"), "clients that always get the true response"),
    key(
        "cache.dir",
        Form("a folder"),
        Is("/var/cache/longhaul"),
        "the folder of the cache. A ground uses the folder `ground` in it, and a remote `remote`. `cache: off` turns the cache off. [At a remote](../filters/objects/README.md#at-a-remote), what several clients request over http crosses the link once",
    ),
    key(
        "cache.size",
        Size { min: MIB, max: 1 << 50 },
        Is("1gib"),
        "the size of the cache on disk. Without the section `cache`, a remote takes at most a tenth of the disk, and a disk without room for a cache is no fault",
    ),
    key(
        "cache.plain_fields",
        Form("list of names"),
        Is("[]"),
        "names of request fields, in lower case, that change no response, for example fields of your own app. A request with a field that browsers do not send by themselves [neither fills the cache nor gets a stored response](../filters/objects/README.md#what-is-stored), unless the field is listed here or `Vary` names it. Fields by which origins know a client or choose a response are refused",
    ),
    key(
        "cache.groups",
        Form("list of files, or of `{ hosts, ignore, fresh_by }`"),
        Is("[]"),
        "hosts that serve the same objects, such as the servers of a service for updates: what one of them sent serves for all ([updates](../docs/src/updates.md#services-with-many-servers))",
    ),
    key(
        "cache.groups.hosts",
        Form("a file"),
        Required("updates.txt"),
        "the names of the hosts, one a line: `example.org` (and below), `=example.org` (only itself), `*.example.org` (only below)",
    ),
    key(
        "cache.groups.ignore",
        Form("list of names"),
        Is("[]"),
        "parameters of queries that choose no object, such as signatures. A client without a right to the object then gets it while it is fresh",
    ),
    key(
        "cache.groups.fresh_by",
        Words(&["origin", "validator"]),
        Is("origin"),
        "`validator`: a response with `ETag` or `Last-Modified` is stored, also if its origin forbids that, and the origin validates it at each use",
    ),
    key(
        "cache.parent",
        Form("`ADDRESS:PORT` or list of them, `null`"),
        Is("null"),
        "a caching proxy instead of the cache on disk; a name is refused. With a list, each URL has its own proxy. Squid and Traffic Server need the access list that `longhaul render` writes ([how](../docs/src/high-availability.md#a-ring-of-caches))",
    ),
    key(
        "compress.br",
        NumberOrWord { min: 0, max: 11 },
        Is("auto"),
        "the quality of brotli to clients. `auto`: by the rate of the link, from 1 to 6. `compress: off` turns both off",
    ),
    key(
        "compress.gzip",
        NumberOrWord { min: 1, max: 9 },
        Is("auto"),
        "the level of gzip to clients that do not take brotli. `auto`: by the rate of the link, from 1 to 6",
    ),
    key(
        "tls.terminate",
        Form("list of `{ names, cert, key }`"),
        Is("[]"),
        "TLS that ends here, over HTTP/1, 2 and 3; all other TLS passes through by its server name",
    ),
    key(
        "tls.terminate.names",
        Form("list of names or addresses"),
        Required("[portal.example]"),
        "the names that the certificate is used for",
    ),
    key(
        "tls.terminate.cert",
        Form("a PEM file"),
        Required("portal.pem"),
        "the certificate chain, valid for each of the names",
    ),
    key("tls.terminate.key", Form("a PEM file"), Required("portal.key"), "its private key"),
    key(
        "tls.acme",
        Form("`{ webroot: DIR }`, `{ forward: ADDRESS:PORT }`, `off`"),
        Is("off"),
        "ACME's HTTP-01 challenges for `proxy.secure_names`. Challenges for all other names go to their origins ([certificates](../docs/src/certificates.md))",
    ),
    key(
        "tls.acme.webroot",
        Form("a folder"),
        Is("null"),
        "`longhaul run` serves the regular files in `DIR/.well-known/acme-challenge/`",
    ),
    key(
        "tls.acme.forward",
        Form("`ADDRESS:PORT`"),
        Is("null"),
        "the ACME client's own server gets the requests, with their `Host`",
    ),
    key(
        "tls.acme.listen",
        Form("`ADDRESS:PORT`, `off`"),
        Is("0.0.0.0:8402"),
        "a socket that serves challenges and nothing else. The rules of `longhaul host` redirect port 80 of all other interfaces than the clients' to it. `off`: these interfaces reach no challenge",
    ),
    key(
        "split.peer",
        Form("`HOST:PORT` or a list of them; a list of names, or a file"),
        Required("ground.example:8443"),
        "remote: `HOST:PORT` of the ground, whose certificate must be for HOST. It may list [several grounds](PAIR.md#several-grounds). Ground: [names](PAIR.md#names-of-remotes), one of which the remote's certificate must have",
    ),
    key(
        "split.balance",
        Words(&["order", "spread"]),
        Is("order"),
        "remote with several grounds: `order` uses the first of `peer` that responds. `spread` gives each remote another order, by the names in its certificate, so that a fleet spreads over the grounds",
    ),
    key(
        "split.cert",
        Form("a PEM file"),
        Required("me.pem"),
        "this end's certificate. A renewed file applies to new connections at once, as for `key` and `ca`",
    ),
    key("split.key", Form("a PEM file"), Required("me.key"), "its private key"),
    key(
        "split.ca",
        Form("a PEM file"),
        Required("pair-ca.pem"),
        "the authorities that sign only for the pair. To change the authority, put old and new into one file, renew both certificates, then remove the old one",
    ),
    key("split.listen", Form("`ADDRESS:PORT`"), Is("0.0.0.0:8443"), "ground: the socket that remotes connect to"),
    key(
        "split.warm",
        // Each costs both ends a socket and some memory. A ship with many browsers needs hundreds.
        Number { min: 0, max: 4096 },
        Derived("0 to 32, by the link"),
        "remote: how many spare connections wait for https and DNS. Leave it: the default is 32, and fewer on slow and metered uplinks ([how](PAIR.md#warm-connections))",
    ),
    key(
        "split.instant_answers",
        Boolean,
        Is("true"),
        "remote with `listen.intercept`: before the ground has been queried, each name under `dns` gets an address of its own from `dns.instant_range`, for 10 seconds. The ground finds the origin by the name in the request. From then on, names get the true response",
    ),
    key(
        "split.udp443",
        Words(&["pass", "refuse"]),
        Is("pass"),
        "remote: `refuse` is for `longhaul host`, so that browsers do not bypass the pair over QUIC. Listed names with `instant_answers` are never reached over QUIC. On a geostationary link a page from origins that speak HTTP/3 takes about as long either way (`make experiments ONLY=quic`). With `refuse`, the pair carries it",
    ),
    key(
        "split.when_down",
        Words(&["error", "direct"]),
        Is("error"),
        "remote: with `direct`, it connects to origins itself while the ground does not respond ([below](PAIR.md#while-the-ground-does-not-respond))",
    ),
    key(
        "split.restart_wait",
        // No client waits longer than two minutes for a page.
        Time { min: Duration::ZERO, max: Duration::from_mins(2) },
        // The ground's Envoy restarts within 5 s after a crash. A restart of the ground by hand takes up to 10 s.
        Is("15s"),
        "remote, with `when_down: error`: for this time, a ground that refuses counts as restarting, and requests that may be sent twice are retried until it is back ([below](PAIR.md#while-the-ground-does-not-respond))",
    ),
    key(
        "split.transport",
        Words(&["h2", "h3"]),
        Is("h2"),
        "the protocol of the pipe. `h3`: HTTP/3 over QUIC, where a lost packet delays only the requests that it belongs to. Set it at both ends, open UDP to the port of `split.listen`, and give the ground by name. TLS of clients and DNS have TCP connections anyway",
    ),
    key(
        "split.pack_headers",
        Boolean,
        Is("true"),
        "`false` leaves headers to HPACK. The ends may differ; headers then cross as HPACK",
    ),
    key(
        "page.prefetch",
        SWITCH,
        Is("true"),
        "a page's moved objects are fetched into the cache while the page passes ([how](../filters/url-rewrite/README.md#prefetching)); needs a cache on disk",
    ),
    key(
        "page.bundle",
        SWITCH,
        Derived("by the link"),
        "a pair, at both ends: objects of http pages are sent to the remote [before browsers request them](../filters/bundling/README.md). On unless a page takes four times longer for its bytes than for its request rounds",
    ),
    key(
        "page.images",
        Form("`auto`, `off`, or a group"),
        Is("auto"),
        "an edge or a ground with a cache on disk: JPEG and PNG images become [smaller WebP images](../filters/images/README.md) for clients that accept `image/webp`. `auto`: if `link.down` is 2mbit or less, or the link is metered. With a group of the keys below, always",
    ),
    key("page.images.quality", Number { min: 1, max: 100 }, Is("75"), "the quality of WebP in place of JPEG"),
    key(
        "page.images.png_quality",
        Form("1 to 100, `lossless`"),
        Is("lossless"),
        "the quality of WebP in place of PNG. `lossless` keeps each pixel: map tiles carry heights in colours",
    ),
    key("page.images.formats", Form("list of `webp`"), Is("[webp]"), "the formats that clients may get"),
    key("page.images.min", Size { min: 0, max: 16 * MIB }, Is("1kib"), "smaller images stay as they are"),
    key("page.images.max", Size { min: KIB, max: 16 * MIB }, Is("1mib"), "larger images stay as they are"),
    key(
        "page.images.exclude",
        Form("list of names"),
        Is("[]"),
        "hosts whose images stay as they are, with all names below them",
    ),
    key(
        "page.delta",
        Words(&["auto", "on", "true", "off", "false"]),
        Is("auto"),
        "a pair, at both ends: an http page crosses the link as [the difference from another page of its site](../filters/bundling/README.md#pages-as-differences), if both ends have one. `auto`: on a metered link, and where the saved bytes take more than a twentieth of a round trip",
    ),
    key(
        "transport",
        Form("any name that `check --all` prints"),
        Derived("by the link"),
        "values in place of derived ones, by name: `transport: { initial_window: 20 }`",
    ),
    key(
        "limits.page_memory",
        Size { min: 16 * KIB, max: 64 * MIB },
        Is("256kib"),
        "the memory that url-rewrite may hold for one page",
    ),
    key("limits.connections", Number { min: 1, max: 10_000_000 }, Is("50000"), "client connections at one time"),
    // Envoy's own bounds of max_request_headers_kb.
    key("limits.header_bytes", Size { min: KIB, max: 8192 * KIB }, Is("64kib"), "the header block of one request"),
    key(
        "limits.clients",
        Number { min: 1, max: header_compression_config::MOST_CLIENTS },
        Is("512"),
        "a pair: the number of clients whose headers each worker remembers, up to 150 KiB each. At a ground, the clients of all its remotes. Beyond it, a client that was not seen for the longest time is forgotten, and its next request costs one more round trip",
    ),
    key(
        "limits.new_names_per_client",
        Number { min: name_budget::limits::LEAST, max: name_budget::limits::MOST },
        Is("600"),
        "new names that one client may request at once, and each minute; further ones get a 429 ([how](../filters/name-budget/README.md))",
    ),
    key(
        "limits.image_workers",
        Number { min: 1, max: 64 },
        Is("2"),
        "images that are recoded at a time. Two more wait for each; the rest stay as they are",
    ),
    key(
        "limits.image_memory",
        Size { min: 32 * MIB, max: 4096 * MIB },
        Is("128mib"),
        "the address space of the process that recodes one image",
    ),
    key(
        "limits.image_pixels",
        Number { min: 1, max: 100_000_000 },
        Is("8000000"),
        "images with more pixels stay as they are",
    ),
    key(
        "limits.image_time",
        Time { min: Duration::from_millis(10), max: Duration::from_secs(30) },
        Is("2s"),
        "the longest time for one image, which then stays as it is",
    ),
    key(
        "tracing.collector",
        Form("`ADDRESS:PORT`"),
        Required("127.0.0.1:4318"),
        "an OpenTelemetry collector (OTLP over HTTP) that gets spans of requests; nothing of it reaches origins. Without the group `tracing`, there are no spans",
    ),
    key("tracing.sample_percent", Number { min: 1, max: 100 }, Is("1"), "the percentage of requests that get spans"),
];
