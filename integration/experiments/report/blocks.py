"""The parts of the report as values. Only templates/blocks.html.j2 turns them into HTML."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup


@dataclass(frozen=True)
class Heading:
    """A heading of a section, or of a part of one."""

    kind: ClassVar[str] = "heading"
    text: str
    level: int = 3


@dataclass(frozen=True)
class Text:
    """A paragraph, with a few bold words before it."""

    kind: ClassVar[str] = "text"
    text: str
    lead: str = ""


@dataclass(frozen=True)
class Notes:
    """Lines in small print, each with a few bold words before it."""

    kind: ClassVar[str] = "notes"
    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Bad:
    """A cell with a bad result, followed by an explanation."""

    text: str
    rest: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table, with its own class."""

    cells: Sequence[str | Bad]
    looks: str = ""


@dataclass(frozen=True)
class Table:
    """A table. `words` are the columns without numbers."""

    kind: ClassVar[str] = "table"
    heads: Sequence[str]
    rows: Sequence[Row]
    words: Collection[int] = (0,)


@dataclass(frozen=True)
class Plot:
    """A plot with words under it."""

    kind: ClassVar[str] = "plot"
    svg: Markup
    caption: str


@dataclass(frozen=True)
class Plots:
    """Plots side by side."""

    kind: ClassVar[str] = "plots"
    plots: Sequence[Plot]


@dataclass(frozen=True)
class Change:
    """A change of load time, and the page that it was measured with."""

    ratio: float
    where: str


@dataclass(frozen=True)
class Gain:
    """The range of changes on one link, and how far they are from the ideal."""

    link: str
    changes: Sequence[Change]
    times_ideal: tuple[float, float] | None = None


@dataclass(frozen=True)
class Gains:
    """The gains of one contender on all links; none if it was not measured."""

    kind: ClassVar[str] = "gains"
    about: str
    gains: Sequence[Gain]


@dataclass(frozen=True)
class Key:
    """Parts that stand out."""

    kind: ClassVar[str] = "key"
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Details:
    """Parts that a click opens."""

    kind: ClassVar[str] = "details"
    summary: str
    blocks: Sequence[Block]
    is_open: bool = False


Block = Heading | Text | Notes | Table | Plot | Plots | Gains | Key | Details
