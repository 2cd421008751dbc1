"""The check of the dependencies between crates and modules: the graph that it draws, and the circles that it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.scripts import load_tool

structure = load_tool("structure")


def crate(folder: Path, **files: str) -> Path:
    """A crate's sources; `a__b` is the file `a/b.rs`."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".rs")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_the_drawing_leaves_out_what_other_arrows_imply() -> None:
    graph = {"top": {"middle", "bottom"}, "middle": {"bottom"}, "bottom": set()}
    assert structure.drawing(graph) == "graph LR\n  middle --> bottom\n  top --> middle\n"


@pytest.mark.parametrize(
    "use",
    [
        "use crate::b::Thing;",
        "use crate::{c::{self, d}, b};",
        "use super::b;",
        "fn f() { crate::b::g() }",
    ],
)
def test_a_circle_is_found_however_the_other_module_is_named(tmp_path: Path, use: str) -> None:
    source = crate(tmp_path, lib="mod a; mod b; mod c;", a=use, b="use crate::a;", c="")
    assert structure.circles(structure.modules(source)) == [{"a", "b"}]


def test_a_circle_through_deeper_files_is_found(tmp_path: Path) -> None:
    source = crate(tmp_path, a__mod="mod x;", a__x="use super::super::b::f;", b="use crate::c;", c="use crate::a::x;")
    assert structure.circles(structure.modules(source)) == [{"a", "b", "c"}]


def test_arrows_one_way_and_uses_in_tests_and_comments_are_no_circle(tmp_path: Path) -> None:
    tests = "#[cfg(test)]\nmod tests { use crate::a; }"
    source = crate(
        tmp_path, a="use crate::{b, c::d};", b=f"// crate::a\n{tests}", c="use crate::b;", c__d="use super::e;"
    )
    assert structure.circles(structure.modules(source)) == []


@pytest.mark.parametrize(
    ("file", "line", "refused"),
    [
        ("integration/bench/edge.py", "from e2e.desk import desk_in", True),
        ("integration/harness/bed.py", "import bench.figures", True),
        ("filters/codec/bench/run.py", "def f():\n    from bench.figures import table", True),
        ("integration/e2e/test_x.py", "from e2e.bed import Bed", False),
        ("integration/e2e/test_x.py", "from harness.bed import Bed\nfrom .bench import x", False),
        ("filters/codec/bench/run.py", "from harness.figures import table\nimport benches", False),
    ],
)
def test_areas_import_the_harness_and_never_each_other(tmp_path: Path, file: str, line: str, refused: bool) -> None:
    for area in ("bench", "e2e", "harness"):
        (tmp_path / "integration" / area).mkdir(parents=True)
        (tmp_path / "integration" / area / "__init__.py").write_text("")
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(line + "\n")
    assert [fault.partition(":")[0] for fault in structure.cross_imports(tmp_path)] == [file] * refused


def test_this_repository_has_no_circle_and_its_drawing_is_up_to_date() -> None:
    assert list(structure.faults()) == []
