"""Compares the objects of saved pages that bundling sends with those that Chromium requests.

The pages of the corpora came without their objects: each of their style sheets, scripts and pictures is a stub. `--site
FOLDER` adds a site with its own objects, from a folder with an index.html. Chromium requests some pages only over
https, by a list of its own. Those are left out.
"""

from __future__ import annotations

import argparse
import json
import mimetypes
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.browsers.chromium import Browser, browser
from harness.host.artifacts import REPOSITORY, Missing
from harness.origins.corpus import saved_pages
from harness.origins.http1 import Message
from harness.origins.web import Response, web_server
from harness.results import figures as report

RESULTS = REPOSITORY / "target/bench/bundling.json"
TARGETS = (
    report.at_least("bundle_precision", 0.95),
    report.at_least("bundle_recall_of_markup", 0.95),
    report.at_most("page_fetched_again", 0),
)
KINDS = {"Stylesheet", "Script", "Image", "Font"}
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


@dataclass
class Case:
    """One page and its objects, by URL: media type and file."""

    url: str
    objects: dict[str, tuple[str, Path]] = field(default_factory=dict)


def cases(sites: list[Path], most: int) -> list[Case]:
    """Returns the http pages of the corpora, and the sites."""
    found = []
    try:
        for page in saved_pages()[:most]:
            url = page.url.replace("https://", "http://")
            found.append(Case(url, {url: ("text/html", page.path)}))
    except Missing as missing:
        print(f"without the corpora: {missing}", file=sys.stderr)
    for number, root in enumerate(sites):
        case = Case(f"http://site{number}.test/index.html")
        for file in (one for one in root.rglob("*") if one.is_file()):
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            case.objects[urljoin(case.url, quote(str(file.relative_to(root))))] = (kind, file)
        found.append(case)
    return found


def bundled(program: Path, case: Case) -> Counter[str]:
    """Returns the objects that the ground fetches for the page."""
    objects = {url: {"type": kind, "file": str(file)} for url, (kind, file) in case.objects.items()}
    done = subprocess.run(
        [program], input=json.dumps({"url": case.url, "objects": objects}), capture_output=True, text=True, check=True
    )
    return Counter(json.loads(done.stdout))


@contextmanager
def origin(all_cases: list[Case]) -> Iterator[int]:
    """Serves every page's objects, and a stub for every other URL."""
    objects = {_plain(url): one for case in all_cases for url, one in case.objects.items()}

    def respond(request: Message) -> Response:
        known = objects.get(_plain(f"http://{request.get('host')}{request.target}"))
        kind, body = (known[0], known[1].read_bytes()) if known else _stub(request.target, request.get("accept") or "")
        return Response(body, kind, {"Cache-Control": "max-age=600"})

    with web_server(respond) as port:
        yield port


def _stub(path: str, accept: str) -> tuple[str, bytes]:
    if accept.startswith("image/"):
        return "image/png", PIXEL
    if accept.startswith("text/css"):
        return "text/css", b""
    kind = mimetypes.guess_type(urlsplit(path).path)[0] or "text/javascript"
    return kind, b""


def requested(chromium: Browser, case: Case) -> tuple[set[str], set[str]] | None:
    """Returns the URLs that the browser requests over http, and those of them that markup and style sheets name."""
    with chromium.tab(viewport=(1280, 2400), isolated=True) as tab:
        tab.navigate(case.url, timeout_s=30, settle_s=0.5)
        events = tab.events()
    frame = next((one["params"]["frameId"] for one in events if one["method"] == "Network.requestWillBeSent"), "")
    if not any(
        one["method"] == "Network.responseReceived" and one["params"]["response"]["url"] == case.url for one in events
    ):
        return None
    everything, of_markup = set(), set()
    for event in events:
        if event["method"] != "Network.requestWillBeSent" or event["params"].get("frameId") != frame:
            continue
        about = event["params"]
        url = _plain(about["request"]["url"])
        if about.get("type") not in KINDS or not url.startswith("http://") or url.endswith("/favicon.ico"):
            continue
        everything.add(url)
        if about["initiator"]["type"] in ("parser", "preload"):
            of_markup.add(url)
    return everything, of_markup


def _plain(url: str) -> str:
    return unquote(urldefrag(url).url.replace(":80/", "/"))


def main() -> int:
    """Measures, prints and writes the figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pages", type=int, default=60)
    arguments.add_argument("--site", type=Path, action="append", default=[])
    arguments.add_argument("--verbose", action="store_true")
    given = arguments.parse_args()
    built = subprocess.run(
        ["cargo", "build", "--locked", "--package", "page-flights", "--example", "choices",
         "--message-format", "json-render-diagnostics"],
        cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    program = Path(next(one["executable"] for one in messages if one.get("executable")))
    todo = cases(given.site, given.pages)
    if not todo:
        print("no page to measure", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(2) as pool:
        sent = list(pool.map(lambda case: bundled(program, case), todo))
    totals: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name, origin(todo) as port:
        rules = f"--host-resolver-rules=MAP * 127.0.0.1:{port}"
        with browser(Path(name), flags=(rules,)) as chromium:
            for case, urls in zip(todo, sent, strict=True):
                seen = requested(chromium, case)
                if seen is None:
                    continue
                everything, of_markup = seen
                totals["pages"] += 1
                plain = {_plain(url) for url in urls}
                totals["again"] += sum(_plain(url) == _plain(case.url) for url in urls.elements())
                totals["sent"] += len(plain)
                totals["used"] += len(plain & everything)
                totals["of_markup"] += len(of_markup)
                totals["found"] += len(of_markup & plain)
                if given.verbose:
                    print(case.url, len(plain), len(plain & everything), len(of_markup), len(of_markup & plain))
                    for word, odd in (("unused", plain - everything), ("missing", of_markup - plain)):
                        for url in sorted(odd):
                            print(f"  {word} {url}")
    figures: dict[str, float | None] = {
        "bundle_precision": totals["used"] / max(totals["sent"], 1),
        "bundle_recall_of_markup": totals["found"] / max(totals["of_markup"], 1),
        "page_fetched_again": totals["again"],
    }
    print(
        f"{totals['pages']} pages, {totals['sent']} objects sent, {totals['of_markup']} asked for by markup and sheets"
    )
    print(report.verdicts(figures, TARGETS))
    report.write(RESULTS, figures, TARGETS, pages=totals["pages"], sites=len(given.site))
    return 0


if __name__ == "__main__":
    sys.exit(main())
