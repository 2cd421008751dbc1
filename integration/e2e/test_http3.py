"""HTTP/3 to clients: announced and spoken for the proxy name and for names whose TLS ends here, refused for all
others."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from harness.boxes.bed import Bed
from harness.boxes.desk import Desk, is_taken
from harness.boxes.pep import PROXY_NAME, command
from harness.browsers.chromium import browser
from harness.clients.http3 import H3Answer, h3get
from harness.clients.moved import true_url
from harness.host.artifacts import REPOSITORY, need_commands
from harness.host.ports import free_ports
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.topology import PROXY, SITES
from harness.origins.pages import page_site

PORTAL = "portal.example.org"
"""A site whose key the operator holds."""
ELSEWHERE = "elsewhere.example.org"
"""A site whose key the operator does not hold."""
MOST_CONNECTIONS = 12
DEMO_HOSTS = ("www.demo.test", "img.demo.test", "cdn.demo.test", "ads.demo.test", "static.demo.test")
ANNOUNCED = 'h3=":443"; ma=86400'


@pytest.fixture(scope="module")
def quic(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:  # noqa: ARG001 - order of set-up
    folder = tmp_path_factory.mktemp("quic")
    authority = Authority(folder)
    site = page_site(ca=authority.files.as_dict())
    addresses = (str(one) for one in SITES.hosts())
    for name in (PORTAL, ELSEWHERE):
        site.hosts[name] = {"address": next(addresses), "special": True, "generate": True}
    pages = folder / "pages"
    pages.mkdir()
    (pages / "page.html").write_text(f'<!doctype html><title>p</title><img src="https://{ELSEWHERE}/one.png">')
    site.hosts[PORTAL]["root"] = str(pages)
    for name in DEMO_HOSTS:
        root = REPOSITORY / "integration" / "site" / name
        header = {"Access-Control-Allow-Origin": "*"}
        site.hosts[name] = {"address": next(addresses), "root": str(root), "header": header}
    terminate = [{"names": [name], **authority.issue(name).as_dict()} for name in (PROXY_NAME, PORTAL)]
    with Bed(
        folder, site, ["example.org", "demo.test"], authority,
        tls={"terminate": terminate}, limits={"connections": MOST_CONNECTIONS},
    ) as running:  # fmt: skip
        yield running


def over_quic(bed: Bed, *arguments: str) -> list[H3Answer]:
    return h3get(bed.authority.files.cert, *arguments, namespace=bed.topology.clients)


def moved(host: str, path: str = "/picture.jpg") -> str:
    return f"https://{PROXY_NAME}/{host}{path}"


def connections(bed: Bed) -> float:
    name = 'envoy_http_downstream_cx_http3_total{envoy_http_conn_manager_prefix="edge_quic"}'
    return bed.pep.metrics().get(name, 0)


def test_a_moved_object_comes_over_http_3_as_it_comes_over_http_2(quic: Bed) -> None:
    url = moved(PORTAL)
    [answer] = over_quic(quic, url)
    assert (answer.status, answer.proto) == (200, "HTTP/3.0"), answer
    over_tcp = quic.curl.get(url)
    assert over_tcp.version == "2"
    assert answer.bytes == len(over_tcp.body)
    for name in ("content-type", "content-security-policy", "x-content-type-options", "cross-origin-resource-policy"):
        assert answer.headers.get(name) == over_tcp.header(name), name
    assert not answer.headers.get("set-cookie")


def test_a_name_whose_key_we_hold_speaks_it_and_its_pages_are_rewritten(quic: Bed) -> None:
    [page] = over_quic(quic, "-body", f"https://{PORTAL}/page.html")
    assert (page.status, page.proto) == (200, "HTTP/3.0"), page
    assert f'<img src="https://{PROXY_NAME}/{ELSEWHERE}:443/one.png">' in page.body, page.body
    assert quic.origins.requests(host=PORTAL, scheme="https"), "the origin is asked as the client asked, over TLS"


def test_both_are_announced_over_tls_and_nobody_is_over_plain_http(quic: Bed) -> None:
    for url in (moved(PORTAL), f"https://{PORTAL}/picture.jpg"):
        assert quic.curl.get(url).header("alt-svc") == ANNOUNCED, url
        [answer] = over_quic(quic, url)
        assert answer.headers["alt-svc"] == ANNOUNCED
    assert quic.curl.get(f"http://{PORTAL}/picture.jpg").header("alt-svc") is None
    passed_on = quic.curl.get(f"https://{ELSEWHERE}/picture.jpg")
    assert (passed_on.status, passed_on.header("alt-svc")) == (200, None)


def test_the_https_record_of_our_own_name_announces_it_beside_our_addresses(quic: Bed) -> None:
    [record] = quic.dig(PROXY_NAME, "HTTPS").answer
    assert 'alpn="h3,h2"' in record[3]
    assert quic.dig(PROXY_NAME, "A").addresses() == [PROXY]
    aaaa = quic.dig(PROXY_NAME, "AAAA")
    assert (aaaa.status, aaaa.answer) == ("NOERROR", [])


def test_a_name_we_hold_no_key_for_is_refused_at_once_so_that_clients_go_on_over_tcp(quic: Bed) -> None:
    [answer] = over_quic(quic, "-connect", f"{PROXY}:443", f"https://{ELSEWHERE}/picture.jpg")
    assert answer.status == 0
    assert "no response" not in answer.problem, "silence would cost clients a timeout"
    assert answer.seconds < 4


def test_without_a_name_our_address_is_us(quic: Bed) -> None:
    [answer] = over_quic(quic, f"https://{PROXY}/{PORTAL}/picture.jpg")
    # The certificate lacks the address, so the client refuses it. Still, the box presented one.
    assert "doesn't contain any IP SANs" in answer.problem, answer


def test_a_body_larger_than_every_window_comes_and_goes_whole(quic: Bed) -> None:
    size = 40 << 20
    [down] = over_quic(quic, "-timeout", "60s", f"https://{PORTAL}/_/answer?size={size}")
    assert (down.status, down.bytes, down.problem) == (200, size, "")
    [up] = over_quic(quic, "-timeout", "60s", "-upload", str(30 << 20), f"https://{PORTAL}/_/answer?size=10")
    assert (up.status, up.bytes, up.problem) == (200, 10, "")


def test_a_hundred_requests_share_one_connection(quic: Bed) -> None:
    before = connections(quic)
    answers = over_quic(quic, *(moved(PORTAL, f"/{n}.png") for n in range(100)))
    assert {(one.status, one.proto) for one in answers} == {(200, "HTTP/3.0")}
    assert connections(quic) - before == 1


def test_no_more_connections_are_kept_than_the_limit_allows(quic: Bed) -> None:
    urls = [moved(PORTAL, f"/apart-{n}.png") for n in range(3 * MOST_CONNECTIONS)]
    answers = over_quic(quic, "-apart", "-hold", "1s", "-timeout", "5s", *urls)
    served = [one for one in answers if one.status == 200]
    assert 1 <= len(served) <= MOST_CONNECTIONS, len(served)
    # A place becomes free again when connections end.
    wait_for("a place for another", lambda: over_quic(quic, moved(PORTAL))[0].status == 200)


def test_a_browser_loads_the_moved_objects_of_a_page_over_http_3(
    quic: Bed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    need_commands("chromium", "certutil")
    # Over QUIC, Chromium accepts a local authority's certificate only for the names in this flag.
    flags = (f"--origin-to-force-quic-on={PROXY_NAME}:443",)
    with browser(tmp_path_factory.mktemp("h3"), quic.topology.clients, quic.authority, flags=flags) as fresh:
        load = fresh.load("http://www.demo.test/")
    objects = [one for one in load.requests if PROXY_NAME in one.url]
    assert len(objects) > 10
    assert {one.protocol for one in objects} == {"h3"}
    assert not [one.url for one in objects if not one.loaded and true_url(one.url, (PROXY_NAME,)) != one.url]


def test_a_browser_that_came_over_tcp_comes_back_over_http_3_because_it_was_announced(
    quic: Bed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    need_commands("chromium", "certutil")
    # With this flag the browser accepts a local authority's certificate over QUIC for this host, whatever the port. No
    # request uses port 444, so only the announcement can lead to QUIC.
    flags = (f"--origin-to-force-quic-on={PORTAL}:444",)
    with browser(tmp_path_factory.mktemp("announced"), quic.topology.clients, quic.authority, flags=flags) as fresh:

        def protocol(page: str) -> str:
            return next(one.protocol for one in fresh.load(page).requests if one.url == page)

        assert protocol(f"https://{PORTAL}/page.html") == "h2"
        # The browser may stay on an open connection, so the test closes it.
        quic.topology.clients.run("ss", "--tcp", "--kill", "dport", "=", ":443")
        assert protocol(f"https://{PORTAL}/page.html?again") == "h3"


def test_switched_off_nothing_listens_and_nothing_is_announced(desk: Desk) -> None:
    """The switch is `transport.http3`. The rendered files show its effect."""
    authority = Authority(desk.folder)
    tls = {"terminate": [{"names": ["pep.example.org"], **authority.issue("pep.example.org").as_dict()}]}
    proxy = {**desk.config["proxy"], "secure_names": ["pep.example.org"]}
    listen = {**desk.config["listen"], "tls": f"127.0.0.1:{free_ports(1)[0]}"}
    for on, sections in ((True, {}), (False, {"transport": {"http3": "off"}})):
        file = desk.write(listen=listen, proxy=proxy, tls=tls, **sections)
        out = desk.folder / f"rendered-{on}"
        done = command("render", file, "--out", out)
        assert done.returncode == 0, done.stderr
        lds = (out / "lds.yaml").read_text()
        assert ("name: quic" in lds) is on
        assert ("alt-svc" in lds) is on


def test_a_taken_udp_port_is_named_with_the_key_that_sets_it(desk: Desk) -> None:
    authority = Authority(desk.folder)
    tls = {"terminate": [{"names": ["pep.example.org"], **authority.issue("pep.example.org").as_dict()}]}
    proxy = {**desk.config["proxy"], "secure_names": ["pep.example.org"]}
    [port] = free_ports(1)
    listen = {**desk.config["listen"], "tls": f"127.0.0.1:{port}"}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("127.0.0.1", port))
        done = command("run", desk.write(listen=listen, proxy=proxy, tls=tls), "--state", desk.folder / "state")
    assert done.returncode == 1
    assert f"port {port} (UDP)" in done.stderr, done.stderr
    assert "listen.tls" in done.stderr
    assert not any(is_taken(other) for other in (desk.http, desk.metrics))
