"""The records that a verb works on: stores and filters that table, rank, compare and report share."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import paths
from gpbench.errors import ConfigError, nearest
from gpbench.papers import published
from gpbench.records.collected import open_store
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.records.stores import open_existing

if TYPE_CHECKING:
    import numpy as np

FIELDS = ("dataset", "method", "protocol", "preset", "precision")


def add_filters(parser: Any) -> None:
    """Adds --dataset, --method, --protocol, --preset, --precision and --setting."""
    for field in FIELDS:
        parser.add_argument(f"--{field}", metavar="A,B", help=f"only runs with these values of {field}")
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="TEXT",
        help="only this setting, such as m=15%%, or '' for none; may be repeated",
    )


def open_stores(folders: Sequence[Path] | None) -> list[Store]:
    """The stores of these results folders, or of the default one.  Raises ConfigError for a folder that is absent."""
    return [open_existing(folder) for folder in folders] if folders else [open_store(paths.results_dir())]


def open_one(folder: Path | None) -> Store:
    """The store of this results folder, or of the default one.  Raises as `open_stores` does."""
    return open_stores([folder] if folder else None)[0]


def one_run(store: Store, args: argparse.Namespace) -> Record:
    """The record that `args.run` names, or the latest with `args.last`.  Raises ConfigError where it is not one."""
    if bool(args.run) == args.last:
        raise ConfigError("give the id of one run, or --last; `gpbench ls runs` lists the runs")
    return store.last() if args.last else store.find(args.run)


def predictions_of(stores: Sequence[Store]) -> "Callable[[Record], dict[str, np.ndarray]]":
    """From a record of one of these stores to the predictions beside it; two stores may have runs of one id."""

    def of(record: Record) -> "dict[str, np.ndarray]":
        store = next((store for store in stores if store.get(record.id, whole=False) == record), None)
        return store.predictions(record.id) if store else {}

    return of


def select(records: Sequence[Record], args: argparse.Namespace) -> list[Record]:
    """The records that match all filters.  Raises ConfigError for an unknown value, and where no record matches."""
    for field in FIELDS:
        if not (value := getattr(args, field)):
            continue
        known = {str(getattr(record, field) or "none") for record in records}
        for name in value.split(","):
            if name not in known:
                raise ConfigError(f"no run has {field} {name!r}; {nearest(name, known)}")
        records = [record for record in records if str(getattr(record, field) or "none") in value.split(",")]
    if args.setting:
        wanted = [published.parts(setting) for setting in args.setting]  # m=15% and m=15%, steps=100 are two settings
        records = [record for record in records if published.parts(record.setting) in wanted]
    if not records:
        raise ConfigError("no run matches all of these filters; `gpbench ls runs` lists the runs")
    return list(records)


def check_metrics(metrics: Iterable[str], records: Sequence[Record]) -> None:
    """Raises ConfigError for a metric that no record has."""
    known = {"seconds", "objective", "all"}.union(*(record.metrics for record in records))
    for metric in metrics:
        if metric not in known:
            raise ConfigError(f"no run has the metric {metric!r}; {nearest(metric, known)}")


def one_metric(metric: str | None, records: Sequence[Record], shared: Iterable[str] = ()) -> str:
    """This metric, or by default nll, or rmse for regression: of the `shared` ones where there are any.

    Raises ConfigError for one that no record has.
    """
    known = set(shared) or set().union(*(record.metrics for record in records))
    name = metric or ("nll" if "nll" in known or "rmse" not in known else "rmse")
    check_metrics([name], records)
    return name
