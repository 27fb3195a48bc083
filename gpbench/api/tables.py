"""Tables, ranks, differences, power and verdicts of recorded runs: the functions behind the verbs of these names."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from gpbench.analysis import tables as table_sheets
from gpbench.analysis.cells import entries, group_runs
from gpbench.analysis.formats import FORMATS, Sheet
from gpbench.api.selection import (
    Filters,
    Names,
    Results,
    check_metrics,
    names,
    open_stores,
    predictions_reader,
    select,
    single_metric,
)
from gpbench.api.words import Folders, folders
from gpbench.errors import ConfigError
from gpbench.records.record import Record
from gpbench.records.store import latest, recorded

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from gpbench.analysis.differences import Difference
    from gpbench.analysis.sides import Side


class Table:
    """A table made of recorded runs, for people and for programs.

    `print(table)` shows it as the command line does, and a notebook as HTML.

    Attributes:
        sheet: the grids of the table, and the lines of text around them.
        data: the content as plain values, as `--json` prints it.

    Args:
        sheet, data: as above; without data the rows of the sheet.
        draw: draws the picture of the table, where it has one.
    """

    def __init__(self, sheet: Sheet, data: Any = None, draw: "Callable[[], Figure] | None" = None):
        self.sheet = sheet
        self.data: Any = sheet.rows if data is None else data
        self._draw = draw

    @property
    def frame(self) -> "pd.DataFrame":
        """The rows of the table in pandas, as in the CSV file."""
        return self.sheet.frame

    @property
    def has_figure(self) -> bool:
        """True if `figure` draws a picture of the table."""
        return self._draw is not None

    def figure(self) -> "Figure":
        """The picture of the table: the diagram of a ranking, the intervals of a comparison.

        Raises:
            ConfigError: the table has no picture.
        """
        if self._draw is None:
            raise ConfigError("there is no picture of this table")
        return self._draw()

    def to_markdown(self) -> str:
        """The table in Markdown, with its notes."""
        return FORMATS["md"](self.sheet)

    def to_latex(self) -> str:
        """The table in LaTeX, with its notes; it needs the package booktabs."""
        return FORMATS["latex"](self.sheet)

    def to_csv(self) -> str:
        """The rows of the table as CSV."""
        return FORMATS["csv"](self.sheet)

    def __str__(self) -> str:
        return str(self.sheet)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.sheet._repr_html_()


def table(
    experiment: str | None = None,
    *,
    metric: Names = None,
    config_dir: Folders = (),
    results: Results = None,
    **filters: Unpack[Filters],
) -> Table:
    """Means and standard errors over splits beside the published values.

        gpbench.table("sep/table1", preset="full")
        gpbench.table(dataset=["pima", "sonar"], metric="nll")

    Args:
        experiment: the id of a paper's table (`gpbench ls experiments`); without one the table has all recorded runs.
        metric: names of metrics, or "all"; by default nll, or rmse and test_ll for regression.
        config_dir: folders with experiment/ files of yours.
        results: the results folder, a file that `gpbench collect` made, or several.
        **filters: `dataset`, `method`, `protocol`, `preset`, `precision`, `setting`: only runs with these values.  With
            an experiment only `preset` can be given: "quick", which is the default, or "full".

    Raises:
        ConfigError: an unknown name, an experiment with a metric or a filter, or nothing is recorded.
    """
    if experiment is not None:
        preset = ",".join(names(filters.get("preset"))) or None
        options = {"metric": metric, **filters, "preset": None}
        if others := [f"--{key}" for key, value in options.items() if value]:
            raise ConfigError(f"{', '.join(others)}: {experiment} says itself what is in its table; leave it out")
        return _experiment_table(experiment, preset, config_dir, results)
    records = select(latest(recorded(open_stores(results))), filters)
    return table_of(records, metric)


def table_of(records: Sequence[Record], metric: Names = None) -> Table:
    """The table of these records.

    Args:
        records: the records.
        metric: names of metrics, or "all"; by default nll, or rmse and test_ll for regression.

    Raises:
        ConfigError: no record has such a metric.
    """
    metrics = names(metric)
    cells = entries(group_runs(records), metrics)
    check_metrics(metrics, records)
    if not cells:
        raise ConfigError("the matching runs have none of these metrics; try --metric all")
    return Table(table_sheets.sheet(cells), [table_sheets.as_dict(entry) for entry in cells])


def _experiment_table(id: str, preset: str | None, config_dir: Folders, results: Results) -> Table:
    from gpbench.analysis import experiment as experiment_sheets
    from gpbench.experiments import definition, plan
    from gpbench.experiments.status import require_recorded

    stores = open_stores(results)
    records = stores[0] if len(stores) == 1 else {record.id: record for record in latest(recorded(stores))}
    experiment, cells = plan.load(id, preset, folders(config_dir), records)
    if not experiment.table:
        raise ConfigError(f"{experiment.id} is a figure: gpbench plot {experiment.id}")
    preset = preset or definition.PRESETS[0]
    require_recorded(experiment.id, preset, cells)

    sheet = experiment_sheets.table(experiment, preset, cells)
    return Table(sheet)


def rank(
    *, metric: str | None = None, test: str = "nemenyi", results: Results = None, **filters: Unpack[Filters]
) -> Table:
    """Average ranks of methods over data sets, with Friedman's test and critical differences (Demšar 2006).

        gpbench.rank(method=["sep", "svi", "gfitc"], setting="m=15%").figure()

    Args:
        metric: a metric; by default nll, or rmse for regression.
        test: "nemenyi", or "wilcoxon" with Holm's correction.
        results: the results folder, a file that `gpbench collect` made, or several.
        **filters: `dataset`, `method`, `protocol`, `preset`, `precision`, `setting`: only runs with these values.

    Returns:
        A table whose `figure` is the diagram of critical differences.

    Raises:
        ConfigError: an unknown name, or fewer than two methods or data sets.
    """
    from gpbench.analysis import rankings
    from gpbench.analysis.ranks import sheet

    records = select(latest(recorded(open_stores(results))), filters)
    ranks = rankings.ranking(group_runs(records, by_preset=False), single_metric(metric, records), test)

    def draw() -> "Figure":
        from gpbench.report.figures.comparisons import draw_ranking

        return draw_ranking(ranks)

    data = {name: value for name, value in vars(ranks).items() if name != "known"}
    return Table(sheet(ranks, records), data, draw)


def compare(a: str, b: str, *, metric: str | None = None, results: Results = None, **filters: Unpack[Filters]) -> Table:
    """Paired differences A - B on every data set, over the splits that both have.

        gpbench.compare("sep", "svi", dataset="heart", setting="m=15%")

    Args:
        a, b: two methods, protocols, presets, precisions or commits, as "sep" or "method:sep".
        metric: a metric; by default nll, or rmse for regression, where both have it.
        results: the results folder, a file that `gpbench collect` made, or several.
        **filters: `dataset`, `method`, `protocol`, `preset`, `precision`, `setting`: only runs with these values.

    Returns:
        A table with the 95 % intervals of the corrected resampled t test (Nadeau and Bengio 2003); `figure` draws them.

    Raises:
        ConfigError: an unknown or ambiguous name, or no common split.
    """
    from gpbench.analysis import differences, row_differences

    stores = open_stores(results)
    first, second, pairs, unmatched = _differences(a, b, metric, stores, filters)
    sheet = differences.sheet(first, second, pairs, unmatched)
    sheet = replace(sheet, feet=[*sheet.feet, *row_differences.lines(pairs, predictions_reader(stores))])

    def draw() -> "Figure":
        from gpbench.report.figures.comparisons import draw_differences

        return draw_differences(first, second, pairs)

    return Table(sheet, draw=draw)


def power(a: str, b: str, *, metric: str | None = None, results: Results = None, **filters: Unpack[Filters]) -> Table:
    """The smallest difference A - B that the recorded splits can show, and the splits that the observed one needs.

    Args:
        a, b, metric, results, **filters: as for `compare`.

    Returns:
        A row for each data set, at a significance level of 5 % and a power of 80 %.

    Raises:
        ConfigError: as for `compare`, and where no test is possible.
    """
    from gpbench.analysis import power as powers

    first, second, pairs, _ = _differences(a, b, metric, open_stores(results), filters)
    sheet = powers.sheet(first, second, pairs)
    return Table(sheet)


def _differences(
    a: str, b: str, metric: str | None, stores: Sequence[Any], filters: Filters
) -> "tuple[Side, Side, list[Difference], list[Any]]":
    """Both sides, their differences on every data set, and the cells without a partner."""
    from gpbench.analysis import differences, sides

    records = select(recorded(stores), filters)
    first, second = sides.parse_sides(a, b, records)
    # two commits have the same runs in two folders: the latest of each side counts
    records = [r for side in (first, second) for r in latest(r for r in records if side.includes(r))]
    name = single_metric(metric, records, sides.shared_metrics(first, second, records))
    return first, second, *differences.paired_differences(first, second, records, name)


def verify(
    name: str = "all",
    *,
    preset: str | None = None,
    protocol: str | None = None,
    config_dir: Folders = (),
    results: Results = None,
) -> Table:
    """A verdict on every claim of a paper: supported, contradicted, undecided, or not run.

        gpbench.verify("sep").frame

    Args:
        name: a paper, an experiment, a claim ("sep/c01"), a file of yours, or "all".
        preset: "quick" or "full"; by default the one with more recorded runs.
        protocol: only runs under this protocol.
        config_dir: folders with claims/ files of yours.
        results: the results folder, a file that `gpbench collect` made, or several.

    Raises:
        ConfigError: an unknown name, or a wrong claim.
    """
    from gpbench.claims import report, verdicts
    from gpbench.claims import selection as claims
    from gpbench.experiments import plan

    records = latest(record for store in open_stores(results) for record in store.all())
    by_id = {record.id: record for record in records}
    config_dirs = folders(config_dir)
    judged = [
        verdict
        for selection in claims.select_claims(name, config_dirs)
        for verdict in verdicts.judge(
            selection.claims,  # all of them, over which verdicts are corrected
            records,
            lambda id, preset: plan.load(id, preset, config_dirs, by_id)[1],
            preset=preset,
            protocol=protocol,
        )
        if selection.includes(verdict.claim)
    ]
    sheet = report.sheet(judged)
    return Table(sheet, [report.as_dict(verdict) for verdict in judged])
