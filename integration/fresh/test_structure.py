"""The check of the dependencies between crates and modules: the graph that it draws, and the circles that it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.host.scripts import load_tool

structure = load_tool("structure")


def written(folder: Path, files: dict[str, str]) -> Path:
    """A folder with those files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def rust(folder: Path, **files: str) -> list:
    """The circles of a crate; `a__b` is the file `a/b.rs`."""
    source = written(folder / "src", {name.replace("__", "/") + ".rs": text for name, text in files.items()})
    return list(structure.circles(structure.Crate(source).uses()))


def python(folder: Path, **files: str) -> list:
    """The circles of packages in Python; `a__b` is the file `a/b.py`."""
    written(folder, {name.replace("__", "/") + ".py": text for name, text in files.items()})
    return list(structure.circles(structure.python(folder, folder)))


def test_the_drawing_leaves_out_what_other_arrows_imply() -> None:
    graph = {"top": {"middle", "bottom"}, "middle": {"bottom"}, "bottom": set()}
    assert structure.drawing(graph) == "graph LR\n  middle --> bottom\n  top --> middle\n"


@pytest.mark.parametrize(
    "use",
    [
        "use crate::b::Thing;",
        "use crate::{c::{self, d}, b::Thing};",
        "use super::b;\nfn f() -> b::Thing {}",
        "use super::b as other;\nfn f() -> other::Thing {}",
        "fn f() { crate::b::Thing }",
        "use crate::d::Thing;",
    ],
)
def test_a_circle_is_found_however_the_name_is_reached(tmp_path: Path, use: str) -> None:
    b = "use crate::a::{f, g};\nstruct Thing;"
    [circle] = rust(tmp_path, lib="mod a;", a=use, b=b, c="", d="pub use crate::b::Thing;")
    assert circle.members == ["a", "b"]
    assert str(circle).endswith(f"move Thing out of {tmp_path}/src/b.rs, for {tmp_path}/src/a.rs")


def test_a_circle_through_deeper_files_is_found(tmp_path: Path) -> None:
    [circle] = rust(
        tmp_path, a__mod="mod x;", a__x="use super::super::b::f;", b="use crate::c::g;", c="use crate::a::x::{h, i};"
    )
    assert circle.members == ["a", "b", "c"]


def test_a_circle_inside_a_folder_is_found_through_what_the_folder_re_exports(tmp_path: Path) -> None:
    [circle] = rust(
        tmp_path,
        lib="mod a;",
        a="mod x;\nmod y;\npub use y::Thing;",
        a__x="use super::Thing;",
        a__y="use super::x::{f, g}; \npub struct Thing;",
    )
    assert circle.folder == tmp_path / "src" / "a"
    assert circle.members == ["x", "y"]
    assert "move Thing out of" in str(circle)


def test_the_arrow_that_opens_most_is_named_before_one_with_fewer_names(tmp_path: Path) -> None:
    # Without the two names of `a`, nothing is left; each of the others opens a part.
    [circle] = rust(
        tmp_path, a="use crate::b::f;\nuse crate::c::g;", b="use crate::c::h;", c="use crate::a::{one, two};"
    )
    assert "move one, two out of" in str(circle)


def test_arrows_one_way_and_uses_in_tests_and_comments_are_no_circle(tmp_path: Path) -> None:
    tests = "#[cfg(test)]\nmod samples;\n#[cfg(test)]\nmod tests { use crate::a; }"
    assert not rust(
        tmp_path,
        lib="#[cfg(test)]\nmod samples;",
        a="use crate::{b::f, c::d};",
        a__tests="use crate::a::y;",
        b=f"// crate::a\n{tests}",
        c="use crate::b::g;",
        c__d="use super::e;",
        samples="use crate::a::z;",
    )


@pytest.mark.parametrize(
    "imported", ["from .b import Thing", "from . import b\nb.Thing", "from p.b import Thing", "import p.b\np.b.Thing"]
)
def test_a_circle_of_python_modules_is_found(tmp_path: Path, imported: str) -> None:
    [circle] = python(tmp_path, p____init__="", p__a=imported, p__b="def f():\n    from .a import one, two")
    assert circle.folder == tmp_path / "p"
    assert str(circle).endswith(f"move Thing out of {tmp_path}/p/b.py, for {tmp_path}/p/a.py")


def test_a_circle_of_python_folders_is_found_and_one_way_is_none(tmp_path: Path) -> None:
    there = {"p____init__": "", "q____init__": "", "p__a": "import q.a", "q__a": "", "q__b": ""}
    assert not python(tmp_path / "one", **there)
    [circle] = python(tmp_path / "two", **{**there, "q__b": "from p import a"})
    assert circle.members == ["p", "q"]


def test_a_circle_of_go_folders_is_found_although_the_packages_have_none(tmp_path: Path) -> None:
    files = {
        "go.mod": "module example.test/m\n",
        "a/a.go": 'import "example.test/m/b"\nvar x = b.One',
        "b/c/c.go": 'import "example.test/m/a/d"\nvar y = d.Two + d.Three',
    }
    [circle] = structure.circles(structure.go(written(tmp_path, {**files, "a/d/d.go": "", "b/b.go": ""})))
    assert circle.members == ["a", "b"]
    assert "move One out of" in str(circle)
    (tmp_path / "a" / "a.go").rename(tmp_path / "a" / "a_test.go")
    assert not list(structure.circles(structure.go(tmp_path)))


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


def test_public_items_are_counted_once_and_without_methods_and_fields(tmp_path: Path) -> None:
    text = (
        "pub mod a;\npub use a::B;\npub struct B {\n    pub c: u8,\n}\nimpl B {\n    pub fn d(&self) {}\n}\n"
        "pub const fn e() {}\npub(crate) fn f() {}\nmacro_rules! g {\n        pub enum H {}\n}\n"
    )
    written(tmp_path, {"crate/src/lib.rs": text, "crate/tests/i.rs": "pub fn j() {}\n"})
    assert structure.public_items(tmp_path) == len(("a", "B", "e", "H"))


def test_this_repository_has_no_circle_and_its_drawing_is_up_to_date() -> None:
    assert list(structure.faults()) == []
