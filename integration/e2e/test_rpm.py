"""The rpm in rpm's own hands, as far as that goes without a distribution that has rpm: `make test-recipes`."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.delivery.from_rpm import NEEDS, Rpm, needs, previous
from harness.delivery.packages import PREVIOUS, packages
from harness.delivery.roots import fresh_debian
from harness.host.artifacts import need_commands
from harness.net.namespaces import Namespace

CONFIG = "/etc/longhaul/longhaul.yaml"
OWN = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\n"
NEXT = "Then: systemctl enable --now longhaul"


@pytest.mark.recipes
def test_rpm_installs_verifies_upgrades_goes_back_and_erases(root_bed: None, folder: Path) -> None:  # noqa: ARG001
    need_commands("rpm")
    made = packages()
    assert needs(made.file("rpm")) == NEEDS
    with Namespace("box") as namespace, fresh_debian(folder / "root", namespace) as root:
        rpm, before = Rpm(root), root.files()
        older = previous(made, folder)
        # Debian provides these dependencies under other names.
        assert "Failed dependencies" in rpm.run("--install", older, check=False)
        assert rpm.version() == ""
        assert NEXT in rpm.run("--install", "--nodeps", older)
        assert rpm.version() == PREVIOUS
        assert rpm.changed() == set()
        assert root.run("stat", "--format=%U %a", "/var/lib/longhaul").stdout == "longhaul 750\n"
        assert root.run("longhaul", "--version").stdout.startswith("longhaul ")
        assert root.run("longhaul", "check", CONFIG, check=False).returncode == 2

        root.path(CONFIG).write_text(OWN)
        root.path("/var/lib/longhaul/kept").write_text("state")
        assert NEXT not in rpm.run("--upgrade", "--nodeps", made.file("rpm"))
        assert rpm.version() == made.version
        assert rpm.changed() == {CONFIG}, "what the operator wrote is the only difference"
        assert root.path(CONFIG).read_text() == OWN

        rpm.run("--upgrade", "--nodeps", "--oldpackage", older)
        assert (rpm.version(), root.path(CONFIG).read_text()) == (PREVIOUS, OWN)

        rpm.run("--erase", "longhaul")
        assert rpm.version() == ""
        assert not root.path("/usr/lib/longhaul").exists()
        assert root.path(f"{CONFIG}.rpmsave").read_text() == OWN
        left = {path for path in root.files() - before if not path.startswith("./var/lib/rpm")}
        assert {path for path in left if "longhaul" in path} == {
            "./etc/longhaul",
            f".{CONFIG}.rpmsave",
            "./var/lib/longhaul",
            "./var/lib/longhaul/kept",
        }
