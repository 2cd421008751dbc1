"""Objects of http pages sent over a satellite link before a browser requests them: the same page, in one flight."""

from __future__ import annotations

import http.client
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from e2e.bed import made_to_order
from harness.boxes.pair import FAIR, REDIRECTS, Ends, Pair, pair
from harness.browsers.chromium import Load, browser
from harness.clients.commands import Curl
from harness.host.artifacts import need_commands
from harness.host.waiting import quickest, wait_for
from harness.lab.contenders.base import intercept, rules
from harness.lab.line import FAR, NEAR_DEVICE, NEAR_HOME, Line
from harness.net.authority import Authority
from harness.net.topology import RESOLVER, SITES
from harness.origins.program import Origins, Site

LINK = FAIR | {"rtt": "600ms", "down": "20mbit", "up": "5mbit"}
RTT_MS = 600
WWW, IMAGES, LAB = "www.bundle.test", "images.bundle.test", "lab.bundle.test"
PICTURES = 20
ACCEPT = ("--header", "Accept: text/html,*/*;q=0.8", "--header", "Accept-Encoding: gzip, deflate")


@dataclass
class Bed:
    """The pair, its link and the origins, all of them running."""

    folder: Path
    line: Line
    origins: Origins
    pair: Pair
    original: Load
    """A page's load without the pair."""

    def curl(self, source: str = "") -> Curl:
        """Returns a client of the remote. `source` gives it an address of its own."""
        return Curl(self.folder, self.line.clients, *(["--interface", source] if source else []))

    def load(self, path: str, settle_s: float = 0.5) -> Load:
        """Loads a page with a fresh browser. The load ends when the network has been quiet for `settle_s`."""
        with browser(self.folder, self.line.clients) as fresh:
            return fresh.load(f"http://{WWW}{path}", timeout_s=60, settle_s=settle_s)

    def counted(self, end: str) -> dict[str, float]:
        """Returns the filter's counters at one end, without their prefix."""
        box = self.pair.remote if end == "remote" else self.pair.ground
        prefix = "longhaul_bundling_"
        counted = {name: value for name, value in box.metrics().items() if name.startswith(prefix)}
        return {name.removeprefix(prefix).removesuffix("{}"): value for name, value in counted.items()}

    def answered(self) -> float:
        """Returns the number of browsers' requests that the remote served itself."""
        return sum(value for name, value in self.counted("remote").items() if name.startswith("answered_total"))

    def fly(self, page: str) -> None:
        """Requests a page as a client. Returns when all objects of its flight have arrived."""

        def crossing() -> float:
            return self.pair.remote.metrics()['envoy_cluster_upstream_rq_active{envoy_cluster_name="pipe"}']

        self.pair.until_names_come()
        before = crossing()
        assert self.curl().get(f"http://{WWW}/{page}", *ACCEPT).status == 200
        wait_for("the flight's end", lambda: crossing() <= before, timeout_s=30, interval_s=0.1)


ADDRESSES = dict(zip((WWW, IMAGES, LAB), (str(one) for one in SITES.hosts() if str(one) != RESOLVER), strict=False))


def _site(folder: Path) -> Site:
    roots = {name: folder / name for name in (WWW, IMAGES)}
    for root in roots.values():
        root.mkdir()
    pictures = "".join(f'<img src="http://{IMAGES}/p{number}.svg" width=40 height=40>' for number in range(PICTURES))
    sheet = '<link rel=stylesheet href="/style.css"><script src="/script.js"></script>'
    lab = f"http://{LAB}"
    pages = {
        "page.html": sheet + pictures,
        "headers.html": sheet + pictures,
        "others.html": sheet + pictures,
        "cookie.html": f'<img src="{lab}{_order("noise", header="Set-Cookie:who=one")}">' + pictures,
        "dead.html": f'<img src="http://dead.bundle.test/x.png"><img src="{lab}{_order("noise", cut="300")}">'
        + pictures,
        "large.html": f'<img src="{lab}{_order("noise", size="1200000")}">{pictures}',
        "long.html": sheet + pictures + "".join(f"<p>{number * 7919 % 1_000_003}</p>" for number in range(110_000)),
        "late.html": "<script>addEventListener('load', () => new Image().src = '/late.svg')</script>",
        "second.html": sheet + pictures + '<img src="/second.svg">',
        "visitors.html": "".join(f'<img src="{lab}{one}">' for one in VISITORS_OWN) + pictures,
        **{
            f"{end}.html": f'<img src="{lab}{_order("noise", size="4000", wait="4000", header=f"X-Of:{end}")}">'
            + pictures
            for end in ("remote", "ground")
        },
        "slow.html": f'<img src="{lab}{_order("noise", size="4000", chunk="400", pause="400")}">' + pictures,
    }
    for name, body in pages.items():
        (roots[WWW] / name).write_text(f"<!doctype html><title>{name}</title>{body}<p id=end>end")
    (roots[WWW] / "style.css").write_text("body{background:#eef url(/ground.svg)}" + "p{margin:1px}" * 400)
    (roots[WWW] / "script.js").write_text("document.title += ' ran';" + "var x = 1;" * 400)
    (roots[WWW] / "ground.svg").write_text(_picture(99))
    (roots[WWW] / "late.svg").write_text(_picture(98))
    (roots[WWW] / "second.svg").write_text(_picture(97))
    for number in range(PICTURES):
        (roots[IMAGES] / f"p{number}.svg").write_text(_picture(number))
    site = Site(dns=[f"{RESOLVER}:53"])
    header = {"Cache-Control": "max-age=600"}
    for name, root in roots.items():
        site.hosts[name] = {"address": ADDRESSES[name], "root": str(root), "header": header}
    site.hosts[LAB] = {"address": ADDRESSES[LAB], "special": True}
    site.records = {"dead.bundle.test": ["203.0.113.200"]}
    return site


def _order(body: str, **keys: str) -> str:
    return "/_/answer?" + "&amp;".join(f"{key}={quote(value)}" for key, value in {"body": body, **keys}.items())


VISITORS_OWN = [
    _order("noise", header="Vary:Cookie"),
    _order("noise", header="Cache-Control:private"),
    _order("noise", header="Set-Cookie:seen=1"),
]
"""Objects that differ for each visitor."""


def _picture(number: int) -> str:
    colour = f"hsl({number * 17 % 360},70%,50%)"
    circle = f'<circle cx="20" cy="20" r="18" fill="{colour}"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">{circle}</svg>'


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:  # noqa: ARG001 - order of set-up
    need_commands("chromium")
    folder = tmp_path_factory.mktemp("bundling")
    authority = Authority(folder)
    site = _site(folder)
    with ExitStack() as stack:
        line = stack.enter_context(Line(folder, "geo", seed=1))
        line.clients.ip("address", "add", "192.0.2.9/32", "dev", "lo")
        origins = stack.enter_context(Origins(site.write(folder / "site.json"), folder, line.internet))
        ends = Ends(line.near, NEAR_HOME, line.gateway, FAR)
        steered = [WWW, IMAGES, LAB]
        page = {"bundle": True}
        both = stack.enter_context(
            pair(
                folder, ends, LINK, trusted=authority.files.cert, steered=steered, page=page, warm=0, restart_wait="60s"
            )
        )
        with browser(folder, line.clients) as fresh:
            original = fresh.load(f"http://{WWW}/page.html", timeout_s=60)
        stack.enter_context(rules(line.near, intercept(NEAR_DEVICE, *REDIRECTS)))
        found = Bed(folder, line, origins, both, original)
        both.until_piped()
        yield found


SHOWN = "[...document.images].filter(one => one.naturalWidth > 0).length"
"""A script that counts the visible pictures of the page."""


def _icon_aside(load: Load) -> set[str]:
    return {one.url for one in load.loaded() if "favicon" not in one.url}


def test_a_page_is_the_same_and_its_objects_take_no_round_trip_of_their_own(bed: Bed) -> None:
    before = bed.answered()
    load = bed.load("/page.html")
    assert _icon_aside(load) == _icon_aside(bed.original)
    assert len(_icon_aside(load)) == 1 + 2 + 1 + PICTURES, load.failed()
    assert load.screenshot == bed.original.screenshot, "the same pixels"
    answered = bed.answered() - before
    assert answered >= PICTURES, f"{answered} of {PICTURES + 3} objects came before they were asked for"
    # Requested one by one, its objects would take four round trips from here on.
    loads = itertools.chain([load], (bed.load("/page.html") for _ in itertools.count()))
    enough_ms = 2.5 * RTT_MS
    took_ms = quickest(lambda: (one := next(loads)).load_ms - one.first_byte_ms, enough_ms)
    assert took_ms < enough_ms, f"{took_ms:.0f} ms"


def test_the_browser_sees_the_headers_that_the_origin_sent(bed: Bed) -> None:
    url = f"http://{IMAGES}/p3.svg"
    direct = Curl(bed.folder, bed.line.internet).get(url, "--resolve", f"{IMAGES}:80:{ADDRESSES[IMAGES]}")
    before = bed.answered()
    bed.fly("headers.html")
    answer = bed.curl().get(url, "--header", "Accept-Encoding: gzip, deflate")
    assert bed.answered() - before == 1
    assert (answer.status, answer.body) == (200, direct.body)
    # The cache adds the age, the date is that of the copy, and the proxy sends no connection header.
    ignored = {"age", "date", "connection", "keep-alive"}
    assert [one for one in sorted(answer.headers) if one[0] not in ignored] == [
        one for one in sorted(direct.headers) if one[0] not in ignored
    ]


def test_objects_sent_to_one_client_never_reach_another(bed: Bed) -> None:
    bed.fly("others.html")
    before = bed.answered()
    other = bed.curl("192.0.2.9").get(f"http://{IMAGES}/p5.svg")
    assert other.status == 200
    with_cookie = bed.curl().get(f"http://{IMAGES}/p6.svg", "--header", "Cookie: who=me")
    again = bed.curl().get(f"http://{IMAGES}/p7.svg", "--header", "Range: bytes=0-9")
    assert (with_cookie.status, again.status) == (200, 206)
    assert bed.answered() == before
    assert bed.curl().get(f"http://{IMAGES}/p8.svg").status == 200
    assert bed.answered() == before + 1


def test_an_object_that_sets_a_cookie_is_requested_by_each_client_itself(bed: Bed) -> None:
    bed.origins.forget()
    loads = [bed.load("/cookie.html") for _ in range(2)]
    assert all(len(_icon_aside(load)) == PICTURES + 2 for load in loads)
    setting = [one for load in loads for one in load.loaded() if "Set-Cookie" in one.url]
    assert len(setting) == 2
    # At least once for each browser: no browser got the response to the other one.
    assert len([one for one in bed.origins.requests(host=LAB) if "Set-Cookie" in one["target"]]) >= 2


def test_each_of_two_visitors_with_cookies_gets_its_own_of_what_visitors_have_their_own_of(bed: Bed) -> None:
    bed.origins.forget()
    for who in ("one", "two"):
        with browser(bed.folder, bed.line.clients) as fresh, fresh.tab() as tab:
            for host in (WWW, LAB):
                tab.call("Network.setCookie", name="who", value=who, url=f"http://{host}/")
            tab.navigate(f"http://{WWW}/visitors.html", timeout_s=60, settle_s=0.3)
            assert tab.evaluate(SHOWN) == PICTURES + len(VISITORS_OWN)
    for target in VISITORS_OWN:
        asked = [one for one in bed.origins.requests(host=LAB) if one["target"] == target.replace("&amp;", "&")]
        cookies = {cookie for one in asked for cookie in one["header"].get("Cookie", [""])}
        assert {"who=one", "who=two"} <= {cookie.split("; ")[0] for cookie in cookies}, (target, cookies)


def test_a_page_is_styled_by_what_came_unasked_and_so_are_its_sites_second_page_and_a_revisit(bed: Bed) -> None:
    with browser(bed.folder, bed.line.clients) as fresh, fresh.tab() as tab:
        # The browser lacks one object of the second page, and none of the revisited one.
        for page, pictures, lacks in [
            ("page.html", PICTURES, PICTURES), ("second.html", PICTURES + 1, 1), ("page.html", PICTURES, 0),
        ]:  # fmt: skip
            before = bed.answered()
            tab.navigate(f"http://{WWW}/{page}", timeout_s=60, settle_s=0.3)
            wait_for(f"{pictures} pictures of {page}", lambda wanted=pictures: tab.evaluate(SHOWN) == wanted)
            assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(238, 238, 255)", page
            assert tab.evaluate("getComputedStyle(document.body).backgroundImage") == f'url("http://{WWW}/ground.svg")'
            assert tab.evaluate("getComputedStyle(document.querySelector('p')).marginTop") == "1px", page
            assert tab.evaluate("document.title") == f"{page} ran"
            assert lacks <= bed.answered() - before <= lacks + 3, page


@pytest.mark.parametrize(
    ("page", "objects"),
    [("/dead.html", PICTURES + 1), ("/slow.html", PICTURES + 2), ("/large.html", PICTURES + 2)],
)
def test_a_page_with_an_object_that_is_dead_slow_or_too_large_is_complete(bed: Bed, page: str, objects: int) -> None:
    load = bed.load(page)
    assert len(_icon_aside(load)) == objects, [one.url for one in load.failed()]


def test_a_page_longer_than_what_may_wait_of_one_arrives_whole_from_the_origin_and_from_the_cache(bed: Bed) -> None:
    original = (bed.folder / WWW / "long.html").read_bytes()
    for _ in range(3):
        answer = bed.curl().get(f"http://{WWW}/long.html", "--compressed", "--header", "Accept: text/html,*/*")
        assert answer.problem == ""
        assert answer.status == 200
        assert len(answer.body) == len(original)
        assert answer.body == original


def test_internal_names_mean_nothing_from_a_client(bed: Bed) -> None:
    answer = bed.curl().get(f"http://{WWW}/style.css", "--header", "x-longhaul-flight: 00;00")
    assert answer.status == 200
    stolen = bed.curl().get("http://bundle.pair.invalid/00", "--resolve", f"bundle.pair.invalid:80:{NEAR_HOME}")
    assert stolen.status == 404
    assert not [
        one for one in bed.origins.requests() if any("longhaul" in name.lower() for name in one.get("header", {}))
    ]


def test_the_same_bytes_cross_the_link_once_for_all_visitors(bed: Bed) -> None:
    bed.load("/page.html")
    before = bed.counted("ground")
    load = bed.load("/page.html")
    after = bed.counted("ground")
    assert after["objects_total"] == before["objects_total"]
    assert after["references_total"] - before["references_total"] >= PICTURES
    assert load.screenshot == bed.original.screenshot


def test_a_browser_that_has_the_page_is_sent_nothing(bed: Bed) -> None:
    before = bed.counted("remote")["flights_total"]
    bed.curl().get(f"http://{WWW}/page.html", *ACCEPT, "--header", "If-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT")
    assert bed.counted("remote")["flights_total"] == before
    bed.curl().get(f"http://{WWW}/page.html", *ACCEPT)
    assert bed.counted("remote")["flights_total"] == before + 1


def _is_bundled(bed: Bed) -> None:
    """Asserts that a fresh browser's page is complete, and that its objects arrive before the browser requests them."""
    before = bed.answered()
    load = bed.load("/page.html")
    assert len(_icon_aside(load)) == 1 + 2 + 1 + PICTURES, [one.url for one in load.failed()]
    assert bed.answered() - before >= PICTURES


@pytest.mark.long
def test_a_page_is_complete_after_an_outage_in_the_middle_and_the_next_is_bundled(bed: Bed) -> None:
    def in_the_middle() -> None:
        wait_for("the page at its origin", lambda: bed.origins.requests(host=WWW), timeout_s=30)
        assert bed.line.link
        bed.line.link.outage("10s drop")

    bed.origins.forget()
    with ThreadPoolExecutor(1) as pool:
        outage = pool.submit(in_the_middle)
        load = bed.load("/page.html?outage")
        outage.result()
    assert len(_icon_aside(load)) == 1 + 2 + 1 + PICTURES, [one.url for one in load.failed()]
    assert load.load_ms > 10_000, "the outage was in the middle"
    _is_bundled(bed)


@pytest.mark.parametrize("end", ["ground", "remote"])
def test_a_page_ends_while_an_end_starts_again_and_the_next_is_bundled(bed: Bed, end: str) -> None:
    before = bed.answered()

    def in_the_middle() -> None:
        # The first pictures have arrived. One object is still on its way to the ground.
        wait_for("a picture", lambda: bed.answered() > before, timeout_s=30)
        (bed.pair.remote if end == "remote" else bed.pair.ground).quit_envoy()

    with ThreadPoolExecutor(1) as pool:
        fault = pool.submit(in_the_middle)
        load = bed.load(f"/{end}.html")
        fault.result()
    if end == "ground":
        # The remote requests the objects that were under way again.
        assert len(_icon_aside(load)) == 1 + 1 + PICTURES, [one.url for one in load.failed()]
    wait_for(
        "the pair",
        lambda: bed.curl().get(f"http://{WWW}/style.css?back", timeout_s=10).status == http.client.OK,
        timeout_s=60,
        interval_s=0.5,
    )
    _is_bundled(bed)
    assert bed.curl().get(made_to_order(LAB, size=1000)).status == http.client.OK


def test_an_object_that_a_script_loads_at_every_visit_is_sent_before_the_request(bed: Bed) -> None:
    page, image = f"http://{WWW}/late.html", f"http://{WWW}/late.svg"

    def visit(wanted: str) -> None:
        bed.fly("late.html")
        assert bed.curl().get(wanted, "--header", f"Referer: {page}").status == http.client.OK

    before, answered = bed.counted("ground"), bed.answered()
    # Both ends have two workers. All workers of the ground share one worker's lessons.
    for _ in range(3):
        visit(image)
    assert bed.answered() == answered, "the page does not name it"
    learnt = 'learnt_total{reason="added"}'
    wait_for("the lesson", lambda: bed.counted("ground")[learnt] > before.get(learnt, 0), timeout_s=40, interval_s=0.5)

    # The browser requests it after the page has loaded. Otherwise, it would take a round trip.
    load = bed.load("/late.html", settle_s=3 * RTT_MS / 1000)
    took_s = [one.ended_s - one.started_s for one in load.loaded() if one.url == image]
    assert len(took_s) == 1, load.failed()
    assert took_s[0] < RTT_MS / 1000
