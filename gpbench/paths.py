"""Folders: configuration, the local data store, results, caches.  No JAX, no NumPy."""

import os
from collections.abc import Iterable
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent if (_PACKAGE.parent / "conf" / "config.yaml").is_file() else None


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path, in which a first ~ stands for the home folder; one of no user, as in "~.csv", stays."""
    return Path(os.path.expanduser(path))  # of pathlib it is an error


def conf_dir() -> Path:
    """Folder of the configuration shipped with the package: inside the wheel, or `conf/` of a source checkout."""
    return _CHECKOUT / "conf" if _CHECKOUT else _PACKAGE / "conf"


def yaml_files(group: str, config_dirs: Iterable[Path | str] = ()) -> dict[str, Path]:
    """YAML files of a group by name, in order, ours before others of the name; "sep/table1" is one in a folder."""
    files: dict[str, Path] = {}
    for folder in (expanded(root) / group for root in (conf_dir(), *map(Path, config_dirs))):
        for path in folder.rglob("*.yaml"):
            files.setdefault(path.relative_to(folder).with_suffix("").as_posix(), path)
    return dict(sorted(files.items()))


def store_dir() -> Path:
    """Folder of the store of data: `GPBENCH_STORE`, else `datasets/` of a checkout, else the user's data folder."""
    if folder := os.environ.get("GPBENCH_STORE"):
        return expanded(folder)
    return _CHECKOUT / "datasets" if _CHECKOUT else Path(platformdirs.user_data_dir("gpbench")) / "datasets"


def mirror_dir() -> Path | None:
    """Folder of the mirror of data files, `GPBENCH_MIRROR`; None without one."""
    folder = os.environ.get("GPBENCH_MIRROR")
    return expanded(folder) if folder else None


def results_dir() -> Path:
    """The default folder of the records: `GPBENCH_RESULTS`, else `results/` here."""
    return expanded(os.environ.get("GPBENCH_RESULTS", "results"))


def shipped_files() -> list[Path]:
    """The collected records that ship with gpbench, a file in each folder; `GPBENCH_SHIPPED` names where these are."""
    folder = expanded(os.environ.get("GPBENCH_SHIPPED") or (_CHECKOUT or _PACKAGE) / "results")
    return sorted(folder.glob("*/records.parquet"))


def cache_dir() -> Path:
    """The user's cache folder of gpbench (compiled programs); `GPBENCH_CACHE` overrides it."""
    return Path(os.environ.get("GPBENCH_CACHE") or platformdirs.user_cache_dir("gpbench"))
