"""`make run`: starts the bundled demo site on loopback with Longhaul in front of it, and prints commands to try.

It needs neither root nor a Python package. Ctrl-C ends everything.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.host.artifacts import REPOSITORY, Missing, built
from harness.host.processes import end_with_parent
from harness.host.waiting import Timeout
from harness.origins.program import Origins

CONFIG = REPOSITORY / "envoy-config" / "demo" / "longhaul.yaml"
SITE = REPOSITORY / "integration" / "site" / "site.json"

WHAT_TO_TRY = """
The demo site is up, seen through Longhaul. In another terminal:

  a page, its objects moved to the proxy
    curl -s -H 'Host: www.demo.test' http://127.0.0.1:8080/
  one of those objects, fetched from its origin by the proxy
    curl -s -o island.png http://127.0.0.1:8080/img.demo.test/island.png
  a steered name: the proxy first, the origin after it
    dig @127.0.0.1 -p 1053 www.demo.test A
  nothing that would lead past the proxy (the origin has both records)
    dig @127.0.0.1 -p 1053 www.demo.test AAAA
    dig @127.0.0.1 -p 1053 www.demo.test HTTPS
  a name that is not on the list is left alone
    dig @127.0.0.1 -p 1053 unlisted.test A
  what the filter counted
    curl -s http://127.0.0.1:9153/metrics | grep longhaul_url_rewrite
  the page in a browser
    chromium --user-data-dir=/tmp/longhaul-demo --host-resolver-rules='MAP *.demo.test 127.0.0.1:8080' http://www.demo.test/

The configuration is {config}: edit it while this runs, changes apply at once.
Ctrl-C ends everything.
"""


class Stopped(Exception):  # noqa: N818 - it reads as what happened
    """Ctrl-C, or SIGTERM."""


def stop(number: int, _frame: object) -> None:
    """Turns the first signal into an exception. A second one must not interrupt the clean-up."""
    signal.signal(number, signal.SIG_IGN)
    raise Stopped


def main() -> int:
    """Runs until it is stopped. Returns the exit code of `longhaul run` if that ends first."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        with tempfile.TemporaryDirectory(prefix="longhaul-demo-") as folder, Origins(SITE, Path(folder)):
            return serve()
    except Stopped:
        return 0
    except (Missing, Timeout) as problem:
        print(problem, file=sys.stderr)
        return 1


def serve() -> int:
    """Starts `longhaul run`, prints commands to try when it is ready, and stops it at the end."""
    longhaul = subprocess.Popen(
        [built("longhaul"), "run", CONFIG],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches it only through this process, so that the site outlives it
        preexec_fn=end_with_parent,
    )
    try:
        assert longhaul.stdout
        for line in longhaul.stdout:
            print(line, end="", flush=True)
            if line.startswith("ready"):
                print(WHAT_TO_TRY.format(config=shown(CONFIG)), flush=True)
        return longhaul.wait()
    finally:
        longhaul.terminate()
        longhaul.wait()


def shown(path: Path) -> Path:
    """Returns the path relative to the current folder if it is below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


if __name__ == "__main__":
    sys.exit(main())
