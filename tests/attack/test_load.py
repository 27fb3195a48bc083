"""Many commands at once on a busy machine: each ends with its result, and none with a signal at its end."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attackers import FULL
from samples import grid, write

ROOT = Path(__file__).resolve().parents[2]
CALLS = 500 if FULL else 16


def test_commands_under_load_end_as_they_should(tmp_path):
    nll = lambda dataset, method, split: {"nll": (2 * split + (method == "svi")) / 9}
    write(tmp_path / "results", grid(["pima"], ["sep", "svi"], 6, metrics=nll))
    command = [sys.executable, "-m", "gpbench", "compare", "sep", "svi", "--results", str(tmp_path / "results")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def answer(_):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        return done.returncode, done.stdout, done.stderr

    with ThreadPoolExecutor(4 * (os.cpu_count() or 1)) as pool:
        answers = set(pool.map(answer, range(CALLS)))
    ((code, out, err),) = answers
    assert (code, err) == (0, "") and "svi" in out
