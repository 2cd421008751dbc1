"""Lookups over TLS, HTTPS and QUIC (`dns.encrypted`): the responses of port 53, for clients that find the servers."""

from __future__ import annotations

import copy
import datetime
import ipaddress
import itertools
import json
import ssl
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dnslib import EDNS0, QTYPE, DNSHeader, DNSQuestion, DNSRecord, EDNSOption

from harness.boxes.bed import Bed
from harness.boxes.pep import PROXY_NAME, Pep, command, gateway_config, parse_metrics, write_config
from harness.browsers.chromium import browser
from harness.clients.commands import dig
from harness.clients.lookups import ENCRYPTED, PORTS, ask
from harness.host.artifacts import built, need_commands
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.namespaces import Namespace
from harness.net.topology import CLIENT, CLIENT_DEVICE, GATEWAY, PROXY, RESOLVER, leads_to_proxy
from harness.origins.program import Site

STEERED = "www.demo.test"
ALSO_STEERED = "img.demo.test"
UNLISTED = "unlisted.example.net"
MANY = "many.example.net"
"""A name whose response does not fit a packet of UDP."""
BYPASSING = "192.0.2.3"
"""A client that always gets the truth."""
SOURCES = (CLIENT, BYPASSING)
SVCB = 64
SVCB_KEYS = {1: "alpn", 3: "port", 4: "ipv4hint", 6: "ipv6hint", 7: "dohpath"}

TABLE = [
    (STEERED, "A"), (STEERED, "AAAA"), (STEERED, "HTTPS"), (STEERED, "TXT"), (ALSO_STEERED, "A"),
    ("WwW.dEmO.test", "A"), (UNLISTED, "A"), (UNLISTED, "AAAA"), (UNLISTED, "HTTPS"), (MANY, "A"), (UNLISTED, "ANY"),
    ("nobody.example.net", "A"), ("nobody.demo.test", "A"),
    (PROXY_NAME, "A"), (PROXY_NAME, "AAAA"), (PROXY_NAME, "HTTPS"),
    ("use-application-dns.net", "A"), ("mask.icloud.com", "HTTPS"), ("resolver.arpa", "A"), ("_dns.resolver.arpa", "A"),
    ("_dns.resolver.arpa", "TYPE64"), (f"_dns.{PROXY_NAME}", "TYPE64"), ("problems.pair.invalid", "TXT"),
]  # fmt: skip


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:  # noqa: ARG001 - order of set-up
    """An edge with a certificate for its name and its address, and clients that query it by no rule."""
    built("doq")
    folder = tmp_path_factory.mktemp("encrypted")
    authority = Authority(folder)
    site = Site(dns=[f"{RESOLVER}:53"])
    for number, name in enumerate((STEERED, ALSO_STEERED), 10):
        site.hosts[name] = {"address": f"203.0.113.{number}", "generate": True, "special": True}
    site.hosts[UNLISTED] = {
        "address": "203.0.113.12", "generate": True, "aaaa": "2001:db8::6", "https_record": True
    }  # fmt: skip
    site.records[MANY] = [f"203.0.113.{number}" for number in range(20, 250)]
    files = authority.issue(PROXY_NAME, PROXY)
    running = Bed(
        folder, site, ["demo.test"], authority,
        dns={"domains": ["steered.txt"], "bypass": [BYPASSING]},
        tls={"terminate": [{"names": [PROXY_NAME], **files.as_dict()}]},
    )  # fmt: skip
    # The bed has issued a certificate for the name alone.
    authority.issue(PROXY_NAME, PROXY)
    with running, running.without_longhaul():
        running.topology.clients.ip("address", "add", f"{BYPASSING}/24", "dev", CLIENT_DEVICE)
        yield running


def question(name: str, kind: str, *, edns: bool = False) -> DNSRecord:
    code = int(kind[4:]) if kind.startswith("TYPE") else QTYPE.reverse[kind]
    query = DNSRecord(DNSHeader(rd=1), q=DNSQuestion(name, code))
    if edns:
        query.add_ar(EDNS0(udp_len=1232, flags="do"))
    return query


def meaning(answer: DNSRecord | str) -> object:
    """Returns what a client learns from a response. A cache counts TTLs down, so they are no part of it."""
    if isinstance(answer, str):
        return answer
    header = answer.header
    sections = [
        [(str(one.rname).lower(), one.rtype, str(one.rdata)) for one in section if one.rtype != QTYPE.OPT]
        for section in (answer.rr, answer.auth, answer.ar)
    ]
    return header.rcode, header.aa, header.tc, header.ra, header.ad, sections


def over(bed: Bed, transport: str, queries: list[DNSRecord], source: str = CLIENT) -> list[DNSRecord | str]:
    return ask(
        transport, queries, PROXY, name=PROXY_NAME, trusted=bed.authority.files.cert, source=source,
        namespace=bed.topology.clients,
    )  # fmt: skip


def test_encrypted_answers_are_those_of_port_53(bed: Bed) -> None:
    queries = [question(name, kind, edns=edns) for name, kind in TABLE for edns in (False, True)]
    compared, differ = 0, []
    for source in SOURCES:
        over(bed, "tcp", queries, source)  # so that a cache has all
        plain = over(bed, "tcp", queries, source)
        assert not [one for one in plain if isinstance(one, str)]
        for transport in ENCRYPTED:
            for query, want, got in zip(queries, plain, over(bed, transport, queries, source), strict=True):
                compared += 1
                if meaning(got) != meaning(want):
                    differ.append((transport, source, str(query.q), meaning(got), meaning(want)))
    print(f"encrypted_answers_differ = {len(differ)} of {compared}")
    assert compared == len(ENCRYPTED) * len(SOURCES) * len(queries)
    assert differ == []


def test_rules_see_the_client_of_each_transport(bed: Bed) -> None:
    for transport, source in itertools.product(("udp", *ENCRYPTED), SOURCES):
        (answer,) = over(bed, transport, [question(STEERED, "A")], source)
        assert isinstance(answer, DNSRecord), (transport, answer)
        assert leads_to_proxy(str(answer.rr[0].rdata)) == (source == CLIENT), (transport, source, answer)


def test_a_long_answer_is_whole_on_a_transport_without_packets(bed: Bed) -> None:
    query = question(MANY, "A", edns=True)
    (cut,) = over(bed, "udp", [query])
    assert isinstance(cut, DNSRecord)
    assert cut.header.tc
    for transport in ENCRYPTED:
        (whole,) = over(bed, transport, [query])
        assert isinstance(whole, DNSRecord), (transport, whole)
        assert (whole.header.tc, len(whole.rr)) == (0, 230), transport


def test_a_padded_query_has_a_padded_answer(bed: Bed) -> None:
    for transport in ENCRYPTED:
        query = question(UNLISTED, "A")
        query.add_ar(EDNS0(udp_len=1232, opts=[EDNSOption(12, bytes(64))]))
        (answer,) = over(bed, transport, [query])
        assert isinstance(answer, DNSRecord), (transport, answer)
        assert [option.code for one in answer.ar for option in one.rdata] == [12], (transport, answer)


def test_dig_speaks_tls_and_http_2(bed: Bed) -> None:
    trust = (f"+tls-ca={bed.authority.files.cert}", f"+tls-hostname={PROXY_NAME}")
    for flag, port in (("+tls", PORTS["tls"]), ("+https", PORTS["https"]), ("+https-get", PORTS["https"])):
        answer = dig(STEERED, "A", PROXY, flag, *trust, port=port, namespace=bed.topology.clients)
        assert answer.status == "NOERROR", (flag, answer)
        assert leads_to_proxy(answer.addresses()[0]), (flag, answer)


@dataclass
class Designated:
    """A server that a resolver designates, from an SVCB record (RFC 9460, RFC 9461)."""

    priority: int
    target: str
    parameters: dict[str, bytes]

    @property
    def port(self) -> int:
        return int.from_bytes(self.parameters["port"], "big")

    @property
    def protocols(self) -> list[str]:
        value, found = self.parameters["alpn"], []
        while value:
            found.append(value[1 : 1 + value[0]].decode())
            value = value[1 + value[0] :]
        return found

    @property
    def addresses(self) -> list[str]:
        hints = self.parameters["ipv4hint"]
        return [str(ipaddress.ip_address(hints[at : at + 4])) for at in range(0, len(hints), 4)]


def designated(answer: DNSRecord | str) -> list[Designated]:
    """Returns the servers of a response, the most wanted first."""
    assert isinstance(answer, DNSRecord), answer
    return sorted(
        (_designated(bytes(one.rdata.data)) for one in answer.rr if one.rtype == SVCB), key=lambda one: one.priority
    )


def _designated(data: bytes) -> Designated:
    priority, at, labels = int.from_bytes(data[:2], "big"), 2, []
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]].decode())
        at += 1 + data[at]
    at, parameters, keys = at + 1, {}, []
    while at < len(data):
        key, size = int.from_bytes(data[at : at + 2], "big"), int.from_bytes(data[at + 2 : at + 4], "big")
        keys.append(key)
        parameters[SVCB_KEYS[key]] = data[at + 4 : at + 4 + size]
        at += 4 + size
    assert keys == sorted(set(keys))
    return Designated(priority, ".".join(labels), parameters)


def raw(bed: Bed, name: str) -> DNSRecord | str:
    return over(bed, "udp", [question(name, "TYPE64")])[0]


TRANSPORT_OF = {"dot": "tls", "doq": "quic", "h2": "https"}


def certificate_names(bed: Bed, server: Designated) -> list[str]:
    """Returns the names and addresses of the certificate that a client of a server verifies."""
    script = textwrap.dedent(f"""
        import json, socket, ssl
        context = ssl.create_default_context(cafile={str(bed.authority.files.cert)!r})
        with socket.create_connection(({server.addresses[0]!r}, {server.port}), 10) as plain:
            with context.wrap_socket(plain, server_hostname={server.target!r}) as secure:
                print(json.dumps([name for _, name in secure.getpeercert()["subjectAltName"]]))
    """)
    return list(json.loads(bed.topology.clients.run(sys.executable, "-c", script).stdout))


def test_a_client_discovers_the_designated_resolvers_of_its_resolver(bed: Bed) -> None:
    """The client of RFC 9462 section 4: it knows the address of its resolver and nothing else."""
    resolver = PROXY
    servers = designated(raw(bed, "_dns.resolver.arpa"))
    assert [server.protocols for server in servers] == [["dot"], ["doq"], ["h2"]]
    assert servers == designated(raw(bed, f"_dns.{PROXY_NAME}"))
    for server in servers:
        assert server.target == PROXY_NAME
        assert server.addresses == [resolver]
        (protocol,) = server.protocols
        if protocol == "h2":
            assert server.parameters["dohpath"] == b"/dns-query{?dns}"
        if protocol != "doq":
            # Verified discovery (section 4.2): the certificate has the address of the resolver that was queried.
            assert resolver in certificate_names(bed, server)
        (answer,) = ask(
            TRANSPORT_OF[protocol], [question(STEERED, "A")], server.addresses[0], name=server.target, port=server.port,
            trusted=bed.authority.files.cert, namespace=bed.topology.clients,
        )  # fmt: skip
        assert isinstance(answer, DNSRecord), answer
        assert leads_to_proxy(str(answer.rr[0].rdata))
    # Everything else there stays here, and is empty.
    answer = dig("_dns.resolver.arpa", "A", PROXY, namespace=bed.topology.clients)
    assert (answer.status, answer.answer, [kind for _, _, kind, _ in answer.authority]) == ("NOERROR", [], ["SOA"])


def counted(bed: Bed) -> dict[str, float]:
    """Returns the lookups so far, by transport."""
    page = parse_metrics(bed.pep.page("http://127.0.0.1:9153/metrics"))
    of = "coredns_dns_requests_total{"
    return {
        scheme: sum(value for name, value in page.items() if name.startswith(of) and f'server="{scheme}://' in name)
        for scheme in ("dns", *ENCRYPTED)
    }


def test_lookups_are_counted_by_transport(bed: Bed) -> None:
    before = counted(bed)
    for transport, number in zip(ENCRYPTED, (1, 2, 3), strict=True):
        over(bed, transport, [question(UNLISTED, "A")] * number)
    after = counted(bed)
    assert [after[one] - before[one] for one in ENCRYPTED] == [1, 2, 3]
    assert after["dns"] == before["dns"]


def test_a_browser_looks_names_up_over_https(bed: Bed) -> None:
    need_commands("chromium", "certutil")
    clients = copy.copy(bed.topology.clients)
    clients.resolv_conf = bed.folder / "browser-resolv.conf"
    clients.resolv_conf.write_text(f"nameserver {GATEWAY}\n")
    template = f"https://{PROXY_NAME}:{PORTS['https']}/dns-query{{?dns}}"

    before = counted(bed)
    with browser(bed.folder, clients, bed.authority, lookups_at=template) as chromium:
        load = chromium.load(f"http://{STEERED}/page.html")
    assert load.failed() == [], load
    assert leads_to_proxy(load.loaded()[0].remote.rsplit(":", 1)[0]), load
    assert counted(bed)["https"] > before["https"]


def test_a_change_of_the_file_loses_no_lookup(bed: Bed) -> None:
    text = bed.config.read_text()
    applied = bed.pep.output().count(" changed: applied")
    bed.config.write_text(text.replace('"bypass"', '"ttl": "2m", "bypass"'))
    try:
        wait_for("the change", lambda: bed.pep.output().count(" changed: applied") > applied)
        for transport in ENCRYPTED:
            answers = over(bed, transport, [question(STEERED, "A")] * 20)
            assert not [one for one in answers if isinstance(one, str)], (transport, answers)
    finally:
        bed.config.write_text(text)
        wait_for("the file as it was", lambda: bed.pep.output().count(" changed: applied") > applied + 1)


def serial(bed: Bed) -> str:
    """Returns the serial number of the certificate on the port of TLS."""
    done = bed.topology.clients.run(
        "openssl", "s_client", "-connect", f"{PROXY}:{PORTS['tls']}", "-servername", PROXY_NAME, check=False
    )
    pem = done.stdout[done.stdout.index("-----BEGIN") : done.stdout.index("-----END")] + "-----END CERTIFICATE-----\n"
    return hex(int.from_bytes(ssl.PEM_cert_to_DER_cert(pem)[10:30], "big"))


def test_a_renewed_certificate_is_in_use_without_a_restart(bed: Bed) -> None:
    before = serial(bed)
    bed.authority.issue(PROXY_NAME, PROXY)
    wait_for("the renewed certificate", lambda: serial(bed) != before, timeout_s=15, interval_s=0.2)
    for transport in ENCRYPTED:
        (answer,) = over(bed, transport, [question(STEERED, "A")])
        assert isinstance(answer, DNSRecord), (transport, answer)
    assert len(designated(raw(bed, "_dns.resolver.arpa"))) == 3


def test_an_ended_certificate_is_shown_and_no_client_is_told(bed: Bed) -> None:
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    bed.authority.issue(PROXY_NAME, PROXY, ends=yesterday)
    try:
        wait_for("the designation to end", lambda: designated(raw(bed, "_dns.resolver.arpa")) == [], timeout_s=15)
        answer = raw(bed, "_dns.resolver.arpa")
        assert isinstance(answer, DNSRecord)
        assert [one.rtype for one in answer.auth] == [QTYPE.SOA]
        for transport in ENCRYPTED:
            (refusal,) = over(bed, transport, [question(STEERED, "A")])
            assert isinstance(refusal, str), (transport, refusal)
            assert "expired" in refusal, (transport, refusal)
        (plain,) = over(bed, "udp", [question(STEERED, "A")])
        assert isinstance(plain, DNSRecord)
        assert leads_to_proxy(str(plain.rr[0].rdata))
    finally:
        bed.authority.issue(PROXY_NAME, PROXY)
    wait_for("the designation", lambda: len(designated(raw(bed, "_dns.resolver.arpa"))) == 3, timeout_s=15)


def test_a_port_of_another_program_costs_its_transport_alone(bed: Bed, folder: Path) -> None:
    hold = f"import socket; s = socket.create_server(('', {PORTS['https']})); print('held', flush=True); s.accept()"
    listen = {**gateway_config(folder, None)["listen"], "intercept": "none"}
    config = write_config(folder, gateway_config(folder, bed.certificate, listen=listen), [STEERED])
    with Namespace("alone") as alone:
        alone.ip("address", "add", f"{PROXY}/32", "dev", "lo")
        holder = Child(alone.inside([sys.executable, "-c", hold]), folder / "holder.log")
        try:
            holder.wait_for_output("held")
            with Pep(config, folder, alone) as pep:
                assert (
                    f"port {PORTS['https']} (TCP) of 0.0.0.0:{PORTS['https']}, set by `dns.encrypted`, is in use"
                    in pep.output()
                )
                query = question("_dns.resolver.arpa", "TYPE64")
                (answer,) = ask(
                    "tls", [query], PROXY, name=PROXY_NAME, trusted=bed.authority.files.cert, namespace=alone
                )  # fmt: skip
                assert [server.protocols for server in designated(answer)] == [["dot"], ["doq"]]
        finally:
            holder.stop()


def test_the_summary_and_the_options_of_dhcp_name_the_servers(bed: Bed) -> None:
    done = command("check", bed.config)
    assert f"TLS 853, QUIC 853, HTTPS 8443 at {PROXY_NAME}" in done.stdout, done.stdout
    printed = command("host", bed.config, "--clients", "lan0", "--print").stdout
    assert "dhcp-option=162,00:2b:00:01:11:03:70:65:70" in printed, printed
    assert '"code": 162, "space": "dhcp4"' in printed, printed
    assert "tcp dport { 80, 443, 53, 853, 8443 } reject" in printed, printed
