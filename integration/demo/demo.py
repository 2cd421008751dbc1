"""What `make demo` runs: a real page in a real browser over an emulated satellite link, without and with Longhaul.

Needs root, Chromium and the folder of saved pages. Loads are interleaved and repeated, each by a fresh browser with
empty caches; everything counted is counted on the link itself. Writes screenshots and figures to target/demo/.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import Measured, measure
from reasons import reasons
from report import GOAL, MOST_DIFFERING, figures, missing_objects, table

from harness import namespaces
from harness.artifacts import Missing, built, need_commands, need_root, scratch
from harness.authority import Authority
from harness.bed import OWN, Bed
from harness.moved import is_moved
from harness.pages import Page, page_site, saved_page
from harness.screens import compare, save
from harness.topology import PROXY, RESOLVER

PAGE = ("goose3/tests/data/content/test_time2.html", "newsfeed.time.com")
"""A news page of 2011: 57 objects on 22 hosts, about as many objects as the papers' CNN page and more hosts."""

LINK = {"rtt": "600ms", "down": "20mbit", "up": "5mbit"}
LINK_PROFILE = "geo"


def main() -> int:
    """Measures, prints, checks; exit code 1 when the page came to harm or was not sooner."""
    arguments = parse()
    try:
        need_root()
        need_commands("ip", "nft", "nsenter", "unshare", "sysctl", "chromium", "certutil")
        for name in ("longhaul", "coredns", "url_rewrite.wasm", "envoy", "origins", "longhaul-link"):
            built(name)
        page = saved_page(*PAGE)
    except Missing as reason:
        print(f"make demo: {reason}", file=sys.stderr)
        return 1
    namespaces.sweep()
    with tempfile.TemporaryDirectory(prefix="longhaul-demo-") as name:
        folder = Path(name)
        authority = Authority(folder)
        site = page_site(page, ca=authority.files.as_dict())
        with Bed(folder, site, page.hosts(), authority, link_profile=LINK_PROFILE, link=LINK, secure_name=PROXY) as bed:
            introduce(page, bed, arguments.repeats)
            without, with_longhaul = take_turns(bed, folder, page, arguments.repeats)
            stayed = reasons(bed.config, page.url, page.path, direct_names(page, with_longhaul))
            strangers = unexplained_servers(bed, {page.host, *stayed}, with_longhaul)
    return conclude(without, with_longhaul, stayed, strangers)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="loads of each kind (3)")
    return parser.parse_args()


def introduce(page: Page, bed: Bed, repeats: int) -> None:
    """Says what is about to be measured."""
    print(f"{page.url}: a saved page, {len(page.objects)} objects on {len(page.hosts()) - 1} hosts beside its own")
    print(f"link: {LINK['down']} down, {LINK['up']} up, round trip {LINK['rtt']}; cold Chromium for each load")
    print(f"with Longhaul: objects move to https://{PROXY}, initial window {bed.initial_window} segments to the client")
    print(f"{repeats} loads of each, in turns", flush=True)


def take_turns(bed: Bed, folder: Path, page: Page, repeats: int) -> tuple[list[Measured], list[Measured]]:
    """Loads without and with Longhaul alternate, so that whatever drifts meets both."""
    without, with_longhaul = [], []
    for turn in range(1, repeats + 1):
        with bed.without_longhaul():
            without.append(measure(bed, folder, page.url))
        with_longhaul.append(measure(bed, folder, page.url))
        times = f"{without[-1].load.load_ms:.0f} ms without, {with_longhaul[-1].load.load_ms:.0f} ms with"
        print(f"  {turn}: {times}", flush=True)
    return without, with_longhaul


def direct_names(page: Page, loads: list[Measured]) -> list[str]:
    """Names that the browser looked up or asked itself, other than the page's own and the proxy's."""
    names: set[str] = set()
    for one in loads:
        names |= one.names
        names |= {
            urlsplit(request.url).hostname or "" for request in one.load.requests if not is_moved(request.url, OWN)
        }
    return sorted(names - {page.host, *OWN})


def unexplained_servers(bed: Bed, names: set[str], loads: list[Measured]) -> set[str]:
    """Addresses that were connected to and are neither the proxy's nor of one of the names.

    An origin's own address is seen although its name is steered: it stands behind ours in the answer, and a browser
    tries it too when the first handshake takes longer than 0.3 s.
    """
    expected = {PROXY, RESOLVER, *(bed.site.hosts[name]["address"] for name in names if name in bed.site.hosts)}
    return set().union(*(one.servers for one in loads)) - expected


def conclude(
    without: list[Measured], with_longhaul: list[Measured], stayed: dict[str, list[str]], strangers: set[str]
) -> int:
    """Prints table, names and checks, and writes what can be looked at later."""
    print(f"\n{table(without, with_longhaul)}\n")
    print("names contacted beside the page's own and the proxy's, and why:")
    for name, sentences in stayed.items():
        print(f"  {name}: {'; '.join(sentences)}")

    out = scratch("demo")
    save(without[0].load.screenshot, out / "without.png")
    save(with_longhaul[0].load.screenshot, out / "with.png")
    difference = compare(without[0].load.screenshot, with_longhaul[0].load.screenshot)
    difference.picture.save(out / "difference.png")
    result = figures(without, with_longhaul)
    (out / "demo.json").write_text(json.dumps({"figures": result}, indent=1) + "\n")

    missing = missing_objects(without, with_longhaul)
    sooner = 1 - result["demo_load_ratio"]
    checks = (
        (not missing, f"every object that loads without Longhaul loads with it {' '.join(sorted(missing)[:5])}"),
        (
            difference.differing <= MOST_DIFFERING,
            f"the screenshots match ({100 * difference.differing:.2f} % of pixels differ)",
        ),
        (not strangers, f"no connection to any other host {' '.join(sorted(strangers))}"),
        (sooner >= GOAL, f"the page loads {100 * sooner:.0f} % sooner (goal: {100 * GOAL:.0f} %)"),
    )
    print()
    for holds, what in checks:
        print(f"  {'ok  ' if holds else 'FAIL'} {what}")
    print(f"\nscreenshots and figures: {out}")
    return 0 if all(holds for holds, _ in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
