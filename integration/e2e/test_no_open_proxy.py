"""Requests that the proxy must refuse without any connection. Listeners stand on the addresses that nobody may
reach."""

from __future__ import annotations

import pytest

from e2e.bed import MIXED, OBJECTS
from harness.boxes.bed import PROXY_NAME, Bed
from harness.clients.commands import Answer
from harness.net.topology import FORBIDDEN, LINK_LOCAL_ADDRESS, PRIVATE_ADDRESS, PROXY

AUTHORITIES = [
    *FORBIDDEN,
    PRIVATE_ADDRESS,
    LINK_LOCAL_ADDRESS,
    "127.0.0.1",
    "127.0.0.1:9901",
    "0.0.0.0",
    "10.66.1",
    "0x0a420001",
    "172705793",
    "[::1]",
    "[::ffff:10.66.0.1]",
    PROXY,
    f"{PROXY}:80",
    PROXY_NAME,
    f"{OBJECTS}:22",
    f"{OBJECTS}:8080",
    f"{OBJECTS}:99999",
    f"{OBJECTS}:",
    f"{OBJECTS}:0",
    "bad..name.example.org",
    "-bad.example.org",
    "a_b c.example.org",
    "%00.example.org",
    "user@objects.example.org",
    "x" * 64 + ".example.org",
    ".".join(["long"] * 60) + ".example.org",
]


def assert_refused(bed: Bed, answer: Answer, connects_before: int) -> None:
    assert answer.status == 403, answer
    reason = answer.body.decode()
    assert reason.strip(), "a refusal says why"
    assert reason.count("\n") <= 1, reason
    assert len(bed.origins.events("connect")) == connects_before


@pytest.mark.parametrize("target", [f"http://{PROXY}", f"https://{PROXY_NAME}"], ids=["http", "https"])
@pytest.mark.parametrize("authority", AUTHORITIES)
def test_the_proxy_address_takes_nobody_where_nobody_may_go(bed: Bed, authority: str, target: str) -> None:
    connects = len(bed.origins.events("connect"))
    assert_refused(bed, bed.curl.get(f"{target}/{authority.replace('%', '%25').replace(' ', '%20')}/x"), connects)


@pytest.mark.parametrize(
    "host",
    [*FORBIDDEN, PRIVATE_ADDRESS, LINK_LOCAL_ADDRESS, "127.0.0.1:9901", f"{OBJECTS}:22", "bad..name.example.org"],
)
def test_a_host_header_takes_nobody_there_either(bed: Bed, host: str) -> None:
    connects = len(bed.origins.events("connect"))
    assert_refused(bed, bed.curl.get(f"http://{PROXY}/x", "-H", f"Host: {host}"), connects)


@pytest.mark.parametrize("url", [f"http://{PROXY}/{MIXED}/x", f"http://{MIXED}/x"], ids=["moved", "intercepted"])
def test_a_forbidden_address_behind_one_that_does_not_answer_is_not_tried(bed: Bed, url: str) -> None:
    connects = len(bed.origins.events("connect"))
    answer = bed.curl.get(url, "--resolve", f"{MIXED}:80:{PROXY}")
    assert answer.status in (502, 503), answer
    assert len(bed.origins.events("connect")) == connects


def test_the_proxy_s_own_front_page_is_short_text(bed: Bed) -> None:
    answer = bed.curl.get(f"https://{PROXY_NAME}/")
    assert answer.status in (403, 404)
    assert len(answer.body) < 500


@pytest.mark.parametrize("method", ["CONNECT", "TRACE"])
def test_methods_that_make_a_tunnel_or_a_mirror_are_refused(bed: Bed, method: str) -> None:
    connects = len(bed.origins.events("connect"))
    answer = bed.curl.get(f"http://{PROXY}/{OBJECTS}/x", "-X", method, "-H", "X-Mirror: me")
    assert answer.status >= 300
    assert b"X-Mirror" not in answer.body
    assert len(bed.origins.events("connect")) == connects


def test_the_listeners_are_closed_to_the_outside(bed: Bed) -> None:
    connected = bed.topology.internet.run(
        "curl", "--silent", "--max-time", "3", f"http://{PROXY}/{OBJECTS}/x", check=False
    )
    assert connected.returncode == 7, "refused, not answered"


def test_the_admin_interface_is_not_on_a_client_facing_address(bed: Bed) -> None:
    assert bed.curl.get(f"http://{PROXY}:9901/", timeout_s=3).status == 0
    assert bed.curl.get("http://192.0.2.1:9901/", timeout_s=3).status == 0


def test_a_port_the_proxy_does_not_serve_is_refused_at_once(bed: Bed) -> None:
    answer = bed.curl.get(f"http://{PROXY}:22/", timeout_s=5)
    assert "refused" in answer.problem or "Failed to connect" in answer.problem
    assert answer.seconds < 3
