"""`make demo`: its page, its table, its film strip, and a quick run of all of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filmstrip import BORDER, DONE, HEAD, LABEL, MARGIN, TIMES, Row, compose, step_ms, times_ms
from magazine import Magazine
from measure import Measured
from noise_pictures import picture
from PIL import Image, ImageColor
from report import DIRECT, EDGE, FIRST, SECOND, WAYS, Trip, checks, missing_objects, table

import demo as program
from harness.browsers.chromium import Load, Request
from harness.browsers.film import FRAME, Frame, frame_at, frames
from harness.host.artifacts import Missing
from harness.origins.pages import objects_of

BLACK, WHITE = "#000000", "#ffffff"


def jpeg(colour: str) -> bytes:
    """Returns a picture of one colour."""
    out = io.BytesIO()
    Image.new("RGB", (640, 450), colour).save(out, "JPEG")
    return out.getvalue()


def png(colour: str) -> bytes:
    """Returns a screenshot of one colour."""
    out = io.BytesIO()
    Image.new("RGB", (64, 64), colour).save(out, "PNG")
    return out.getvalue()


def load(load_ms: float, *names: str, shot: str = WHITE) -> Measured:
    """Returns a load of some objects."""
    requests = [Request(f"http://www.example.org/{name}", "Image", status=200, finished=True) for name in names]
    one = Load("http://www.example.org/", load_ms, 100.0, requests, [], png(shot), first_paint_ms=200.0)
    return Measured(one, queries=1, connections=2, bytes_down=3000, bytes_up=4000)


def test_the_magazine_refers_to_all_of_its_objects_and_to_nothing_else() -> None:
    magazine = Magazine()
    _, *listed = magazine.urls("https")
    in_markup = {one.url for one in objects_of(magazine.markup(), magazine.url("https"))}
    assert in_markup | {"https://static.meridian.example.org/waves.svg"} == set(listed)
    assert "$" not in magazine.markup()


def test_a_picture_is_the_same_in_every_run_and_differs_from_the_next() -> None:
    assert picture(320, 200, "a") == picture(320, 200, "a") != picture(320, 200, "b")


def test_a_film_is_read_from_the_events_and_a_visitor_sees_the_last_frame() -> None:
    def event(at_s: float, data: str) -> dict:
        return {"method": FRAME, "params": {"data": data, "metadata": {"timestamp": at_s}, "sessionId": 1}}

    film = frames([event(101.5, "Yg=="), event(100.5, "YQ=="), {"method": "Page.loadEventFired"}], begin_s=100.0)
    assert film == [Frame(500, b"a"), Frame(1500, b"b")]
    seen = [frame_at(film, at_ms) for at_ms in (499, 500, 1499, 1500, 9000)]
    assert [frame and frame.jpeg for frame in seen] == [None, b"a", b"a", b"b", b"b"]


@pytest.mark.parametrize(("longest_ms", "step"), [(1900, 250), (2001, 500), (8000, 1000), (11_700, 1500)])
def test_the_strip_shows_the_whole_of_the_longest_load(longest_ms: float, step: int) -> None:
    assert step_ms(longest_ms) == step
    assert times_ms(longest_ms)[-1] - step < longest_ms <= times_ms(longest_ms)[-1]


def test_the_strip_frames_the_picture_in_which_the_page_is_complete() -> None:
    slow, fast = [Frame(0, jpeg(WHITE)), Frame(3500, jpeg(BLACK))], [Frame(500, jpeg(BLACK))]
    strip = Image.open(io.BytesIO(compose("title", [Row("slow", "", 4000, slow), Row("fast", "", 900, fast)])))
    pixels = strip.convert("RGB")

    def near(x: int, y: int, colour: str) -> bool:
        wanted = ImageColor.getrgb(colour)
        pixel = pixels.getpixel((x, y))
        assert isinstance(pixel, tuple)
        return all(abs(a - b) < 12 for a, b in zip(pixel, wanted, strict=True))

    left, top = MARGIN + LABEL, HEAD + TIMES
    assert near(left, top, BORDER), "the slow page is not complete in its first picture"
    assert near(left + 60, top + 60, WHITE)
    right = strip.width - MARGIN - 30
    assert any(near(x, top + 2, DONE) for x in range(right - 60, right)), "it is in its last one"
    assert near(right - 60, top + 60, BLACK)


def test_the_table_has_a_line_for_each_day_of_a_pair() -> None:
    loads = {DIRECT: [load(8000), load(8000)], FIRST: [load(4000), load(4400)], SECOND: [load(2000), load(2000)]}
    head, direct, first, second = table([Trip("page", "http", loads)]).splitlines()
    assert head.startswith("page page over http")
    assert "%" not in direct
    assert "first visit" in first
    assert "4.2 s" in first
    assert first.endswith("-48 %")
    assert "second day" in second
    assert second.endswith("-75 %")


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (lambda: load(4000, "a", "b"), ""),
        (lambda: load(4000, "a"), "every object loads //www.example.org/b"),
        (lambda: load(4000, "a", "b", shot=BLACK), "the page looks the same (100.00 % differs)"),
        (lambda: load(9000, "a", "b"), "1.12 of the load time"),
    ],
)
def test_a_load_that_came_to_harm_fails_the_demo(harm: Callable[[], Measured], complaint: str) -> None:
    times = {DIRECT: 8000, EDGE: 6000, SECOND: 2000}
    loads = {way: [load(time_ms, "a", "b")] for way, time_ms in times.items()} | {FIRST: [harm()]}
    failed = [what for holds, what in checks([Trip("page", "http", loads)], bounded=True) if not holds]
    assert len(failed) == bool(complaint)
    assert all(complaint in what for what in failed)


def test_the_ways_take_turns_and_the_second_day_follows_the_first_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def measured(_track: Any, way: str, _page: Any, scheme: str) -> Measured:
        taken.append((way, scheme))
        return load(8000 if way == DIRECT else 4000)

    monkeypatch.setattr(program, "measure", measured)
    bed: Any = SimpleNamespace(track=None, contenders={way: way for way in WAYS})
    trip = program.taking_turns(bed, Magazine(), "https", 2)
    assert taken == 2 * [(way, "https") for way in (DIRECT, EDGE, FIRST, SECOND)]
    assert [len(loads) for loads in trip.loads.values()] == [2, 2, 2, 2]
    assert trip.ratio(FIRST) == 0.5


def test_an_object_that_no_two_loads_share_is_not_missed() -> None:
    assert missing_objects([load(1, "a", "random-1"), load(1, "a", "random-2")], [load(1, "a")]) == set()


@pytest.mark.long
def test_a_quick_run_loads_the_page_by_all_ways_and_films_it(tmp_path: Path) -> None:
    try:
        program.need_machine()
    except Missing as reason:
        pytest.skip(str(reason))
    assert program.main(["--quick", "--link", "rural-lte", "--out", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "demo.json").read_text())["figures"]
    for way in ("direct", "longhaul_edge", "longhaul_pair_first_visit", "longhaul_pair_second_day"):
        stem = f"magazine_https_{way}"
        assert 0 < figures[f"{stem}_first_byte_ms"] < figures[f"{stem}_first_paint_ms"] < figures[f"{stem}_load_ms"]
        assert 1_700_000 < figures[f"{stem}_bytes_down"] < 2_600_000
    assert figures["magazine_https_direct_dns_queries"] > 0
    for day in ("first_visit", "second_day"):
        assert figures[f"magazine_https_longhaul_pair_{day}_dns_queries"] == 0, "lookups are streams of the pipe"
    strip = Image.open(tmp_path / "filmstrip.png").convert("RGB")
    assert len(strip.getcolors(1 << 24) or []) > 100, "there are pictures in it"
