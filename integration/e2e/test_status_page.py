"""The status page in a browser, in the states of a day: before any traffic, with a link that is slower than
configured, when all is well, and without the ground. Desktop and phone, light and dark."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.pair_bed import PairBed, standing_pair
from harness.boxes.pep import command
from harness.browsers.chromium import Browser, Tab, browser, console_of, requests_of
from harness.host.artifacts import REPOSITORY, built, need_commands, need_root
from harness.host.processes import Child
from harness.host.waiting import wait_for
from harness.pictures.screens import save

PAGE = "http://127.0.0.1:9900/"
SHOTS = REPOSITORY / "target" / "screens"
PLACES = ["Clients", "Remote", "Link", "Ground", "Origins"]
SIZES = {"desktop": (1280, 900), "phone": (360, 740)}
SCHEMES = ("light", "dark")
LINK = {"down.delay_ms": "110", "up.delay_ms": "110"}
"""A round trip of 220 ms. The file says 40 ms at first, which makes the link slow."""
GONE = "the ground does not respond"
FIGURES_S = 40.0
"""The longest time until figures of new traffic are reported."""
LAYOUT = """JSON.stringify({
    stops: [...document.querySelectorAll('.path li')].map(stop => ({
        name: stop.querySelector('h2').innerText, light: stop.querySelector('.light').innerText,
        right: stop.querySelector('.light').getBoundingClientRect().right,
        seen: stop.querySelector('svg').getBoundingClientRect().width,
    })),
    wide: document.documentElement.scrollWidth, back: getComputedStyle(document.body).backgroundColor,
    text: document.body.innerText, bars: document.querySelectorAll('.spark .bars').length,
})"""


@pytest.fixture
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:
    """A pair that has run for an hour, as far as its kept sums say. Each test changes it, so each has its own."""
    need_root()
    need_commands("chromium", "nft")
    folder = tmp_path_factory.mktemp("page")
    kept = folder / "remote" / "state" / "kept"
    kept.mkdir(parents=True)
    minute = int(time.time()) // 60
    use = [
        {"at": at, "down": 90_000_000 if at % 9 else 30_000_000, "up": at % 7 * 1_000_000}
        for at in range(minute - 55, minute)
    ]
    saved = {"day": int(time.time()) // 86_400, "round_trips": 1834, "bytes": 61_400_000, "from_cache": 702}
    (kept / "hour.json").write_text(json.dumps({"minutes": use, "today": saved}))
    began = (minute - 30) * 60
    text = "the ground does not respond: nothing comes back over the link"
    past = {"kind": "link_silent", "of": "", "text": text, "began": began, "ended": began + 130}
    (kept / "problems.json").write_text(json.dumps([past]))
    with standing_pair(folder, profile="leo", link=LINK, steered=()) as both:
        yield both


@pytest.fixture
def fresh(bed: PairBed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser on the remote."""
    with browser(tmp_path_factory.mktemp("b"), bed.line.near) as running:
        yield running


@contextmanager
def opened(fresh: Browser, size: str, scheme: str) -> Iterator[Tab]:
    with fresh.tab(viewport=SIZES[size]) as tab:
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        tab.navigate(PAGE, timeout_s=30, settle_s=0.2)
        yield tab


def looks(fresh: Browser, state: str, expected: dict[str, str], visit: Callable[[], object] = lambda: None) -> str:
    """Takes the four pictures of a state, and checks what each must have. `visit` comes before each, because the
    figures are of the last minutes. Returns the text of the page."""
    backs = set()
    layout: dict[str, Any] = {}
    for size, (width, _) in SIZES.items():
        for scheme in SCHEMES:
            visit()
            with opened(fresh, size, scheme) as tab:
                layout = json.loads(tab.evaluate(LAYOUT))
                save(fresh._screenshot(tab, ""), SHOTS / f"status-{state}-{size}-{scheme}.png")
                events = tab.events()
            assert list(console_of(events)) == []
            assert {one.url.split("/")[2] for one in requests_of(events)} == {"127.0.0.1:9900"}
            assert layout["wide"] <= width, (size, layout["wide"])
            assert [stop["name"] for stop in layout["stops"]] == PLACES
            assert all(stop["seen"] > 0 and 0 < stop["right"] <= width for stop in layout["stops"]), layout["stops"]
            lights = {stop["name"]: stop["light"] for stop in layout["stops"]}
            assert {place: lights[place] for place in expected} == expected, lights
            assert layout["bars"] == 2
            backs.add((scheme, layout["back"]))
    assert len(backs) == len({back for _, back in backs}) == 2, backs
    return layout["text"]


def until(what: str, pair: PairBed, verdict: str) -> Callable[[], object]:
    """Lets a client visit until the figures say so. Returns one more visit."""
    visits = iter(range(10_000))

    def visit() -> object:
        number = next(visits)
        return pair.curl.get(f"http://h{number % 28}.example.org/{what}-{number}.bin")

    def says() -> bool:
        visit()
        said = json.loads(command("status", "--why", "--json", "--state", pair.pair.remote.state).stdout)
        return bool(said["why"]) and said["why"]["verdict"] == verdict

    wait_for(f"the verdict {verdict}", says, FIGURES_S, interval_s=0.5)
    return visit


def in_a_terminal(state: Path, log: Path) -> None:
    """Lets `status --watch` show the same path, and stops it as Ctrl-C does."""
    watch = Child([built("longhaul"), "status", "--watch", "--state", state], log, env={"COLUMNS": "100"})
    watch.wait_for_output("Saved today", 20)
    watch.process.send_signal(signal.SIGINT)
    assert watch.process.wait(10) == 0
    shown = watch.output()
    assert "Remote (here)" in shown
    assert "61.4 MB" in shown
    assert shown.startswith("\x1b[H\x1b[J")


def set_rtt(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, text
    path.write_text(text.replace(old, new))


def test_the_page_and_a_terminal_show_each_state_of_a_day(bed: PairBed, fresh: Browser, tmp_path: Path) -> None:
    bed.pair.until_piped()
    state = bed.pair.remote.state
    text = looks(fresh, "quiet", {"Remote": "ok", "Clients": "no traffic yet", "Origins": "no traffic yet"})
    assert "Everything works." in text
    assert "61.4 MB" in text, "what earlier runs have saved"
    in_a_terminal(state, tmp_path / "watch.log")

    visit = until("slow", bed, "slow")
    text = looks(fresh, "slow", {"Link": "slow", "Remote": "ok", "Ground": "ok", "Origins": "ok"}, visit)
    assert "Why it is slow" in text
    done = command("status", "--why", "--state", state)
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        1, "The round trip of the link takes more time than normal.",
    )  # fmt: skip

    set_rtt(bed.pair.remote.config, '"rtt": "40ms"', '"rtt": "220ms"')
    visit = until("healthy", bed, "healthy")
    text = looks(fresh, "healthy", dict.fromkeys(PLACES, "ok"), visit)
    assert "Nothing takes more time than it should" in text
    done = command("status", "--why", "--state", state)
    assert (done.returncode, done.stdout.startswith("Nothing takes more time")) == (0, True), done.stdout

    with bed.pair.without_ground():
        # With a ground that is gone, other problems may be named first. An earlier one has the same words.
        wait_for("the problem", lambda: f"problem: {GONE}" in command("status", "--state", state).stdout, 30, 0.3)
        text = looks(fresh, "down", {"Remote": "ok", "Ground": "broken", "Origins": "not reached"})
        assert f"Problem: {GONE}" in text
