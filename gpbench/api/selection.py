"""The records that a table, a ranking or a comparison is made of: results folders, and filters of their records."""

import re
from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, TypedDict

from gpbench import paths, plugins
from gpbench.analysis.grouping import gather
from gpbench.errors import AbsentError, ConfigError, either, nearest, require, require_known
from gpbench.papers import published
from gpbench.records.record import Record

FIELDS = ("dataset", "method", "protocol", "preset", "precision", "split")
"""Fields of a record that a filter can ask for."""

Names = str | Sequence[str] | None
"""Names, as a list or as one text with commas; None is all."""


class Filters(TypedDict, total=False):
    """Values that runs must have; a field without a value, or with None, selects all runs.

    `setting` is the text of settings, such as "m=15%", or "" for none, and `split` has numbers, as a list or in a text
    such as "0-9,12"; the others are names."""

    dataset: Names
    method: Names
    protocol: Names
    preset: Names
    precision: Names
    split: str | int | Sequence[int] | None
    setting: Sequence[str] | str | None


def names(value: Any) -> list[str]:
    """The names, or numbers, of a list, or of a text with commas; [] for None."""
    if isinstance(value, str | Integral):
        return [name.strip() for name in str(value).split(",")]
    return [] if value is None else [str(name) for name in value]


def select(records: Sequence[Record], filters: Filters) -> list[Record]:
    """The records that match all filters.  Raises AbsentError for an unknown value, and where no record matches."""
    for field in FIELDS:
        value: Any = filters.get(field)
        if value is None:
            continue
        known = {_name(record, field) for record in records}
        values = names(value)
        require(values, f"{field} names no value: leave it out for all of them", AbsentError)
        if field == "split":
            values = [number for text in values for number in _numbers(text, known)]
        for name in values:
            require_known(name, known, f"no run has {field} {name!r}", AbsentError)
        records = [record for record in records if _name(record, field) in values]
    setting = filters.get("setting")
    if settings := [setting] if isinstance(setting, str) else list(setting or ()):  # of which "" is one
        terms = [published.parts(setting) for setting in settings]  # m=15% and m=15%, steps=100 are two settings
        known = {record.setting for record in records}
        for setting, term in zip(settings, terms, strict=True):
            if all(published.parts(name) != term for name in known):
                hint = nearest(setting, known, lambda name: repr(name) if name else "'' (the default)")
                raise AbsentError(f"no run has setting {setting!r}; {hint}")
        records = [record for record in records if published.parts(record.setting) in terms]
    require(records, "no run matches all of these filters; `gpbench ls runs` lists the runs", AbsentError)
    return list(records)


def _name(record: Record, field: str) -> str:
    """The value of a field of a record, as a filter names it."""
    value = getattr(record, field)
    return "none" if value in (None, "") else str(value)


def _numbers(text: str, known: Iterable[str]) -> list[str]:
    """The recorded numbers of splits in a number or a range such as 0-9.  Raises AbsentError where there is none."""
    recorded = sorted(int(name) for name in known if name.isdigit())
    ends = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text)
    if ends and (numbers := [k for k in recorded if int(ends[1]) <= k <= int(ends[2] or ends[1])]):
        return [str(k) for k in numbers]
    span = f"{recorded[0]} to {recorded[-1]}" if recorded else "none"
    raise AbsentError(f"no run has split {text!r}; recorded are {span}: write numbers and ranges, as in 0-9,12")


def check_protocol(name: str, records: Iterable[Record], folders: Sequence[Path]) -> None:
    """Raises ConfigError for a protocol that neither a file nor a record has."""
    known = {*paths.yaml_files("protocol", plugins.folders(folders)), *(record.protocol for record in records)}
    require_known(name, known, f"no protocol {name!r}")


def check_metrics(metrics: Iterable[str], records: Sequence[Record]) -> None:
    """Raises ConfigError for a metric, or a number of `diagnostics.NAME`, that no record has."""
    for metric in {*metrics} - {"all"}:
        if metric.startswith("diagnostics."):
            known = {f"diagnostics.{name}" for record in records for name in record.diagnostics or ()}
        else:
            known = {"seconds", "objective"}.union(*(record.metrics for record in records))
        require_known(metric, known, f"no run has the metric {metric!r}")


def single_metric(metric: str | None, records: Sequence[Record], shared: Iterable[str] = ()) -> str:
    """The given metric, or by default nll, or rmse for regression, among the `shared` ones where there are any."""
    known = set(shared) or set().union(*(record.metrics for record in records))
    name = metric or ("nll" if "nll" in known or "rmse" not in known else "rmse")
    check_metrics([name], records)
    for dataset, of_set in gather((record.dataset, record) for record in records if name.startswith("tail_")).items():
        texts = {
            text for record in of_set for text in record.setting.split(", ") if text.startswith("dataset.threshold=")
        }
        mend = "take those of one of them by --setting, the whole setting as `gpbench ls runs` has it"
        require(len(texts) < 2, f"{name}: runs on {dataset} have {either(sorted(texts))}: {mend}", ConfigError)
    return name
