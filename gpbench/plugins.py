"""Methods that other installed packages bring, by entry points of the group `gpbench.methods`.  No JAX, no NumPy.

An entry point's value is an importable package whose folder has `method/NAME.yaml`, and other groups if it likes: what
a folder named by `--config-dir` has.
"""

import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "gpbench.methods"


@cache
def folders() -> tuple[Path, ...]:
    """The configuration folders of all installed packages that have one.

    An entry point that leads nowhere is named on stderr and left out: somebody else's package stops nobody's runs.
    """
    return tuple(_found())


def _found() -> Iterator[Path]:
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            spec = importlib.util.find_spec(point.value)
            places = list(spec.submodule_search_locations or ()) if spec else []
        except Exception:  # whatever the code of somebody's package raises as it is imported
            places = []
        if any((Path(place) / "method").is_dir() for place in places):
            yield from map(Path, places)
        else:
            lost = f"{point.value} is no package with a folder `method`"
            print(f"gpbench: left out the entry point {point.name} of {GROUP}: {lost}", file=sys.stderr)
