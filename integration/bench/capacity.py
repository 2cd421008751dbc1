"""`make bench ONLY=capacity`: pages of one core and memory of idle users, at an edge and at both ends of a pair.

Each engine has its figures.

README.md beside this file says how each figure is measured. QUICK=1 takes one round and a tenth of the users.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.before import COMMIT, programs_before
from bench.contenders import (
    ORIGIN_ADDRESS,
    Command,
    CoreTrack,
    rendered,
    rendered_edge,
    wait_until_listening,
)
from bench.edge import connections
from bench.edge_objects import HOST, KEPT, NEVER_KEPT, only_host, start_objects
from bench.instructions import Counted, counted, without_flushes
from bench.real_pages import real_pages
from bench.wrk import Wrk
from harness.boxes.pep import write_config
from harness.host.artifacts import Missing, built, dist, need_commands, scratch
from harness.host.ports import free_ports
from harness.host.processes import Child
from harness.host.usage import cores, cpu_seconds, description, pinned, resident_kib
from harness.net.authority import Authority
from harness.results.figures import Target, at_most, table, verdicts, write

TARGETS: list[Target] = [at_most("page_cpu_vs_before", 0.5), at_most("wasm_page_cpu_vs_before", 0.5)]
ENGINES = {"": "native", "wasm_": "wasm"}
"""The prefix of the figures of each engine. Boxes of the packages run the native one."""

QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 1 if QUICK else 3
LOAD_S = 1 if QUICK else 2
USERS = 100 if QUICK else 1000
CONNECTIONS_A_USER = 6
"""Browsers open so many connections to a host over http."""

OBJECTS_A_PAGE = 50
HITS = 0.6
"""The share of objects that a cache holds, where there is a cache."""
LARGE_PAGES = 0.1
PAGE_EVERY_S = 20
SMALL, LARGE = "/fresh/small.html", "/fresh/large.html"
PAGES = {SMALL: "news 2013", LARGE: "magazine"}
LINK = {"rtt": "600ms", "down": "20mbit", "up": "5mbit"}
SHIP, GROUND = "ship.test", "ground.test"


@dataclass(frozen=True)
class Part:
    """A kind of request, and how often it stands in a page of the mix."""

    name: str
    path: str
    accepts: str
    by_page: float


MIX = [
    *(
        Part(f"page of {size}, {coding}", path, coding, share / 2)
        for path, size, share in ((SMALL, "55 KB", 1 - LARGE_PAGES), (LARGE, "906 KB", LARGE_PAGES))
        for coding in ("gzip", "br")
    ),
    Part("object of 16 KiB", NEVER_KEPT, "gzip", OBJECTS_A_PAGE * (1 - HITS)),
    Part("object, cached", KEPT, "gzip", OBJECTS_A_PAGE * HITS),
]


def by_page(cost: Callable[[Part], float]) -> float:
    """The cost of a page of the mix with its objects."""
    return sum(cost(part) * part.by_page for part in MIX)


# ----------------------------------------------------------------------------------------------------------- processes


@dataclass(frozen=True)
class End:
    """A command that is one end, and the port on which clients or the other end reach it."""

    role: str
    command: Command
    address: str
    port: int


def edge_end(track: CoreTrack, name: str, programs: Path | None = None, **changes: str) -> End:
    """The rendered edge, of this build or of another, with changes of its file."""
    port = free_ports(1)[0]
    folder = track.folder_of(name)
    return End("edge", rendered_edge(track, folder, port, programs=programs, **changes), "127.0.0.1", port)


def pair_ends(track: CoreTrack, name: str, engine: str) -> tuple[End, End]:
    """The rendered remote and ground of a pair on loopback: the link between them has no delay."""
    folder = track.folder_of(name)
    authority = Authority(folder)
    near, far = free_ports(1)[0], free_ports(1, "127.0.0.2")[0]
    split = {"ca": str(authority.files.cert)}

    def end(role: str, address: str, port: int, **config: object) -> End:
        home = folder / role
        (home / "cache" / "ground").mkdir(parents=True)  # `longhaul run` makes the folder
        written = write_config(home, {"role": role, "engine": engine, "link": LINK, **config}, steered=[HOST])
        return End(role, rendered(written, home / "rendered", dist()), address, port)

    dns, metrics = free_ports(2)
    ground_files = authority.issue(GROUND, "127.0.0.2")
    ship_files = authority.issue(SHIP)
    far_end = end(
        "ground", "127.0.0.2", far,
        listen={"status": "off"},
        cache={"dir": str(folder / "ground" / "cache"), "size": "256mib"},
        upstream={
            "map": {HOST: f"{track.origin[0]}:{track.origin[1]}"},
            "resolvers": [f"{ORIGIN_ADDRESS}:53"], "allow_private": [f"{ORIGIN_ADDRESS}/32"],
        },
        split={"listen": f"127.0.0.2:{far}", "peer": [SHIP], **ground_files.as_dict(), **split},
    )  # fmt: skip
    near_end = end(
        "remote", "127.0.0.1", near,
        proxy={"addresses": ["127.0.0.1"]},
        listen={
            "http": f"127.0.0.1:{near}", "tls": "off", "dns": f"127.0.0.1:{dns}",
            "metrics": f"127.0.0.1:{metrics}", "status": "off", "intercept": "none",
        },
        split={"peer": [f"127.0.0.2:{far}"], **ship_files.as_dict(), **split},
    )  # fmt: skip
    return near_end, far_end


@contextmanager
def started(end: End, folder: Path, on: list[int]) -> Iterator[Child]:
    """Runs an end, without counting."""
    with Child(pinned(end.command, on), folder / f"{end.role}.log") as child:
        wait_until_listening(child, end.address, end.port)
        yield child


# ------------------------------------------------------------------------------------------------------------- figures


def instructions(server: Counted) -> float:
    """The instructions of a page of the mix."""
    costs: dict[str, float] = {}
    for part in MIX:
        requests = 4 if part.path == LARGE else 40
        costs[part.name] = server.by_request(HOST, part.path, requests, requests // 4 + 4, Accept_Encoding=part.accepts)
        print(f"  {server.name}: {part.name}: {costs[part.name] / 1e3:.0f} thousand instructions", flush=True)
    return by_page(lambda part: costs[part.name])


def counted_edges(track: CoreTrack) -> dict[str, float | None]:
    """Compares the present edge with the one of the earlier commit, by instructions."""
    found: dict[str, float | None] = {}
    ends = {f"{prefix}edge": edge_end(track, f"{prefix}counted", engine=engine) for prefix, engine in ENGINES.items()}
    try:
        ends["before"] = edge_end(track, "before-counted", programs_before())
    except Missing as reason:
        print(f"absent: before: {reason}", flush=True)
    for name, end in ends.items():
        folder = track.folder_of(f"{name}-callgrind")
        with counted(name, without_flushes(end.command), folder, end.port) as server:
            found[f"{name}_page_instructions_millions"] = instructions(server) / 1e6
    before = found.get("before_page_instructions_millions")
    for prefix in ENGINES:
        now = found[f"{prefix}edge_page_instructions_millions"]
        found[f"{prefix}page_cpu_vs_before"] = now / before if now and before else None
    return found


def seconds_by_page(port: int, sessions: dict[str, int], wrk: Wrk) -> dict[str, float]:
    """The processor time of a page at each of the processes that pass it."""
    costs: dict[str, dict[str, list[float]]] = {role: {part.name: [] for part in MIX} for role in sessions}
    for _ in range(ROUNDS):
        for part in MIX:
            before = {role: cpu_seconds(session) for role, session in sessions.items()}
            load = wrk.run(port, HOST, part.path, LOAD_S, accept_encoding=part.accepts)
            for role, session in sessions.items():
                costs[role][part.name].append((cpu_seconds(session) - before[role]) / load.requests)
    rows = [["us of core each", *sessions]]
    rows += [[p.name, *(f"{statistics.median(costs[role][p.name]) * 1e6:.0f}" for role in sessions)] for p in MIX]
    print(f"\n{table(rows)}", flush=True)
    return {role: by_page(lambda part, role=role: statistics.median(costs[role][part.name])) for role in sessions}


def mib_of_users(port: int, sessions: dict[str, int]) -> dict[str, float]:
    """The memory of a thousand users, each with the connections of a browser that made a request and waits."""
    with connections(port, 100):  # the cost of the first connections is not counted
        pass
    before = {role: resident_kib(session) for role, session in sessions.items()}
    with connections(port, USERS * CONNECTIONS_A_USER):
        return {
            role: (resident_kib(session) - before[role]) / 1024 / USERS * 1000 for role, session in sessions.items()
        }


def ends(port: int, sessions: dict[str, int], wrk: Wrk) -> dict[str, float | None]:
    """All figures of the processes that run."""
    figures: dict[str, float | None] = {}
    for role, seconds in seconds_by_page(port, sessions, wrk).items():
        figures[f"{role}_pages_per_core_second"] = 1 / seconds
        figures[f"{role}_users_per_core"] = PAGE_EVERY_S / seconds
    for role, mib in mib_of_users(port, sessions).items():
        figures[f"{role}_mib_per_1000_idle_users"] = mib
    return figures


def capacity(track: CoreTrack, wrk: Wrk) -> dict[str, float | None]:
    """Runs an edge, and then a pair, with each engine."""
    figures: dict[str, float | None] = {}
    on, others = cores()
    for prefix, engine in ENGINES.items():
        end = edge_end(track, f"{prefix}edge", engine=engine)
        with started(end, track.folder, on) as child:
            figures |= ends(end.port, {f"{prefix}edge": child.process.pid}, wrk)
        near, far = pair_ends(track, f"{prefix}pair", engine)
        with started(far, track.folder, others) as far_child, started(near, track.folder, on) as near_child:
            sessions = {f"{prefix}remote": near_child.process.pid, f"{prefix}ground": far_child.process.pid}
            figures |= ends(near.port, sessions, wrk)
    return figures


def main() -> int:
    """Measures and prints everything, and writes target/bench/capacity.json."""
    results = scratch("bench") / "capacity.json"
    try:
        need_commands("wrk", "taskset", "nginx")
        wasm = built("url_rewrite.wasm")
        pages = {page.name: page for page in real_pages()}
    except Missing as reason:
        print(f"skipped: {reason}")
        write(results, {}, skipped=str(reason))
        return 0
    machine = description()
    print(f"{machine}; {ROUNDS} rounds; before is commit {COMMIT}", flush=True)
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        track = CoreTrack(folder, start_objects(folder, stack), only_host(folder), wasm)
        for path, page in PAGES.items():
            shutil.copyfile(pages[page].file, folder / "root" / path.lstrip("/"))
        figures = capacity(track, Wrk(folder, cores()[1]))
        try:
            figures |= counted_edges(track)
        except Missing as reason:
            print(f"absent: instructions: {reason}", flush=True)
    print(f"\n{verdicts(figures, TARGETS)}\n\nwritten to {results}")
    write(results, figures, TARGETS, machine=machine, rounds=ROUNDS, before=COMMIT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
