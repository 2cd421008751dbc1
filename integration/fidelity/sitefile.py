"""The project's own pages as text: one file is one page with all its objects, and the conditions of each response.

    # Lines like this one say what the page is about.
    moves: 1 2
    done: document.title == "ran"
    === http://www.integrity.test/
    type: text/html

    <!doctype html><script src="http://cdn.integrity.test/a.js" integrity="{sha384 http://cdn.integrity.test/a.js}">
    === http://cdn.integrity.test/a.js
    type: text/javascript

    document.title = "ran";

`moves` is the least number of requests that go to the proxy at levels safe and full. It is 1 and 1 when absent, because
a page without moved URLs would prove nothing. `done` is a condition that must become true before the page is recorded,
for pages that act after the load event. The first response is the page. A line `=== METHOD URL` is for another method
than GET and HEAD. Between it and the empty line stand:

    type: CONTENT-TYPE        none when absent
    header: NAME: VALUE       a further header, may repeat; {origin} is the request's Origin, without one it is left out
    status: CODE              200 when absent
    needs: NAME: TEXT         only for requests whose header NAME contains TEXT, may repeat; "-" for no such header
    encoding: CODEC           of the body, utf-8 when absent; a Python codec, so that utf-16 brings its byte order mark
    picture: COLOUR WxH       the body is a PNG of one colour, #rrggbb
    font: FILE                the body is a font of Debian's fonts-dejavu-core
    sound: SECONDS            the body is silence, as WAV

Several responses may stand for one URL. The first one whose needs are met is sent, or 403 when none is. A body ends
before the next `===`. {sha384 URL} in a body or a header is the digest of that URL's first body.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import struct
import wave
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

FONTS = Path("/usr/share/fonts/truetype/dejavu")

DIGEST = re.compile(rb"\{sha384 (\S+?)\}")


class SiteFileError(ValueError):
    """A site file is malformed. The text has file and line."""


@dataclass
class Answer:
    """One response, and the headers that a request needs to get it."""

    url: str
    methods: tuple[str, ...] = ("GET", "HEAD")
    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list)
    needs: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


@dataclass
class SiteFile:
    """One page and its objects."""

    name: str
    about: str
    answers: list[Answer]
    done: str = ""
    moves: dict[str, int] = field(default_factory=lambda: {"safe": 1, "full": 1})

    @property
    def url(self) -> str:
        """Returns the URL of the page."""
        return self.answers[0].url

    def hosts(self) -> list[str]:
        """Returns every host with a response, the page's own first."""
        return list(dict.fromkeys(urlsplit(one.url).hostname or "" for one in self.answers))


def read(path: Path) -> SiteFile:
    """Reads a site file."""
    about: list[str] = []
    answers: list[Answer] = []
    lines = path.read_text(encoding="utf-8").split("\n")
    at = 0
    moves, done = (1, 1), ""
    while at < len(lines) and not lines[at].startswith("==="):
        if found := re.fullmatch(r"moves: (\d+) (\d+)", lines[at]):
            moves = (int(found[1]), int(found[2]))
            lines[at] = ""
        elif lines[at].startswith("done: "):
            done, lines[at] = lines[at].removeprefix("done: "), ""
        if lines[at] and not lines[at].startswith("#"):
            raise SiteFileError(
                f"{path}:{at + 1}: expected `#`, `moves: N N`, `done: SCRIPT` or `===`, found {lines[at]!r}"
            )
        about.append(lines[at].removeprefix("#").strip())
        at += 1
    while at < len(lines):
        start = at
        at = next((i for i in range(at + 1, len(lines)) if lines[i].startswith("===")), len(lines))
        try:
            answers.append(_answer(lines[start:at]))
        except ValueError as problem:
            raise SiteFileError(f"{path}:{start + 1}: {problem}") from problem
    if not answers or not any(about):
        raise SiteFileError(f"{path}: expected a `#` line that says what the page is about, and one `===` at least")
    _fill_in_digests(path, answers)
    return SiteFile(path.stem, " ".join(about).strip(), answers, done, dict(zip(("safe", "full"), moves, strict=True)))


def read_all(folder: Path) -> list[SiteFile]:
    """Reads all site files of a folder. No two of them may share a host."""
    sites = [read(path) for path in sorted(folder.glob("*.site"))]
    owner: dict[str, str] = {}
    for site in sites:
        for host in site.hosts():
            if owner.setdefault(host, site.name) != site.name:
                raise SiteFileError(f"{folder}: {host} is in {owner[host]}.site and in {site.name}.site")
    return sites


def _answer(lines: list[str]) -> Answer:
    words = lines[0].removeprefix("===").split()
    if not words or len(words) > 2 or urlsplit(words[-1]).scheme not in ("http", "https"):
        raise ValueError(f"expected `=== [METHOD] URL`, found {lines[0]!r}")
    answer = Answer(words[-1])
    if len(words) == 2:
        answer.methods = (words[0],)
    head = next((i for i in range(1, len(lines)) if not lines[i]), len(lines))
    codec = "utf-8"
    for line in lines[1:head]:
        key, separator, value = line.partition(":")
        value = value.strip()
        match key:
            case "type":
                answer.headers.append(("Content-Type", value))
            case "header":
                answer.headers.append(_pair(value))
            case "needs":
                answer.needs.append(_pair(value))
            case "status":
                answer.status = int(value)
            case "encoding":
                codec = value
            case "picture":
                answer.body = _picture(value)
            case "font":
                answer.body = (FONTS / value).read_bytes()
            case "sound":
                answer.body = _silence(float(value))
            case _:
                raise ValueError(f"unknown key {key!r}" if separator else f"expected `key: value`, found {line!r}")
    if not answer.body:
        answer.body = "\n".join(lines[head + 1 :]).encode(codec)
    return answer


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    if not separator:
        raise ValueError(f"expected `NAME: VALUE`, found {text!r}")
    return name.strip(), value.strip()


def _fill_in_digests(path: Path, answers: list[Answer]) -> None:
    first = {one.url: one.body for one in reversed(answers)}

    def digest(found: re.Match[bytes]) -> bytes:
        url = found[1].decode()
        if url not in first:
            raise SiteFileError(f"{path}: a digest of {url}, which is not in the file")
        return b"sha384-" + base64.b64encode(hashlib.sha384(first[url]).digest())

    for one in answers:
        one.body = DIGEST.sub(digest, one.body)
        one.headers = [(name, DIGEST.sub(digest, value.encode()).decode()) for name, value in one.headers]


def _picture(text: str) -> bytes:
    match = re.fullmatch(r"#([0-9a-f]{6}) (\d+)x(\d+)", text)
    if match is None:
        raise ValueError(f"expected `picture: #rrggbb WxH`, found {text!r}")
    width, height = int(match[2]), int(match[3])
    row = b"\0" + bytes.fromhex(match[1]) * width

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(row * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def _silence(seconds: float) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(b"\x80" * int(8000 * seconds))
    return out.getvalue()
