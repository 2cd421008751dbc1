"""`longhaul explain` with a page that it fetches itself or reads from curl. Only the page's origin runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from harness.boxes.pep import command, write_config
from harness.host.artifacts import built, need_commands
from harness.host.ports import free_ports
from harness.net.authority import Authority
from harness.origins.program import Origins, Site

WWW, IMG = "www.example.org", "img.example.org"
ADDRESS = "127.78.0.1"
NETWORK = "127.78.0.0/24"


@dataclass
class Place:
    """An origin with http, https and DNS on free ports, and the settings of a box that reaches it."""

    folder: Path
    origins: Origins
    authority: Path
    http: int
    https: int
    dns: int

    def page(self, *, secure: bool = False, **order: str | int) -> str:
        """Returns the URL of a page with one image of the other host."""
        port = self.https if secure else self.http
        asked = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in {"host": IMG, **order}.items())
        return f"{'https' if secure else 'http'}://{WWW}:{port}/_/answer?{asked}"

    def config(self, **upstream: Any) -> Path:
        """Writes the configuration. `upstream` replaces keys of its section."""
        config = {
            "link": {"rtt": "600ms", "down": "20mbit", "up": "5mbit"},
            "proxy": {"addresses": ["198.51.100.12"]},
            "upstream": {
                "resolvers": [f"127.0.0.1:{self.dns}"], "ports": [80, self.http, self.https],
                "allow_private": [NETWORK], **upstream,
            },
            "rewrite": {"target": "http"},
        }  # fmt: skip
        return write_config(self.folder, config)

    def fetch(self, url: str, **upstream: Any) -> subprocess.CompletedProcess[str]:
        """Explains a page that the command fetches itself."""
        environment = {"SSL_CERT_FILE": str(self.authority)}
        return command("explain", self.config(**upstream), "--url", url, "--fetch", "--json", **environment)


@pytest.fixture(name="place")
def a_place(folder: Path) -> Iterator[Place]:
    """A place that exists for the time of a test."""
    need_commands("curl")
    built("longhaul")
    built("origins")
    authority = Authority(folder)
    http, https, dns = free_ports(3)
    hosts = {WWW: {"address": ADDRESS, "special": True}}
    site = Site([f"127.0.0.1:{dns}"], http, https, ca=authority.files.as_dict(), hosts=hosts)
    with Origins(site.write(folder / "site.json"), folder) as origins:
        yield Place(folder, origins, authority.files.cert, http, https, dns)


def test_a_page_is_fetched_with_its_headers_through_its_redirects(place: Place) -> None:
    policy = "Content-Security-Policy: img-src 'self'"
    page = place.page(encode="gzip", header=policy)
    done = place.fetch(place.page(status=302, body="none", header=f"Location: {page}"))
    assert done.returncode == 0, done.stderr
    assert f"redirects with 302 to {page}" in done.stderr
    explained = json.loads(done.stdout)
    assert explained["url"] == page
    assert explained["page"] == {"fate": "rewritten"}
    assert {one["reason"] for one in explained["left"]} >= {"csp"}, "the header and the body were read"
    first, second = map(str, place.origins.requests())
    assert "status=302" in first
    assert "encode=gzip" in second


def test_a_page_over_https_needs_an_authority_that_run_would_trust(place: Place) -> None:
    good = place.fetch(place.page(secure=True))
    assert json.loads(good.stdout)["page"]["reason"] == "passed_through", good.stderr
    other = place.folder / "other"
    other.mkdir()
    place.authority = Authority(other).files.cert
    bad = place.fetch(place.page(secure=True))
    assert bad.returncode == 1
    assert "the TLS handshake failed" in bad.stderr, bad.stderr


def test_the_guard_and_the_resolvers_refuse_what_they_refuse_the_box(place: Place) -> None:
    refusals = {
        "upstream.allow_private": place.fetch(place.page(), allow_private=[]),
        "upstream.ports": place.fetch(place.page(), ports=[80]),
        "upstream.deny": place.fetch(place.page(), deny=[NETWORK]),
        "absent.example.org does not exist": place.fetch("http://absent.example.org/"),
        "an address of this host": place.fetch("http://127.0.0.1/"),
        "no resolver of upstream.resolvers knows": place.fetch(place.page(), resolvers=[f"{ADDRESS}:{place.dns}"]),
    }
    for said, done in refusals.items():
        assert done.returncode == 1, said
        assert said in done.stderr, done.stderr
    assert not place.origins.requests()
    mapped = {WWW: f"{ADDRESS}:{place.http}"}
    done = place.fetch(place.page().replace(f":{place.http}", ""), allow_private=[], ports=[80], map=mapped)
    assert done.returncode == 0, done.stderr


def test_the_output_of_curl_is_a_page_with_its_headers(place: Place) -> None:
    page = place.page(header="Content-Security-Policy: img-src 'self'")
    url = place.page(status=302, body="none", header=f"Location: {page}")
    printed = place.folder / "printed"
    curl = ["curl", "-siL", "--compressed", "--resolve", f"{WWW}:{place.http}:{ADDRESS}", "-o", str(printed), url]
    subprocess.run(curl, check=True, timeout=60)
    done = command("explain", place.config(), "--url", url, "--json", printed)
    explained = json.loads(done.stdout)
    assert explained["url"] == page, done.stderr
    assert [one["reason"] for one in explained["left"]] == ["csp"]
