"""The output of a run: figures as JSON, and one HTML file with every difference and its pictures in it."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from harness.results.html import template

from .exceptions import Known
from .runner import Result

SHOT_WIDTH_PX = 640

TEMPLATE = Path(__file__).with_name("templates") / "report.html.j2"


def figures(results: Sequence[Result], unused: Sequence[Known]) -> dict[str, float]:
    """Returns the run in numbers. One page at two levels counts as two comparisons and one page."""
    return {
        "pages": len({one.subject.name for one in results}),
        "comparisons": len(results),
        "requests_moved": sum(one.with_longhaul.moved for one in results),
        "identical": sum(one.identical for one in results),
        "unstable": sum(bool(one.verdict.unstable) for one in results),
        "exceptions": sum(len(one.explained) for one in results),
        "differences": sum(len(one.unexplained) for one in results),
        "unused_exceptions": len(unused),
    }


def line(result: Result) -> str:
    """Returns one line of the table on the terminal, and one for each unexplained difference."""
    requests = sum(result.without.dimensions["requests"].values())
    lines = [
        f"{result.subject.name[:34]:34} {result.level:5}{requests:9}{result.with_longhaul.moved:7}  {outcome(result)}"
    ]
    lines += [f"    {one.dimension}: {one.what}" for one in result.unexplained]
    return "\n".join(lines)


def outcome(result: Result) -> str:
    """Returns the verdict in a few words."""
    words = []
    if result.unexplained:
        words.append(f"{len(result.unexplained)} DIFFERENCES")
    if result.explained:
        words.append(f"{len(result.explained)} explained")
    if result.verdict.unstable:
        words.append(f"unstable: {', '.join(sorted(result.verdict.unstable))}")
    return "; ".join(words) or "identical"


def write(folder: Path, results: Sequence[Result], unused: Sequence[Known]) -> Path:
    """Writes fidelity.json and report.html, and returns the path of the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = figures(results, unused)
    (folder / "fidelity.json").write_text(json.dumps({"figures": numbers}, indent=1) + "\n")
    path = folder / "report.html"
    page = template(TEMPLATE).render(
        numbers=numbers, unused=unused, results=results, outcome=outcome, kind=_kind, shots=_shots
    )
    path.write_text(page, encoding="utf-8")
    return path


def _kind(result: Result) -> str:
    """Returns the class of its cell in the table."""
    return "bad" if result.unexplained else "known" if result.explained else "unstable"


def _shots(result: Result) -> list[tuple[str, str]]:
    """Returns captions and pictures of a difference in pixels."""
    if not result.verdict.picture:
        return []
    return [
        ("without", _encoded(Image.open(io.BytesIO(result.without.screenshot)))),
        ("with Longhaul", _encoded(Image.open(io.BytesIO(result.with_longhaul.screenshot)))),
        ("differing pixels", _encoded(result.verdict.picture)),
    ]


def _encoded(picture: Image.Image) -> str:
    """Shrinks a picture, so that a browser can open a report with many of them."""
    small = picture.convert("RGB")
    small.thumbnail((SHOT_WIDTH_PX, 10_000))
    out = io.BytesIO()
    small.save(out, "WEBP", quality=80)
    return base64.b64encode(out.getvalue()).decode()
