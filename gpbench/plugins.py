"""Methods that other installed packages bring, by entry points of the group `gpbench.methods`, each of whose values is
an importable package with `method/NAME.yaml`, and other groups as in a folder of `--config-dir`."""

import importlib.util
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

_GROUP = "gpbench.methods"


@cache
def folders() -> tuple[Path, ...]:
    """Configuration folders of the installed packages that have one; broken entry points are reported on stderr and
    skipped."""
    result: list[Path] = []
    for point in sorted(entry_points(group=_GROUP), key=lambda point: (point.name, point.value)):
        try:
            spec = importlib.util.find_spec(point.value)
            locations = list(spec.submodule_search_locations or ()) if spec else []
        except (Exception, SystemExit):  # importing another package can raise anything
            locations = []
        if any((Path(location) / "method").is_dir() for location in locations):
            result += map(Path, locations)
        else:
            fault = f"{point.value} is no package with a folder `method`"
            print(f"gpbench: left out the entry point {point.name} of {_GROUP}: {fault}", file=sys.stderr)
    return tuple(result)
