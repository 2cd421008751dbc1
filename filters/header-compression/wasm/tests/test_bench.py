"""The benchmark in its short form: it must still run."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "integration"))

from harness.boxes.filters import envoy_and_filter

BENCH = Path(__file__).resolve().parents[2] / "bench"
RUN = "import pathlib, sys, run; run.RESULTS = pathlib.Path(sys.argv[1]); sys.exit(run.main([]))"


class Bench(unittest.TestCase):
    def test_a_short_run_measures_bytes_and_time(self) -> None:
        envoy_and_filter("header-compression")
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "results.json"
            done = subprocess.run(
                [sys.executable, "-c", RUN, results],
                cwd=BENCH, env={**os.environ, "QUICK": "1"}, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            figures = json.loads(results.read_text())["figures"]
        for name in ("request_bytes_vs_hpack", "cold_bytes_vs_hpack", "encode_us", "decode_us"):
            self.assertGreater(figures[name], 0, name)


if __name__ == "__main__":
    unittest.main()
