"""A drawing of boxes, lines and words, which becomes an SVG with colours for light and dark."""

from __future__ import annotations

from html import escape

WIDTH = 960
"""The width of every picture, which is that of the guide's text."""
COLOURS = {
    # name: light, dark
    "paper": ("#ffffff", "#14191f"),
    "panel": ("#f4f6f8", "#1d252d"),
    "ink": ("#1c2733", "#e6edf3"),
    "muted": ("#52606d", "#a3b1bd"),
    "edge": ("#8b99a6", "#5d6b78"),
    "blue": ("#24658f", "#79bbea"),
    "sky": ("#e6f0f8", "#16303f"),
    "orange": ("#b2410b", "#f59354"),
    "sand": ("#fbeee4", "#3a2415"),
    "green": ("#23704a", "#62c795"),
    "mint": ("#e5f3eb", "#15322a"),
    "violet": ("#6b4a94", "#c3a2ee"),
    "lilac": ("#f0eaf8", "#2b213c"),
}
"""Each has a contrast of at least 4.5 to 1 where words have it."""


def _style() -> str:
    def rules(at: int) -> str:
        return "".join(f".f-{name}{{fill:{both[at]}}}.s-{name}{{stroke:{both[at]}}}" for name, both in COLOURS.items())

    return f"<style>{rules(0)}@media (prefers-color-scheme:dark){{{rules(1)}}}.none{{fill:none}}</style>"


class Canvas:
    """Collects the marks of a picture."""

    def __init__(self, height: float, title: str) -> None:
        self.height = height
        self.title = title
        self.marks: list[str] = []

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, stroke: str = "", *, radius: float = 6
    ) -> None:
        """A rectangle with round corners."""
        line = f' class="f-{fill} s-{stroke}" stroke-width="1.5"' if stroke else f' class="f-{fill}"'
        self.marks.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}"{line}/>')

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        ink: str = "ink",
        size: float = 13,
        bold: bool = False,
        anchor: str = "start",
        mono: bool = False,
    ) -> None:
        """Words on one line. `y` is their base line."""
        more = ' font-weight="bold"' if bold else ""
        more += ' font-family="ui-monospace,Menlo,Consolas,monospace"' if mono else ""
        more += f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.marks.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" class="f-{ink}"{more}>{escape(words, quote=False)}</text>'
        )

    def lines(
        self,
        x: float,
        y: float,
        lines: list[str],
        *,
        step: float = 18,
        anchor: str = "start",
        size: float = 13,
        ink: str = "ink",
        mono: bool = False,
    ) -> None:
        """Words on several lines."""
        for number, words in enumerate(lines):
            self.text(x, y + number * step, words, anchor=anchor, size=size, ink=ink, mono=mono)

    def path(self, data: str, stroke: str, *, width: float = 1.5, dash: str = "", arrow: bool = False) -> None:
        """A line, with an arrow at its end if wanted."""
        more = f' stroke-dasharray="{dash}"' if dash else ""
        more += f' marker-end="url(#to-{stroke})"' if arrow else ""
        self.marks.append(f'<path d="{data}" class="none s-{stroke}" stroke-width="{width:g}"{more}/>')

    def shape(self, data: str, fill: str) -> None:
        """A filled outline."""
        self.marks.append(f'<path d="{data}" class="f-{fill}"/>')

    def dot(self, x: float, y: float, radius: float, fill: str) -> None:
        """A disc."""
        self.marks.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="f-{fill}"/>')

    def badge(self, x: float, y: float, number: int) -> None:
        """A number in a disc, to which a text refers."""
        self.dot(x, y, 11, "orange")
        self.text(x, y + 4.5, str(number), ink="paper", bold=True, anchor="middle")

    def svg(self) -> str:
        """The picture as a file."""
        arrows = "".join(
            f'<marker id="to-{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="10" markerHeight="10" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10z" class="f-{name}"/></marker>'
            for name in COLOURS
            if any(f"url(#to-{name})" in mark for mark in self.marks)
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:g}" role="img" '
                'aria-labelledby="t" font-family="system-ui,-apple-system,Segoe UI,Roboto,DejaVu Sans,sans-serif">',
                f'<title id="t">{escape(self.title, quote=False)}</title>',
                _style(),
                f"<defs>{arrows}</defs>",
                f'<rect width="{WIDTH}" height="{self.height:g}" rx="8" class="f-paper"/>',
                *self.marks,
                "</svg>\n",
            ]
        )
