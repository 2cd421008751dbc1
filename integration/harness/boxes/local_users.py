"""The surfaces of a running box, tried by a user who is neither root nor the service.

`surfaces` finds what the processes of a run offer, by the kernel's own lists. `obeyed` tries all of it as another user.
It returns what was obeyed: an empty list for a box that trusts no local user.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.net.namespaces import Namespace
from harness.net.sockets import CLONE_NEWNET

NOBODY = 65534
"""The user and the group of the attacker."""
PATIENCE_S = 3.0
LISTENS, BOUND = "0A", "07"
"""The states of a socket that listens over TCP, and of a bound one over UDP, in /proc/net."""
ORDERS = (
    "/logging?level=trace", "/healthcheck/fail", "/reset_counters", "/runtime_modify?a=1", "/heapprofiler?enable=y",
    "/reopen_logs", "/shutdown", "/stop", "/reload", "/drain_listeners?graceful", "/drain_listeners", "/quitquitquit",
)  # fmt: skip
"""Paths that programs of this kind obey when they are posted, mildest first."""
SECRETS = (
    "/config_dump", "/certs", "/clusters", "/listeners", "/server_info", "/init_dump", "/runtime", "/memory",
    "/contention", "/heap_dump", "/stats", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/vars",
)  # fmt: skip
"""Pages that say more than the metrics and the status page."""
PAGES = ("/", "/status.json", "/metrics")
"""The pages that every local user may read, under no foreign name and for no foreign page."""
PROC = ("environ", "mem", "maps", "auxv", "pagemap", "stack", "syscall", "io")
LINKS = ("cwd", "root", "exe")
READABLE = frozenset({"run.json"})
"""The only file of a state folder that other users may read: it is the source of the status page."""
PTRACE_SEIZE = 0x4206
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Surfaces:
    """All that a run offers to the users of its machine."""

    pids: list[int]
    tcp: set[tuple[str, int]] = field(default_factory=set)
    udp: set[tuple[str, int]] = field(default_factory=set)
    unix: set[str] = field(default_factory=set)
    """Sockets by path. The name of an abstract one begins with @."""
    files: list[Path] = field(default_factory=list)
    """Files and folders of the state folder, and the keys."""

    @property
    def number(self) -> int:
        """The number of surfaces."""
        return sum(len(kind) for kind in (self.pids, self.tcp, self.udp, self.unix, self.files))


def descendants(pid: int) -> list[int]:
    """Returns a process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents.setdefault(int(path.read_text().rpartition(") ")[2].split()[1]), []).append(int(path.parent.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def surfaces(pid: int, *folders: Path) -> Surfaces:
    """Finds the sockets of a run, whose first process is `pid`, and the files of its folders."""
    found = Surfaces(descendants(pid))
    for one in found.pids:
        with suppress(OSError):
            _add_sockets(found, one)
    for folder in folders:
        found.files += [folder, *sorted(folder.rglob("*"))]
    return found


def _add_sockets(found: Surfaces, pid: int) -> None:
    proc = Path(f"/proc/{pid}")
    links = [str(link.readlink()) for link in (proc / "fd").iterdir() if link.is_symlink()]
    own = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    for table, state, into in (("tcp", LISTENS, found.tcp), ("udp", BOUND, found.udp)):
        for version in ("", "6"):
            into.update(_bound((proc / "net" / f"{table}{version}").read_text(), state, own))
    for line in (proc / "net" / "unix").read_text().splitlines()[1:]:
        _, _, _, _, _, _, inode, *path = line.split(maxsplit=7)
        if inode in own and path:
            [name] = path
            found.unix.add(name if name.startswith("@") else str((proc / "cwd").resolve() / name))


def _bound(table: str, state: str, own: set[str]) -> Iterator[tuple[str, int]]:
    for line in table.splitlines()[1:]:
        _, local, _, found, *rest = line.split()
        if found != state or rest[5] not in own:
            continue
        address, _, port = local.partition(":")
        words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
        family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
        name = socket.inet_ntop(family, b"".join(words))
        # This machine's own programs reach a socket on every address over loopback.
        yield {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(name, name), int(port, 16)


def obeyed(found: Surfaces, namespace: Namespace) -> list[str]:
    """Tries everything as another user on the same machine. Returns what was obeyed, in words."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Only what is loaded already can be used: the other user may not read this interpreter's folder.
        said = ["the attacker failed"]
        try:
            _become_nobody(namespace)
            said = list(_attack(found))
        except BaseException as error:
            said = [f"the attacker failed: {error!r}"]
        finally:
            os.write(writing, json.dumps(said).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = json.loads(pipe.read())
    os.waitpid(child, 0)
    return said


def _become_nobody(namespace: Namespace) -> None:
    "".encode("idna")  # Sockets load this encoding late.
    handle = os.open(f"/run/netns/{namespace.name}", os.O_RDONLY)
    if _libc.setns(handle, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(handle)
    os.chdir("/")
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def _attack(found: Surfaces) -> Iterator[str]:
    yield from _files(found)
    for pid in found.pids:
        yield from _process(pid)
    for address, port in sorted(found.udp):
        yield from _datagrams(address, port)
    for path in sorted(found.unix):
        yield from _unix(path)
    # DNS and TLS respond to no HTTP. They would cost the patience for each path.
    http_servers = [one for one in sorted(found.tcp) if _status(*one, "GET", "/", {})]
    for address, port in http_servers:
        yield from _pages(address, port)
    # Last, because a program that obeys is gone.
    for order in ORDERS:
        for address, port in http_servers:
            for method in ("POST", "PUT", "GET"):
                status = _status(address, port, method, order, {})
                if status in range(200, 400):
                    yield f"{method} {order} at {address}:{port}: {status}"


def _files(found: Surfaces) -> Iterator[str]:
    for path in found.files:
        with suppress(OSError):
            is_folder = stat.S_ISDIR(path.lstat().st_mode)
            if is_folder and os.access(path, os.W_OK):
                yield f"write into {path}"
            if not is_folder and path.name not in READABLE:
                path.open("rb").close()
                yield f"read {path}"
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY))
            yield f"write {path}"


def _process(pid: int) -> Iterator[str]:
    proc = Path(f"/proc/{pid}")
    for name in PROC:
        with suppress(OSError):
            with (proc / name).open("rb") as file:
                # The kernel opens some of them for everybody, and refuses to read them or shows nothing.
                seen = file.read(64)
            if seen:
                yield f"read {proc / name}"
    for name in LINKS:
        with suppress(OSError):
            yield f"read {proc / name}: {(proc / name).readlink()}"
    with suppress(OSError):
        yield f"list {proc / 'fd'}: {len(list((proc / 'fd').iterdir()))}"
    with suppress(OSError):
        # The kernel checks the rights as for each other signal.
        os.kill(pid, 0)
        yield f"signal {pid}"
    if _libc.ptrace(PTRACE_SEIZE, pid, None, None) == 0:
        yield f"trace {pid}"


def _datagrams(address: str, port: int) -> Iterator[str]:
    """A dynamic update (RFC 2136) and a notice of a changed zone (RFC 1996): orders to a DNS server."""
    for opcode, name in ((5, "an update"), (4, "a notice")):
        message = struct.pack("!6H", 7, opcode << 11, 1, 0, 0, 0) + b"\7example\3org\0" + struct.pack("!2H", 6, 1)
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(1)
            with suppress(OSError):
                client.sendto(message, (address, port))
                response = client.recv(512)
                if len(response) >= 4 and response[3] & 15 == 0:
                    yield f"{name} of a zone at {address}:{port}/udp"


def _unix(path: str) -> Iterator[str]:
    # The kernel prints @ for each NUL. Envoy's abstract names are padded with them.
    name = path.rstrip("@")
    address = f"\0{name[1:]}" + "\0" * (len(path) - len(name)) if path.startswith("@") else path
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as client, suppress(OSError):
            client.connect(address)
            # Envoy's hot restart: the length of the message, and a request (of any content) to a parent.
            client.send(struct.pack("!Q", 0))
            yield f"a message to {name}"


def _pages(address: str, port: int) -> Iterator[str]:
    at = f"at {address}:{port}"
    for path in SECRETS:
        if _status(address, port, "GET", path, {}) == 200:
            yield f"GET {path} {at}"
    for path in PAGES:
        if _status(address, port, "GET", path, {}) != 200:
            continue
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            if (status := _status(address, port, method, path, {})) in range(200, 400):
                yield f"{method} {path} {at}: {status}"
        for fields in ({"Host": "evil.test"}, {"Host": f"evil.test:{port}"}, {"Origin": "http://evil.test"}):
            if _status(address, port, "GET", path, fields) == 200:
                yield f"GET {path} {at} with {fields}"


def _status(address: str, port: int, method: str, path: str, fields: dict[str, str]) -> int:
    """Returns the status of a response, or 0 if there is none."""
    client = http.client.HTTPConnection(address, port, timeout=PATIENCE_S)
    try:
        client.request(method, path, headers=fields)
        return client.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        client.close()
