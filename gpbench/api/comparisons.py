"""Ranks, differences and power of recorded runs: the functions behind the verbs of these names."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from gpbench.analysis.cells import group_runs
from gpbench.api.selection import (
    Filters,
    matching,
    predictions_reader,
    select,
    settings_of,
    single_metric,
    without_budget,
)
from gpbench.api.tables import Table
from gpbench.arguments import checked
from gpbench.records.store import Store, latest, recorded
from gpbench.records.unions import Results, first_answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpbench.analysis.differences import Difference
    from gpbench.analysis.sides import Side


@checked
def rank(
    *,
    metric: str | None = None,
    test: Literal["nemenyi", "wilcoxon"] = "nemenyi",
    all_settings: bool = False,
    results: Results = None,
    **filters: Unpack[Filters],
) -> Table:
    """Average ranks of methods over data sets, with Friedman's test and critical differences (Demšar 2006).

        gpbench.rank(method=["sep", "svi", "gfitc"], setting="m=15%").figure()

    Args:
        metric (NAME): a metric; by default nll, or rmse for regression.
        test: nemenyi (the default), or wilcoxon with Holm's correction.
        all_settings: rank every setting of a method; by default the one with runs on the most data sets, or those that
            the filter `setting` names.
        results, **filters: as for `table`.

    Returns:
        A table whose `figure` is the diagram of critical differences.

    examples:
      gpbench rank --method sep,svi,gfitc --setting m=15% --out ranks.pdf
    """
    from gpbench.analysis import comparison, rankings
    from gpbench.analysis.ranks import sheet

    records = first_answer(results, lambda stores: select(latest(recorded(stores)), filters))
    cells, name = group_runs(records), single_metric(metric, records)
    notes: list[str] = []
    if not all_settings and not filters.get("setting"):
        cells, notes = comparison.main_cells(cells, name, all_methods=bool(filters.get("method")))
        records = [record for cell in cells for record in cell.records]
    ranks = rankings.ranking(cells, name, test, notes)

    def draw() -> "Figure":
        from gpbench.report.figures.comparisons import draw_ranking

        return draw_ranking(ranks)

    data = {name: value for name, value in vars(ranks).items() if name != "known"}
    return Table(sheet(ranks, records), data, draw, records=records, results=results)


@checked
def compare(a: str, b: str, *, metric: str | None = None, results: Results = None, **filters: Unpack[Filters]) -> Table:
    """Paired differences A - B on every data set, over the splits that both have.

        gpbench.compare("sep", "svi", dataset="heart", setting="m=15%")

    Args:
        a, b: two methods, protocols, presets, precisions or commits, as sep, method:sep or commit:1a2b.
        metric (NAME): a metric; by default nll, or rmse for regression, where both have it.
        results, **filters: as for `table`.

    Returns:
        A table with the 95 % intervals of the corrected resampled t test (Nadeau and Bengio 2003); `figure` draws them.

    examples:
      gpbench compare sep svi --setting m=15% --out difference.png
      gpbench compare commit:1a2b commit:3c4d --results before --results after
    """
    from gpbench.analysis import power
    from gpbench.analysis.differences import sheet

    stores, (first, second, pairs, unmatched) = first_answer(
        results, lambda stores: (stores, _differences(a, b, metric, stores, filters))
    )
    compared = sheet(first, second, pairs, unmatched)
    compared = replace(compared, remarks=[*compared.remarks, *power.lines(pairs, predictions_reader(stores))])

    def draw() -> "Figure":
        from gpbench.report.figures.comparisons import draw_differences

        return draw_differences(first, second, pairs)

    return Table(compared, draw=draw, records=(r for pair in pairs for r in pair.records), results=results)


@checked
def power(a: str, b: str, *, metric: str | None = None, results: Results = None, **filters: Unpack[Filters]) -> Table:
    """The smallest difference A - B that the recorded splits can show, and the splits that the observed one needs.

    Args:
        a, b: two methods, protocols, presets, precisions or commits, as sep, method:sep or commit:1a2b.
        metric (NAME): a metric; by default nll, or rmse for regression, where both have it.
        results, **filters: as for `table`.

    Returns:
        A row for each data set, at a significance level of 5 % and a power of 80 %.

    examples:
      gpbench power sep svi --setting m=15%
    """
    from gpbench.analysis import power as powers

    first, second, pairs, _ = first_answer(results, lambda stores: _differences(a, b, metric, stores, filters))
    sheet = powers.sheet(first, second, pairs)
    return Table(sheet, records=(record for pair in pairs for record in pair.records), results=results)


def _differences(
    a: str, b: str, metric: str | None, stores: Sequence[Store], filters: Filters
) -> "tuple[Side, Side, list[Difference], list[Any]]":
    """Both sides, their differences on every data set, and the cells without a partner."""
    from gpbench.analysis import differences, sides

    records = matching(recorded(stores), filters)
    first, second = sides.parse_sides(a, b, records)
    if not settings_of(filters):
        records = without_budget(sides.records_of(first, second, records))
    # two commits have the same runs in two folders: the latest of each side counts
    records = [r for side in (first, second) for r in latest(r for r in records if side.includes(r))]
    name = single_metric(metric, records, sides.shared_metrics(first, second, records))
    return first, second, *differences.paired_differences(first, second, records, name)
