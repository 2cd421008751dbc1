"""`make release`: the tag that it makes, and the states that it refuses."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path):
    """A repository with the files that a release requires, ready to be tagged."""
    (tmp_path / "tools").mkdir()
    for name in ("Cargo.toml", "CHANGELOG.md", "tools/release.sh"):
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = tmp_path / "CHANGELOG.md"
    text = changelog.read_text()
    changelog.write_text(re.sub(r"(?s)(## Unreleased\n).*?(?=## \d)", r"\1\n", text))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    return tmp_path


def git(tree, *arguments):
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    return subprocess.run(["git", *identity, *arguments], cwd=tree, check=True, capture_output=True, text=True).stdout


def release(tree):
    environment = {
        "PATH": "/usr/bin:/bin",
        "GIT_COMMITTER_NAME": "test",
        "GIT_COMMITTER_EMAIL": "test@example.org",
    }
    return subprocess.run(["tools/release.sh"], cwd=tree, capture_output=True, text=True, env=environment)


def test_a_release_is_tagged_once_with_its_notes(tree):
    done = release(tree)
    assert done.returncode == 0, done.stderr
    (tag,) = git(tree, "tag").split()
    assert re.fullmatch(r"v\d+\.\d+\.\d+", tag)
    assert "### Added" in git(tree, "tag", "-n99", tag)
    again = release(tree)
    assert again.returncode == 1
    assert f"the tag {tag} exists" in again.stderr


def test_a_release_of_a_tree_with_changes_or_unreleased_entries_is_refused(tree):
    changelog = tree / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## Unreleased\n", "## Unreleased\n\n- Something new.\n"))
    dirty = release(tree)
    assert dirty.returncode == 1
    assert "changes that are not committed" in dirty.stderr
    git(tree, "commit", "-qam", "two")
    unreleased = release(tree)
    assert unreleased.returncode == 1
    assert "entries under Unreleased" in unreleased.stderr
    assert git(tree, "tag") == ""
