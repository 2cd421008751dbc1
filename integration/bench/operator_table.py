"""The staged faults, by the names of FAULTS.md: the stage of each, the words that name it, and the cure that those
words must give."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bench import operator_faults as stage
from bench.operator_bed import LAN
from bench.operator_faults import DAY_S, Mend, Stage
from harness.host.artifacts import REPOSITORY
from harness.net.topology import RESOLVER

FAULTS = REPOSITORY / "envoy-config" / "FAULTS.md"
HEADING = "## Staged at a running pair"
RULE = r"(?:ufw|nft|firewall-cmd) [^\n`;]*"
"""A command for a packet filter."""


@dataclass(frozen=True)
class Fault:
    """One fault."""

    name: str
    """As in FAULTS.md."""
    at: str
    """The machine whose status, page and journal are read: ship or ground."""
    stage: Stage
    words: str
    """A regular expression, in any case, that names the cause."""
    cure: str
    """The same for the cure. The text that it finds is typed at the machine, unless `mend` does something else."""
    mend: Mend | None = None
    prepare: Stage = field(default=lambda ship: None)  # noqa: ARG005 - nothing to prepare
    """Brings the pair into the state in which the fault can happen, before the time counts."""
    starts: bool = True
    """False if the service does not start with the fault. Then there is no page, and the journal counts."""


SILENT = r"ground (has not responded for \d+ s|does not respond)"
ALLOW_LAN = rf"{RULE}|allow in on {LAN}"
OTHER_FIREWALL = (
    r"(another|other|foreign) (firewall|packet filter|program|table)|(did|do) not arrive|none arrived"
    r"|chain [^\n]*(drops|takes packets)"
)
ROOM = r"cache\.size|room|\bdf\b|\bdu\b"
TABLE = (
    Fault("silent link", "ship", stage.silent_link, SILENT, r"modem", stage.undone),
    Fault(
        "ground stopped", "ship", stage.ground_stopped,
        r"ground (does not respond|refuses)|refuses connections", r"systemctl (re)?start longhaul|start `?longhaul`?",
        stage.start_ground,
    ),
    Fault("TCP 8443 dropped at the ground", "ship", stage.pipe_port_dropped, SILENT, r"8443", stage.undone),
    Fault(
        "MTU black hole", "ship", stage.small_packets,
        r"\bMTU\b|packets (above|larger|of more than|of \d+)", r"mtu: \d+|mtu` to \d+", stage.set_mtu,
    ),
    Fault(
        "captive portal on the link", "ship", stage.captive_portal,
        r"(another|unknown|other|not signed by|no) authority|refuses the certificate of the ground|portal", r"portal",
        stage.undone,
    ),
    Fault(
        "strict rp_filter with two uplinks", "ship", stage.two_ways_out,
        r"rp_filter|reverse path", r"sysctl [^\n`;,]*rp_filter=[02]",
    ),
    Fault("UDP 53 dropped at lan0", "ship", stage.names_dropped, OTHER_FIREWALL, ALLOW_LAN),
    Fault("policy drop on input", "ship", stage.input_dropped, OTHER_FIREWALL, ALLOW_LAN),
    Fault(
        "redirect of another program", "ship", stage.other_redirect,
        rf"{OTHER_FIREWALL}|(another|other|foreign)[^\n]*redirect|redirects? [^\n]*(another|other|foreign)", RULE,
    ),
    Fault(
        "rules flushed", "ship", stage.flushed,
        r"rules [^\n]{0,40}(gone|missing)", rf"systemctl restart longhaul-host@{LAN}",
    ),
    Fault(
        "forwarding switched off", "ship", stage.not_forwarding,
        r"ip_forward", r"sysctl -w net\.ipv4\.ip_forward=1",
    ),
    Fault(
        "wrong resolver", "ground", stage.other_resolver,
        r"resolver 203\.0\.113\.99[^\n]*does not respond", r"upstream\.resolvers", stage.restored,
    ),
    Fault(
        "UDP 53 dropped at the ground", "ship", stage.resolver_blocked,
        rf"resolver {RESOLVER}[^\n]*does not respond", r"UDP|upstream\.resolvers|firewall", stage.undone,
    ),
    Fault(
        "refused list", "ship", stage.two_words_on_a_line,
        r"list [^\n]*(refused|missing)", r"longhaul check|line \d+", stage.mend_list, stage.with_list,
    ),
    Fault("DNS loop", "ground", stage.loop, r"\bloops?\b", r"upstream\.resolvers", stage.restored),
    Fault(
        "client with DNS over https", "ship", stage.encrypted_names,
        r"DNS over https|DoH|encrypted DNS", r"change it in the browser", stage.restored,
    ),
    Fault(
        "IPv6 client", "ship", stage.ipv6_client,
        r"IPv6[^\n]*(pass|listen)|clients[^\n]*IPv6", r"\[::\]:80", stage.restored, stage.without_ipv6,
    ),
    Fault(
        "wrong certificate", "ship", stage.other_certificate,
        r"certificate[^\n]*(refuse|another authority|not signed|unknown)|not signed the certificate"
        r"|handshake[^\n]*authority",
        r"pair renew|copy|`?pair`? folder|pair-ca", stage.restored,
    ),
    Fault(
        "clock 2 days behind", "ship", stage.jump(-2 * DAY_S),
        r"clock|not valid yet", r"timedatectl[^\n`;,]*|set the clock", stage.mend_clock,
    ),
    Fault(
        "clock a year behind", "ship", stage.jump(-365 * DAY_S),
        r"clock", r"timedatectl[^\n`;,]*|set the clock", stage.mend_clock,
    ),
    Fault(
        "port 443 taken", "ship", stage.port_taken,
        r"port 443[^\n]*in use", r"systemctl stop [\w@.-]+|stop it|ss -ltnp", stage.free_port, starts=False,
    ),
    Fault(
        "disk full", "ground", stage.disk_full,
        r"disk of [^\n]*(left|room)|(disk|No space)[^\n]*full", ROOM, stage.make_room,
    ),
    Fault(
        "disk full at a restart", "ground", stage.disk_full_at_start,
        r"disk[^\n]*(left|full|room)|cache[^\n]*(free|room|off)", ROOM, stage.make_room, starts=False,
    ),
    Fault(
        "cache folder read-only", "ground", stage.broken_cache,
        r"cache[^\n]*(read-only|write|writable)", r"systemctl restart longhaul|cache\.dir|writable|disk",
        stage.writable_cache, starts=False,
    ),
)  # fmt: skip


def listed() -> list[str]:
    """The names of the faults in FAULTS.md, which stand there before a run."""
    section = FAULTS.read_text().partition(HEADING)[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| [^|]+\|", section, re.M)
    return [name for name in rows if name != "fault" and not set(name) <= set("-: ")]
