"""A proxy at a private address. Browsers keep pages at public addresses from loading objects there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.bed import DEMO_HOSTS
from harness.boxes.bed import Bed
from harness.boxes.pep import PROXY_NAME
from harness.browsers.chromium import browser
from harness.host.artifacts import REPOSITORY, need_commands
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.topology import PROXY_RANGE, leads_to_proxy
from harness.origins.pages import page_site

PRIVATE = "192.168.77.1"
PAGE = "http://www.demo.test/"
MOVED = f"http://{PRIVATE}/"


@pytest.fixture(params=[False, True], ids=["alone", "with a range"])
def has_range(request: pytest.FixtureRequest) -> bool:
    """True if names are steered to a range, and not to the private address."""
    return request.param


@pytest.fixture
def private(*, has_range: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A gateway that intercepts its clients, with the demo page on the Internet."""
    folder = tmp_path_factory.mktemp("private")
    authority = Authority(folder)
    site = page_site(ca=authority.files.as_dict())
    for number, name in enumerate(DEMO_HOSTS):
        root = REPOSITORY / "integration" / "site" / name
        site.hosts[name] = {
            "address": f"203.0.113.{10 + number}",
            "root": str(root),
            "header": {"Access-Control-Allow-Origin": "*"},
        }
    addresses = [PRIVATE, PROXY_RANGE] if has_range else [PRIVATE]
    bed = Bed(
        folder, site, ["demo.test"], authority,
        proxy={"addresses": addresses, "secure_names": [PROXY_NAME]}, rewrite={"level": "safe", "target": "http"},
    )  # fmt: skip
    with bed:
        bed.topology.gateway.ip("address", "add", f"{PRIVATE}/32", "dev", "lo")
        yield bed


def test_urls_move_only_in_pages_that_came_to_the_private_address(private: Bed, *, has_range: bool) -> None:
    need_commands("chromium", "certutil")
    origin = private.site.hosts["www.demo.test"]["address"]

    def first() -> str:
        return private.dig("www.demo.test", "A").addresses()[0]

    if has_range:
        wait_for("the health check of the proxy", lambda: leads_to_proxy(first()))
    else:
        assert first() == origin
    assert MOVED not in private.curl.get(PAGE).body.decode()
    steered = private.curl.get(PAGE, "--resolve", f"www.demo.test:80:{PRIVATE}")
    assert MOVED in steered.body.decode(), "that page is at a private address itself"
    with browser(private.folder, private.topology.clients, private.authority) as chromium:
        load = chromium.load(PAGE)
    assert load.failed() == []
    assert not any(one.url.startswith(MOVED) for one in load.loaded())
