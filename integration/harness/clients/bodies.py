"""Bodies through Longhaul, compared with direct ones: ranges, labelled files, and the fields that describe a body.

Each function takes two ways to fetch a path of `labelled_origin.py`, through Longhaul and direct. It returns the
differences in words, and the number of comparisons. So a test and a benchmark can count the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .commands import Answer

Fetch = Callable[..., Answer]
"""Takes a path and options of curl."""

DESCRIBING = (
    "content-length", "content-encoding", "etag", "accept-ranges", "content-range", "content-md5", "digest",
    "content-digest", "repr-digest", "unencoded-digest",
)  # fmt: skip
"""Fields that describe a body (filters/http-semantics/src/body_fields.rs)."""
OF_ENCODED = ("accept-ranges", "content-range", "content-md5", "digest", "content-digest", "repr-digest")
"""Fields that are untrue as soon as the bytes change."""
FORMS = ("plain", "negotiated", "gzip", "x-gzip", "br")
ACCEPTED = (None, "identity", "gzip", "br, gzip", "gzip;q=0", "*")
STATES = ("cold", "second", "stored")
RANGES = ("100-199", "99999999-")
LABELLED = ("a.tgz", "a.tar.gz", "Packages.gz", "a.deb", "a.whl", "a")


def accepts(accepted: str | None) -> tuple[str, ...]:
    """Returns curl's options for a value of Accept-Encoding."""
    return () if accepted is None else ("--header", f"Accept-Encoding: {accepted}")


def differences(ours: Answer, direct: Answer) -> list[str]:
    """Returns the names of the parts of a response that differ."""
    differ = [name for name in DESCRIBING if ours.header(name) != direct.header(name)]
    differ += ["status"] if ours.status != direct.status else []
    differ += ["body"] if ours.body != direct.body else []
    return differ + ([ours.problem] if ours.problem else [])


def ranges_wrong(
    ours: Fetch,
    direct: Fetch,
    types: Sequence[str] = ("html", "js", "tgz"),
    forms: Sequence[str] = FORMS,
    accepted: Sequence[str | None] = ACCEPTED,
    states: Sequence[str] = STATES,
) -> tuple[list[str], int]:
    """Compares ranges over types x encodings x the client's acceptance x states of the cache."""
    wrong, asked = [], 0
    for kind in types:
        for form in forms:
            for number, accept in enumerate(accepted):
                path = f"/{form}/{number}.{kind}"
                for state in states:
                    if state == "second":
                        ours(path, *accepts(accept))
                    elif state == "stored":
                        for _ in range(3):
                            ours(path, *accepts("gzip"))
                    for part in RANGES:
                        options = (*accepts(accept), "--range", part)
                        differ = differences(ours(path, *options), direct(path, *options))
                        asked += 1
                        if differ:
                            wrong.append(f"{path} to {accept!r}, {state}, {part}: {differ}")
    return wrong, asked


def labelled_files_changed(
    ours: Fetch, direct: Fetch, forms: Sequence[str] = ("gzip", "x-gzip"), times: int = 4
) -> tuple[list[str], int]:
    """Compares files that their server labels as compressed, for programs without Accept-Encoding and with it."""
    changed, asked = [], 0
    for form in forms:
        for name in LABELLED:
            for accept in ("gzip", None, "identity"):
                path = f"/{form}/{name}"
                for _ in range(times):
                    differ = differences(ours(path, *accepts(accept)), direct(path, *accepts(accept)))
                    asked += 1
                    if differ:
                        changed.append(f"{path} to {accept!r}: {differ}")
    return changed, asked


def stale_digests(
    ours: Fetch, direct: Fetch, types: Sequence[str] = ("html", "css", "js", "png", "tgz"), times: int = 4
) -> tuple[list[str], int]:
    """Finds fields that describe other bytes than those that arrived, over types x encodings x acceptance."""
    stale, asked = [], 0
    for kind in types:
        for form in ("plain", "negotiated"):
            for number, accept in enumerate((None, "gzip", "gzip, br")):
                path = f"/{form}/d{number}.{kind}"
                for _ in range(times):
                    got, origin = ours(path, *accepts(accept)), direct(path, *accepts(accept))
                    asked += 1
                    if got.body == origin.body:
                        continue
                    untrue = [name for name in OF_ENCODED if got.header(name)]
                    untrue += ["etag"] if not (got.header("etag") or "W/").startswith("W/") else []
                    length = got.header("content-length")
                    untrue += ["content-length"] if length not in {None, str(len(got.body))} else []
                    if untrue:
                        stale.append(f"{path} to {accept!r}: {untrue}")
    return stale, asked
