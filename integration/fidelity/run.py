"""`make fidelity`: does a page do the same with Longhaul as without, in a real browser?

Needs root, Chromium and the folder of saved pages. The pages are saved ones and the project's own. Each of the latter
(breakages/) stands for one way in which proxies that rewrite break pages. Each page is loaded directly and through
Longhaul, and all that a browser can report about a load is compared. Writes target/fidelity/report.html and
fidelity.json. The exit code is 1 if exceptions.toml does not explain a difference, or explains one that is gone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fidelity import exceptions
from fidelity.bed import BREAKAGES
from fidelity.report import figures, line, write
from fidelity.runner import Result, Runner, need
from fidelity.sitefile import read_all
from harness.host.artifacts import Missing, scratch
from harness.net import namespaces
from harness.origins.corpus import saved_pages


def main() -> int:
    """Compares, prints, and writes the report."""
    given = parse()
    try:
        need()
        saved = saved_pages()
    except Missing as reason:
        print(f"make fidelity: {reason}", file=sys.stderr)
        return 1
    ours = read_all(BREAKAGES)
    if given.only:
        saved = [page for page in saved if any(word in page.host for word in given.only)]
        ours = [page for page in ours if any(word in page.name for word in given.only)]
    namespaces.sweep()
    known = exceptions.load()
    print(f"{len(ours)} pages of our own at levels safe and full, {len(saved)} saved pages at level safe")
    print(f"{'page':34} {'level':5}{'requests':>9}{'moved':>7}  outcome", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="longhaul-fidelity-") as folder,
        Runner(Path(folder), saved, ours) as runner,
    ):
        started_s = time.monotonic()

        def progress(result: Result, share: float) -> None:
            left_s = (time.monotonic() - started_s) * (1 / share - 1)
            print(f"{line(result)}  [{share:.0%}, {left_s:.0f} s left]", flush=True)

        results = runner.run(known, progress)
    unused = known.unused([(one.subject.name, one.level) for one in results])
    for one in unused:
        print(f"exceptions.toml explains what no longer happens: {one.page} ({one.level}) {one.dimension}: {one.what}")
    print(", ".join(f"{value} {key.replace('_', ' ')}" for key, value in figures(results, unused).items()))
    print(f"{write(scratch('fidelity'), results, unused)} has the details")
    return 1 if unused or any(one.unexplained for one in results) else 0


def parse() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="parts of names: only pages whose name contains one of them")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
