"""Words that several blocks share: ratios, rates, and the origin of figures."""

from __future__ import annotations

NOISE = 1.02
"""Ratios up to this are no difference."""


def share(ratio: float) -> str:
    """A share of the direct time; bold where it is slower."""
    return f"**{ratio:.2f}**" if ratio > NOISE else f"{ratio:.2f}"


def rate(mbit: float) -> str:
    """A rate in the unit that suits it."""
    return f"{mbit:g} Mbit/s" if mbit >= 1 else f"{1000 * mbit:g} kbit/s"


def number(value: float) -> str:
    """A figure of any unit, with three digits, or all those before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def seconds(ms: float | None) -> str:
    """A time that no measurement gave."""
    return f"{ms / 1000:.1f} s" if ms else "-"


def origin(command: str, results: dict, loads: list[float], note: str = "") -> str:
    """The origin of figures: the command, the day, the commit, the loads of each kind if there are any, the machine."""
    each = ""
    if loads:
        fewest, most = min(loads), max(loads)
        kinds = f"{fewest:.0f} to {most:.0f} loads" if most > fewest else f"{most:.0f} load{'s' if most > 1 else ''}"
        each = f", with {kinds} of each kind"
    when = f"on {results['date']} at commit `{results['commit']}`"
    machine = ", ".join(part for part in (results["machine"], note) if part)
    return f"`{command}` measured this {when}{each}.\nMachine: {machine}."


def joined(*parts: str) -> str:
    """The name of a figure, as `experiments.results` makes it of its parts."""
    return "_".join(parts).replace("-", "_")


def figure(results: dict, *parts: str) -> float:
    """A figure by the parts of its name. Raises ValueError where it is missing."""
    name = joined(*parts)
    figures = results["figures"] | results.get("own", {})
    if name not in figures:
        raise ValueError(f"the results lack the figure {name}: run their command again, and make goals")
    return figures[name]


def measured(name: str, results: dict) -> str:
    """The origin of an experiment's figures."""
    loads = [count for figure, count in results["figures"].items() if figure.endswith("_loads")]
    return origin(f"make experiments ONLY={name}", results, loads)
