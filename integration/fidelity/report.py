"""What a run leaves: figures as JSON, and one HTML file with every difference and its pictures in it."""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from .exceptions import Known
from .runner import Result

SHOT_WIDTH_PX = 640

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 82rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100% } th { text-align: left }
td, th { padding: .25rem .6rem; vertical-align: top }
tr:nth-child(even) { background: #f4f6f8 } .bad { color: #b00020; font-weight: 600 } .known { color: #8a5a00 }
.unstable { color: #666 } .number { text-align: right; font-variant-numeric: tabular-nums }
code { overflow-wrap: anywhere }
figure { display: inline-block; width: 31%; margin: .5rem 1% } img { width: 100%; border: 1px solid #ccc }
section { border-top: 2px solid #ccd; margin-top: 2rem }
"""


def figures(results: Sequence[Result], unused: Sequence[Known]) -> dict[str, float]:
    """The run in numbers; one page at two levels counts as two comparisons and one page."""
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
    """One line of the table on the terminal, and one for each difference that nobody explained."""
    requests = sum(result.without.dimensions["requests"].values())
    lines = [
        f"{result.subject.name[:34]:34} {result.level:5}{requests:9}{result.with_longhaul.moved:7}  {outcome(result)}"
    ]
    lines += [f"    {one.dimension}: {one.what}" for one in result.unexplained]
    return "\n".join(lines)


def outcome(result: Result) -> str:
    """The verdict in a few words."""
    words = []
    if result.unexplained:
        words.append(f"{len(result.unexplained)} DIFFERENCES")
    if result.explained:
        words.append(f"{len(result.explained)} explained")
    if result.verdict.unstable:
        words.append(f"unstable: {', '.join(sorted(result.verdict.unstable))}")
    return "; ".join(words) or "identical"


def write(folder: Path, results: Sequence[Result], unused: Sequence[Known]) -> Path:
    """Writes fidelity.json and report.html; returns the latter's path."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = figures(results, unused)
    (folder / "fidelity.json").write_text(json.dumps({"figures": numbers}, indent=1) + "\n")
    counted = ", ".join(f"<b>{value}</b> {key.replace('_', ' ')}" for key, value in numbers.items())
    rows = "".join(_row(one) for one in results)
    sections = "".join(_section(one) for one in results if not one.identical)
    unneeded = "".join(
        f"<li class=bad>{html.escape(f'{one.page} ({one.level}) {one.dimension}: {one.what}')}</li>" for one in unused
    )
    path = folder / "report.html"
    path.write_text(
        f"<!doctype html><meta charset=utf-8><title>Longhaul: fidelity</title><style>{STYLE}</style>"
        "<h1>Pages without Longhaul and with it</h1>"
        "<p>Each page loads in a cold browser, directly and through Longhaul; requests, failures, console, the "
        "browser's own findings, fonts, resource timing, text, state and pixels are compared. Where they differ, "
        "the page loads twice more directly and once more through Longhaul: what differs between loads of one "
        "kind is left out and called unstable.</p>"
        f"<p>{counted}</p>"
        + (f"<h2>Exceptions that explain nothing any more</h2><ul>{unneeded}</ul>" if unneeded else "")
        + "<table><tr><th>page<th>level<th class=number>requests<th class=number>moved<th>outcome</tr>"
        f"{rows}</table>{sections}",
        encoding="utf-8",
    )
    return path


def _row(result: Result) -> str:
    name = html.escape(result.subject.name)
    if not result.identical:
        name = f'<a href="#{name}-{result.level}">{name}</a>'
    kind = "bad" if result.unexplained else "known" if result.explained else "unstable"
    title = html.escape("\n".join(f"{key}: {why}" for key, why in result.verdict.unstable.items()))
    return (
        f"<tr><td>{name}<td>{result.level}<td class=number>{sum(result.without.dimensions['requests'].values())}"
        f"<td class=number>{result.with_longhaul.moved}"
        f'<td class={kind} title="{title}">{html.escape(outcome(result))}</tr>'
    )


def _section(result: Result) -> str:
    found = "".join(
        f"<li class=bad>{one.dimension}: <code>{html.escape(one.what)}</code></li>" for one in result.unexplained
    ) + "".join(
        f"<li class=known>{one.dimension}: <code>{html.escape(one.what)}</code><br>{html.escape(why)}</li>"
        for one, why in result.explained
    )
    shots = ""
    if result.verdict.picture:
        shots = (
            _figure("without", Image.open(io.BytesIO(result.without.screenshot)))
            + _figure("with Longhaul", Image.open(io.BytesIO(result.with_longhaul.screenshot)))
            + _figure("differing pixels", result.verdict.picture)
        )
    name = html.escape(f"{result.subject.name}-{result.level}")
    return (
        f'<section id="{name}"><h2>{html.escape(result.subject.name)}, level {result.level}</h2>'
        f"<p>{html.escape(result.subject.about or result.subject.url)}</p><ul>{found}</ul>{shots}</section>"
    )


def _figure(caption: str, picture: Image.Image) -> str:
    """A picture small enough that a report of many can be opened."""
    small = picture.convert("RGB")
    small.thumbnail((SHOT_WIDTH_PX, 10_000))
    out = io.BytesIO()
    small.save(out, "WEBP", quality=80)
    data = base64.b64encode(out.getvalue()).decode()
    return f'<figure><figcaption>{caption}</figcaption><img src="data:image/webp;base64,{data}"></figure>'
