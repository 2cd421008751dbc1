"""The share of a page's objects that are cached when the browser requests them.

The client reads the page as it arrives. It requests each object one round trip of the link after the page named it, as
a browser behind that link would.
"""

from __future__ import annotations

import http.client
import re
import tempfile
import time
from pathlib import Path

from harness.boxes.desk import IMG, WWW, desk_in
from harness.boxes.pep import Pep

RTT_S = 0.6
PAGES = 5
OBJECTS_A_PAGE = 40
BROWSER = {"Host": WWW, "Accept": "text/html,image/avif,image/webp,*/*;q=0.8", "User-Agent": "a browser"}

# The cache has a script in gzip, as browsers request it.
OBJECT = {"Accept": "image/*", "Accept-Encoding": "gzip, deflate"}


def hit_ratio() -> dict[str, float | None]:
    """Returns the share of moved, cacheable objects of new pages that came out of the cache, with prefetch on and
    off."""
    figures: dict[str, float | None] = {}
    for figure, prefetch in (("prefetch_hit_ratio", True), ("without_prefetch_hit_ratio", False)):
        with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name, desk_in(Path(name)) as desk:
            config = desk.write(page={"prefetch": prefetch})
            with Pep(config, desk.folder):
                figures[figure] = _ratio(desk.http)
    print(f"\n{PAGES} pages of {OBJECTS_A_PAGE} objects, {RTT_S * 1000:.0f} ms RTT: {figures}", flush=True)
    return figures


def page_path(number: int) -> str:
    """Returns the path of a page with its own objects: half pictures, half scripts."""
    hosts = f"&host={IMG}/page-{number}" * (OBJECTS_A_PAGE // 2)
    return f"/_/answer?{hosts[1:]}"


def _ratio(port: int) -> float:
    hits = asked = 0
    for number in range(PAGES):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        client.request("GET", page_path(number), headers=BROWSER)
        page = client.getresponse().read().decode()
        moved = re.findall(rf"src=\"http://127\.0\.0\.1:{port}(/{re.escape(IMG)}/[^\"]+)\"", page)
        if len(moved) != OBJECTS_A_PAGE:
            raise RuntimeError(f"{len(moved)} of {OBJECTS_A_PAGE} objects were moved:\n{page[:500]}")
        time.sleep(RTT_S)
        for path in moved:
            client.request("GET", path, headers=OBJECT | {"Host": f"127.0.0.1:{port}"})
            answer = client.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{path}: {answer.status}")
            hits += answer.getheader("Age") is not None
            asked += 1
        client.close()
    return hits / asked
