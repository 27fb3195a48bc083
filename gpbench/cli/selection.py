"""Which of the recorded runs a verb is about: the filters that table, rank and compare share."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gpbench import paths
from gpbench.errors import ConfigError, nearest
from gpbench.papers import published
from gpbench.records.collected import open_store
from gpbench.records.store import Store

FIELDS = ("dataset", "method", "protocol", "preset", "precision")


def add_filters(parser: Any) -> None:
    """Add --dataset, --method, --protocol, --preset, --precision and --setting."""
    for field in FIELDS:
        parser.add_argument(f"--{field}", metavar="A,B", help=f"only runs of these {field} values")
    parser.add_argument("--setting", action="append", default=[], metavar="TEXT",
                        help="only settings that contain these parts, such as m=15%%; may be repeated")  # fmt: skip


def stores(folders: Sequence[Path] | None) -> list[Store]:
    """These results folders; without any, the one there is."""
    return [open_store(folder) for folder in folders or [paths.results_dir()]]


def gathered(stores: Sequence[Store]) -> list[dict]:
    """Every record of these results folders.  Raises ConfigError where there is none."""
    records = [record for store in stores for record in store.all()]
    if not records:
        named = ", ".join(str(store.runs) for store in stores)
        raise ConfigError(f"no runs in {named} yet; make one with `gpbench run`")
    return records


def newest(records: Iterable[dict]) -> list[dict]:
    """One record of each id, the one made last: several folders may hold the same run."""
    return list({r["id"]: r for r in sorted(records, key=lambda r: (r.get("created") or "", r["id"]))}.values())


def selected(records: Sequence[dict], args: argparse.Namespace) -> list[dict]:
    """The records that the filters leave.  Raises ConfigError for an unknown value, and where none is left."""
    for field in FIELDS:
        if not (value := getattr(args, field)):
            continue
        known = {str(record.get(field) or "none") for record in records}
        for name in value.split(","):
            if name not in known:
                raise ConfigError(f"no run has {field} {name!r}; {nearest(name, known)}")
        records = [record for record in records if str(record.get(field) or "none") in value.split(",")]
    if args.setting:
        records = [record for record in records if any(_has(record["setting"], wanted) for wanted in args.setting)]
    if not records:
        raise ConfigError("no run fits all of these filters; `gpbench ls runs` lists the runs")
    return list(records)


def check_metrics(metrics: Iterable[str], records: Sequence[dict]) -> None:
    """Raises ConfigError for a metric that no record has."""
    known = {"seconds", "objective", "all"}.union(*(record["metrics"] for record in records))
    for metric in metrics:
        if metric not in known:
            raise ConfigError(f"no run has the metric {metric!r}; {nearest(metric, known)}")


def one_metric(metric: str | None, records: Sequence[dict]) -> str:
    """The metric named, or that of the task: nll, else rmse.  Raises ConfigError for one that no record has."""
    found = set().union(*(record["metrics"] for record in records))
    name = metric or ("nll" if "nll" in found or "rmse" not in found else "rmse")
    check_metrics([name], records)
    return name


def _has(setting: str, wanted: str) -> bool:
    return published.parts(wanted).items() <= published.parts(setting).items()
