"""Additions of other installed packages, by entry points of the groups `gpbench.KINDs`.  One of `gpbench.methods` is an
importable package with `method/NAME.yaml`, and other groups as in a folder of `--config-dir`."""

import importlib.util
from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from gpbench.errors import ConfigError, require, require_known
from gpbench.log import log

_GROUP, LOGGERS = "gpbench.methods", "gpbench.loggers"
_TRACKERS = {"mlflow": "mlflow", "tensorboard": "tensorboardX", "wandb": "wandb"}
"""The packages that the trackers of gpbench need (`gpbench.train.trackers`)."""


@cache
def points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, read once in a process: reading them opens a file of every installed package."""
    return tuple(sorted(entry_points(group=group), key=lambda point: (point.name, point.value)))


def check_trackers(names: Any) -> None:
    """Raises ConfigError where an experiment tracker of `run.log` does not exist, or lacks its package."""
    for name in names if isinstance(names, list) else filter(None, [names]):
        known = {*_TRACKERS, *(point.name for point in points(LOGGERS))}
        require_known(str(name), known, f"run.log={name}: no such tracker", ConfigError)
        package = _TRACKERS.get(name, "gpbench")
        fault = f"{package} is not installed: pip install -c constraints.txt -e '.[trackers]' in the checkout"
        require(importlib.util.find_spec(package), f"run.log={name}: {fault}", ConfigError)


def folders(config_dirs: Sequence[Path] = ()) -> list[Path]:
    """All folders with group files besides gpbench's: the user's, and those of installed packages."""
    return [*config_dirs, *_installed()]


@cache
def _installed() -> tuple[Path, ...]:
    """The folders of the packages that have one; broken entry points are reported on stderr and skipped."""
    result: list[Path] = []
    for point in points(_GROUP):
        try:
            spec = importlib.util.find_spec(point.value)
            locations = list(spec.submodule_search_locations or ()) if spec else []
        except (Exception, SystemExit):  # importing another package can raise anything
            locations = []
        if any((Path(location) / "method").is_dir() for location in locations):
            result += map(Path, locations)
        else:
            fault = f"{point.value} is no package with a folder `method`"
            log.warning(f"left out the entry point {point.name} of {_GROUP}: {fault}")
    return tuple(result)
