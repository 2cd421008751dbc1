"""`make demo`: real pages in a real browser over an emulated satellite link, by four ways.

The ways are: without Longhaul, with one box on the wired side, and with a pair on the first visit of a page and on the
second day. The pair has the files of `longhaul pair init`. The pages are a saved page over http and the project's own
magazine over https. Each load has a fresh browser with empty caches, with https-first and QUIC on, and the ways take
turns. All counts are of the link itself. Needs root and Chromium. Writes figures, screenshots and film strips to
target/demo/.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from filmstrip import Row, compose
from magazine import Magazine
from measure import measure
from report import DIRECT, LOAD, TITLES, WAYS, Trip, checks, figures, median, table

from harness.host.artifacts import REPOSITORY, Missing, built, need_commands, need_root, scratch
from harness.lab import watches
from harness.lab.bed import LinkBed, standing
from harness.lab.contenders import contender
from harness.lab.links import FOLDER, Link, link
from harness.lab.saved import SavedPage
from harness.lab.served import ServedPage
from harness.lab.tables import page_table
from harness.net import namespaces
from harness.pictures.screens import save
from harness.results.provenance import RESULTS, built_commit, machine_class

LINKS = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
GEO = "geo"
"""The demo's own link, on which it checks its bounds of load times."""
SAVED = "saved-time"
"""A news page of 2011: 57 objects on 22 hosts, about as many objects as the papers' CNN page and more hosts."""
REPEATS = 1
"""Loads over a satellite differ by one or two percent."""
STRIP = "filmstrip.png"
PROGRAMS = (
    "longhaul", "coredns", "envoy", "origins", "longhaul-link", "url_rewrite.wasm", "bundling.wasm",
    "bundling_remote.wasm", "header_compression.wasm",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Measures, prints and checks. The exit code is 1 when a page lost something or was not faster."""
    options = parse(arguments)
    try:
        need_machine()
    except Missing as reason:
        print(f"make demo: {reason}", file=sys.stderr)
        return 1
    namespaces.sweep()
    plan = planned(quick=options.quick)
    on, repeats = link(options.link), 1 if options.quick else options.repeats
    introduce(on, repeats)
    trips = [travel(on, page, scheme, repeats) for page, scheme in plan]
    out = options.out or scratch("demo")
    failed = conclude(trips, on, out)
    if options.publish and not failed:
        publish(trips[0], on, (out / STRIP).read_bytes())
    return failed


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"loads of each kind ({REPEATS})")
    parser.add_argument("--quick", action="store_true", help="one load of each kind, of the magazine over https alone")
    parser.add_argument(
        "--link", choices=LINKS, default=GEO, help=f"another link than {GEO}: {', '.join(LINKS)}", metavar="NAME"
    )
    parser.add_argument(
        "--publish", action="store_true", help="commit the film strip: docs/img and integration/results"
    )
    parser.add_argument("--out", type=Path, help="folder for the results (target/demo)")
    return parser.parse_args(arguments)


def need_machine() -> None:
    """Raises `Missing` for the first thing that this machine lacks."""
    need_root()
    need_commands("ip", "nft", "nsenter", "unshare", "sysctl", "curl", "chromium", "certutil")
    for name in PROGRAMS:
        built(name)
    needed, free = watches.BROWSER + sum(contender(name).watches for name in WAYS), watches.free()
    if needed > free:
        raise Missing(watches.too_few(needed, free))


def planned(*, quick: bool) -> list[tuple[ServedPage, str]]:
    """Returns the pages and their schemes. Without the saved page, the magazine takes its place."""
    magazine = Magazine()
    if quick:
        return [(magazine, "https")]
    try:
        return [(magazine, "https"), (SavedPage(page_table(SAVED)), "http")]
    except Missing as reason:
        print(f"{reason}; the magazine is loaded over http, too")
        return [(magazine, "https"), (magazine, "http")]


def introduce(on: Link, repeats: int) -> None:
    """Prints the link and the ways before the measurement."""
    setting = on.setting
    print(f"link: {setting['down']} down, {setting['up']} up, round trip {setting['rtt']}; cold Chromium for each load")
    print(f"ways, in turns, loads of each {repeats}: {', '.join(TITLES.values())}", flush=True)


def travel(on: Link, page: ServedPage, scheme: str, repeats: int) -> Trip:
    """Loads a page in a bed of its own. Servers of a page over http refuse https, because browsers would prefer it."""
    ways = [contender(name) for name in WAYS]
    https = scheme == "https"
    with (
        tempfile.TemporaryDirectory(prefix="longhaul-demo-") as folder,
        standing(Path(folder), on, [page], ways, seed=1, weighed=False, https=https, as_shipped=True) as bed,
    ):
        return taking_turns(bed, page, scheme, repeats)


def taking_turns(bed: LinkBed, page: ServedPage, scheme: str, repeats: int) -> Trip:
    """Loads a page by all ways in turns, so that drift affects all of them."""
    trip = Trip(page.name, scheme, {way: [] for way in WAYS})
    for turn in range(1, repeats + 1):
        for way, loads in trip.loads.items():
            loads.append(measure(bed.track, bed.contenders[way], page, scheme))
        times = ", ".join(f"{TITLES[way]} {loads[-1].load.load_ms:.0f} ms" for way, loads in trip.loads.items())
        print(f"  {trip.title}, {turn}: {times}", flush=True)
    return trip


def conclude(trips: list[Trip], on: Link, out: Path) -> int:
    """Prints the table and the checks, and writes figures, screenshots and film strips."""
    print(f"\n{table(trips)}\n")
    for trip in trips:
        for way, loads in trip.loads.items():
            save(loads[0].load.screenshot, out / f"{trip.page}-{trip.scheme}-{way}.png")
    (out / "demo.json").write_text(json.dumps({"figures": figures(trips)}, indent=1) + "\n")
    first, *others = trips
    save(strip(first, on), out / STRIP)
    for trip in others:
        save(strip(trip, on), out / f"filmstrip-{trip.page}-{trip.scheme}.png")
    found = checks(trips, bounded=on.name == GEO)
    for holds, what in found:
        print(f"  {'ok  ' if holds else 'FAIL'} {what}")
    print(f"\nfilm strip: {out / STRIP}; screenshots and figures beside it")
    return 0 if all(holds for holds, _ in found) else 1


def publish(trip: Trip, on: Link, picture: bytes) -> None:
    """Writes the front page's picture and its figures."""
    path = REPOSITORY / "docs" / "img" / STRIP
    save(picture, path)
    text = {
        "command": "sudo make results",
        "commit": built_commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": machine_class(),
        "page": trip.title,
        "link": on.title,
        "picture": str(path.relative_to(REPOSITORY)),
        "sha256": hashlib.sha256(picture).hexdigest(),
        "shown": [{"way": one.title, "load_ms": round(one.load_ms)} for one in (row(trip, way) for way in trip.loads)],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "film-strip.json").write_text(json.dumps(text, indent=1) + "\n")


def strip(trip: Trip, on: Link) -> bytes:
    """Returns the film strip of one page."""
    rows = [row(trip, way) for way in trip.loads]
    return compose(f"{trip.title.capitalize()}: {on.rtt_ms:g} ms round trip, {on.down_bps / 1e6:g} Mbit/s", rows)


def row(trip: Trip, way: str) -> Row:
    """Returns one way's film: the load nearest to the median."""
    loads = trip.loads[way]
    middle = median(LOAD, loads)
    shown = min(loads, key=lambda one: abs(one.load.load_ms - middle))
    ratio = shown.load.load_ms / median(LOAD, trip.loads[DIRECT])
    note = "" if way == DIRECT else f"{100 * ratio:.0f} % of the time"
    return Row(TITLES[way].capitalize().replace("longhaul", "Longhaul"), note, shown.load.load_ms, shown.load.film)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
