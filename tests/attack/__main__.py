"""The attack: kills, flips, hostile records, odd data, wrong inputs, environments, load.

    python tests/attack [--full] [NAME ...]     test_NAME.py of this folder, such as kills; by default all of them

It takes about ten minutes on two cores; with --full, as every week, some hours.
"""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def main(words: list[str]) -> int:
    """Runs the named files of this folder and returns pytest's exit code; 2 for a name that none has."""
    if "--full" in words:
        os.environ["GPBENCH_ATTACK"] = "full"
    names = [word for word in words if word != "--full"]
    files = {path.stem.removeprefix("test_"): str(path) for path in sorted(HERE.rglob("test_*.py"))}
    if unknown := [name for name in names if name not in files]:
        print(f"no attack {unknown[0]!r}; known are {', '.join(files)}", file=sys.stderr)
        return 2
    return pytest.main(["-q", "--durations=10", *map(files.__getitem__, names or files)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
