"""`make bench ONLY=edge`: the rendered edge beside plain Envoy, nginx and Squid, all on one core each, in one run.

README.md beside this file says how each figure is measured. QUICK=1 takes one round and fewer connections.
"""

from __future__ import annotations

import gzip
import http.client
import os
import re
import resource
import socket
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.contenders import EDGE, NATIVE_EDGE, NGINX, PLAIN_ENVOY, CoreTrack, OneCore, Running
from bench.edge_objects import (
    HOST,
    KEPT,
    KEPT_TEXT,
    NEVER_KEPT,
    NEVER_KEPT_TEXT,
    OBJECT_BYTES,
    OBJECTS_A_PAGE,
    SQUID,
    only_host,
    script,
    start_objects,
)
from bench.instructions import counted, without_flushes
from bench.prefetch import hit_ratio
from bench.wrk import Wrk
from harness.boxes.admin import ask
from harness.boxes.desk import desk_in
from harness.boxes.reloads import Box, twenty_changes
from harness.host.artifacts import Missing, built, need_commands, scratch
from harness.host.ports import free_ports
from harness.host.usage import cores, description, resident_kib
from harness.results.figures import at_least, at_most, ratio, table, verdicts, write

TARGETS = [
    at_least("upstream_reuse", 0.95),
    at_most("reload_failed_requests", 0),
    at_least("rps_vs_plain_envoy", 0.6),
    at_least("instructions_vs_plain_envoy", 0.6),
    at_least("native_object_vs_plain_envoy", 0.56),
    at_least("cache_hit_rps_vs_squid", 1.2),
    at_least("native_cache_hit_rps_vs_squid", 1.2),
    at_most("text_hit_cpu_vs_miss", 0.3),
    at_most("idle_connection_kib", 16.0),
    at_least("prefetch_hit_ratio", 0.9),
]

QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 1 if QUICK else 5
LOAD_S = 1 if QUICK else 2
PAGES = 100
IDLE = 1_000 if QUICK else 10_000
COUNTED = 100 if QUICK else 300

OBJECT = ("object", NEVER_KEPT)
HIT = ("hit", KEPT)


def main() -> int:
    """Measures and prints everything, and writes target/bench/edge.json."""
    results = scratch("bench") / "edge.json"
    try:
        need_commands("wrk", "taskset", "nginx", "curl", "dig")
        wasm = Path(os.environ.get("LONGHAUL_URL_REWRITE") or built("url_rewrite.wasm"))
    except Missing as reason:
        print(f"skipped: {reason}")
        write(results, {}, skipped=str(reason))
        return 0
    machine = description()
    print(f"{machine}; {ROUNDS} rounds", flush=True)
    with edge_bench(wasm) as bench:
        figures = {**bench.reuse(), **bench.requests(), **bench.texts(), **bench.idle(), **bench.instructions()}
    figures |= {**hit_ratio(), **reloads()}
    print(f"\n{verdicts(figures, TARGETS)}\n\nwritten to {results}")
    write(results, figures, TARGETS, machine=machine, rounds=ROUNDS, absent=bench.absent)
    return 0


class Bench:
    """The contenders and their loads."""

    def __init__(self, track: CoreTrack, wrk: Wrk, stack: ExitStack) -> None:
        self.wrk = wrk
        self.track = track
        self.absent: dict[str, str] = {}
        self.contenders: dict[str, Running] = {}
        for contender in (NGINX, PLAIN_ENVOY, EDGE, NATIVE_EDGE, SQUID):
            if reason := contender.missing():
                self.absent[contender.name] = reason
                print(f"absent: {contender.name}: {reason}", flush=True)
            else:
                self.contenders[contender.name] = stack.enter_context(contender.started(track))

    def reuse(self) -> dict[str, float | None]:
        """Returns the share of requests to origins that used an open connection. Each page has a new client."""
        before = self._upstream()
        for _ in range(PAGES):
            client = http.client.HTTPConnection("127.0.0.1", self.contenders["edge"].port, timeout=30)
            for path in ("/fresh/page.html", *(f"/fresh/object-{n}.png" for n in range(OBJECTS_A_PAGE))):
                get(client, path)
            client.close()
        connections, requests = (after - was for after, was in zip(self._upstream(), before, strict=True))
        if requests < PAGES * OBJECTS_A_PAGE:
            raise RuntimeError(f"only {requests} requests reached the origin: something kept them")
        print(f"\n{PAGES} pages: {requests} requests to the origin on {connections} connections", flush=True)
        return {"upstream_reuse": 1 - connections / requests}

    def _upstream(self) -> tuple[int, int]:
        """Returns the connections to origins and the requests on them so far."""
        admin = self.track.folder / EDGE.name / "rendered" / "admin.sock"
        text = ask(admin, "/stats?filter=^cluster.(origin|map)_.*upstream_(cx|rq)_total$")

        def total(kind: str) -> int:
            return sum(int(count) for count in re.findall(rf"upstream_{kind}_total: (\d+)", text))

        return total("cx"), total("rq")

    def requests(self) -> dict[str, float | None]:
        """Returns requests a second of one core, for objects past the cache and for cached objects."""
        ours = [(name, kind) for name in ("edge", "native_edge") for kind in (OBJECT, HIT)]
        runs = [("nginx", OBJECT), ("plain_envoy", OBJECT), *ours, ("squid", HIT)]
        runs = [(name, kind) for name, kind in runs if name in self.contenders]
        self._check(runs)
        rates: dict[tuple[str, str], list[float]] = defaultdict(list)
        cpu: dict[tuple[str, str], list[float]] = defaultdict(list)
        for number in range(ROUNDS):
            for name, (kind, path) in runs[number % len(runs) :] + runs[: number % len(runs)]:
                contender = self.contenders[name]
                before = contender.cpu_seconds()
                load = self.wrk.run(contender.port, HOST, path, LOAD_S)
                rates[name, kind].append(load.requests / load.seconds)
                cpu[name, kind].append((contender.cpu_seconds() - before) / load.requests * 1e6)
        rows = [[f"{OBJECT_BYTES // 1024} KiB", "requests/s", "us of core each"]]
        rows += [
            [f"{name}, {kind}", *(f"{statistics.median(one[name, kind]):.0f}" for one in (rates, cpu))]
            for name, (kind, _) in runs
        ]
        print(f"\n{table(rows)}", flush=True)
        figures: dict[str, float | None] = {
            "rps_vs_plain_envoy": ratio(cpu["plain_envoy", "object"], cpu["edge", "object"]),
            "by_clock_rps_vs_plain_envoy": ratio(rates["edge", "object"], rates["plain_envoy", "object"]),
            "native_object_vs_plain_envoy": ratio(cpu["plain_envoy", "object"], cpu["native_edge", "object"]),
            "native_hit_cpu_vs_wasm": ratio(cpu["native_edge", "hit"], cpu["edge", "hit"]),
            "cache_hit_rps_vs_squid": None,
            "native_cache_hit_rps_vs_squid": None,
        }
        if "squid" in self.contenders:
            figures["cache_hit_rps_vs_squid"] = ratio(cpu["squid", "hit"], cpu["edge", "hit"])
            figures["native_cache_hit_rps_vs_squid"] = ratio(cpu["squid", "hit"], cpu["native_edge", "hit"])
            figures["by_clock_cache_hit_rps_vs_squid"] = ratio(rates["edge", "hit"], rates["squid", "hit"])
        return figures

    def instructions(self) -> dict[str, float | None]:
        """Returns plain Envoy's instructions by those of the edge, for an object past the cache and for a cached one.
        They hardly depend on the load of the machine."""
        costs: dict[tuple[str, str], float] = {}
        servers: list[tuple[OneCore, list[tuple[str, str]], list[str]]] = [
            (NGINX, [OBJECT], ["-g", "master_process off;"]),
            (PLAIN_ENVOY, [OBJECT], []),
            (EDGE, [OBJECT, HIT], []),
            (NATIVE_EDGE, [OBJECT, HIT], []),
        ]
        for contender, kinds, options in servers:
            if contender.missing():
                continue
            port = free_ports(1)[0]
            folder = self.track.folder_of(f"{contender.name}-counted")
            command = contender.command(self.track, folder, port)
            command = [*command, *options] if options else without_flushes(command)
            try:
                with counted(contender.name, command, self.track.folder_of(f"{contender.name}-dumps"), port) as server:
                    for kind, path in kinds:
                        costs[contender.name, kind] = server.by_request(HOST, path, COUNTED)
            except Missing as reason:
                self.absent["instructions"] = str(reason)
                return {}
        rows = [[f"{OBJECT_BYTES // 1024} KiB", "thousand instructions"]]
        rows += [[f"{name}, {kind}", f"{cost / 1e3:.0f}"] for (name, kind), cost in costs.items()]
        print(f"\n{table(rows)}", flush=True)
        plain = costs["plain_envoy", "object"]
        return {
            "instructions_vs_plain_envoy": plain / costs["edge", "object"],
            "hit_instructions_vs_plain_envoy": plain / costs["edge", "hit"],
            "native_instructions_vs_plain_envoy": plain / costs["native_edge", "object"],
            "native_hit_instructions_vs_plain_envoy": plain / costs["native_edge", "hit"],
            "nginx_instructions_vs_plain_envoy": plain / costs["nginx", "object"]
            if ("nginx", "object") in costs
            else None,
        }

    def texts(self) -> dict[str, float | None]:
        """Returns the processor time of a script from the cache, by that of one that must not be stored. The client
        accepts gzip."""
        ours = self.contenders["edge"]
        paths = (NEVER_KEPT_TEXT, KEPT_TEXT)
        for path in paths:
            client = http.client.HTTPConnection("127.0.0.1", ours.port, timeout=30)
            bodies = {gzip.decompress(get(client, path, "gzip")) for _ in range(5)}
            client.close()
            if bodies != {script().encode()}:
                raise RuntimeError(f"{path} is not the script in gzip")
            self._check_kept(path, path == KEPT_TEXT)
        cpu: dict[str, list[float]] = defaultdict(list)
        for number in range(ROUNDS):
            for path in paths[:: 1 if number % 2 else -1]:
                start = ours.cpu_seconds()
                load = self.wrk.run(ours.port, HOST, path, LOAD_S, accept_encoding="gzip")
                cpu[path].append((ours.cpu_seconds() - start) / load.requests * 1e6)
        miss, hit = (statistics.median(cpu[path]) for path in paths)
        print(f"\nscript of 100 KiB in gzip: {miss:.0f} us of core, from the cache {hit:.0f} us", flush=True)
        return {"text_hit_cpu_vs_miss": ratio(cpu[KEPT_TEXT], cpu[NEVER_KEPT_TEXT])}

    def _check(self, runs: list[tuple[str, tuple[str, str]]]) -> None:
        """Asserts that every contender sends the object itself, and that only the cacheable one comes from the
        cache."""
        for name, (kind, path) in runs:
            client = http.client.HTTPConnection("127.0.0.1", self.contenders[name].port, timeout=30)
            bodies = {get(client, path) for _ in range(3)}
            client.close()
            if len(bodies) != 1 or len(bodies.pop()) != OBJECT_BYTES:
                raise RuntimeError(f"{name} does not give the object ({kind})")
        for path, kept in ((KEPT, True), (NEVER_KEPT, False)):
            self._check_kept(path, kept)

    def _check_kept(self, path: str, kept: bool) -> None:
        client = http.client.HTTPConnection("127.0.0.1", self.contenders["edge"].port, timeout=30)
        # A client without an Accept-Encoding has a form of its own.
        get(client, path)
        before = self._upstream()[1]
        for _ in range(10):
            get(client, path)
        client.close()
        if (self._upstream()[1] == before) is not kept:
            raise RuntimeError(f"{path} was to {'come from the cache' if kept else 'be asked for every time'}")

    def idle(self) -> dict[str, float | None]:
        """Returns the memory of a client's connection that made a request and waits for the next."""
        ours = self.contenders["edge"]
        session = ours.child.process.pid
        with connections(ours.port, 100):  # the cost of the first connections is not counted
            pass
        before = resident_kib(session)
        with connections(ours.port, IDLE):
            each = (resident_kib(session) - before) / IDLE
        print(f"\n{IDLE} idle connections: {each:.1f} KiB each, so {each / 1.048576:.1f} GB for a million", flush=True)
        return {"idle_connection_kib": each, "million_idle_connections_gib": each * 1e6 / 1024**2}


@contextmanager
def edge_bench(wasm: Path) -> Iterator[Bench]:
    """Starts the origin and the contenders, and stops them at the end."""
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        track = CoreTrack(folder, start_objects(folder, stack), only_host(folder), wasm)
        yield Bench(track, Wrk(folder, cores()[1]), stack)


@contextmanager
def connections(port: int, count: int) -> Iterator[None]:
    """Holds `count` connections open. Each of them has made one request."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, count + 1000), most))
    request = f"GET {KEPT} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    with ExitStack() as stack:
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            one.sendall(request)
            answer = http.client.HTTPResponse(one)
            answer.begin()
            answer.read()
            answer.close()
        yield


def get(client: http.client.HTTPConnection, path: str, accept_encoding: str = "identity") -> bytes:
    """Returns the body of a response with status 200."""
    client.request("GET", path, headers={"Host": HOST, "Accept-Encoding": accept_encoding})
    answer = client.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {body[:300]!r}")
    return body


def reloads() -> dict[str, float | None]:
    """Makes twenty changes under load, five of them broken. Returns how many requests did not get a whole response."""
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name, desk_in(Path(name)) as desk:
        with Box(desk).running() as box, box.load().running() as load:
            twenty_changes(box)
        print(f"\n{box.changes} changes: {load.pages} pages, {load.downloads} downloads, {len(load.failed)} failed")
        for what in load.failed[:5]:
            print(f"  {what}")
        return {"reload_failed_requests": len(load.failed)}


if __name__ == "__main__":
    sys.exit(main())
