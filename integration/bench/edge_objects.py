"""The origin and the peer of the edge bench: objects, some of which may be cached, and Squid."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path

from bench.contenders import ORIGIN_ADDRESS, Command, CoreTrack, OneCore, found, lacks, nginx, wait_until_listening
from bench.real_pages import RealPage
from harness.host.ports import free_ports
from harness.host.processes import Child
from harness.host.usage import cores, pinned

HOST = "objects.example.org"
OBJECT_BYTES = 16 * 1024
NEVER_KEPT = "/fresh/picture.png"
"""Crosses both hops and reaches the origin every time."""
KEPT = "/kept/picture.png"
OBJECTS_A_PAGE = 20
TEXT_BYTES = 100 * 1024
NEVER_KEPT_TEXT = "/fresh/script.js"
KEPT_TEXT = "/kept/script.js"


def start_objects(folder: Path, stack: ExitStack) -> tuple[str, int]:
    """Starts nginx with the same pictures in a folder that caches may store and in one that they may not. Returns its
    address."""
    port = free_ports(1, ORIGIN_ADDRESS)[0]
    root, own = folder / "root", folder / "origin"
    own.mkdir()
    content = random.Random(1).randbytes(OBJECT_BYTES)
    for name in ("fresh", "kept"):
        (root / name).mkdir(parents=True)
        for file in ("picture", *(f"object-{n}" for n in range(OBJECTS_A_PAGE))):
            (root / name / f"{file}.png").write_bytes(content)
        (root / name / "script.js").write_text(script())
    images = "".join(f'<img src="/fresh/object-{n}.png">' for n in range(OBJECTS_A_PAGE))
    (root / "fresh" / "page.html").write_text(f"<!doctype html><title>a page</title>{images}")
    command = nginx(
        own,
        f"""
  types {{ text/html html; image/png png; application/javascript js; }}
  open_file_cache max=100;
  server {{
    listen {ORIGIN_ADDRESS}:{port};
    root {root};
    location /fresh/ {{ add_header Cache-Control no-store; }}
    location /kept/ {{ add_header Cache-Control max-age=86400; }}
  }}
""",
    )
    child = stack.enter_context(Child(pinned(command, cores()[1]), folder / "origin.log"))
    wait_until_listening(child, ORIGIN_ADDRESS, port)
    return ORIGIN_ADDRESS, port


def script() -> str:
    """Returns a text that gzip makes about four times smaller, as it does with scripts."""
    source = random.Random(2)
    names = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(3, 9))) for _ in range(600)]
    lines: list[str] = []
    while sum(map(len, lines)) < TEXT_BYTES:
        one, other, third = source.choices(names, k=3)
        lines.append(f"function {one}({other}) {{ return this.{third}({other}, {source.randint(0, 999)}); }}\n")
    return "".join(lines)[:TEXT_BYTES]


def only_host(folder: Path) -> list[RealPage]:
    """Returns the list of pages that contenders take: one host."""
    return [RealPage("objects", HOST, folder / "root" / "fresh" / "page.html")]


def squid(track: CoreTrack, folder: Path, port: int) -> Command:
    """Debian's Squid in front of the origin: one process, objects in memory, no log."""
    folder.chmod(0o777)  # Squid drops root and runs as Debian's user for it
    configuration = folder / "squid.conf"
    configuration.write_text(f"""http_port 127.0.0.1:{port} accel vhost defaultsite={HOST}
cache_peer {track.origin[0]} parent {track.origin[1]} 0 no-query originserver no-digest name=origin
http_access allow all
cache_mem 256 MB
maximum_object_size_in_memory 8 MB
access_log none
cache_log {folder}/cache.log
cache_store_log none
pid_filename none
coredump_dir {folder}
cache_effective_user proxy
pinger_enable off
shutdown_lifetime 0 seconds
visible_hostname squid.test
""")
    return [found("squid") or "squid", "-N", "-n", f"bench{port}", "-f", configuration]


SQUID = OneCore("squid", squid, lacks("squid", "squid"))
