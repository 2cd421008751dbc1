"""`make bench ONLY=header-compression`: compressed headers on a real HTTP/2 pipe, beside Envoy's own HPACK.

The README.md in this folder defines the measurement and gives its reasons. `run.py FILE.har FILE.qif FILE.json`
measures other traces. QUICK=1 takes three traces, to test the benchmark itself.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import unittest
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "integration"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "wasm/tests"))

from harness.boxes.filters import envoy_and_filter
from harness.origins.http1 import Client, Fields, Message, Origin, message
from harness.results.figures import at_most, table, verdicts, write
from pair_bed import TABLE_BYTES_PACKED, TABLE_BYTES_PEER, Pair
from traces import Trace, read_trace, stories

TARGETS = [
    at_most("request_bytes_vs_hpack", 0.8),
    at_most("response_bytes_vs_hpack", 0.55),
    at_most("cold_bytes_vs_hpack", 0.55),
    at_most("encode_us", 50.0),
    at_most("decode_us", 50.0),
]

REPOSITORY = Path(__file__).resolve().parents[3]
QUICK = bool(os.environ.get("QUICK"))
# The clock inside the module is a wall clock. It also counts the time of other programs that interrupt a call. So each
# trace passes several times, each time as another client. The counters are read every few blocks, and the least time of
# each stretch counts.
STRETCH_BLOCKS = 4
PASSES = 1 if QUICK else 6
RESULTS = REPOSITORY / "target" / "bench" / "header-compression.json"
HOST = b"www.example.org"
BARE_ANSWER = message(b"HTTP/1.1 200 OK", [(b"content-length", b"0"), (b"date", b"Sat, 03 Nov 2012 12:50:44 GMT")])


# The counters of the remote and of the ground.
Sample = tuple[dict[str, int], dict[str, int]]


@dataclass
class Run:
    """The bytes and the work that the blocks of one trace took on the pipe."""

    # The sizes of whole frames in the direction of the trace, one entry for each block.
    blocks: list[int]
    # The same in the other direction.
    others: list[int]
    # The samples of the filter's counters, by pass.
    counters: list[list[Sample]] = field(default_factory=list)

    @property
    def cold(self) -> int:
        return self.blocks[0]

    @property
    def warm(self) -> int:
        return sum(self.blocks[1:])


def replay(trace: Trace, packed: bool, passes: int = 1) -> Run:
    """Sends a trace through a pair that has just started, one exchange after the other. Bytes are of the first pass."""
    answers = iter(trace.blocks * passes)

    def answer(_: Message) -> list[bytes]:
        return [BARE_ANSWER if trace.requests else as_response(next(answers))]

    table_bytes = TABLE_BYTES_PACKED if packed else TABLE_BYTES_PEER
    roles = ({"role": "remote"}, {"role": "ground"}) if packed else (None, None)
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(contextlib.closing(Origin(answer)))
        pair = stack.enter_context(contextlib.closing(Pair(*roles, origin, table_bytes)))
        count = len(trace.blocks)
        run = Run([], [])
        for number in range(passes):
            with contextlib.closing(pair.connect(f"127.0.0.{number + 1}")) as client:
                run.counters.append(one_pass(trace, pair, client, packed))
            check(trace, origin.requests[-count:])
            if not run.blocks:
                ways = [pair.tap.to_ground.blocks, pair.tap.to_remote.blocks]
                ours, others = ways if trace.requests else reversed(ways)
                run.blocks, run.others = list(ours), list(others)
        if len(run.blocks) != count:
            raise AssertionError(f"{trace.name}: {len(run.blocks)} header blocks on the pipe for {count}")
        return run


def one_pass(trace: Trace, pair: Pair, client: Client, packed: bool) -> list[Sample]:
    """All blocks of a trace, as one client's. Returns the counters before the first stretch and after each."""

    def sample() -> Sample:
        return pair.remote.packing(), pair.ground.packing()

    samples = [sample()] if packed else []
    for number, block in enumerate(trace.blocks, start=1):
        # HEAD: any length may be announced, and no body need follow.
        got = client.ask(*as_request(block)) if trace.requests else client.ask(b"HEAD", HOST, b"/", [])
        if packed and got.get("x-longhaul-retry"):
            raise AssertionError(f"{trace.name}: a request was refused for good")
        if packed and (number % STRETCH_BLOCKS == 0 or number == len(trace.blocks)):
            samples.append(sample())
    return samples


def as_request(block: Fields) -> tuple[bytes, bytes, bytes, Fields, bytes]:
    """Method, host, path, fields and a body as long as they announce."""
    pseudo = dict(block[:8])
    fields = [(name, value) for name, value in block if not name.startswith(b":") and name != b"content-length"]
    length = next((int(value) for name, value in block if name == b"content-length"), 0)
    return pseudo[b":method"], pseudo[b":authority"], pseudo[b":path"], fields, b"x" * length


def as_response(block: Fields) -> bytes:
    status = next(value for name, value in block if name == b":status")
    fields = [(name, value) for name, value in block if not name.startswith(b":")]
    # Without a length the end of a response would be the end of its connection.
    if status not in (b"204", b"304") and not any(name == b"content-length" for name, _ in fields):
        fields.append((b"content-length", b"0"))
    return message(b"HTTP/1.1 " + status + b" x", fields)


def check(trace: Trace, requests: list[Message]) -> None:
    """Raises AssertionError if a request differs from the one sent: the figures would mean nothing."""
    if not trace.requests:
        return
    for block, request in zip(trace.blocks, requests, strict=True):
        _, host, path, fields, body = as_request(block)
        length = [(b"content-length", b"%d" % len(body))] if body else []
        sent = sorted([(b"host", host), (b"x-forwarded-proto", b"http"), *fields, *length])
        # A proxy may say that a POST has no body.
        got = sorted(pair for pair in request.fields if pair != (b"content-length", b"0"))
        if got != sent or request.line.split(b" ")[1] != path:
            raise AssertionError(f"{trace.name}: {sent} arrived as {got}")


@dataclass
class Sums:
    """Bytes of many traces, ours beside the peer's."""

    blocks: int = 0
    packed: int = 0
    peer: int = 0

    def add(self, blocks: int, packed: int, peer: int) -> None:
        self.blocks, self.packed, self.peer = self.blocks + blocks, self.packed + packed, self.peer + peer

    @property
    def ratio(self) -> float | None:
        return self.packed / self.peer if self.peer else None


@dataclass
class Work:
    """Time in the filter for the blocks of the traces, in the worker that compresses or the one that decompresses."""

    nanoseconds: int = 0
    blocks: int = 0

    def add(self, name: str, trace: Trace, run: Run) -> None:
        at_remote = (name == "encode") == trace.requests
        count = {"encode": "packed_total", "decode": "unpacked_total"}[name]
        passes = []
        for samples in run.counters:
            sides = [remote if at_remote else ground for remote, ground in samples]
            sums = [(side[f"{name}_nanoseconds_total"], side[count]) for side in sides]
            passes.append([(now[0] - then[0], now[1] - then[1]) for then, now in itertools.pairwise(sums)])
        for same in zip(*passes, strict=True):
            self.nanoseconds += min(nanoseconds for nanoseconds, _ in same)
            self.blocks += same[0][1]

    @property
    def microseconds(self) -> float | None:
        return self.nanoseconds / 1000 / self.blocks if self.blocks else None


def main(arguments: list[str]) -> int:
    """Replays every trace twice, prints the table, writes the figures."""
    try:
        envoy_and_filter("header-compression")
        traces = [trace for name in arguments for trace in read_trace(Path(name))] or stories()
    except (unittest.SkipTest, FileNotFoundError) as reason:
        print(f"header-compression did not run: {reason}", file=sys.stderr)
        return 1
    if QUICK:
        traces = [trace for trace in traces if len(trace.blocks) < 40][:3]
    warm = {True: Sums(), False: Sums()}
    cold, opposite = Sums(), Sums()
    work = {"encode": Work(), "decode": Work()}
    rows = [["trace", "blocks", "first", "HPACK", "rest, mean", "HPACK", "ratio", "other way", "HPACK"]]
    for trace in traces:
        peer, ours = replay(trace, packed=False), replay(trace, packed=True, passes=PASSES)
        count = len(trace.blocks)
        warm[trace.requests].add(count - 1, ours.warm, peer.warm)
        cold.add(1, ours.cold, peer.cold)
        opposite.add(count, sum(ours.others), sum(peer.others))
        for name, sums in work.items():
            sums.add(name, trace, ours)
        rest = [f"{run.warm / max(1, count - 1):.1f}" for run in (ours, peer)]
        ratio = f"{ours.warm / peer.warm:.2f}" if peer.warm else ""
        way = [f"{sum(run.others) / count:.1f}" for run in (ours, peer)]
        rows.append([trace.name, str(count), str(ours.cold), str(peer.cold), *rest, ratio, *way])
        print(f"  {trace.name}", file=sys.stderr, flush=True)
    figures = {
        "request_bytes_vs_hpack": warm[True].ratio,
        "response_bytes_vs_hpack": warm[False].ratio,
        "cold_bytes_vs_hpack": cold.ratio,
        "encode_us": work["encode"].microseconds,
        "decode_us": work["decode"].microseconds,
        "other_way_bytes_vs_hpack": opposite.ratio,
    }
    for name, sums in (("request", warm[True]), ("response", warm[False])):
        if sums.blocks:
            figures[f"{name}_bytes"] = sums.packed / sums.blocks
            figures[f"{name}_bytes_hpack"] = sums.peer / sums.blocks
    print(table(rows), verdicts(figures, TARGETS), sep="\n\n")
    traces = [dict(zip(rows[0], row, strict=False)) | {"trace": row[0]} for row in rows[1:]]
    write(RESULTS, figures, TARGETS, traces=traces)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
