"""The pictures of the guide are those of the files that they show, and of no others."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from harness.host.scripts import load_tool

pictures = load_tool("pictures")
GUIDE = pictures.GUIDE


def test_every_picture_is_what_its_files_say() -> None:
    assert pictures.stale() == []


def test_a_stale_picture_and_one_that_nothing_draws_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    slower = json.loads(pictures.text("integration/results/front-page.json"))
    for row in slower["rows"]:
        row["direct_ms"] += 1000
    monkeypatch.setitem(pictures.DRAWN, "https-page", lambda: pictures.https_page.draw(slower))
    monkeypatch.delitem(pictures.DRAWN, "pair")
    assert pictures.stale() == ["https-page", "pair"]


def test_the_guide_shows_every_picture_and_says_in_words_what_it_shows() -> None:
    shown = [
        found
        for page in GUIDE.glob("*.md")
        for found in re.findall(r"!\[([^]]*)]\(pictures/([\w-]+)\.svg\)", page.read_text())
    ]
    assert sorted(name for _, name in shown) == sorted(pictures.DRAWN)
    assert all(len(words.split()) >= 10 for words, _ in shown), shown


def test_a_picture_has_colours_for_the_dark_and_no_script() -> None:
    for name, draw in pictures.DRAWN.items():
        svg = draw().svg()
        assert "prefers-color-scheme:dark" in svg, name
        assert {one.tag.rpartition("}")[2] for one in ElementTree.fromstring(svg).iter()} <= {
            "svg", "title", "style", "defs", "marker", "rect", "text", "path", "circle",
        }, name  # fmt: skip


def test_pages_that_lost_a_part_are_refused() -> None:
    with pytest.raises(ValueError, match="no heading 'A ship'"):
        pictures.recipe.draw(pictures.headings() - {"A ship"})
    with pytest.raises(ValueError, match=re.escape("does not name 192.0.2.1")):
        pictures.pair.draw("")
    with pytest.raises(KeyError):
        pictures.status_page.draw("")
