"""The instruments of the fidelity runs: they find differences, and do not report parts that change by themselves."""

from __future__ import annotations

import io
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from fidelity.compare import Difference, Verdict, compare
from fidelity.exceptions import Exceptions, ExceptionsError, Known, load
from fidelity.observe import Observation
from fidelity.report import write
from fidelity.runner import Result, Runner, Subject
from fidelity.sitefile import SiteFileError, read


def shot(*boxes: tuple[int, int, int, int]) -> bytes:
    picture = Image.new("RGB", (100, 100), "white")
    for box in boxes:
        ImageDraw.Draw(picture).rectangle(box, fill="teal")
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


PLAIN = shot()


def load_of(*requests: str, picture: bytes = PLAIN, upgraded: set[str] | None = None) -> Observation:
    return Observation({"requests": Counter(requests)}, upgraded=upgraded or set(), screenshot=picture)


def found(*loads: Observation) -> list[str]:
    *without, ours = loads
    return [one.what for one in compare(without, [ours]).differences]


def test_equal_loads_do_not_differ() -> None:
    assert found(load_of("a", "b"), load_of("b", "a"), load_of("a", "b")) == []


def test_missing_new_and_repeated_requests_are_differences() -> None:
    same = load_of("a", "b", "c")
    assert found(same, same, load_of("b", "c", "c", "d")) == [
        "only without: a",
        "only with: c (1 times without, 2 with)",
        "only with: d",
    ]


def test_only_differences_between_two_loads_without_longhaul_are_unstable() -> None:
    verdict = compare([load_of("ad?r=1", "a"), load_of("ad?r=2", "a")], [load_of("ad?r=3", "b")])
    assert verdict.unstable == {"requests": "not in every load: ad?r=1"}
    assert [one.what for one in verdict.differences] == ["only without: a", "only with: b"]


def test_a_page_whose_loads_are_done_at_once_is_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def done(_way: str, subject: Subject) -> Future[Observation]:
        future: Future[Observation] = Future()
        future.set_result(load_of(subject.name))
        return future

    runner = Runner(tmp_path, [], [])
    monkeypatch.setattr(runner, "_submit", done)
    pages = [Subject(name, f"http://{name}/", ("safe",)) for name in ("a.test", "b.test")]
    judged = [page for (page, _), _ in runner._compare(dict.fromkeys(pages, ("direct", "safe")))]
    assert sorted(page.name for page in judged) == ["a.test", "b.test"]


def test_a_difference_that_is_not_there_again_is_unstable() -> None:
    same = load_of("a")
    verdict = compare([same, same, same], [load_of("a", "b"), same])
    assert verdict.differences == []
    assert verdict.unstable == {"requests": "not in every load: b"}


def test_hosts_that_the_browser_upgrades_itself_are_compared_as_it_asks_for_them() -> None:
    without = load_of("https://known.test/a", "http://other.test/", upgraded={"known.test"})
    assert found(without, without, load_of("http://known.test/a", "http://other.test/")) == []
    assert found(without, without, load_of("http://known.test/a", "https://other.test/")) != []


def test_pixels_that_differ_are_found_but_not_where_the_page_moves_by_itself() -> None:
    still, moving = load_of(), load_of(picture=shot((10, 10, 20, 20)))
    assert found(still, still, load_of(picture=shot((50, 50, 53, 53)))) == [
        "only with: 16 pixels within (50, 50, 54, 54)"
    ]
    assert found(still, moving, load_of(picture=shot((12, 12, 22, 22)))) == []
    assert found(still, moving, load_of(picture=shot((50, 50, 53, 53)))) != []


def test_an_exception_explains_its_own_differences_and_is_missed_when_nothing_needs_it() -> None:
    entry = Known("a-page", "requests", "only with: http://*.test/?x=[1]", "because", "full")
    known = Exceptions([entry])
    (difference,) = compare([load_of()] * 2, [load_of("http://img.test/?x=[1]")]).differences
    (other,) = compare([load_of()] * 2, [load_of("http://img.test/?x=1")]).differences
    assert known.explain("a-page", "full", other) is None
    assert known.explain("a-page", "safe", difference) is None
    assert known.unused([("a-page", "safe"), ("other", "full")]) == [], "the page was not compared at that level"
    assert known.unused([("a-page", "full")]) == [entry]
    assert known.explain("a-page", "full", difference) == "because"
    assert known.unused([("a-page", "full")]) == []


def test_an_exception_without_explanation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "exceptions.toml"
    path.write_text('[[exception]]\npage = "a"\ndimension = "pixels"\nwhat = "*"\n')
    with pytest.raises(ExceptionsError, match=r"missing \['why'\]"):
        load(path)


def test_a_site_file_gives_answers_in_order_with_digests_and_pictures(tmp_path: Path) -> None:
    path = tmp_path / "a.site"
    path.write_text(
        "# about\nmoves: 2 3\n=== http://a.test/\ntype: text/html\n\n<p>{sha384 http://b.test/x}</p>\n"
        "=== http://b.test/x\nneeds: Cookie: a=1\nstatus: 404\n\ntext\n=== http://b.test/p.png\npicture: #00ff00 3x2\n"
    )
    site = read(path)
    assert (site.name, site.about, site.url, site.hosts()) == ("a", "about", "http://a.test/", ["a.test", "b.test"])
    assert site.moves == {"safe": 2, "full": 3}
    assert site.answers[0].body.startswith(b"<p>sha384-")
    assert (site.answers[1].status, site.answers[1].needs) == (404, [("Cookie", "a=1")])
    picture = Image.open(io.BytesIO(site.answers[2].body))
    assert (picture.size, picture.getpixel((0, 0))) == ((3, 2), (0, 255, 0))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("=== http://a.test/\n\nx", "says what the page is about"),
        ("# about\n=== ftp://a.test/\n\nx", ":2: expected `=== .METHOD. URL`"),
        ("# about\n=== http://a.test/\ncolour: red\n\nx", ":2: unknown key 'colour'"),
        ("# about\n=== http://a.test/\n\n{sha384 http://b.test/}", "which is not in the file"),
    ],
)
def test_a_site_file_that_is_wrong_is_refused_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "a.site"
    path.write_text(text)
    with pytest.raises(SiteFileError, match=problem):
        read(path)


def test_the_report_escapes_every_text_of_a_page(tmp_path: Path) -> None:
    name = "<i>&"
    found_there = Difference(name, name)
    verdict = Verdict([found_there], {name: name}, Image.new("RGB", (2, 2)))
    result = Result(Subject(name, name, ("safe",), name), "safe", load_of("a"), load_of("b"), verdict)
    result.explained, result.unexplained = [(found_there, name)], [found_there]
    page = write(tmp_path, [result], [Known(name, name, name, name)]).read_text()
    assert "<i>" not in page
    assert page.count("&lt;i&gt;&amp;") > 10
    assert page.count('<img src="data:image/webp;base64,') == 3
