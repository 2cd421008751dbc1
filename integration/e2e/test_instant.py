"""First lookups of browsers at a remote that responds to them at once (`dns.instant: on`)."""

from __future__ import annotations

import socket
import ssl
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from harness.boxes.pep import command
from harness.browsers.chromium import browser
from harness.clients.commands import DnsAnswer, dig
from harness.host.artifacts import built, need_commands
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.lab.instant import InstantBed, instant_bed, look_up
from harness.lab.line import is_instant
from harness.net.sockets import socket_in
from harness.net.topology import CLIENT, RESOLVER

RTT_S = 0.6
PAGE, PLAIN, OTHER = "page.example.org", "plain.example.org", "other.example.org"
BROWSED = "browsed.example.org"
PRIVATE, WITHHELD = "private.example.org", "192.0.0.8"
LOGGED = "logged.example.org"
NEW = [f"new{number}.example.org" for number in range(8)]


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstantBed]:  # noqa: ARG001 - order of set-up
    names = [
        PAGE,
        PLAIN,
        OTHER,
        BROWSED,
        LOGGED,
        *NEW,
        *OF_PROGRAMS.values(),
        *(f"behind-{one}.example.org" for one in FORWARDERS),
    ]
    with instant_bed(tmp_path_factory.mktemp("instant"), names=names, records={PRIVATE: ["10.0.0.7"]}) as standing:
        yield standing
        # The tests sent much to the range, and nothing of it left towards the link.
        assert standing.leaked() == 0


def truth(bed: InstantBed, name: str) -> str:
    return bed.site.hosts[name]["address"]


def answered_truly(bed: InstantBed, name: str) -> None:
    """Waits until the name has its true response."""
    wait_for(f"the truth of {name}", lambda: bed.program(name).addresses == (truth(bed, name),), interval_s=0.2)


def test_a_browsers_first_lookup_costs_no_round_trip_and_its_connection_reaches_the_server(bed: InstantBed) -> None:
    found = look_up(bed.line, PAGE, "A", "AAAA", "HTTPS")
    assert len(found) == 3, found
    assert found["A"].instant, found
    for kind, reply in found.items():
        assert reply.seconds < RTT_S / 3, found
        assert reply.code == "NOERROR", found
        assert kind == "A" or not reply.addresses, found
    (address,) = found["A"].addresses
    for scheme, port in (("https", 443), ("http", 80)):
        got = bed.curl.get(f"{scheme}://{PAGE}/some.bin", "--resolve", f"{PAGE}:{port}:{address}")
        assert got.status == 200, got
    answered_truly(bed, PAGE)
    assert bed.visit(PAGE).addresses == (truth(bed, PAGE),), "a name has its true response from then on"


def test_programs_get_true_responses_while_a_browser_gets_instant_ones(bed: InstantBed) -> None:
    with ThreadPoolExecutor(2) as pool:
        program = pool.submit(look_up, bed.line, OTHER, "A", "AAAA")
        browser = pool.submit(look_up, bed.line, PLAIN, "A", "HTTPS")
        assert browser.result()["A"].instant
        assert program.result()["A"].addresses == (truth(bed, OTHER),)
    # A program looks up the very name that the browser has just visited.
    assert bed.visit(NEW[0]).instant
    assert bed.program(NEW[0]).addresses == (truth(bed, NEW[0]),)


@pytest.mark.parametrize(
    "name",
    ["dhqwxkzjrt", "printer.local", "www.page.test", "wpad.example.org", "_x.example.org", "7.2.0.192.in-addr.arpa"],
)
def test_names_of_no_website_are_never_instant(bed: InstantBed, name: str) -> None:
    reply = bed.visit(name)
    assert not reply.instant, reply
    assert reply.code == "NXDOMAIN", reply


def test_a_name_that_does_not_exist_is_denied_from_the_next_lookup_on(bed: InstantBed) -> None:
    (address,) = bed.visit("gone.example.org").addresses
    began = time.monotonic()
    got = bed.curl.get("https://gone.example.org/", "--resolve", f"gone.example.org:443:{address}")
    assert got.status == 0, got
    assert time.monotonic() - began < 4 * RTT_S, "the connection does not end"
    wait_for("the denial", lambda: bed.visit("gone.example.org").code == "NXDOMAIN", interval_s=0.2)


def test_a_private_address_is_never_reached_by_an_instant_one(bed: InstantBed) -> None:
    (address,) = bed.visit(PRIVATE).addresses
    got = bed.curl.get(f"http://{PRIVATE}/", "--resolve", f"{PRIVATE}:80:{address}")
    assert got.status in (403, 502, 503), got
    # The ground withholds the address from a remote (RFC 7600), with and without instant ones.
    wait_for("the truth", lambda: bed.visit(PRIVATE).addresses == (WITHHELD,), interval_s=0.2)


def ends_at_once(bed: InstantBed, address: str, port: int, first: bytes) -> bool:
    """Connects and sends bytes. Returns true if the connection ends within a fraction of the round trip."""
    with socket_in(bed.line.clients, socket.SOCK_STREAM) as sock:
        sock.settimeout(RTT_S / 2)
        try:
            sock.connect((address, port))
            sock.sendall(first)
            return sock.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True


def hello_without_a_name() -> bytes:
    """Returns the first bytes of a TLS client that says no server name."""
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    tls = context.wrap_bio(into, out)
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return out.read()


def test_what_carries_no_name_ends_at_once_and_reaches_nobody(bed: InstantBed) -> None:
    (address,) = bed.visit(NEW[1]).addresses
    assert ends_at_once(bed, address, 443, hello_without_a_name())
    assert ends_at_once(bed, address, 443, b"SSH-2.0-x\r\n")
    http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)
    assert ends_at_once(bed, address, 80, http2)
    without_host = bed.curl.get(f"http://{address}/", "-0", "-H", "Host:")
    assert without_host.status >= 400, without_host
    assert bed.leaked() == 0


def test_clients_that_validate_and_explanations_get_the_truth(bed: InstantBed) -> None:
    def ask(kind: str) -> DnsAnswer:
        return dig(NEW[2], kind, RESOLVER, "+dnssec", namespace=bed.line.clients)

    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(ask, ["A", "HTTPS"]))
    assert replies[0].addresses() == [truth(bed, NEW[2])]
    said = bed.line.near.run("dig", "@127.0.0.1", "+ednsopt=65053", NEW[3]).stdout
    assert "a browser's first lookup gets an address of the name's own" in said, said


def test_the_outcomes_are_counted(bed: InstantBed) -> None:
    before = bed.outcomes()
    assert bed.visit(NEW[4]).instant
    assert bed.program(NEW[5]).addresses == (truth(bed, NEW[5]),)
    after = bed.outcomes()
    assert after["instant"] - before["instant"] == 2
    assert after["alone"] - before["alone"] == 2


def test_a_browser_loads_a_page_from_an_instant_address_and_names_the_error_of_a_name_that_does_not_exist(
    bed: InstantBed,
) -> None:
    need_commands("chromium", "certutil")
    with browser(bed.folder, bed.line.clients, bed.authority) as chromium:
        load = chromium.load(f"https://{BROWSED}/page.html")
        page = next(one for one in load.requests if one.url.endswith("/page.html"))
        assert page.loaded, page
        assert is_instant(page.remote.rpartition(":")[0]), page
        assert not [one for one in load.failed() if "favicon" not in one.url]
        with chromium.tab() as tab:
            failed = tab.call("Page.navigate", 20, url="https://absent.example.org/")["errorText"]
    # The first visit says that the connection ended. The truth comes with the next lookup.
    assert failed in ("net::ERR_CONNECTION_CLOSED", "net::ERR_CONNECTION_RESET", "net::ERR_NAME_NOT_RESOLVED"), failed
    wait_for("the denial", lambda: bed.program("absent.example.org").code == "NXDOMAIN", interval_s=0.2)


PORT = 2222


@contextmanager
def served(bed: InstantBed, name: str) -> Iterator[None]:
    """A server of the name on a port that no listener takes: it says who connects over TCP, and echoes over UDP."""
    tcp, udp = (socket_in(bed.line.internet, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM))
    with tcp, udp, ThreadPoolExecutor(2) as pool:
        tcp.bind((truth(bed, name), PORT))
        udp.bind((truth(bed, name), PORT))
        tcp.listen()

        def greet() -> None:
            with suppress(OSError):
                while True:
                    client, (address, _) = tcp.accept()
                    client.sendall(address.encode())
                    client.close()

        def echo() -> None:
            with suppress(OSError):
                while True:
                    data, client = udp.recvfrom(99)
                    if not data:
                        return
                    udp.sendto(data, client)

        pool.submit(greet)
        pool.submit(echo)
        try:
            yield
        finally:
            tcp.shutdown(socket.SHUT_RDWR)
            udp.sendto(b"", udp.getsockname())


def refused_at_once(bed: InstantBed, address: str, port: int, kind: int = socket.SOCK_STREAM) -> bool:
    with socket_in(bed.line.clients, kind) as sock:
        sock.settimeout(RTT_S / 2)
        try:
            sock.connect((address, port))
            sock.send(b"x")
            sock.recv(1)
        except ConnectionRefusedError:
            return True
        except TimeoutError:
            return False
    return False


def test_other_ports_are_refused_until_somebody_keeps_the_map_and_then_reach_the_true_address(bed: InstantBed) -> None:
    (address,) = bed.visit(NEW[6]).addresses
    assert refused_at_once(bed, address, PORT)
    assert refused_at_once(bed, address, PORT, socket.SOCK_DGRAM)
    with bed.kept(), served(bed, NEW[7]):
        (address,) = bed.visit(NEW[7]).addresses
        with socket_in(bed.line.clients, socket.SOCK_STREAM) as sock:
            # The first packet comes before the truth, and TCP tries again.
            sock.settimeout(10)
            sock.connect((address, PORT))
            assert sock.recv(99) == CLIENT.encode()
            assert sock.getpeername()[0] == address
        with socket_in(bed.line.clients, socket.SOCK_DGRAM) as sock:
            sock.settimeout(5)
            sock.connect((address, PORT))
            sock.send(b"ping")
            assert sock.recv(99) == b"ping"
        assert refused_at_once(bed, address, 443, socket.SOCK_DGRAM), "QUIC"
        (nobody,) = bed.visit("nobody.example.org").addresses
        wait_for("the denial", lambda: refused_at_once(bed, nobody, PORT), interval_s=0.2)
        # Firefox tries a TLS connection that ended again and again. The ground tells clients of http what is wrong.
        assert refused_at_once(bed, nobody, 443)
        assert not refused_at_once(bed, nobody, 80)
        assert not refused_at_once(bed, address, 443)


UDP_BY_NAME = """
import socket, sys
address = socket.getaddrinfo(sys.argv[1], int(sys.argv[2]), socket.AF_INET, socket.SOCK_DGRAM)[0][4]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.settimeout(10)
    sock.sendto(b"ping", address)
    print(address[0], sock.recv(99) == b"ping")
"""
"""A client of NTP or of a VPN: one exchange over UDP with a server by name."""
PROGRAMS = {
    "curl": ["curl", "-sSk", "-o", "/dev/null", "-w", "%{remote_ip}", "https://$/some.bin"],
    "wget": ["wget", "-qO/dev/null", "http://$/some.bin"],
    "apt": ["/usr/lib/apt/apt-helper", "download-file", "http://$/some.bin", "/dev/null"],
    "git": ["git", "ls-remote", "https://$/some.git"],
    "mail over TLS": ["openssl", "s_client", "-connect", "$:465", "-brief"],
    "ssh, by the C library": ["getent", "ahosts", "$"],
    "a VPN over UDP": [sys.executable, "-c", UDP_BY_NAME, "$", str(PORT)],
}
OF_PROGRAMS = {name: f"program{number}.example.org" for number, name in enumerate(PROGRAMS)}


def test_client_programs_get_true_responses_beside_a_browser(bed: InstantBed) -> None:
    need_commands("curl", "wget", "git", "openssl")
    before = bed.outcomes()

    def run(program: str) -> str:
        words = [word.replace("$", OF_PROGRAMS[program]) for word in PROGRAMS[program]]
        return bed.line.clients.run(*words, check=False, timeout_s=60).stdout

    with served(bed, OF_PROGRAMS["a VPN over UDP"]), ThreadPoolExecutor(len(PROGRAMS) + 1) as pool:
        printed = dict(zip(PROGRAMS, pool.map(run, PROGRAMS), strict=False))
        assert bed.visit("beside.example.org").instant
    after = bed.outcomes()
    # One lookup of the browser has two queries, and each program has one lookup at least.
    assert after["instant"] - before["instant"] == 2
    assert after["alone"] - before["alone"] >= len(PROGRAMS)
    for program in ("curl", "ssh, by the C library", "a VPN over UDP"):
        assert truth(bed, OF_PROGRAMS[program]) in printed[program], printed
    assert printed["a VPN over UDP"].endswith("True\n")


def dnsmasq(folder: Path) -> list[str | Path]:
    return [
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=root",
        f"--server={RESOLVER}", f"--port={FORWARDERS_PORT}", "--listen-address=127.0.0.1", "--bind-interfaces",
        f"--pid-file={folder / 'dnsmasq.pid'}",
    ]  # fmt: skip


def unbound(folder: Path) -> list[str | Path]:
    (config := folder / "unbound.conf").write_text(
        f'server:\n interface: 127.0.0.1@{FORWARDERS_PORT}\n directory: "{folder}"\n chroot: ""\n username: ""\n'
        ' pidfile: ""\n use-syslog: no\n module-config: "iterator"\n do-not-query-localhost: no\n'
        f'forward-zone:\n name: "."\n forward-addr: {RESOLVER}\n'
    )
    return ["unbound", "-d", "-c", config]


FORWARDERS_PORT = 5300
FORWARDERS = {"dnsmasq": (dnsmasq, True), "unbound": (unbound, False)}
"""Each with true, if a browser behind it gets instant addresses. unbound wants signatures, and gets the truth."""


@pytest.mark.parametrize("forwarder", FORWARDERS)
def test_a_forwarder_keeps_no_instant_address_for_programs_behind_it(bed: InstantBed, forwarder: str) -> None:
    need_commands(forwarder)
    name, server = f"behind-{forwarder}.example.org", ("127.0.0.1", FORWARDERS_PORT)
    (home := bed.folder / forwarder).mkdir()
    words, is_instant_behind = FORWARDERS[forwarder]
    with Child(bed.line.clients.inside(words(home)), home / "log"):
        wait_for(
            forwarder,
            lambda: look_up(bed.line, PAGE, "A", timeout_s=1, server=server).get("A"),
        )
        assert look_up(bed.line, name, "A", "HTTPS", server=server)["A"].instant == is_instant_behind
        time.sleep(0.1)  # Longer than the two queries of a browser are apart.
        assert look_up(bed.line, name, "A", "AAAA", server=server)["A"].addresses == (truth(bed, name),)


def test_the_log_in_words_marks_what_went_to_an_instant_address(bed: InstantBed) -> None:
    (address,) = bed.visit(LOGGED).addresses
    log = bed.folder / "remote" / "access.jsonl"

    def line(path: str, dialled: str) -> str:
        got = bed.curl.get(f"http://{LOGGED}{path}", "--resolve", f"{LOGGED}:80:{dialled}")
        assert got.status == 200, got
        wait_for(f"the line of {path}", lambda: path in log.read_text())
        return next(one for one in command("log", str(log)).stdout.splitlines() if path in one)

    assert line("/one.bin", address).endswith(", at an instant address")
    assert "instant" not in line("/two.bin", truth(bed, LOGGED))


def test_check_names_a_route_in_the_range(bed: InstantBed) -> None:
    near = bed.line.near
    check = [built("longhaul"), "check", "--here", bed.pair.remote.config]

    def said() -> str:
        done = near.run(*check, check=False)
        return done.stdout + done.stderr

    assert "dns.instant_range" not in said()
    near.ip("route", "add", "198.18.5.0/24", "dev", "lo")
    try:
        text = " ".join(said().split())
    finally:
        near.ip("route", "del", "198.18.5.0/24", "dev", "lo")
    assert "a route leads 198.18.5.0/24 to the device lo" in text, text
    assert "does not fit this machine" in text, text
