"""Certificates of an ACME authority: obtained through the box by HTTP-01 and applied while it runs. Nothing else
becomes reachable."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.boxes.acme import Certbot, Pebble
from harness.boxes.pep import PROXY_NAME, Pep, gateway_config, write_config
from harness.clients.commands import Curl
from harness.host.artifacts import built
from harness.host.waiting import wait_for
from harness.net.authority import Authority
from harness.net.topology import CLIENT_DEVICE, INTERNET, PROXY, RESOLVER, Topology
from harness.origins.program import Origins, Site

SITE = "www.example.org"
SITE_ADDRESS = "203.0.113.80"
CHALLENGE = "/.well-known/acme-challenge/"
FORWARD = "127.0.0.1:8099"


class World:
    """A gateway with the rules of `longhaul host`, a site, and an ACME authority on the Internet."""

    def __init__(self, folder: Path, topology: Topology, origins: Origins, acme: dict[str, Any]) -> None:
        self.folder = folder
        self.topology = topology
        self.origins = origins
        self.authority = Authority(folder)
        self.certbot = Certbot(folder / "certbot", topology.gateway, self.authority.files.cert)
        tls = {"terminate": [{"names": [PROXY_NAME], **self.certbot.live(PROXY_NAME)}], "acme": acme}
        proxy = {"addresses": [PROXY], "secure_names": [PROXY_NAME]}
        config = gateway_config(folder, None, proxy=proxy, tls=tls)
        etc = folder / "etc"
        etc.mkdir()
        self.config = write_config(etc, config, ["example.org"])
        self.pep = Pep(self.config, folder, topology.gateway)

    def internet(self, path: str, host: str = PROXY_NAME, *options: str) -> tuple[int, bytes]:
        """Sends a request to port 80 of the box from the Internet. Status 0: refused."""
        curl = Curl(self.folder, self.topology.internet)
        answer = curl.get(f"http://{PROXY}{path}", "-H", f"Host: {host}", *options)
        return answer.status, answer.body

    def client(self, path: str, host: str) -> tuple[int, bytes]:
        """Sends a request of a client."""
        answer = Curl(self.folder, self.topology.clients).get(f"http://{PROXY}{path}", "-H", f"Host: {host}")
        return answer.status, answer.body

    def serial(self) -> str | None:
        """Returns the serial number of the certificate that a client gets. None: TLS does not end on the box."""
        connect = ["openssl", "s_client", "-connect", f"{PROXY}:443", "-servername", PROXY_NAME]
        shown = self.topology.clients.run("sh", "-c", f"{' '.join(connect)} < /dev/null", check=False).stdout
        command = ["openssl", "x509", "-noout", "-serial"]
        done = subprocess.run(command, input=shown, capture_output=True, text=True, check=False)
        return done.stdout.strip() or None


@contextmanager
def world(folder: Path, **acme: Any) -> Iterator[World]:
    """A world with `tls.acme`, which runs until the end of the context."""
    records = {PROXY_NAME: [PROXY]}
    site = Site(dns=[f"{RESOLVER}:53"], hosts={SITE: {"address": SITE_ADDRESS, "generate": True}}, records=records)
    topology = Topology(folder)
    origins = Origins(site.write(folder / "site.json"), folder, topology.internet)
    with topology, origins:
        box = World(folder, topology, origins, acme)
        with Pebble(folder, topology.internet, box.authority), box.pep:
            host = [built("longhaul"), "host"]
            record = ["--record", folder / "host.json"]
            topology.gateway.run(*host, box.config, "--clients", CLIENT_DEVICE, "--apply", *record)
            yield box


@pytest.mark.usefixtures("root_bed")
def test_a_certificate_from_a_webroot_applies_while_the_box_runs(folder: Path) -> None:
    webroot = folder / "webroot"
    webroot.mkdir()
    with world(folder, webroot=str(webroot)) as box:
        assert "`tls.terminate[0]` has no certificate yet" in box.pep.output()
        assert box.serial() is None
        # As in docs/src/certificates.md.
        get = ["certonly", "--webroot", "-w", webroot, "-d", PROXY_NAME]
        made = box.certbot.run(*get, "--agree-tos", "--register-unsafely-without-email")
        assert made.returncode == 0, made.stdout + made.stderr
        first = wait_for("the first certificate", box.serial, timeout_s=60)
        renewed = box.certbot.run("renew", "--force-renewal", "--no-random-sleep-on-renew")
        assert renewed.returncode == 0, renewed.stdout + renewed.stderr
        wait_for("the renewed certificate", lambda: box.serial() not in (None, first), timeout_s=60)
        assert box.pep.output().count("ready http=") == 1

        nothing_else_is_open(box)
        a_challenge_of_a_site_goes_to_its_origin(box)
        # ACME clients remove a link before they make the new one.
        cert = Path(box.certbot.live(PROXY_NAME)["cert"])
        cert.rename(cert.with_suffix(".gone"))
        wait_for("the refusal", lambda: "does not exist any more" in box.pep.output(), timeout_s=60)
        assert box.serial() is not None


@pytest.mark.usefixtures("root_bed")
def test_a_certificate_through_the_acme_client_s_own_server(folder: Path) -> None:
    with world(folder, forward=FORWARD) as box:
        address, port = FORWARD.split(":")
        get = ["certonly", "--standalone", "--http-01-address", address, "--http-01-port", port, "-d", PROXY_NAME]
        made = box.certbot.run(*get, "--agree-tos", "--register-unsafely-without-email")
        assert made.returncode == 0, made.stdout + made.stderr
        wait_for("the certificate", box.serial, timeout_s=60)
        assert box.internet(f"{CHALLENGE}token")[0] == 503, "certbot's server has ended"


def nothing_else_is_open(box: World) -> None:
    """Asserts that strangers on the Internet can fetch challenges and nothing else, from any port."""
    challenge = box.folder / "webroot" / CHALLENGE.strip("/") / "known"
    challenge.parent.mkdir(parents=True, exist_ok=True)
    challenge.write_text("known.thumbprint")
    (box.folder / "webroot" / "secret").write_text("secret")
    assert box.internet(f"{CHALLENGE}known") == (200, b"known.thumbprint")
    for path in ["/", "/secret", f"{CHALLENGE}unknown", f"{CHALLENGE}../../secret", f"{CHALLENGE}known/", f"/{SITE}/x"]:
        assert box.internet(path)[0] == 404, path
    assert box.internet(f"{CHALLENGE}known", PROXY_NAME, "-X", "POST")[0] == 404
    for host in [SITE, PROXY, INTERNET]:
        assert box.internet(f"{CHALLENGE}known", host)[0] == 404, host
    for port in (53, 443):
        connect = f"exec 3<>/dev/tcp/{PROXY}/{port}"
        assert box.topology.internet.run("bash", "-c", connect, check=False).returncode != 0, port
    assert box.origins.requests() == []


def a_challenge_of_a_site_goes_to_its_origin(box: World) -> None:
    """Asserts that the box helps nobody to a certificate for a site."""
    box.client(f"{CHALLENGE}known", SITE)
    assert box.origins.requests(host=SITE)[0]["target"] == f"{CHALLENGE}known"
