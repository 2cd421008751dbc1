"""Tests of benches that have parts."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from bench import parts


def test_a_bench_continues_with_the_parts_that_this_commit_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def part(name: str) -> parts.Part:
        def run(folder: Path, options: argparse.Namespace) -> tuple[parts.Figures, str]:  # noqa: ARG001 - as every part
            ran.append(name)
            if ran == ["first", "second"]:
                raise RuntimeError("interrupted")
            return {name: float(len(ran))}, name

        return run

    def run(*, resume: str, commit: str, only: list[str] | None = None) -> int:
        monkeypatch.setenv("RESUME", resume)
        monkeypatch.setattr(parts, "built_commit", lambda: commit)
        both = {name: part(name) for name in ("first", "second")}
        return parts.measure("some", both, [], argparse.Namespace(part=only), lambda: None)

    monkeypatch.setattr(parts, "scratch", lambda name: (tmp_path / name, (tmp_path / name).mkdir(exist_ok=True))[0])
    with pytest.raises(RuntimeError):
        run(resume="", commit="one")
    assert run(resume="1", commit="one") == 0
    assert ran == ["first", "second", "second"]
    assert '"first": 1.0' in (tmp_path / "bench" / "some.json").read_text()
    assert run(resume="1", commit="two") == 0
    assert ran[3:] == ["first", "second"], "another commit measures all parts"
    assert run(resume="", commit="two") == 0
    assert ran[5:] == ["first", "second"], "and so does a run that resumes nothing"
    assert run(resume="", commit="two", only=["second"]) == 0
    whole, one = (json.loads((tmp_path / "bench" / name).read_text()) for name in ("some.json", "some-second.json"))
    assert (whole.get("parts"), one["parts"]) == (None, ["second"]), "a run of one part says so"
