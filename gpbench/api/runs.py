"""The runs of a call, with the means of their metrics."""

import html
from collections.abc import Iterable, Sequence
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, overload

from gpbench.analysis.grouping import gather
from gpbench.api.words import Folders
from gpbench.arguments import checked
from gpbench.errors import ConfigError, printable, require_known
from gpbench.records.absences import absences, absences_text
from gpbench.records.record import Record

if TYPE_CHECKING:
    import pandas as pd

    from gpbench.api.tables import Table


class Runs(Sequence[Record]):
    """Recorded runs, in the order in which they were asked for.

    Attributes:
        results: the results folder.
        recorded_before: the number of runs that were recorded before.

    `print(runs)` shows the mean and standard error of each metric, as `gpbench run` does, and a notebook a table with a
    row for each metric.  `runs[0]` is a record, `runs[:2]` are `Runs` again.
    """

    def __init__(self, records: Iterable[Record], results: Path | str, recorded_before: int = 0):
        self._records = list(records)
        self.results, self.recorded_before = Path(results), recorded_before

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> "Runs": ...
    def __getitem__(self, index: int | slice) -> "Record | Runs":
        if isinstance(index, slice):
            return Runs(self._records[index], self.results)
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    @property
    def frame(self) -> "pd.DataFrame":
        """A row for each run, with a column `metrics.NAME` for each metric, as in `gpbench.frame`."""
        from gpbench.records.frame import wide

        return wide(self._records)

    @checked
    def table(self, metric: str | Sequence[str] = ()) -> "Table":
        """Means and standard errors beside the published values, as `gpbench.table` makes it of these runs alone."""
        from gpbench.api.tables import table_of

        return table_of(self._records, metric or None, results=self.results)

    @checked
    def mean(self, metric: str) -> float:
        """The mean of a metric over splits, of each the mean over its outputs and seeds; NaN where no run has a value.

        Runs that diverged, and those for which the metric is undefined or not finite, are left out."""
        return self._mean_stderr(metric)[0]

    @checked
    def stderr(self, metric: str) -> float:
        """The standard error of the mean over splits; NaN for a single split.  Raises ConfigError as `mean` does."""
        return self._mean_stderr(metric)[1]

    @checked
    def predict(self, X: Any, *, return_std: bool = False, config_dir: Folders = ()) -> Any:
        """Predicts new rows by the one run, which was saved (`run__save=True`), as `RecordedRun.predict` does.

        `config_dir`: folders with the data sets and methods of your own that the run was trained with."""
        from gpbench.api.models import load_run

        if len(self) != 1:
            raise ConfigError(f"predict is of one run, and these are {len(self)}: choose it, as in runs[:1].predict(X)")
        return load_run(self[0], results=self.results, config_dir=config_dir).predict(X, return_std=return_std)

    def _mean_stderr(self, metric: str) -> tuple[float, float]:
        finished = [record for record in self if not record.diverged]
        known = {name for record in finished for name in record.metrics}
        require_known(metric, known, f"no run has the metric {metric!r}")
        return _mean_stderr(finished, metric)

    def _blocks(self) -> list[tuple[str, dict[str, str]]]:
        """The names of each data set, method, setting and protocol, with the values of its rows by name."""
        fields = ("dataset", "method", "setting", "protocol")
        groups = gather((tuple(str(getattr(record, field)) for field in fields), record) for record in self)
        return [(printable("  ".join(names)).rstrip(), _rows(records)) for names, records in groups.items()]

    @property
    def _footer(self) -> str:
        before = f"; {self.recorded_before} of {len(self)} were there already" if self.recorded_before else ""
        return f"records in {self.results / 'runs'}{before}"

    def _cells(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """A table: a column for each block, and a row for each metric, then each of seconds and numbers of runs."""
        titles, blocks = zip(*self._blocks()) if self else ((), ())
        metrics = {metric for record in self for metric in record.metrics}
        names = sorted(dict.fromkeys(name for block in blocks for name in block), key=lambda name: name not in metrics)
        rows = tuple((name, *(block.get(name, "") for block in blocks)) for name in names)
        return ("", *(" ".join(title.split()) for title in titles)), rows

    def __str__(self) -> str:
        from gpbench.analysis import printing

        if len(blocks := self._blocks()) == 1:
            ((title, rows),) = blocks
            lines = [title, *(f"  {name:<{max(map(len, rows))}}  {value}" for name, value in rows.items())]
        else:
            lines = [*printing.aligned(*self._cells(), printing.width())]
        return "\n".join([*lines, self._footer])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from gpbench.analysis.sheets import Grid
        from gpbench.analysis.writers.html import grid_html

        return f"{grid_html(Grid('', *self._cells()))}\n<p>{html.escape(self._footer)}</p>"


def _rows(records: Sequence[Record]) -> dict[str, str]:
    """Each metric's mean ± standard error, the seconds of all runs, and the number of runs."""
    finished = [record for record in records if not record.diverged]
    complete = sum(record.status == "done" for record in records)
    # not the first run's alone: one that failed has neither metrics nor all seconds
    metrics = dict.fromkeys(metric for record in finished for metric in record.metrics)
    rows = {metric: _mean_text(finished, metric) for metric in metrics}
    for name in dict.fromkeys(name for record in records for name in record.seconds):
        rows[f"{name} s"] = f"{sum(record.seconds.get(name) or 0 for record in records):.2f}"
    count = str(complete) if complete == len(records) else f"{complete} of {len(records)}"
    if len({record.split for record in records}) == len(records):
        return {**rows, "splits": count}
    sizes = {field: len({getattr(record, field) for record in records}) for field in ("output", "seed")}
    several = " and ".join(f"{n} {field}s" for field, n in sizes.items() if n > 1)
    return {**rows, "runs": f"{count}, of {several}" if several else count}


def _mean_text(records: Sequence[Record], metric: str) -> str:
    """Mean ± standard error over splits, and why runs have no value."""
    mean, stderr = _mean_stderr(records, metric)
    text = "" if isnan(mean) else f"{mean:.4f}" if isnan(stderr) else f"{mean:.4f} ± {stderr:.4f}"
    return ", ".join(filter(None, [text, absences_text(absences(records, metric))]))


def _mean_stderr(records: Sequence[Record], metric: str) -> tuple[float, float]:
    """Mean and standard error over splits, of each the mean over seeds, then over outputs; NaN for none."""
    from gpbench.analysis.cells import by_split, group_runs  # here: they import NumPy, and words are checked without it
    from gpbench.analysis.statistics import mean_stderr

    splits = gather(
        ((cell.dataset, cell.split_set, cell.method, cell.label, split), value)
        for cell in group_runs(records)
        for split, value in by_split(cell, metric).items()
    )
    mean, stderr = mean_stderr(list(map(fmean, splits.values()))) if splits else (nan, None)
    return mean, nan if stderr is None else stderr
