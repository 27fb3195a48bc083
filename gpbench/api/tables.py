"""Tables and verdicts of recorded runs: the functions behind the verbs `table` and `verify`."""

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Unpack

from gpbench import paths
from gpbench.analysis import formats, printing
from gpbench.analysis import tables as table_sheets
from gpbench.analysis.cells import entries, group_runs
from gpbench.analysis.formats import FORMATS
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.api.selection import Filters, Names, check_metrics, check_protocol, names, select
from gpbench.api.words import Folders, folders
from gpbench.arguments import checked
from gpbench.errors import AbsentError, ConfigError, require
from gpbench.papers import PAPERS, published
from gpbench.records.record import Record
from gpbench.records.store import Store, latest, recorded
from gpbench.records.unions import Results, first_answer, package_lists, union

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Table:
    """A table result of recorded runs, for people and for programs.

    `print(table)` shows it as the command line does, and a notebook as HTML.

    Attributes:
        sheet: the grids of the table, its notes, and what was run.
        data: the content as plain values, as `--json` prints it.
        records: the runs that stand in the table; none for a table of other things.
        exit_code: that of the command which prints the table: 1 where a claim fails or is refuted.
    """

    def __init__(
        self,
        sheet: Sheet | None,
        data: Any = None,
        picture: Sequence[Any] = (),
        *,
        records: Iterable[Record] | None = (),
        results: Results = None,
        exit_code: int = 0,
    ):
        self.exit_code, self._whole = exit_code, True
        if records is not None:
            self.records = tuple(records)
        if sheet:
            self.sheet, self.data = sheet, sheet.rows if data is None else data
        self._picture, self._results = picture, results  # a function in `gpbench.report.figures`, and its arguments

    @property
    def frame(self) -> "pd.DataFrame":
        """The rows of the table in pandas, as in the CSV file."""
        return self.sheet.frame

    @property
    def has_figure(self) -> bool:
        """True if `figure` draws a picture of the table."""
        return bool(self._picture)

    def figure(self) -> "Figure":
        """The picture of the table: the diagram of a ranking, the intervals of a comparison."""
        require(self._picture, "there is no picture of this table", ConfigError)
        name, *arguments = self._picture
        module, _, function = name.partition(".")
        return getattr(importlib.import_module(f"gpbench.report.figures.{module}"), function)(*arguments)

    def to_markdown(self) -> str:
        """The table in Markdown, with its notes."""
        return FORMATS["md"](self.sheet)

    def to_latex(self, *, plain: bool = False) -> str:
        """The table in LaTeX, which needs the packages booktabs and, for tables of words, tabularray.

        Args:
            plain: only the tables, without captions, notes and provenance.
        """
        return FORMATS["latex"](formats.plain(self.sheet) if plain else self.sheet)

    def to_csv(self) -> str:
        """The rows of the table as CSV."""
        return FORMATS["csv"](self.sheet)

    @checked
    def to_crate(self, path: str | PathLike[str], *, config_dir: Folders = ()) -> None:
        """Writes the table, its picture, its runs and what they cite to a zip file that can be published.

        Args:
            path: the file, an RO-Crate (`gpbench.report.crate`).
            config_dir: folders with cards and references of yours.
        """
        from gpbench.report import crate

        file = paths.expanded(path)
        fault = f"{file}: an RO-Crate is a zip file; give a name that ends in .zip"
        require(file.suffix.lower() == ".zip", fault, ConfigError)
        figure = self.figure() if self.has_figure else None
        lists = package_lists(self.records, self._results)
        crate.write(file, self.sheet, self.records, figure, lists, folders(config_dir))

    def lines(self) -> Iterator[str]:
        """The lines that are printed."""
        return filter(None, [FORMATS["terminal"](self.sheet if self._whole else self.sheet.brief)])

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return FORMATS["html"](self.sheet)


@checked
def table(
    experiment: str | None = None,
    *,
    metric: Names = None,
    later: bool = False,
    missing: bool = False,
    whole: bool = False,
    config_dir: Folders = (),
    results: Results = None,
    **filters: Unpack[Filters],
) -> Table:
    """Means and standard errors over splits beside the published values.

        gpbench.table("sep/table1", preset="full")
        gpbench.table(dataset=["pima", "sonar"], metric="nll")

    Args:
        experiment (ID): the id of a paper's table (`gpbench ls experiments`); by default all recorded runs.
        metric: names of metrics, or all; by default nll, or rmse and test_ll for regression.
        later: also values of later papers on the same data.
        missing: the runs of the experiment that are not recorded, instead of its table.
        whole: print all of its tables and what was run, as files have them, in place of the first.
        config_dir: folders with experiment/ files of yours.
        results: the results folder, a file of `gpbench collect`, "shipped", or several; by default the results
            folder, or the runs that ship with gpbench where it has none of these.
        **filters: `dataset`, `method`, `protocol`, `preset`, `precision`, `split`, `setting`: only runs with these
            values.  With an experiment only `preset` can be given: "quick" or "full", by default that of which more is
            recorded.

    examples:
      gpbench table sep/table1
      gpbench table --dataset pima,sonar --metric nll,seconds
    """
    if experiment is not None:
        preset = ",".join(names(filters.get("preset"))) or None
        options = {"metric": metric, **filters, "preset": None, "later": later or None}
        if others := [f"--{key}" for key, value in options.items() if value or value == 0]:
            raise ConfigError(f"{', '.join(others)}: {experiment} says itself what is in its table; leave it out")
        result = _experiment_table(experiment, preset, missing, config_dir, results)
        result._whole = whole or missing
        return result
    require(not missing, "--missing: name the table whose missing runs to list, such as sep/table1", ConfigError)
    records = first_answer(results, lambda stores: select(latest(recorded(stores)), filters))
    result = table_of(records, metric, results=results)
    if later:
        result.sheet = replace(result.sheet, grids=[*result.sheet.grids, *_later(result.data)])
    return result


def table_of(records: Sequence[Record], metric: Names = None, *, results: Results = None) -> Table:
    """The table of these records, which were read in `results`.  Raises ConfigError: no record has such a metric."""
    metrics = names(metric)
    cells = entries(group_runs(records), metrics)
    check_metrics(metrics, records)
    require(cells, "the matching runs have none of these metrics; try --metric all", ConfigError)
    data = [table_sheets.as_dict(entry) for entry in cells]
    members = (record for entry in cells for record in entry.cell.records)
    return Table(table_sheets.sheet(cells), data, records=members, results=results)


def _later(rows: Sequence[Mapping[str, Any]]) -> list[Grid]:
    """Values that later papers publish for the data sets and metrics of a table."""
    header = ("data set", "metric", "method", "setting", "value", "err", "source", "note")
    values = tuple(
        (dataset, metric, p.method, p.setting, printing.number(p.value), printing.number(p.err), p.source, p.note)
        for dataset, metric in dict.fromkeys((row["dataset"], row["metric"]) for row in rows)
        for p in published.later(dataset, metric)
    )
    return [Grid("later papers", header, values, prose=True)] if values else []


def _experiment_table(id: str, preset: str | None, missing: bool, config_dir: Folders, results: Results) -> Table:
    from gpbench.analysis import experiment as experiment_sheets
    from gpbench.experiments import definition, plan

    config_dirs = folders(config_dir)
    try:
        experiment = definition.read(id, config_dirs)
    except ConfigError:
        kind = next((kind for kind in ("dataset", "method") if id in paths.yaml_files(kind, config_dirs)), None)
        if not kind or id in PAPERS:
            raise
        noun = kind.replace("dataset", "data set")
        raise ConfigError(f"no experiment {id!r}; it is a {noun}: give --{kind}={id}") from None
    require(experiment.table, f"{experiment.id} is a figure: gpbench plot {experiment.id}", ConfigError)
    load = lambda stores: plan.load_recorded(experiment, preset, config_dirs, union(stores))
    try:
        preset, cells = first_answer(results, load)
    except AbsentError:
        if not missing:
            raise
        preset = preset or definition.PRESETS[-1]
        cells = plan.plan(experiment, preset, plan.Planner(config_dirs))
    if missing:
        return Table(experiment_sheets.missing_runs(experiment, preset, cells))
    sheet = experiment_sheets.table(experiment, preset, cells)
    return Table(sheet, records=(record for cell in cells for record in cell.records), results=results)


@checked
def verify(
    name: str = "all",
    *,
    preset: Literal["quick", "full"] | None = None,
    protocol: str | None = None,
    details: bool = False,
    by_grade: bool = False,
    config_dir: Folders = (),
    results: Results = None,
) -> Table:
    """A grade for every claim of a paper: proved, holds, mostly holds, leans for, mixed, leans against, fails, refuted,
    not run or not here.

    The exit code of the command is 1 where one fails or is refuted.

        gpbench.verify("sep").frame

    Args:
        name (NAME): a paper, an experiment, a claim (sep/c01), a file of yours, or all, the default.
        preset: quick or full; by default both, the full one where it has a number.
        protocol (NAME): only runs under this protocol.
        details: every clause, interval and p-value.
        by_grade: list them by grade.
        config_dir: folders with claims/ files of yours.
        results: as for `table`.

    examples:
      gpbench verify sep
      gpbench verify sep/c01 --details
      gpbench verify mine --config-dir DIR
    """
    from gpbench.claims import report, verdicts
    from gpbench.claims import selection as claims
    from gpbench.experiments import definition, plan

    config_dirs = folders(config_dir)
    selections = list(claims.select_claims(name, config_dirs))

    def judge(stores: Sequence[Store]) -> "list[verdicts.Verdict]":
        store = union(stores)
        records = store.all()
        by_id = {record.id: record for record in records}
        planner = plan.Planner(config_dirs)  # experiments of several claims share jobs
        if protocol is not None:
            check_protocol(protocol, records, config_dirs)
        planned = lambda id, preset: plan.plan(definition.read(id, config_dirs), preset, planner, by_id)
        judged = []
        for every, ids in selections:  # all claims of a file are judged, over which p-values are corrected
            graded = verdicts.judge(every, records, planned, preset=preset, protocol=protocol, read=store.trace)
            judged += [verdict for verdict in graded if verdict.claim.id in ids]
        return judged

    judged = first_answer(results, judge, lambda judgement: all(verdict.reason for verdict in judgement))
    rows = [report.as_dict(verdict) for verdict in judged]
    is_refuted = any(row["verdict"] in ("fails", "refuted") for row in rows)
    return Table(report.sheet(judged, details, by_grade), rows, exit_code=int(is_refuted))
