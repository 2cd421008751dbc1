"""The check of the documentation's prose: the files that it reads, the words that it refuses, its messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.host.artifacts import REPOSITORY
from harness.host.scripts import load_tool

TOOL = REPOSITORY / "tools" / "prose"

prose = load_tool("prose")


def words(count: int) -> str:
    return "Word" + " word" * (count - 1) + "."


def said(text: str) -> list[str]:
    return [f"{one.line}:{one.column}: {one.text}" for one in prose.problems(text)]


def read(text: str) -> list[str]:
    return [one.text.replace(prose.START, "") for one in prose.sentences(text)]


def test_code_tables_headings_and_html_are_not_read() -> None:
    text = f"""# Heading of ours

<!-- a comment
of ours -->
One sentence.

```sh
echo {words(60)}
```

~~~ txt
```
{words(60)}
~~~

    {words(60)}

| of | ours |
|---|---|
| {words(60)} | of ours |

<details>
[here]: https://www.example.org/of/ours
Another one.
"""
    assert read(text) == ["One sentence.", "Another one."]


def test_code_is_one_word_and_a_link_is_its_text() -> None:
    (one,) = prose.sentences(
        "The `a b c` of [two words](https://www.example.org/a.b) and ![image of it](x.png) **is bold**."
    )
    assert one.length == 11


def test_sentences_end_at_full_stops_and_with_their_item() -> None:
    text = """One, e.g. this. *Two* is here (RFC 6761, section 2). `three` has
version 1.2.3 of it. [four](x.md) is a link! And five?

- item one
- item two. It goes on
  here

  and has another paragraph.
1. item three
"""
    assert read(text) == [
        "One, e.g. this.",
        "Two is here (RFC 6761, section 2).",
        "Code has version 1.2.3 of it.",
        "four is a link!",
        "And five?",
        "item one",
        "item two.",
        "It goes on here",
        "and has another paragraph.",
        "item three",
    ]


def test_a_long_sentence_is_refused_and_a_shorter_one_is_not() -> None:
    short = "Short one. " * 20
    assert said(short + words(35)) == []
    assert said(short + "\n" + words(36)) == [
        '2:1: sentence of 36 words ("Word word word word word word ..."), at most 35: split it'
    ]


def test_median_and_ninth_decile_of_a_file_are_bounded() -> None:
    assert said(f"{words(18)} " * 9 + words(25)) == []
    assert said(f"{words(19)} " * 10) == ["1:1: median sentence of 19 words, at most 18: split sentences"]
    assert said(f"{words(5)}\n" * 8 + f"{words(26)}\n" * 2) == [
        "1:1: one sentence in ten has 26 words or more, at most 25: begin with lines 9, 10, 1"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("This is a name\nof   ours.", '2:1: "of ours": write instead: our own, their own'),
        ("> All is **in vain**.", '1:12: "in vain": write instead: without success; of a health check: failed'),
        ("The `x` [is told](y).", '1:9: "is told": write instead: receives, learns, or name who reports it'),
        ("A sheet of it.", '1:3: "sheet": write instead: style sheet'),
        ("Ask whoever comes.", '1:5: "whoever": write instead: name the client, the operator or the program'),
        ("What comes is sent.", '1:1: sentence begins with a clause, "What ...": begin with the subject, as a noun'),
    ],
)
def test_a_banned_word_is_refused_with_its_place_and_a_better_one(text: str, problem: str) -> None:
    assert said(text) == [problem]


def test_words_that_only_contain_a_banned_one_pass() -> None:
    assert said("Every style sheet of yours, a package, `pack`, spreadsheets and transfer codings.") == []
    assert said("What is it? Whatsoever.") == []


def test_of_a_rust_file_only_the_doc_comments_are_read(tmp_path: Path) -> None:
    source = tmp_path / "lib.rs"
    source.write_text("//! A head.\n\n// in vain\nfn f() {}\n\n    /// Gives up\n    /// in vain.\n    fn g() {}\n")
    (problem,) = prose.problems(prose.prose_of(source))
    assert (problem.line, problem.text.split(":")[0]) == (7, '"in vain"')


def test_of_a_python_file_only_docstrings_and_comments_on_their_own_lines_are_read(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text(
        """#!/usr/bin/env python3
'A head.'  # in vain

#     in vain
TEXT = f'''
# in vain {len("# in vain")}
'''  # in vain
LIST = (
    "# in vain"
    # An item.
    "in vain"
)
'''The "text"'''
# noqa: in vain
# fmt: off
def f(): r"Gives way."
class C:
    def g(self) -> str:
        # Gives up
        # in vain.
        \"""Says "no"

            in vain

      in vain.\"""
        return f"in vain"  # type: ignore[in vain]
"""
    )
    text = prose.prose_of(source)
    assert read(text) == [
        "A head.",
        "An item.",
        'The "text"',
        "Gives way.",
        "Gives up in vain.",
        'Says "no"',
        "in vain.",
    ]
    assert [(one.line, one.text.split(":")[0]) for one in prose.problems(text)] == [
        (20, '"in vain"'),
        (25, '"in vain"'),
    ]


def test_of_a_template_only_the_comments_of_the_rendered_file_are_read(tmp_path: Path) -> None:
    template = tmp_path / "lds.yaml.j2"
    template.write_text(
        "{# in vain #}\n# ------ in vain\n# The {{ in.vain | yaml }} filter.\nname: in vain   # in vain\n"
        "  # {{ timeout.in.vain }}\n  timeout: 1s\n{% if a %}\n  # Gives up\n  # in vain.\n{% endif %}\n"
    )
    text = prose.prose_of(template)
    assert read(text) == ["The Code filter.", "Gives up in vain."]
    (problem,) = prose.problems(text)
    assert (problem.line, problem.text.split(":")[0]) == (9, '"in vain"')


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in prose.BANNED])
def test_no_banned_word_has_a_banned_replacement(pattern: str) -> None:
    (use,) = [use for one, use in prose.BANNED if one == pattern]
    assert not any(words.search(use) for words, _ in prose.WORDS)


def test_the_exit_status_and_the_messages_tell_the_file(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text("Good words.\n")
    bad.write_text("\nWords of ours.\n")
    done = subprocess.run([sys.executable, TOOL, good], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run([sys.executable, TOOL, good, bad], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f'{bad}:2:7: error: "of ours": write instead: our own, their own\n'


def test_the_documentation_passes() -> None:
    done = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
