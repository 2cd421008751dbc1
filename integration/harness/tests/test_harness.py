"""The instruments themselves: what they read is right, and they leave nothing behind."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from harness.boxes.pep import parse_metrics
from harness.clients.commands import _parse_head
from harness.clients.moved import put_back, same_markup, true_url
from harness.host.artifacts import REPOSITORY, need_commands, need_root
from harness.host.ports import free_ports
from harness.host.processes import Child, is_running
from harness.host.waiting import Timeout, wait_for
from harness.net import namespaces
from harness.net.namespaces import Namespace
from harness.net.redirect import redirected
from harness.origins.pages import _can_serve, objects_of
from harness.pictures.screens import compare

OWN = ("pep.example.net", "198.51.100.12:8080")


@pytest.mark.parametrize(
    ("url", "true"),
    [
        ("https://pep.example.net/img.example.org/a.png?b=c", "http://img.example.org/a.png?b=c"),
        ("https://pep.example.net/img.example.org:443/a.png", "https://img.example.org/a.png"),
        ("https://pep.example.net/img.example.org:8081/a", "http://img.example.org:8081/a"),
        ("http://198.51.100.12:8080/img.example.org/", "http://img.example.org/"),
        ("http://198.51.100.12/img.example.org/", "http://198.51.100.12/img.example.org/"),
        ("http://www.example.org/img.example.org/", "http://www.example.org/img.example.org/"),
        ("https://pep.example.net/a.test/x?", "http://a.test/x?"),
    ],
)
def test_a_moved_url_is_read_back_and_any_other_stays(url: str, true: str) -> None:
    assert true_url(url, OWN) == true


def test_a_body_is_put_back_and_ampersands_may_be_written_either_way() -> None:
    moved = b'<img src="https://pep.example.net/a.test/x?b&amp;c"> <img src="https://pep.example.net/a.test:443/y">'
    back = put_back(moved, OWN)
    assert back == b'<img src="http://a.test/x?b&amp;c"> <img src="https://a.test/y">'
    assert same_markup(back, b'<img src="http://a.test/x?b&c"> <img src="https://a.test/y">')
    assert not same_markup(back, b'<img src="http://a.test/x?b"> <img src="https://a.test/y">')


def test_objects_of_a_page_are_found_and_links_are_not() -> None:
    markup = """<base href="http://b.test/d/"><link rel="stylesheet" href="s.css"><a href="/no">x</a>
        <img src="i.png" srcset="http://c.test/2,x.png 2x, j.png 3x"><script src="//d.test/x"></script>
        <style>@import "k.css"; p { background: url('l.gif') }</style><p style="background: url(m.jpg)">
        <iframe src="f"></iframe><img src="data:image/png;base64,AA"><link rel="canonical" href="/no">"""
    found = {one.url: one.kind for one in objects_of(markup, "http://a.test/")}
    assert found == {
        "http://b.test/d/s.css": "css",
        "http://b.test/d/i.png": "png",
        "http://c.test/2,x.png": "png",
        "http://b.test/d/j.png": "png",
        "http://d.test/x": "script",
        "http://b.test/d/k.css": "css",
        "http://b.test/d/l.gif": "gif",
        "http://b.test/d/m.jpg": "jpeg",
        "http://b.test/d/f": "html",
    }


def test_an_object_at_an_address_makes_a_configuration_that_is_refused() -> None:
    for host in ("192.0.2.7", "192.0.2.7.", "0x7f.1", "3221225991", "example.0xc0", "[2001:db8::1]", "a.example:8080"):
        assert not _can_serve(f"http://{host}/a.png"), host
    for host in ("a.example", "192.0.2.7.example", "1.example:443", "x_y.0xg"):
        assert _can_serve(f"http://{host}/a.png"), host


def test_the_last_head_of_a_dump_counts_and_repeats_are_kept() -> None:
    dump = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\n\r\n"
    assert _parse_head(dump) == (200, [("a", "1"), ("a", "2")])
    assert _parse_head("") == (0, [])


def test_metrics_are_read_with_their_labels() -> None:
    text = '# TYPE a counter\na{} 1\nb{reason="integrity"} 2\nc 3.5\n'
    assert parse_metrics(text) == {"a{}": 1, 'b{reason="integrity"}': 2, "c": 3.5}


def test_different_screenshots_are_distinguished() -> None:
    def png(*, dot: bool = False, width: int = 100) -> bytes:
        picture = Image.new("RGB", (width, 100), "white")
        if dot:
            ImageDraw.Draw(picture).rectangle((0, 0, 9, 9), fill="black")
        out = io.BytesIO()
        picture.save(out, "PNG")
        return out.getvalue()

    assert compare(png(), png()).differing == 0
    assert compare(png(), png(dot=True)).differing == pytest.approx(0.01)
    assert compare(png(), png(width=101)).differing == 1


def test_waiting_ends_with_the_value_or_says_what_did_not_come() -> None:
    values = iter([0, 0, 7])
    assert wait_for("seven", lambda: next(values)) == 7
    with pytest.raises(Timeout, match="a miracle"):
        wait_for("a miracle", lambda: False, timeout_s=0.05)


def test_a_child_and_its_children_end_with_it(tmp_path: Path) -> None:
    with Child(["sh", "-c", "sleep 60 & echo started $!; wait"], tmp_path / "log") as child:
        grandchild = int(child.wait_for_output("started").split()[1])
        assert is_running(grandchild)
    wait_for("the grandchild's end", lambda: not is_running(grandchild))


def test_a_program_that_ends_early_is_reported_with_what_it_said(tmp_path: Path) -> None:
    with (
        Child(["sh", "-c", "echo no luck; exit 3"], tmp_path / "log") as child,
        pytest.raises(Timeout, match=r"ended with 3:\nno luck"),
    ):
        child.wait_for_output("ready")


@pytest.fixture
def root() -> None:
    need_root()
    need_commands("ip", "nft", "nsenter", "unshare", "sysctl")


@pytest.mark.usefixtures("root")
def test_a_namespace_is_gone_afterwards_also_after_a_failure(tmp_path: Path) -> None:
    before = namespaces.ours()

    def fail_inside() -> None:
        with Namespace("short") as short, Child(short.inside(["sleep", "60"]), tmp_path / "log") as child:
            wait_for("the process inside", lambda: child.process.pid in short.processes())
            assert short.name in namespaces.ours()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert namespaces.ours() == before


@pytest.mark.usefixtures("root")
def test_namespaces_of_a_killed_run_are_swept_and_those_in_use_are_not() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = f"{namespaces.PREFIX}{ended.pid}-0-clients"
    subprocess.run(["ip", "netns", "add", left], check=True)
    with Namespace("used") as used:
        assert left in namespaces.sweep()
        assert used.name in namespaces.ours()
    assert not Path(f"/run/netns/{left}").exists()


@pytest.mark.usefixtures("root")
def test_a_namespace_s_resolv_conf_and_hosts_are_seen_inside_only(tmp_path: Path) -> None:
    mine, hosts = tmp_path / "resolv.conf", tmp_path / "a 'hosts'"
    mine.write_text("nameserver 203.0.113.53\n")
    hosts.write_text("203.0.113.7 www.example.org\n")
    places = [Path("/etc/resolv.conf"), Path("/etc/hosts")]
    outside = [place.read_text() for place in places]
    with Namespace("resolv", resolv_conf=mine) as inside:
        assert inside.run("cat", places[0]).stdout == mine.read_text()
        assert inside.run("cat", places[1]).stdout == outside[1]
        inside.hosts = hosts
        assert inside.run("cat", *places).stdout == mine.read_text() + hosts.read_text()
        assert [place.read_text() for place in places] == outside


@pytest.mark.usefixtures("root")
def test_the_redirect_of_the_gateway_loads_with_an_operator_s_values_and_unloads(tmp_path: Path) -> None:
    with Namespace("rules") as gateway:
        with redirected(gateway, tmp_path, clients='"eth7"', http="8080"):
            loaded = gateway.run("nft", "list", "ruleset").stdout
            assert 'iifname != "eth7" accept' in loaded
            assert "tcp dport 80 redirect to :8080" in loaded
            assert "udp dport 53 redirect to :53" in loaded
        assert gateway.run("nft", "list", "ruleset").stdout == ""
        with pytest.raises(AssertionError, match="defines no nonsense"), redirected(gateway, tmp_path, nonsense="1"):
            pass


def test_the_demo_site_and_the_demo_configuration_agree() -> None:
    site = json.loads((REPOSITORY / "integration" / "site" / "site.json").read_text())
    config = (REPOSITORY / "envoy-config" / "demo" / "longhaul.yaml").read_text()
    mapped = dict(re.findall(r"^ +(\S+\.test): (\S+)$", config, re.MULTILINE))
    listed = {name: f"{host['address']}:{site['http_port']}" for name, host in site["hosts"].items()}
    assert mapped == {name: at for name, at in listed.items() if name.endswith(".demo.test")}
    assert f"resolvers: {json.dumps(site['dns']).replace(chr(34), '')}" in config


def test_the_hash_in_the_demo_page_is_that_of_its_script() -> None:
    site = REPOSITORY / "integration" / "site"
    digest = hashlib.sha256((site / "cdn.demo.test" / "lottery.js").read_bytes()).digest()
    named = f'integrity="sha256-{base64.b64encode(digest).decode()}"'
    assert named in (site / "www.demo.test" / "index.html").read_text()


@pytest.mark.parametrize("strict", [False, True])
def test_a_missing_program_skips_with_its_reason_or_fails_where_nothing_may(tmp_path: Path, strict: bool) -> None:
    (tmp_path / "test_it.py").write_text(
        "from harness.host.artifacts import Missing\n\ndef test_it():\n    raise Missing('needs what nobody has')\n"
    )
    skips = tmp_path / "skips.txt"
    integration = REPOSITORY / "integration"
    environment = {**os.environ, "LONGHAUL_SKIPS": str(skips), "PYTHONPATH": str(integration)}
    environment.pop("LONGHAUL_REQUIRE_ALL", None)
    if strict:
        environment["LONGHAUL_REQUIRE_ALL"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "conftest", tmp_path],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == (1 if strict else 0), done.stdout
    assert skips.read_text() == "needs what nobody has\n"
    assert "needs what nobody has" in done.stdout


def test_a_port_comes_again_only_after_all_others() -> None:
    ports = [port for _ in range(200) for port in free_ports(2)]
    assert len(set(ports)) == 400
