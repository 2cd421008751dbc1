"""The measured pages: real ones, by name, from dense with tags to long with scripts.

Their bytes belong to their publishers and are not part of the repository. `filters/url-rewrite/url-rewriting/benches`
measures the same pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.host.artifacts import Missing, corpora


@dataclass(frozen=True)
class RealPage:
    """A saved page and the host it was saved from, which determines the foreign URLs in it."""

    name: str
    host: str
    file: Path

    @property
    def path(self) -> str:
        """Returns its path at the origin."""
        return f"/pages/{self.file.name}"

    @property
    def bytes(self) -> int:
        """Returns its size."""
        return self.file.stat().st_size


PAGES = [
    ("spec", "www.ecma-international.org", "lol-html/benches/data/ecma402-spec.html"),
    ("shop", "www.cloudflare.com", "lol-html/benches/data/cloudflare.com.html"),
    ("news 2010", "www.elmundo.es", "goose3/tests/data/content/test_elmondo1.html"),
    ("news 2013", "techcrunch.com", "goose3/tests/data/content/test_techcrunch1.html"),
    ("portal", "news.yahoo.com", "goose3/tests/data/content/test_yahoo.html"),
    ("news 2019", "www.theguardian.com", "trafilatura/tests/cache/theguardian.com.academics.html"),
    ("magazine", "www.pcgamer.com", "trafilatura/tests/cache/pcgamer.com.skyrim.html"),
]


def real_pages() -> list[RealPage]:
    """Returns all of them, or raises Missing."""
    folder = corpora() / "html"
    pages = [RealPage(name, host, folder / file) for name, host, file in PAGES]
    absent = [str(page.file) for page in pages if not page.file.is_file()]
    if absent:
        raise Missing(f"the saved pages are not complete, lacking {', '.join(absent)}")
    return pages
