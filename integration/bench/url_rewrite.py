"""`make bench ONLY=url-rewrite`: the filter in Envoy beside nginx, Apache, plain Envoy and the native crate.

README.md beside this file describes the measurements and their reasons. QUICK=1 takes fewer rounds, to try the bench.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import memory
from bench.contenders import ALL, FILTER, ORIGIN_ADDRESS, PLAIN_ENVOY, CoreTrack, OneCore, Running, start_origin
from bench.envoy import TARGET
from bench.first_byte import Delays, first_byte
from bench.held_pages import PausingOrigin
from bench.native import Native, put_back
from bench.real_pages import RealPage, real_pages
from bench.wrk import Wrk
from harness.host.artifacts import Missing, built, need_commands, scratch
from harness.host.usage import cores, description
from harness.results.figures import at_least, at_most, geometric_mean, ratio, table, verdicts, write

TARGETS = [
    at_least("throughput_vs_sub_filter", 0.65),
    at_least("throughput_vs_mod_proxy_html", 3.0),
    at_least("share_of_ceiling", 0.85),
    at_least("throughput_vs_native", 0.5),
    at_most("crate_instructions_per_byte", 7.0),
    at_most("scanner_instructions_per_byte", 4.0),
    at_most("first_byte_added_ms", 1.0),
    at_most("memory_per_page_kib", 128.0),
    at_least("non_html_rps_vs_plain_envoy", 0.85),
    at_least("native_throughput_vs_sub_filter", 0.62),
    at_most("native_page_cpu_vs_wasm", 0.8),
]

QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 1 if QUICK else 5
LOAD_S = 1
NATIVE_MS = 300
FIRST_BYTE_ROUNDS = 2 if QUICK else 15
PAGES_AT_ONCE = 48
PAGE_SIZES_KIB = [64, 512] if QUICK else [64, 1024, 8192]

OBJECT = "photo.png"
OBJECT_BYTES = 16 * 1024
OBJECT_HOST = "img.example.org"

UNCHANGED = {"plain_envoy", "put_back"}
"""Contenders that replace nothing."""


def main() -> int:
    """Measures and prints everything, and writes target/bench/url-rewrite.json."""
    results = scratch("bench") / "url-rewrite.json"
    try:
        pages = real_pages()
        need_commands("wrk", "taskset", "nginx")
        wasm = Path(os.environ.get("LONGHAUL_URL_REWRITE") or built("url_rewrite.wasm"))
    except Missing as reason:
        print(f"skipped: {reason}")
        write(results, {}, skipped=str(reason))
        return 0
    machine = description()
    print(f"{machine}; {ROUNDS} rounds", flush=True)
    native = Native()
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)  # Apache's worker does not run as root
        objects = {OBJECT: random.Random(1).randbytes(OBJECT_BYTES)}
        origin = start_origin(folder, pages, objects, stack)
        track = CoreTrack(folder, origin, pages, wasm, put_back())
        bench = Bench(track, native, Wrk(folder, cores()[1]))
        bench.start(stack)
        bench.check()
        figures = {**bench.instructions(), **bench.pages(), **bench.objects()}
        stack.pop_all().close()
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name:
        delays = trickle(Path(name), pages[3], wasm)
        figures["first_byte_added_ms"] = delays["filter"].first_ms - delays["plain_envoy"].first_ms
        figures["later_pieces_added_ms"] = delays["filter"].later_ms - delays["plain_envoy"].later_ms
    figures |= hold(pages[3], wasm)
    print(f"\n{verdicts(figures, TARGETS)}\n\nwritten to {results}")
    write(results, figures, TARGETS, machine=machine, rounds=ROUNDS, per_page=bench.details, absent=bench.absent)
    return 0


class Bench:
    """Contenders that take turns with the same pages."""

    def __init__(self, track: CoreTrack, native: Native, wrk: Wrk) -> None:
        self.track = track
        self.native = native
        self.wrk = wrk
        self.contenders: dict[str, Running] = {}
        self.absent: dict[str, str] = {}
        self.details: dict[str, dict[str, dict[str, float]]] = {}
        self.body_bytes: dict[tuple[str, str], int] = {}

    def start(self, stack: ExitStack) -> None:
        """Starts every contender that is installed, and prints the missing ones."""
        for contender in ALL:
            if reason := contender.missing():
                self.absent[contender.name] = reason
                print(f"absent: {contender.name}: {reason}", flush=True)
            else:
                self.contenders[contender.name] = stack.enter_context(contender.started(self.track))

    def check(self) -> None:
        """Checks that every contender does all of the work that is measured."""
        moved_to = f"https://{TARGET}".encode()  # the edge adds its port, too
        rows = [["replaced", *(page.name for page in self.track.pages)]]
        counts: dict[str, list[int]] = {}
        for name, contender in self.contenders.items():
            answers = [fetch(contender.port, page.host, page.path) for page in self.track.pages]
            counts[name] = [answer.count(moved_to) for answer in answers]
            rows.append([name, *map(str, counts[name])])
            for page, answer in zip(self.track.pages, answers, strict=True):
                self.body_bytes[name, page.name] = len(answer)
                if name in UNCHANGED and answer != page.file.read_bytes():
                    raise RuntimeError(f"{name} changed {page.name}")
        counts["native"] = [self.native.run(page, 1).moved for page in self.track.pages]
        rows.append(["native", *map(str, counts["native"])])
        print(f"\n{table(rows)}\n", flush=True)
        literal = [page.file.read_bytes().count(b"http://") for page in self.track.pages]
        for name, wanted in [
            *((name, counts["native"]) for name in ("filter", "native_filter", "edge", "native_edge")),
            ("sub_filter", literal),
        ]:  # fmt: skip
            if name in counts and counts[name] != wanted:
                raise RuntimeError(f"{name} replaced {counts[name]} URLs where {wanted} were to be")
        for name in counts.keys() - UNCHANGED:
            if not sum(counts[name]):
                raise RuntimeError(f"{name} replaced nothing: it would be measured at doing nothing")

    def instructions(self) -> dict[str, float | None]:
        """Counts the instructions of the crate and of its scanner. They repeat where seconds do not."""
        counts = [(page.name, self.native.instructions(page)) for page in self.track.pages]
        counted = [(name, one) for name, one in counts if one]
        if not counted:
            self.absent["callgrind"] = "needs the command valgrind (Debian package valgrind)"
            print(f"absent: callgrind: {self.absent['callgrind']}", flush=True)
            return {"crate_instructions_per_byte": None, "scanner_instructions_per_byte": None}
        crate = geometric_mean(one.crate for _, one in counted)
        scanner = geometric_mean(one.scanner for _, one in counted)
        rows = [["instructions a byte", "crate", "scanner"]]
        rows += [[name, f"{one.crate:.2f}", f"{one.scanner:.2f}"] for name, one in counted]
        rows.append(["geometric mean", f"{crate:.2f}", f"{scanner:.2f}"])
        print(f"{table(rows)}\n", flush=True)
        return {"crate_instructions_per_byte": crate, "scanner_instructions_per_byte": scanner}

    def pages(self) -> dict[str, float | None]:
        """Measures the throughput of every page. In each round every contender takes its turn."""
        names = [*self.contenders, "native"]
        wall: dict[tuple[str, str], list[float]] = defaultdict(list)
        core: dict[tuple[str, str], list[float]] = defaultdict(list)
        for number in range(ROUNDS):
            for page in self.track.pages:
                for name in turned(names, number):
                    wall_mbps, core_mbps = self.one(name, page)
                    wall[name, page.name].append(wall_mbps)
                    core[name, page.name].append(core_mbps)
            print(f"round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
        self.print_speeds("MB/s of page through one core (bytes by processor time)", names, core)
        self.print_speeds("MB/s of page by the clock", names, wall)
        for page in self.track.pages:
            self.details[page.name] = {
                name: {
                    "mb_per_core_second": statistics.median(core[name, page.name]),
                    "mb_per_second": statistics.median(wall[name, page.name]),
                }
                for name in names
            }

        def versus(peer: str, speeds: dict[tuple[str, str], list[float]], ours: str = "filter") -> float | None:
            if peer not in names:
                return None
            return geometric_mean(ratio(speeds[ours, one.name], speeds[peer, one.name]) for one in self.track.pages)

        figures = {
            f"throughput_vs_{peer}": versus(peer, core) for peer in ("sub_filter", "mod_proxy_html", "plain_envoy")
        }
        by_clock = {
            f"by_clock_vs_{peer}": versus(peer, wall) for peer in ("sub_filter", "mod_proxy_html", "plain_envoy")
        }
        share = {
            "share_of_ceiling": versus("put_back", core),
            "native_throughput_vs_sub_filter": versus("sub_filter", core, "native_filter"),
            "native_page_cpu_vs_wasm": versus("native_filter", core),
            "native_edge_page_cpu_vs_wasm": versus("native_edge", core, "edge"),
        }
        return {**figures, **share, **by_clock, **self.native_figures(core)}

    def native_figures(self, core: dict[tuple[str, str], list[float]]) -> dict[str, float | None]:
        """The native crate neither receives nor sends. So the time that plain Envoy needs is subtracted from the
        filter's."""
        alone, whole = [], []
        for page in self.track.pages:
            rounds = zip(
                core["filter", page.name], core["plain_envoy", page.name], core["native", page.name], strict=True
            )
            shares = [(1 / (1 / ours - 1 / plain) / native, ours / native) for ours, plain, native in rounds]
            alone.append(statistics.median(one for one, _ in shares))
            whole.append(statistics.median(one for _, one in shares))
        return {
            "throughput_vs_native": geometric_mean(alone),
            "with_proxying_vs_native": geometric_mean(whole),
        }

    def one(self, name: str, page: RealPage) -> tuple[float, float]:
        """Returns megabytes of one page a second: by the clock, and by processor time."""
        if name == "native":
            run = self.native.run(page, NATIVE_MS)
            return run.bytes_per_second / 1e6, run.bytes_per_second / 1e6
        contender = self.contenders[name]
        before = contender.cpu_seconds()
        load = self.wrk.run(contender.port, page.host, page.path, LOAD_S)
        spent = contender.cpu_seconds() - before
        # A page that was under way at the end counts by the part that arrived.
        passed = load.bytes / self.body_bytes[name, page.name] * page.bytes / 1e6
        return passed / load.seconds, passed / spent

    def objects(self) -> dict[str, float | None]:
        """Returns requests a second for objects other than pages: passing, and at their moved URL."""
        kinds = {"passing": (OBJECT_HOST, f"/objects/{OBJECT}"), "moved": (TARGET, f"/{OBJECT_HOST}/objects/{OBJECT}")}
        self.check_objects(kinds)
        rates: dict[tuple[str, str], list[float]] = defaultdict(list)
        cpu: dict[tuple[str, str], list[float]] = defaultdict(list)
        runs = [("plain_envoy", "passing"), ("put_back", "passing"), ("filter", "passing"), ("filter", "moved")]
        runs.append(("native_filter", "passing"))
        runs = [("sub_filter", "passing"), *runs] if "sub_filter" in self.contenders else runs
        for number in range(ROUNDS):
            for name, kind in turned(runs, number):
                host, path = kinds[kind]
                before = self.contenders[name].cpu_seconds()
                load = self.wrk.run(self.contenders[name].port, host, path, LOAD_S)
                rates[name, kind].append(load.requests / load.seconds)
                cpu[name, kind].append((self.contenders[name].cpu_seconds() - before) / load.requests * 1e6)
        rows = [[f"objects of {OBJECT_BYTES // 1024} KiB", "requests/s", "us of core each"]]
        rows += [
            [
                f"{name}, {kind}",
                f"{statistics.median(rates[name, kind]):.0f}",
                f"{statistics.median(cpu[name, kind]):.1f}",
            ]
            for name, kind in runs
        ]
        print(f"\n{table(rows)}", flush=True)
        plain = "plain_envoy", "passing"
        return {
            "non_html_rps_vs_plain_envoy": ratio(cpu[plain], cpu["filter", "passing"]),
            "non_html_rps_vs_put_back": ratio(cpu["put_back", "passing"], cpu["filter", "passing"]),
            "native_non_html_rps_vs_plain_envoy": ratio(cpu[plain], cpu["native_filter", "passing"]),
            "moved_object_rps_vs_plain_envoy": ratio(cpu[plain], cpu["filter", "moved"]),
            "non_html_by_clock_vs_plain_envoy": ratio(rates["filter", "passing"], rates[plain]),
        }

    def check_objects(self, kinds: dict[str, tuple[str, str]]) -> None:
        """Asserts that the filter finds the object behind its moved URL and changes none of its bytes."""
        wanted = fetch(self.contenders["plain_envoy"].port, *kinds["passing"])
        for kind, (host, path) in kinds.items():
            if fetch(self.contenders["filter"].port, host, path) != wanted:
                raise RuntimeError(f"the filter changed an object ({kind})")

    def print_speeds(self, title: str, names: list[str], speeds: dict[tuple[str, str], list[float]]) -> None:
        """Prints a row for each page, and the geometric mean."""
        rows = [[title, "KiB", *names]]
        for page in self.track.pages:
            medians = [statistics.median(speeds[name, page.name]) for name in names]
            rows.append([page.name, str(page.bytes // 1024), *(f"{one:.0f}" for one in medians)])
        means = [
            geometric_mean(statistics.median(speeds[name, page.name]) for page in self.track.pages) for name in names
        ]
        rows.append(["geometric mean", "", *(f"{one:.0f}" for one in means)])
        print(f"\n{table(rows)}", flush=True)


def turned(names: list, number: int) -> list:
    """Rotates the names, so that each is first in turn."""
    return names[number % len(names) :] + names[: number % len(names)]


def fetch(port: int, host: str, path: str) -> bytes:
    """Returns the body of a response with status 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers={"Host": host})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"{host}{path} on port {port}: {response.status} {body[:300]!r}")
    return body


def trickle(folder: Path, page: RealPage, wasm: Path) -> dict[str, Delays]:
    """Passes a page in pieces through Envoy with the filter and without it."""
    with ExitStack() as stack:

        def start(port: int) -> dict[str, int]:
            track = CoreTrack(folder, (ORIGIN_ADDRESS, port), [page], wasm)
            running = [stack.enter_context(one.started(track)) for one in (PLAIN_ENVOY, FILTER)]
            return {one.name: one.port for one in running}

        delays = first_byte(start, page, FIRST_BYTE_ROUNDS, ORIGIN_ADDRESS)
    rows = [["pieces 300 ms apart, ms each", "first", "later", "most"]]
    rows += [[name, f"{one.first_ms:.2f}", f"{one.later_ms:.2f}", f"{one.most_ms:.2f}"] for name, one in delays.items()]
    print(f"\n{table(rows)}", flush=True)
    return delays


def hold(page: RealPage, wasm: Path) -> dict[str, float | None]:
    """Returns the memory a page takes, measured with several sizes of page."""
    rows = [[f"KiB a page, {PAGES_AT_ONCE} at once", "plain, peak", "filter, peak", "filter, held"]]
    worst = 0.0
    for size_kib in PAGE_SIZES_KIB:
        content = memory.of_about(page.file.read_bytes(), size_kib * 1024)
        plain, ours = (memory_of(one, content, page, wasm) for one in (PLAIN_ENVOY, FILTER))
        rows.append(
            [f"{len(content) // 1024} KiB", *(f"{one:.0f}" for one in (plain.peak_kib, ours.peak_kib, ours.held_kib))]
        )
        worst = max(worst, ours.peak_kib)
    print(f"\n{table(rows)}", flush=True)
    return {"memory_per_page_kib": worst}


def memory_of(contender: OneCore, content: bytes, page: RealPage, wasm: Path) -> memory.Growth:
    """Starts a fresh Envoy and fills it with pages."""

    async def run() -> memory.Growth:
        async with PausingOrigin(ORIGIN_ADDRESS) as origin:
            track = CoreTrack(Path(folder), (ORIGIN_ADDRESS, origin.port), [page], wasm)
            running = await asyncio.to_thread(stack.enter_context, contender.started(track))
            return await memory.growth(origin, running, content, page.host, PAGES_AT_ONCE)

    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as folder, ExitStack() as stack:
        return asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
