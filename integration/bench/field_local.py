"""Another user of a box, with uid 65534: the commands that Longhaul obeys of him."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.counted import Counted, together
from harness.boxes import KINDS
from harness.figures import at_most

TARGETS = [at_most("local_commands_obeyed", 0)]
COMMANDS = ("logging?level=info", "reset_counters", "healthcheck/ok", "runtime_modify?a=1", "cpuprofiler?enable=n")
"""Paths that Envoy's admin interface takes by POST, without an effect on other figures."""
READS = ("config_dump", "certs", "clusters", "memory")
"""Paths whose response has names of files and hosts."""

PROBE = """
import encodings.idna, json, os, socket, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
os.setgroups([]); os.setgid(65534); os.setuid(65534)
found = []
ports = [int(line.split()[3].rsplit(":", 1)[1]) for line in subprocess.run(["ss", "-Hltn"], capture_output=True,
         text=True).stdout.splitlines()]
def ask(method, port, path):
    try:
        with socket.create_connection(("127.0.0.1", port), 3) as one:
            one.settimeout(3)
            one.sendall(f"{method} /{path} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Length: 0\\r\\n"
                        "Connection: close\\r\\n\\r\\n".encode())
            return one.recv(200).decode("latin-1").split("\\r\\n")[0]
    except OSError:
        return ""
asks = [(method, port, path) for port in sorted(set(ports) - {53, 80, 443})
        for method, paths in (("POST", sys.argv[1]), ("GET", sys.argv[2])) for path in paths.split()]
with ThreadPoolExecutor(16) as pool:
    found += [f"{one[0]} {one[2]} on port {one[1]}" for one, said in zip(asks, pool.map(lambda one: ask(*one), asks))
              if " 200" in said]
names = {line.split()[-1] for line in open("/proc/net/unix").read().splitlines()[1:] if len(line.split()) == 8}
for name in sorted({name for name in names if name.startswith("@")} | set(sys.argv[3:])):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_UNIX, kind) as one:
            try:
                if name.startswith("/"):
                    # A path may be longer than the address of a socket.
                    os.chdir(os.path.dirname(name))
                one.connect("\\0" + name[1:] if name.startswith("@") else os.path.basename(name))
                found.append(f"a connection to {name}")
            except OSError:
                pass
print(json.dumps(found))
"""


def measure(folder: Path, *, quick: bool) -> dict[str, Counted]:  # noqa: ARG001 - it takes seconds
    """Counts commands on TCP and Unix sockets that let the user in, of an edge and of a remote."""
    with ThreadPoolExecutor(2) as pool:
        return {"local_commands_obeyed": together(pool.map(lambda kind: _of(folder, kind), ("edge", "pair")))}


def _of(folder: Path, kind: str) -> Counted:
    (home := folder / kind).mkdir(mode=0o755)
    with KINDS[kind](home, {}, ["nobody.example.com"]) as box:
        # Abstract names belong to the network namespace, and so does the list of them.
        sockets = sorted(path for path in home.rglob("*") if path.is_socket())
        program = box.host.inside([sys.executable, "-c", PROBE, " ".join(COMMANDS), " ".join(READS), *sockets])
        done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=True)
    obeyed = sorted({re.sub(r"[0-9a-f]{12,}", "...", one) for one in json.loads(done.stdout)})
    return Counted(len(obeyed), len(COMMANDS) + len(READS), [f"{kind}: {one}" for one in obeyed])
