"""The same pages with both engines, byte for byte, and the choice of the engine."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.boxes import filters
from harness.boxes.desk import Desk
from harness.boxes.pep import Pep, command
from harness.host.artifacts import Missing, built, corpora
from harness.host.processes import of_program
from harness.host.waiting import wait_for
from harness.origins.http1 import DEADLINE_S, Message, Origin, read_response

CONFIG = {
    "targets": {"https": ["pep.example.net"], "http": ["198.51.100.12"]},
    "own": ["198.51.100.12", "pep.example.net"],
    "level": "full",
    "exclude": [],
    "ports": [80, 443],
}
PIECES = (1448, 16000, 65536, 701)
"""The sizes of the pieces in which pages come, in turn."""


def pages() -> list[Path]:
    """Returns the saved pages, or those of the demo's site where there are none."""
    try:
        folder = corpora() / "html"
    except Missing:
        folder = Path(__file__).parents[1] / "site"
    return sorted(folder.rglob("*.html"))


def in_pieces(body: bytes, size: int) -> Iterator[bytes]:
    """Yields a response with a page in chunks."""
    yield b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n"
    for at in range(0, len(body), size):
        piece = body[at : at + size]
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def get(port: int, path: str) -> Message:
    """Sends a request for a page."""
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: www.foo.example\r\nconnection: close\r\n\r\n".encode())
        return read_response(connection)


def seen(response: Message) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    """Returns what a browser sees of a response, without its times."""
    of_time = (b"date", b"x-envoy-upstream-service-time")
    fields = [field for field in response.fields if field[0].lower() not in of_time]
    return response.status, response.body, fields


def through(engine: str, origin: Origin) -> filters.Envoy:
    """Returns an Envoy that rewrites with an engine."""
    rewriting = filters.http_filter("edge", "url-rewrite", CONFIG, engine=engine)
    return filters.Envoy(filters.bootstrap("origin", filters.address(origin.port), [rewriting]))


def test_every_saved_page_is_the_same_with_both_engines(record_property: Callable[[str, object], None]) -> None:
    found = pages()
    assert found
    sizes = dict(zip(found, itertools.cycle(PIECES), strict=False))

    def answer(request: Message) -> Iterator[bytes]:
        page = found[int(request.target.removeprefix("/"))]
        return in_pieces(page.read_bytes(), sizes[page])

    origin = Origin(answer)
    wasm = through("wasm", origin)
    native = through("native", origin)
    try:
        differ, moved = [], 0
        for number, page in enumerate(found):
            one, other = (get(envoy.port, f"/{number}") for envoy in (wasm, native))
            assert one.complete, page
            if seen(one) != seen(other):
                differ.append(page.name)
            moved += one.body != page.read_bytes()
        record_property("pages", len(found))
        record_property("engines_differ", len(differ))
        print(f"engines_differ {len(differ)} of {len(found)} pages, {moved} of them rewritten")
        assert not differ
        assert moved > len(found) / 2
    finally:
        wasm.close()
        native.close()
        origin.close()


def test_without_a_module_that_envoy_loads_check_says_what_to_do_and_auto_runs_wasm(desk: Desk) -> None:
    missing = {"LONGHAUL_NATIVE_FILTERS": str(desk.folder / "none.so")}
    refused = command("check", "--here", desk.write(engine="native"), **missing)
    assert refused.returncode != 0
    for words in ("`engine: native` cannot run here", "none.so", "run `make build`", "`engine: wasm`"):
        assert words in refused.stderr, refused.stderr
    auto = command("check", "--here", desk.write(engine="auto"), **missing)
    assert auto.returncode == 0, auto.stderr
    assert "wasm: the module of native filters was not found" in auto.stdout

    other = desk.folder / "other.so"
    module = built("longhaul_filters.so").read_bytes()
    assert module.count(b"v0.2.0\0") == 1
    other.write_bytes(module.replace(b"v0.2.0\0", b"v0.1.9\0"))
    refused = command("check", "--here", desk.write(engine="native"), LONGHAUL_NATIVE_FILTERS=str(other))
    assert refused.returncode != 0
    assert "another version of Envoy" in refused.stderr, refused.stderr

    native = command("check", "--here", desk.write(engine="auto"))
    assert native.returncode == 0, native.stderr
    assert "engine" not in native.stdout, "native is the usual one"


def test_the_engine_changes_in_the_same_envoy_and_a_module_that_does_not_load_is_refused(desk: Desk) -> None:
    module = desk.etc / "filters.so"
    shutil.copyfile(built("longhaul_filters.so"), module)
    with Pep(desk.write(), desk.folder, environment={"LONGHAUL_NATIVE_FILTERS": str(module)}) as pep:

        def has_wasm() -> bool:
            return any(name.startswith("envoy_wasm_") for name in pep.metrics())

        assert not has_wasm()
        module.with_suffix(".new").write_bytes(b"none")
        module.with_suffix(".new").replace(module)
        wait_for("the refusal", lambda: "does not load the module" in pep.output())
        shutil.copyfile(built("longhaul_filters.so"), module)
        desk.write(engine="wasm")
        wait_for("wasm filters", has_wasm, timeout_s=60, interval_s=0.3)
        wait_for("a page", lambda: desk.moved in desk.get())


def test_wasm_runs_after_three_deaths_with_native_filters(desk: Desk) -> None:
    with Pep(desk.write(engine="native"), desk.folder) as pep:

        def envoys() -> list[int]:
            own = pep.child.process.pid
            pids = map(int, Path(f"/proc/{own}/task/{own}/children").read_text().split())
            return of_program("envoy", pids)

        def loaded() -> str:
            """Returns Envoy's filters, or nothing while it starts."""
            try:
                return pep.admin("/config_dump?resource=ecds_filters") if pep.admin("/ready") == "LIVE\n" else ""
            except OSError:
                return ""

        killed: list[int] = []
        for _ in range(3):
            (envoy,) = wait_for("Envoy", lambda: [pid for pid in envoys() if pid not in killed], timeout_s=60)
            assert "DynamicModuleFilter" in wait_for("its filters", loaded, timeout_s=60)
            assert desk.moved in desk.get()
            os.kill(envoy, signal.SIGKILL)
            killed.append(envoy)
        wait_for("wasm", lambda: "wasm filters run from now on" in pep.output(), timeout_s=60)
        wait_for("Envoy", lambda: [pid for pid in envoys() if pid not in killed], timeout_s=60)
        wait_for("its filters", lambda: "v3.Wasm" in loaded(), timeout_s=60)
        assert desk.moved in desk.get()
