"""The attack: kills, flips, hostile records, odd data, wrong inputs, environments, load.

    python tests/attack [--full] [NAME ...]     test_NAME.py of this folder, such as kills; by default all

It takes about ten minutes on two cores; with --full, as every week, some hours.
"""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def main(words: list[str]) -> int:
    """Runs the named files of this folder and returns pytest's exit code."""
    if "--full" in words:
        os.environ["GPBENCH_ATTACK"] = "full"
    names = [word for word in words if word != "--full"]
    files = [str(HERE / f"test_{name}.py") for name in names] or [str(HERE)]
    return pytest.main(["-q", "--durations=10", *files])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
