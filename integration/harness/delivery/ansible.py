"""The Ansible role, played over ssh on a Debian with systemd."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from harness.boxes.pep import write_config
from harness.host.artifacts import REPOSITORY, Missing, need_commands
from harness.machines.machine import Machine
from harness.machines.trees import DEBIAN_WITH_PYTHON
from harness.net.namespaces import Namespace
from harness.origins.program import Origins

from .packages import PREVIOUS, packages
from .repository import KEYRING, URL, Repository, published, repository
from .small_site import edge, serves, site

ROLE = REPOSITORY / "deploy" / "ansible"
VENV = REPOSITORY / "target" / "venv-recipes" / "bin"
HOST = "box"


class Player:
    """The computer that runs Ansible, with its files beside the playbook."""

    def __init__(self, folder: Path, machine: Machine, source: Repository) -> None:
        need_commands("ssh", "ssh-keygen")
        if not (VENV / "ansible-playbook").exists():
            raise Missing("Ansible is not installed: make target/venv-recipes/.ready")
        self.folder = folder / "ansible"
        shutil.copytree(ROLE, self.folder)
        shutil.copy(source.folder / KEYRING, self.folder)
        self.files = self.folder / "files" / HOST
        self.files.mkdir(parents=True)
        self._machine = machine
        key = folder / "id"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=60)
        machine.write("/root/.ssh/authorized_keys", key.with_suffix(".pub").read_text(), 0o600)
        options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        host = {"ansible_host": "127.0.0.1", "ansible_ssh_private_key_file": str(key), "ansible_user": "root"}
        host |= {"ansible_ssh_common_args": options, "longhaul_repository": URL}
        (self.folder / "test.yaml").write_text(json.dumps({"longhaul": {"hosts": {HOST: host}}}))

    def play(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Plays the playbook as it is written."""
        line = [VENV / "ansible-playbook", "-i", "test.yaml", "playbook.yaml", "-e", json.dumps(variables)]
        environment = {
            "HOME": str(self.folder),
            "ANSIBLE_NOCOLOR": "1",
            # A connection of its own for each task: the path of a shared one's socket would be too long.
            "ANSIBLE_SSH_ARGS": "-C",
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
        }
        inside = self._machine.namespace.inside(["env", f"--chdir={self.folder}", *map(str, line)])
        return subprocess.run(inside, env=environment, capture_output=True, text=True, check=False, timeout=600)

    def changes(self, **variables: str) -> int:
        """Plays it to its end. Returns the number of changes."""
        done = self.play(**variables)
        said = re.search(rf"^{HOST}\s*: ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=0", done.stdout, re.M)
        if done.returncode != 0 or not said:
            raise RuntimeError(f"ansible-playbook: {done.stdout[-3000:]}{done.stderr[-1000:]}")
        return int(said[1])


def follow(folder: Path) -> None:
    """Installs and starts a box; plays it again without a change; offers a wrong file, which changes nothing; and goes
    back to the former version."""
    made = packages()
    with (
        repository(folder / "repository") as source,
        Namespace("machine") as namespace,
        Machine("box", DEBIAN_WITH_PYTHON, namespace, folder) as machine,
        published(source.folder, namespace, folder / "web.log"),
        Origins(site(folder), folder, namespace),
    ):
        machine.run("truncate --size=0 /etc/apt/sources.list")
        source.add(made.previous(folder), made.file("deb"))
        player = Player(folder, machine, source)
        write_config(player.files, edge("/var/cache/longhaul"), ["example.org"])
        assert player.changes() > 0
        serves(namespace, folder)
        assert version(machine) == made.version
        assert player.changes() == 0, "a second play changes nothing"

        config = player.files / "longhaul.yaml"
        right = config.read_text()
        config.write_text(right + "nonsense: 1\n")
        refused = player.play()
        assert refused.returncode != 0
        assert "unknown key `nonsense`" in refused.stdout + refused.stderr, refused.stdout
        machine.run("longhaul status")
        serves(namespace, folder)
        config.write_text(right)

        player.changes(longhaul_version=PREVIOUS)
        assert version(machine) == PREVIOUS
        machine.run("systemctl is-active longhaul")
        serves(namespace, folder)


def version(machine: Machine) -> str:
    """The version of the package."""
    return machine.run("dpkg-query --showformat='${Version}' --show longhaul").stdout
